# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A row of the re-routing experiment: what a job's iterations and epochs give in numbers."""

from __future__ import annotations

import itertools
import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from netfold.evaluation.core.experiment import Row
from netfold.testbed.submitted_job import SubmittedJob

SETTLING_S = 3.0
"""Pause after the onset and the end of the load: each control loop has had time to react when iterations are timed."""
SAME_DURATION = 1.2
"""An iteration is as short as another if it takes at most so many times as long."""


@dataclass(frozen=True)
class Case:
    load: float
    jobs: int
    mode: str

    def __str__(self) -> str:
        return f"{self.mode}, {self.jobs} job{'s' if self.jobs > 1 else ''}, TCP on {self.load:.0%}"

    @property
    def name(self) -> str:
        """Prefix of the jobs' names."""
        return f"{self.mode}-{self.load * 100:.0f}-{self.jobs}"


@dataclass(frozen=True)
class Move:
    """A new epoch: its time, and the job's reserved rate since then (fabric units)."""

    at: float
    epoch: int
    rate: float
    reason: str


@dataclass(frozen=True)
class RerouteRow(Row):
    """One job in one mode beside one load. Durations of iterations are medians in ms, None without any.

    reaction_s, settled_s  from the onset of the load: to the first new epoch; until iterations are stable
    back_s, restored_s     from the end of the load: to the next new epoch; until iterations are as short as before it
    moved                  seconds from the onset to each new epoch
    timeline               seconds from the onset to the end of each iteration, and its duration in ms

    None: did not happen.
    """

    load: float
    mode: str
    jobs: int
    job: str
    before_ms: float | None
    under_ms: float | None
    after_ms: float | None
    reaction_s: float | None
    settled_s: float | None
    back_s: float | None
    restored_s: float | None
    moved: list[float]
    wrong_elements: int
    timeline: list[tuple[float, float]] = field(default_factory=list)

    @property
    def slowdown(self) -> float | None:
        return self.under_ms / self.before_ms if self.under_ms and self.before_ms else None


def reroute_row(
    case: Case, job: SubmittedJob, moves: Sequence[Move], onset: float, end: float, wrong: int
) -> RerouteRow:
    """A row from the first worker's iterations and the controller's epochs; `onset` and `end` are of the load."""
    ended = _ended(job.progress)
    times = [(b, (b - a) * 1e3) for a, b in itertools.pairwise(ended)]

    def median(since: float, until: float) -> float | None:
        """Median of the iterations within; if there are none, of those that overlap."""
        inside = [ms for at, ms in times if since <= at - ms / 1e3 and at <= until]
        overlapping = [ms for at, ms in times if since < at and at - ms / 1e3 < until]
        return statistics.median(inside or overlapping) if overlapping else None

    def as_short(since: float, until: float, ms_then: float | None) -> float | None:
        """Time from `since` to the end of the first later iteration that takes about `ms_then`."""
        short = (
            at for at, ms in times if ms_then and at - ms / 1e3 >= since and ms <= SAME_DURATION * ms_then
        )
        at = next(short, math.inf)
        return at - since if at <= until else None

    first = next((m for m in moves[1:] if onset <= m.at <= end), None)
    back = next((m for m in moves[1:] if m.at > end), None)
    before, under = median(onset - SETTLING_S, onset), median(onset + SETTLING_S, end)
    settled = None if first is None else as_short(first.at, end, under)
    return RerouteRow(
        load=case.load,
        mode=case.mode,
        jobs=case.jobs,
        job=job.name,
        before_ms=before,
        under_ms=under,
        after_ms=median(end + SETTLING_S, ended[-1]),
        reaction_s=None if first is None else first.at - onset,
        settled_s=None if first is None or settled is None else first.at + settled - onset,
        back_s=None if back is None else back.at - end,
        restored_s=as_short(end, ended[-1], before),
        moved=[round(m.at - onset, 3) for m in moves[1:]],
        wrong_elements=wrong,
        timeline=[(round(at - onset, 3), round(ms, 1)) for at, ms in times],
    )


def _ended(progress: Path) -> list[float]:
    return [json.loads(line)["at"] for line in progress.read_text().splitlines()]
