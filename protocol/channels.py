# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Opens channels to the controller that leads, among the addresses of a connection.

A new channel proves itself by a health check, which needs no token. One that gets no answer in time is given up for
another, because gRPC can stay without any attempt at a connection although the controller serves. The check also tells
a standby from the leader, so no address has to be taken from a standby's words: a token goes nowhere but to the
addresses that the user gave, each with a certificate for its own name.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace

import grpc

from netfold.protocol.connection import PASSING, Connection, aio_channel_to, channel_to
from netfold.protocol.unreachable import unreachable_reason

ANSWER_S = 20.0
"""Seconds within which a controller answers a new caller, unless the machine has stalled."""
FIRST_S = 3.0
"""Limit of the first attempt at an address. It doubles, because on a busy machine a handshake may take longer."""
RETRY_S = 0.2

_CHECK = "/grpc.health.v1.Health/Check"
_SERVICE = b"netfold.v1.Controller"
_REQUEST, _NOT_SERVING = bytes([0x0A, len(_SERVICE)]) + _SERVICE, b"\x08\x02"
"""A HealthCheckRequest, and the answer of a standby. Workers are installed without the package of their stubs."""

_leaders: dict[str, str] = {}
"""For each text of addresses, the one that has led last."""


@contextmanager
def open_channel(
    where: Connection, timeout: float = ANSWER_S, *, wait_for_ready: bool = False
) -> Iterator[grpc.Channel]:
    """For threads. `wait_for_ready`: wait for a controller that does not listen yet, of several addresses for one that
    leads, `timeout` seconds at most. Raises RpcError (UNAVAILABLE) with the reason."""
    search = _Search(where, timeout, wait_for_ready)
    while True:
        time.sleep(search.pause_s)  # a controller that starts again has no event
        with channel_to(where, search.address) as channel:
            answer: bytes | grpc.RpcError
            try:
                answer = channel.unary_unary(_CHECK, None, None)(_REQUEST, timeout=search.limit_s)
            except grpc.RpcError as error:
                answer = error
            if search.takes(answer):
                yield channel
                return


@asynccontextmanager
async def open_aio_channel(
    where: Connection, timeout: float = ANSWER_S, *, wait_for_ready: bool = False
) -> AsyncIterator[grpc.aio.Channel]:
    """For asyncio; otherwise as `open_channel`."""
    search = _Search(where, timeout, wait_for_ready)
    while True:
        await asyncio.sleep(search.pause_s)
        async with aio_channel_to(where, search.address) as channel:
            answer: bytes | grpc.RpcError
            try:
                answer = await channel.unary_unary(_CHECK, None, None)(_REQUEST, timeout=search.limit_s)
            except grpc.RpcError as error:
                answer = error
            if search.takes(answer):
                yield channel
                return


class _Search:
    """The address that is tried next, after a pause, and the seconds that it has for its answer."""

    def __init__(self, where: Connection, timeout: float, wait_for_ready: bool) -> None:
        self._where = where
        self._timeout = timeout
        self._deadline = time.monotonic() + timeout
        self._waits = wait_for_ready
        self._patience_s = FIRST_S
        self._takes_standby = len(where.addresses) == 1
        self._begin()

    def _begin(self, pause_s: float = 0.0) -> None:
        self.pause_s = pause_s
        last = _leaders.get(self._where.address)
        self._left = sorted(self._where.addresses, key=lambda a: a != last)  # stable
        self._reasons: dict[str, str] = {}
        self._is_silent = self._has_standby = False
        self._next()

    def _next(self) -> None:
        part_s = (self._deadline - time.monotonic()) / len(self._left)  # a short time is for all of them
        self.limit_s = max(0.0, min(self._patience_s, part_s))
        self.address = self._left.pop(0)

    def takes(self, answer: bytes | grpc.RpcError) -> bool:
        """Whether the address that was tried is the one. Raises AioRpcError if there is none."""
        is_standby = answer == _NOT_SERVING
        code = answer.code() if isinstance(answer, grpc.RpcError) else None
        if code is grpc.StatusCode.DEADLINE_EXCEEDED:
            self._is_silent = True
            self._reasons[self.address] = f"no answer within {self._timeout:g} s"
        elif isinstance(answer, grpc.RpcError) and code in PASSING:
            self._reasons[self.address] = str(answer.details())
        elif not is_standby or self._takes_standby:
            if not is_standby:
                _leaders[self._where.address] = self.address
            return True
        else:
            self._has_standby = True
            self._reasons[self.address] = "a standby"
        self.pause_s = 0.0
        if self._left:
            self._next()
        else:
            self._begin_again()
        return False

    def _begin_again(self) -> None:
        pause_s = RETRY_S
        if self._has_standby and not self._waits:  # it answers reads, and says why it refuses the rest
            self._takes_standby, pause_s = True, 0.0
        elif time.monotonic() + RETRY_S > self._deadline or not (self._is_silent or self._waits):
            none = grpc.aio.Metadata()
            raise grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, none, none, self._reason(), None)
        if self._is_silent:
            self._patience_s, pause_s = 2 * self._patience_s, 0.0
        self._begin(pause_s)

    def _reason(self) -> str:
        """With several addresses, in words for each."""
        if len(self._where.addresses) == 1:
            return self._reasons[self.address]
        at = ((a, replace(self._where, address=a), reason) for a, reason in self._reasons.items())
        return "; ".join(f"{a}: {unreachable_reason(where, reason)}" for a, where, reason in at)
