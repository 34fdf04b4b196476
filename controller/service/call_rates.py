# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Limits the calls of a tenant, so that a flood of one delays no other."""

from __future__ import annotations

import time
from collections.abc import Callable

import grpc

from netfold.controller.jobs.token_bucket import TokenBuckets
from netfold.controller.service.access import RULES, AccessRefusal, Right
from netfold.controller.service.identities import Identity

BURST_S = 1.0
"""Seconds whose calls a tenant may make at once. It may make at least one."""

REFUSAL_S = 1.0
"""Seconds until a refusal is answered. To refuse a call costs nearly as much as to answer one, so a caller that repeats
refused calls at once would delay the others all the same."""


class CallRates:
    """The calls of each tenant with a limit. `now`: monotonic clock."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._buckets = TokenBuckets(now)

    def refusal(self, caller: Identity, rpc: str) -> AccessRefusal | None:
        """Why a call is one too many. Members join without limit: a refusal would end their job."""
        limit, rule = caller.limits.calls, RULES.get(rpc)
        if limit is None or (rule is not None and rule.right is Right.JOIN):
            return None
        if self._buckets.amount(caller.tenant, a_second=limit, depth=max(1.0, limit * BURST_S)) >= 1.0:
            self._buckets.use(caller.tenant, 1.0)
            return None
        message = f"tenant '{caller.tenant}' makes too many calls a second; its limit is calls={limit:g}"
        return AccessRefusal(grpc.StatusCode.RESOURCE_EXHAUSTED, message, REFUSAL_S)
