# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A job does not stay where cross traffic leaves it too little, if another plan gives it more."""

from __future__ import annotations

from netfold.controller.health.link_room import MIN_KEPT_FRACTION
from netfold.controller.health.reroute import MIN_GAIN
from netfold.controller.jobs.file import Reroute
from netfold.controller.jobs.records import JobRecord, JobState
from netfold.controller.lifecycle.capacity import background_of
from netfold.controller.planning.plan import Loads
from netfold.controller.planning.validate import add_loads
from tests.controller.world import kept_rate
from tests.simulation.feasible import plan_of
from tests.simulation.lasting import Lasting
from tests.simulation.world import ViolationError, World

UNDER_SERVED_S = 30.0
"""So long may a job stay under-served in its first place while nothing changes. Later moves wait longer, so that they
end."""

MARGIN = 0.9
"""A job that keeps more than this part of MIN_KEPT_FRACTION, or gains less than MIN_GAIN / MARGIN, is let be: what is
measured is not exact."""


class UnderServed:
    """`look` raises ViolationError."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._first_epochs: dict[int, int] = {}
        self._staying: Lasting[tuple[str, object]] = Lasting()

    def look(self, jobs: list[JobRecord]) -> None:
        """All jobs that have not ended."""
        running = {j.name: j for j in jobs if j.state is JobState.RUNNING and j.placement is not None}
        world, staying = self._world, []
        state = (
            frozenset(world.cross_traffic.items()),
            frozenset((j.name, j.state, j.epoch) for j in jobs),
            frozenset(world.cut),
            frozenset(n for n, s in world.switches.items() if not s.is_up or not s.is_running.is_set()),
        )
        for name, job in running.items():
            if job.epoch == self._first_epochs.setdefault(job.seq, job.epoch) and self._is_under_served(job):
                staying.append((name, state))
        for name, _ in self._staying.update(staying, UNDER_SERVED_S):
            self._check(running[name], jobs)

    def clear(self) -> None:
        self._staying.clear()

    def _is_under_served(self, job: JobRecord) -> bool:
        assert self._world.controller is not None
        assert job.placement is not None
        resolved = self._world.controller.state.registry.resolved_job(job.name)
        least = MARGIN * MIN_KEPT_FRACTION * job.placement.plan.rate
        return resolved.file.reroute is not Reroute.OFF and self._kept(job) < least

    def _kept(self, job: JobRecord) -> float:
        assert job.placement is not None
        return kept_rate(self._world.fabric, job.placement.plan, self._world.cross_traffic)

    def _check(self, job: JobRecord, jobs: list[JobRecord]) -> None:
        assert self._world.controller is not None
        assert job.placement is not None
        others = background_of(j for j in jobs if j.name != job.name)
        crossed = add_loads(others, Loads(links=dict(self._world.cross_traffic)))
        plan = plan_of(self._world, job, self._world.controller.state.failures.avoided, crossed)
        kept = self._kept(job)
        if plan is not None and plan.rate > MIN_GAIN / MARGIN * kept:
            raise ViolationError(
                f"{job.name} stays for {UNDER_SERVED_S:g} s where cross traffic leaves it {kept:g} of "
                f"{job.placement.plan.rate:g}, though a plan gives it {plan.rate:g}"
            )
