# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Limits the calls of a tenant, so that a flood of one delays no other. Calls over the limit wait, so that programs of
many ranks that start at once only start later."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import grpc

from netfold.controller.jobs.token_bucket import TokenBuckets
from netfold.controller.service.access import RULES, AccessRefusal, Right
from netfold.controller.service.identities import Identity, Role

DEFAULT_CALLS_S = 20.0
"""Calls a second of a tenant whose limits name none."""

BURST_S = 10.0
"""Seconds whose calls a tenant may make at once. It may make at least one."""

MAX_DELAY_S = 5.0
"""Seconds that a call over the limit waits at most: commands wait 10 s for their answer."""

REFUSAL_S = 1.0
"""Seconds until a refusal is answered. To refuse a call costs nearly as much as to answer one, so a caller that repeats
refused calls at once would delay the others all the same."""


class CallRates:
    """The calls of viewers and users, by tenant. `now`: monotonic clock."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._buckets = TokenBuckets(now)

    def delay_s(self, caller: Identity, rpc: str) -> float | AccessRefusal:
        """The seconds that a call has to wait, or why it is one too many. Members join without limit: a refusal would
        end their job."""
        rule, limit = RULES.get(rpc), caller.limits.calls
        is_joining = rule is not None and rule.right is Right.JOIN
        if is_joining or caller.role not in (Role.VIEWER, Role.USER) or limit == math.inf:
            return 0.0
        limit = DEFAULT_CALLS_S if limit is None else limit
        amount = self._buckets.amount(caller.tenant, a_second=limit, depth=max(1.0, limit * BURST_S))
        delay_s = max(0.0, (1.0 - amount) / limit)
        if delay_s <= MAX_DELAY_S:
            self._buckets.use(caller.tenant, 1.0)
            return delay_s
        message = f"tenant '{caller.tenant}' makes too many calls a second; its limit is calls={limit:g}"
        return AccessRefusal(grpc.StatusCode.RESOURCE_EXHAUSTED, message, REFUSAL_S)
