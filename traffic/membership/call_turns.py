# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Repeats calls that exceed the calls of their tenant: many ranks start at once, and a refusal would end their job."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import grpc

from netfold.protocol.connection import TOO_MANY_KEY

PAUSE_S = 0.5
"""Seconds between two attempts."""

Answer = TypeVar("Answer")


def in_turn(call: Callable[[], Answer], limit_s: float) -> Answer:
    """The answer to a call. `limit_s`: for how long it is repeated while its tenant makes too many. Raises RpcError."""
    deadline = time.monotonic() + limit_s
    while True:
        try:
            return call()
        except grpc.RpcError as error:
            if not _is_one_too_many(error) or time.monotonic() + PAUSE_S >= deadline:
                raise
        time.sleep(PAUSE_S)  # the controller limits the pace


def _is_one_too_many(error: grpc.RpcError) -> bool:
    return any(entry.key == TOO_MANY_KEY for entry in error.trailing_metadata() or ())
