# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Token buckets: how much a tenant may use within a time, and so the planner's time that its submissions take, as plans
are made one at a time for all tenants."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from netfold.controller.jobs.submitter import LimitError, Submitter

WITHIN_S = 3600.0
"""Seconds within which a tenant has the planning time of its limit."""


class PlanningBudget:
    """`now`: monotonic clock."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._buckets = TokenBuckets(now)

    def check(self, submitter: Submitter) -> None:
        """Raises LimitError if the submitter's tenant has no time left."""
        limit = submitter.limits.planning
        if limit is not None:
            left_s = self._buckets.amount(submitter.tenant, a_second=limit / WITHIN_S, depth=limit)
            if left_s <= 0:
                what = "its submissions have taken the planner's time of this hour"
                raise LimitError(f"tenant '{submitter.tenant}': {what}; its limit is planning={limit:g}")

    @contextmanager
    def spent(self, submitter: Submitter) -> Iterator[None]:
        """Count the time of the context, in which a plan is made for the submitter alone."""
        since = self._now()
        try:
            yield
        finally:
            self._buckets.use(submitter.tenant, self._now() - since)


@dataclass
class _Bucket:
    amount: float
    at: float


class TokenBuckets:
    """A bucket for each tenant that is limited. `now`: monotonic clock."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._buckets: dict[str, _Bucket] = {}

    def amount(self, tenant: str, *, a_second: float, depth: float) -> float:
        """Return what the tenant may use now: it grows by `a_second` up to `depth`."""
        now = self._now()
        bucket = self._buckets.setdefault(tenant, _Bucket(depth, now))
        bucket.amount = min(depth, bucket.amount + (now - bucket.at) * a_second)
        bucket.at = now
        return bucket.amount

    def use(self, tenant: str, amount: float) -> None:
        """Take an amount, of which there may be less: the tenant then waits for longer."""
        if tenant in self._buckets:
            self._buckets[tenant].amount -= amount
