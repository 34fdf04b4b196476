# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Derives from the reports of members their present goodput, and the worker that the others of a job wait for."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from statistics import median

from netfold.controller.lifecycle.member_status import Holder, Progress

WINDOW_S = 3.0
"""Seconds of reports over which a rate is computed."""

SILENT_S = 2.0
"""Seconds without new chunks after which the time since the last ones counts."""


class RecentGoodput:
    """Goodput of members over the last seconds, from the chunks that they report. The goodput in a report is of all
    their calls. `lanes`: lanes of a chunk; each carries 4 bytes of payload."""

    def __init__(self, lanes: int) -> None:
        self._bits_of_chunk = 32 * lanes
        self._reports: dict[Holder, deque[tuple[float, int]]] = {}

    def mbps(self, holder: Holder, chunks: int, now: float) -> float:
        """`chunks`: reported until `now` (seconds of a monotonic clock)."""
        reports = self._reports.setdefault(holder, deque())
        if not reports or chunks < reports[-1][1]:  # a restarted member counts from 0
            reports.clear()
            reports.append((now, chunks))
        elif chunks > reports[-1][1]:
            reports.append((now, chunks))
        while len(reports) > 1 and now - reports[1][0] >= WINDOW_S:
            reports.popleft()
        (began, first), (ended, last) = reports[0], reports[-1]
        if now - ended > SILENT_S:
            ended = now
        return (last - first) * self._bits_of_chunk / (ended - began) / 1e6 if ended > began else 0.0

    def forget(self, holder: Holder) -> None:
        self._reports.pop(holder, None)


MAX_RATIO = 0.5
"""A straggler's round trip, compared with the median of the other workers."""

MIN_WORKERS = 3
"""With fewer workers a median says nothing."""


def straggler(workers: Mapping[str, Progress]) -> str | None:
    """The host of the straggler, from the workers' latest reports; None if no worker stands out. A chunk's result is
    sent when the last contribution has arrived, so the round trips of all workers but the last contain waiting
    time."""
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
