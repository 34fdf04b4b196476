# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Token buckets: how much a tenant may use within a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


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
