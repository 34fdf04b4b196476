# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Keeps the queue of jobs: order and reservations (conservative backfill). None of it is stored.

A queued job has a reservation: a placement on a fabric that carries only the reservations ahead of it. A job behind it
is placed in addition to the reservations, so it runs first only on capacity that no job ahead of it waits for. When the
jobs that ran before have ended, the reservation fits. Waiting raises a job's priority, so that jobs of higher priority
cannot starve it.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from netfold.controller.jobs.records import JobRecord, JobState, Placement
from netfold.controller.lifecycle.capacity import background_of, fits, uses_failed
from netfold.controller.lifecycle.job_registry import JobRegistry
from netfold.controller.planning.plan import Loads
from netfold.controller.planning.validate import add_loads
from netfold.controller.switches.failed_elements import FailedElements
from netfold.topologies.fabric import Fabric

AGE_S = 60.0
"""Seconds of waiting for one point of priority: after 200 minutes the lowest priority precedes any job submitted
then."""

_Rank = tuple[float, float]


@dataclass(frozen=True)
class _Reservation:
    """A reservation, and the `conditions` under which it was made; it is made again when they change."""

    conditions: tuple[object, ...]
    placement: Placement | None


class JobQueue:
    """Orders queued jobs and keeps their reservations. `now`: wall clock of the submission times of jobs. An order of
    jobs holds for the moment, because jobs age."""

    def __init__(
        self, registry: JobRegistry, now: Callable[[], float] = time.time, age_s: float = AGE_S
    ) -> None:
        self._registry = registry
        self._now = now
        self._age_s = age_s
        self._reservations: dict[str, _Reservation] = {}

    def jobs(self) -> list[JobRecord]:
        """Queued jobs in their order."""
        return [job for _, job in self._ranked()]

    def _ranked(self) -> list[tuple[_Rank, JobRecord]]:
        now = self._now()
        queued = (j for j in self._registry.all() if j.state is JobState.QUEUED)
        return sorted(((self._rank(j, now), j) for j in queued), key=lambda ranked: ranked[0])

    def _rank(self, job: JobRecord, now: float) -> _Rank:
        """The rank of a job; lower ranks run first."""
        waited = max(0.0, now - job.submitted)
        return (-self._registry.resolved_job(job.name).file.priority - waited // self._age_s, job.seq)

    def ahead_of(self, name: str) -> list[JobRecord]:
        """Queued jobs ahead of a queued one."""
        return list(itertools.takewhile(lambda job: job.name != name, self.jobs()))

    def ahead_of_new(self, priority: int) -> list[JobRecord]:
        """Queued jobs ahead of one that is submitted now."""
        return [job for rank, job in self._ranked() if rank < (-priority, float("inf"))]

    def reserved(self, jobs: Iterable[JobRecord]) -> list[Placement]:
        """The reservations of these jobs."""
        held = (self._reservations.get(job.name) for job in jobs)
        return [r.placement for r in held if r is not None and r.placement is not None]

    def all(self) -> list[Placement]:
        return self.reserved(self.jobs())

    def is_last(self, name: str) -> bool:
        return self.jobs()[-1].name == name

    def of(self, name: str) -> Placement | None:
        held = self._reservations.get(name)
        return None if held is None else held.placement

    def is_tried(self, job: JobRecord, failed: FailedElements) -> bool:
        """Whether working capacity is reserved for the job, or the search found none under the present conditions.
        Reservations are not stored."""
        held = self.of(job.name)
        is_usable = held is not None and not uses_failed(held.plan, failed, job.excluded)
        return is_usable or self.is_current(job.name, self.conditions(job, failed))

    def conditions(self, job: JobRecord, failed: FailedElements) -> tuple[object, ...]:
        """The conditions that the job's reservation depends on now."""
        return conditions_of(job, failed, self.reserved(self.ahead_of(job.name)))

    def is_current(self, name: str, conditions: tuple[object, ...]) -> bool:
        return name in self._reservations and self._reservations[name].conditions == conditions

    def reserve(self, name: str, conditions: tuple[object, ...], placement: Placement | None) -> None:
        """Reserve a placement for a queued job. None: the job fits nowhere even with only the jobs ahead of it, and
        blocks no other."""
        live = {j.name for j in self._registry.all() if j.state is JobState.QUEUED}
        self._reservations = {n: r for n, r in self._reservations.items() if n in live}
        self._reservations[name] = _Reservation(conditions, placement)


def conditions_of(job: JobRecord, failed: FailedElements, before: Iterable[Placement]) -> tuple[object, ...]:
    """The conditions of a reservation that was planned around `failed`, behind the reservations `before` it."""
    return (job.seq, failed, job.excluded, *before)


def jobs_in_the_way(
    fabric: Fabric, reserved: Placement, ahead: Loads, jobs: Iterable[JobRecord]
) -> list[JobRecord]:
    """The installed jobs without which the reserved placement has its rate, in addition to all others and the
    reservations `ahead` of it. Of jobs that could replace each other the earlier ones are named, because they tend to
    end first. Empty if the placement does not fit in addition to the reservations alone."""
    in_the_way: list[JobRecord] = []
    background = ahead
    if not fits(fabric, reserved.plan, background):
        return []
    for job in sorted((j for j in jobs if j.state.is_installed), key=lambda j: j.seq, reverse=True):
        more = add_loads(background, background_of([job]))
        if fits(fabric, reserved.plan, more):
            background = more
        else:
            in_the_way.append(job)
    return in_the_way[::-1]
