# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The worker that the other workers of a job wait for.

A chunk's result is sent when the last contribution has arrived. So the round trips of all workers but the last contain
waiting time, and those of the straggler do not."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

from netfold.controller.lifecycle.member_status import Progress

MAX_RATIO = 0.5
"""A straggler's round trip, compared with the median of the other workers."""

MIN_WORKERS = 3
"""With fewer workers a median says nothing."""


def straggler(workers: Mapping[str, Progress]) -> str | None:
    """The host of the straggler, from the workers' latest reports; None if no worker stands out."""
    trips = {host: trip for host, progress in workers.items() if (trip := _round_trip_ms(progress)) > 0}
    if len(trips) < MIN_WORKERS:
        return None
    first = min(trips, key=lambda host: trips[host])
    others = median(trip for host, trip in trips.items() if host != first)
    return first if trips[first] < MAX_RATIO * others else None


def _round_trip_ms(progress: Progress) -> float:
    """The mean SRTT of its trees, weighted with their new results; 0 without results."""
    results = sum(t.results for t in progress.lately)
    return sum(t.rtt_ms * t.results for t in progress.lately) / results if results else 0.0
