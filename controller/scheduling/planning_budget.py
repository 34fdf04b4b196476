# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Limits the planner's time that submissions of a tenant take: plans are made one at a time, for all tenants."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from netfold.controller.jobs.submitter import LimitError, Submitter
from netfold.controller.jobs.token_bucket import TokenBuckets

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
