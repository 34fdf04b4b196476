# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Limits the calls of a tenant, so that a flood of one delays no other."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import grpc

from netfold.controller.service.access import RULES, AccessRefusal, Right
from netfold.controller.service.identities import Identity

BURST_S = 1.0
"""Seconds whose calls a tenant may make at once. It may make at least one."""


@dataclass
class _Bucket:
    calls: float
    at: float


class CallRates:
    """A token bucket for each tenant with a limit. `now`: monotonic clock."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._buckets: dict[str, _Bucket] = {}

    def refusal(self, caller: Identity, rpc: str) -> AccessRefusal | None:
        """Why a call is one too many. Members join without limit: a refusal would end their job."""
        limit, rule = caller.limits.calls, RULES.get(rpc)
        if limit is None or (rule is not None and rule.right is Right.JOIN):
            return None
        now, depth = self._now(), max(1.0, limit * BURST_S)
        bucket = self._buckets.setdefault(caller.tenant, _Bucket(depth, now))
        bucket.calls = min(depth, bucket.calls + (now - bucket.at) * limit)
        bucket.at = now
        if bucket.calls >= 1.0:
            bucket.calls -= 1.0
            return None
        message = f"tenant '{caller.tenant}' makes too many calls a second; its limit is calls={limit:g}"
        return AccessRefusal(grpc.StatusCode.RESOURCE_EXHAUSTED, message)
