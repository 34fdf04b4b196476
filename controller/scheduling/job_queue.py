# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Keeps the queue of jobs: order and reservations (conservative backfill). It follows from the store and the time.

Jobs of higher priority come first, then those of the tenant whose dominant share of recent usage is the least for its
weight, then the older ones. A tenant's later jobs count those ahead of them as usage. So the tenants take turns, and a
job that is placed changes the order of no others.

A queued job has a reservation: a placement on a fabric that carries only the reservations ahead of it. A job behind it
is placed in addition to the reservations, so it runs first only on capacity that no job ahead of it waits for. When the
jobs that ran before have ended, the reservation fits. A job whose end is known by its `max_s` may use capacity that is
reserved from a later time on.

Waiting raises the priority, so that jobs of higher priority cannot starve the others. Among jobs of one priority the
shares of tenants decide, and not the age of jobs. So a job's wait counts no more than that of those whose turn comes
first, and is never another job's. As usage is forgotten, the turn of a tenant that gets nothing comes by age alone.
"""

from __future__ import annotations

import bisect
import itertools
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from netfold.controller.jobs.file import ResolvedJob
from netfold.controller.jobs.records import JobRecord, JobState, Placement
from netfold.controller.jobs.tenant_usage import Holding
from netfold.controller.lifecycle.capacity import background_of, fits, uses_failed
from netfold.controller.lifecycle.job_registry import JobRegistry
from netfold.controller.planning.plan import Loads
from netfold.controller.planning.validate import add_loads
from netfold.controller.switches.failed_elements import FailedElements
from netfold.topologies.fabric import Fabric

AGE_S = 60.0
"""Seconds of waiting for one point of priority: after 200 minutes the lowest priority precedes any job submitted
then."""

_Rank = tuple[float, float, float]


@dataclass(frozen=True)
class _Waiting:
    """A job that waits, or is submitted now. `demand`: the rate that it wants. `age`: points for its wait."""

    priority: int
    age: float
    seq: float
    tenant: str
    demand: Holding
    job: JobRecord | None = None


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
        self._demands: dict[str, tuple[int, Holding]] = {}
        self._reservations: dict[str, _Reservation] = {}

    def jobs(self) -> list[JobRecord]:
        """Queued jobs in their order."""
        return [waiting.job for _, waiting in self._ranked(self._queued()) if waiting.job is not None]

    def _queued(self) -> list[_Waiting]:
        now = self._now()
        queued = (j for j in self._registry.all() if j.state is JobState.QUEUED)
        return [self._waiting(job, now) for job in queued]

    def _waiting(self, job: JobRecord, now: float) -> _Waiting:
        file = self._registry.resolved_job(job.name).file
        age = max(0.0, now - job.submitted) // self._age_s
        return _Waiting(file.priority, age, job.seq, job.tenant, self._demand(job), job)

    def _demand(self, job: JobRecord) -> Holding:
        known = self._demands.get(job.name)
        if known is None or known[0] != job.seq:
            found = self._registry.demand(self._registry.resolved_job(job.name))
            known = self._demands[job.name] = job.seq, found
        return known[1]

    def _ranked(self, waiting: list[_Waiting]) -> list[tuple[_Rank, _Waiting]]:
        """The jobs with their ranks; lower ranks run first."""
        ranks: list[tuple[_Rank, _Waiting]] = []
        shares = self._shares(waiting)
        for priority in {w.priority for w in waiting}:
            alike = [w for w in waiting if w.priority == priority]
            turns = sorted(alike, key=lambda w: (shares[w.seq], w.seq))
            ages = itertools.accumulate((w.age for w in turns), min)
            ranks += [
                ((-priority - age, shares[w.seq], w.seq), w) for w, age in zip(turns, ages, strict=True)
            ]
        return sorted(ranks, key=lambda ranked: ranked[0])

    def _shares(self, waiting: list[_Waiting]) -> dict[float, float]:
        """By `seq`: the share over weight of the job's tenant, when the tenant's jobs ahead of it have been placed."""
        tenants = {w.tenant for w in waiting}
        if len(tenants) <= 1:
            return {w.seq: 0.0 for w in waiting}
        registry, shares = self._registry, {}
        usage, whole, taken = registry.usage(tenants), registry.ledger.whole, dict(registry.held())
        for w in sorted(waiting, key=lambda w: (-w.priority - w.age, w.seq)):
            held = taken.get(w.tenant, Holding())
            shares[w.seq] = usage[w.tenant].charge(held, whole)
            taken[w.tenant] = held + w.demand
        return shares

    def ahead_of(self, name: str) -> list[JobRecord]:
        """Queued jobs ahead of a queued one."""
        return list(itertools.takewhile(lambda job: job.name != name, self.jobs()))

    def ahead_of_new(self, resolved: ResolvedJob, tenant: str) -> list[JobRecord]:
        """Queued jobs ahead of one that is submitted now."""
        new = _Waiting(resolved.file.priority, 0.0, math.inf, tenant, self._registry.demand(resolved))
        ahead = itertools.takewhile(lambda ranked: ranked[1] is not new, self._ranked([*self._queued(), new]))
        return [w.job for _, w in ahead if w.job is not None]

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
        self._demands = {n: d for n, d in self._demands.items() if n in live}
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


def loads_until(jobs: Iterable[JobRecord], ends: Mapping[str, float]) -> list[tuple[float, Loads]]:
    """The known ends in order, each with the loads of the jobs that run until then or longer."""
    found = sorted(
        ((ends[j.name], background_of([j])) for j in jobs if j.name in ends),
        key=lambda end: end[0],
        reverse=True,
    )
    sums = itertools.accumulate((loads for _, loads in found), add_loads)
    return [(end, loads) for (end, _), loads in zip(found, sums, strict=True)][::-1]


def start_time(
    fabric: Fabric, reserved: Placement, ahead: Loads, until: Sequence[tuple[float, Loads]]
) -> float:
    """The earliest time at which the reserved placement may have its rate, in addition to the reservations `ahead` of
    it, if jobs run `until` their known ends. A job without one may end now. Infinity if it never has."""

    def fits_after(ended: int) -> bool:
        background = ahead if ended == len(until) else add_loads(ahead, until[ended][1])
        return fits(fabric, reserved.plan, background)

    ended = bisect.bisect_left(range(len(until) + 1), True, key=fits_after)
    if ended > len(until):
        return math.inf
    return until[ended - 1][0] if ended else -math.inf
