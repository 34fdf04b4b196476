# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The queue: who is before whom, and what is kept free for those who wait. Nothing of it is stored.

A waiting job has a reservation: a placement as if nothing ran but what is reserved for those before it. Whoever is
behind it is placed beside the reservations, so it may go first only where it takes nothing that a job before it waits
for; and when those that ran before have ended, there is room for the reservation. Waiting adds to a job's priority, so
that a stream of more important jobs does not keep it out for ever.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from netfold.controller.jobs.records import JobRecord, JobState, Placement
from netfold.controller.lifecycle.book import Book
from netfold.controller.switches.desired import Broken

AGE_S = 60.0
"""So long a job waits for one more point of priority; so after 200 minutes the least important one is before any that
is submitted then."""

Rank = tuple[float, float]


@dataclass(frozen=True)
class _Reservation:
    """What was known when it was made; with anything else it is made again."""

    known: tuple[object, ...]
    placement: Placement | None


class Waiting:
    """`now` is the clock by which jobs were submitted (time.time)."""

    def __init__(self, book: Book, now: Callable[[], float] = time.time) -> None:
        self._book = book
        self._now = now
        self._reservations: dict[str, _Reservation] = {}

    def jobs(self) -> list[JobRecord]:
        """Those that wait, the first first."""
        return sorted((j for j in self._book.all() if j.state is JobState.QUEUED), key=self.rank)

    def rank(self, job: JobRecord) -> Rank:
        """The lesser goes first."""
        waited = max(0.0, self._now() - job.submitted)
        return (-self._book.order(job.name).file.priority - waited // AGE_S, job.seq)

    def before(self, rank: Rank) -> list[Placement]:
        """What is reserved for the jobs before a rank."""
        ahead = (self._reservations.get(j.name) for j in self.jobs() if self.rank(j) < rank)
        return [r.placement for r in ahead if r is not None and r.placement is not None]

    def all(self) -> list[Placement]:
        return self.before((float("inf"), 0.0))

    def of(self, name: str) -> Placement | None:
        held = self._reservations.get(name)
        return None if held is None else held.placement

    def known(self, job: JobRecord, broken: Broken) -> tuple[object, ...]:
        """What a reservation depends on."""
        return (job.seq, broken, job.lost, *(id(p) for p in self.before(self.rank(job))))

    def is_current(self, name: str, known: tuple[object, ...]) -> bool:
        return name in self._reservations and self._reservations[name].known == known

    def reserve(self, name: str, known: tuple[object, ...], placement: Placement | None) -> None:
        """None: there would be no room even then, so the job keeps nobody out."""
        live = {j.name for j in self._book.all() if j.state is JobState.QUEUED}
        self._reservations = {n: r for n, r in self._reservations.items() if n in live}
        self._reservations[name] = _Reservation(known, placement)
