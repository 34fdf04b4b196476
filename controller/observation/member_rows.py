# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Members of a recording. A job of a thousand workers has a thousand new reports a second: a look is at a part of the
members, in turn, so that its cost does not grow with them."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from statistics import median
from typing import Any

from netfold.controller.jobs.records import JobRecord, Member
from netfold.controller.lifecycle.member_status import Holder, MemberStatus, Progress

MEMBERS_PER_LOOK = 128

Rows = dict[str, Any]

WINDOW_S = 3.0
"""Seconds of reports over which a rate is computed."""

SILENT_S = 2.0
"""Seconds without new chunks after which the time since the last ones counts."""

MAX_RATIO = 0.5
"""A straggler's round trip, compared with the median of the other workers."""

MIN_WORKERS = 3
"""With fewer workers a median says nothing."""


class MemberRows:
    """`look` returns the rows that have changed, of at most MEMBERS_PER_LOOK members. `is_round_complete`: the last
    look was at the last of all members."""

    def __init__(self, member_status: MemberStatus, lanes: int) -> None:
        self.is_round_complete = True
        self._member_status = member_status
        self._goodput = RecentGoodput(lanes)
        self._jobs: dict[str, tuple[Member, ...]] = {}
        self._holders: list[Holder] = []
        self._next = 0
        self._seen: dict[Holder, tuple[Progress, float, bool]] = {}

    def look(self, records: dict[str, JobRecord], now: float) -> Rows:
        """`now`: monotonic clock."""
        rows = self._update_holders(records)
        end = self._next + MEMBERS_PER_LOOK
        for holder in self._holders[self._next : end]:
            progress = self._member_status.progress(*holder)
            goodput = rounded(self._goodput.mbps(holder, progress.chunks, now))
            seen = (progress, goodput, self._member_status.is_connected(*holder))
            if self._seen.get(holder) != seen:
                self._seen[holder] = seen
                rows[" ".join(holder)] = _row(*seen)
        self.is_round_complete = end >= len(self._holders)
        self._next = 0 if self.is_round_complete else end
        return rows

    def _update_holders(self, records: dict[str, JobRecord]) -> Rows:
        """The rows of members that are gone."""
        jobs = {name: job.members for name, job in records.items() if not job.state.is_terminal}
        if jobs.keys() == self._jobs.keys() and all(jobs[n] is known for n, known in self._jobs.items()):
            return {}
        self._jobs = jobs
        self._holders = [(name, member.host) for name, members in jobs.items() for member in members]
        rows: Rows = {}
        for removed in self._seen.keys() - set(self._holders):
            del self._seen[removed]
            self._goodput.forget(removed)
            rows[" ".join(removed)] = None
        return rows


def rounded(value: float) -> float:
    """To four significant digits."""
    return float(f"{value:.4g}")


def _row(progress: Progress, goodput_mbps: float, is_connected: bool) -> Rows:
    return {
        "connected": is_connected,
        "goodput_mbps": goodput_mbps,
        "chunks": progress.chunks,
        "retransmits": progress.retransmits,
        "reencoded_chunks": progress.reencoded_chunks,
        "trees": [
            {
                "tree": t.tree,
                "results": t.results,
                "marked": rounded(t.marks),
                "retransmitted": rounded(t.losses),
                "rtt_ms": rounded(t.rtt_ms),
                "min_rtt_ms": rounded(t.min_rtt_ms),
                "window": t.window,
            }
            for t in progress.lately
        ],
    }


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
