# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""States that must not last: a job over what is down or where cross traffic leaves it little, a worker that is not part
of its job or does not come, a queued job that would fit."""

from __future__ import annotations

import asyncio

from netfold.controller.jobs.records import JobRecord, JobState, Transport
from netfold.controller.lifecycle.capacity import background_of, uses_failed
from netfold.controller.planning.residual_network import NO_LOADS
from netfold.controller.planning.validate import add_loads
from netfold.controller.switches.failed_elements import FailedElements
from tests.simulation.feasible import fits, plan_of, possible_plan
from tests.simulation.lasting import Lasting
from tests.simulation.member import Member
from tests.simulation.overtaken import Overtaken
from tests.simulation.reservations import IDLE_S, Reservations
from tests.simulation.underserved import UnderServed
from tests.simulation.withdrawn import over_drained
from tests.simulation.world import ViolationError, World

STAY_S = 25.0
"""A job may stay so long over a switch or link that is down, if there is another plan; a worker may wait so long for
its part in a job that runs."""

WAIT_S, SLOW_PLANS_S = 30.0, 10.0
"""A job that would fit may wait so long; and so much longer for each queued job, where each plan takes seconds."""

UNTRIED_S = 3.0
"""So long if no plan of it is requested, though the planner has been idle. Where jobs age, they change their order for
less than a point's time, and none is tried for that."""

JOIN_S, JOIN_SLACK_S = 30.0, 4.0
"""A job that has run does not await a member for longer that has never joined; but the controller has to be up for its
start timeout."""


class Liveness:
    """`look` raises ViolationError. Call it at least every second."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._fitting: Lasting[tuple[str, int, bool]] = Lasting()
        self._untried: Lasting[tuple[str, int, int]] = Lasting()
        self._over_failed: Lasting[tuple[str, tuple[str, ...], frozenset[str]]] = Lasting()
        self._over_drained: Lasting[tuple[str, FailedElements, object]] = Lasting()
        self._apart: Lasting[tuple[str, str, int, object]] = Lasting()
        self._absent: Lasting[tuple[int, str]] = Lasting()
        self._overtaken = Overtaken(world)
        self._under_served = UnderServed(world)
        self._reservations = Reservations(world)

    def look(self, jobs: list[JobRecord]) -> None:
        world = self._world
        assert world.controller is not None
        now = asyncio.get_running_loop().time()
        is_busy = now < world.busy_until
        self._check_absent(jobs, now - world.started_at)
        if world.disk.is_full or is_busy:
            self._overtaken.clear()
        else:
            self._overtaken.look(jobs)
        if world.disk.is_full or is_busy or now - world.started_at < world.controller.state.timeouts.start:
            self._over_failed.clear()
            self._over_drained.clear()
            self._fitting.clear()
            self._untried.clear()
            self._apart.clear()
            self._under_served.clear()
            self._reservations.clear()
            return
        self._check_repairs(jobs)
        self._check_drains(jobs)
        self._check_members()
        self._check_queue(jobs)
        self._under_served.look(jobs)
        self._reservations.look()

    def _check_absent(self, jobs: list[JobRecord], up_s: float) -> None:
        """No job waits for ever for a worker that does not come, however often the controller starts again."""
        world = self._world
        assert world.controller is not None
        failures = world.controller.state.failures
        has_no_store = world.disk.is_full or (
            world.cluster is not None and up_s < world.busy_until - world.started_at
        )
        if has_no_store or any(failures.held_s(s) for s in world.switches):
            self._absent.clear()
        absent = [
            (job.seq, member.host)
            for job in jobs
            if job.has_run and job.state.is_installed
            for member in job.members
            if not member.joined and world.controller.state.registry.needs(job, member.host)
        ]
        for seq, host in self._absent.update(absent, JOIN_S + JOIN_SLACK_S):
            if up_s > world.controller.state.timeouts.start + JOIN_SLACK_S:
                name = next(j.name for j in jobs if j.seq == seq)
                raise ViolationError(
                    f"{name} has waited for {JOIN_S:g} s and more for {host}, which has not joined"
                )

    def _check_repairs(self, jobs: list[JobRecord]) -> None:
        """A job does not stay over what is down, if there is another plan. When it has lost a member, it gets the time
        anew: a held leaf may have been down for long, and only without its workers is there a plan. So it does when
        other switches hang, over which it could not move."""
        world = self._world
        assert world.controller is not None
        down = frozenset(n for n, s in world.switches.items() if not s.is_up)
        links = frozenset(world.cut) if world.probe_s else frozenset()
        hanging = frozenset(n for n, s in world.switches.items() if not s.is_running.is_set())
        over = [
            (j.name, j.excluded, hanging)
            for j in jobs
            if j.state is JobState.RUNNING and j.placement is not None
            if uses_failed(j.placement.plan, FailedElements(links, down), ())
        ]
        for name, _, unreachable in self._over_failed.update(over, STAY_S):
            if possible_plan(world, world.controller.state.registry.get(name), unreachable):
                raise ViolationError(f"{name} stays over {sorted(down)}, though there is a plan")

    def _check_drains(self, jobs: list[JobRecord]) -> None:
        """A job does not stay over what is drained, if there is another plan beside jobs that stay as they are."""
        world = self._world
        assert world.controller is not None
        state = frozenset((j.name, j.state, j.epoch) for j in jobs if not j.state.is_terminal)
        over = [(j.name, avoided, state) for j, avoided in over_drained(world.controller, jobs)]
        limit_s = STAY_S + SLOW_PLANS_S * len(over) * world.plans.is_slow
        for name, avoided, _ in self._over_drained.update(over, limit_s):
            job = world.controller.state.registry.get(name)
            if fits(world, job, avoided, background_of(j for j in jobs if j.name != name)):
                raise ViolationError(f"{name} stays over drained elements, though there is a plan")

    def _check_members(self) -> None:
        """Each worker that the controller hears of takes part in its job, if that runs. Others wait with the job."""
        world = self._world
        assert world.controller is not None
        apart = [
            (name, member.host, world.controller.state.registry.get(name).epoch, member.stream)
            for name, program in world.programs.items()
            for member in program.alive
            if program.state == JobState.RUNNING and member.host in program.workers
            if member.stream is not None and self._is_apart(member) and not self._is_over_dead_switch(name)
        ]
        for name, host, epoch, _ in self._apart.update(apart, STAY_S):
            raise ViolationError(
                f"{host} waits for {STAY_S:g} s for its part in epoch {epoch} of {name}, which runs"
            )

    def _is_over_dead_switch(self, name: str) -> bool:
        assert self._world.controller is not None
        placement = self._world.controller.state.registry.get(name).placement
        down = FailedElements(switches=frozenset(n for n, s in self._world.switches.items() if not s.is_up))
        return placement is not None and uses_failed(placement.plan, down, ())

    def _is_apart(self, member: Member) -> bool:
        assert self._world.controller is not None
        job = self._world.controller.state.registry.get(member.job)
        if member.assignment is None or member.assignment.epoch != job.epoch:
            return True
        if member.unusable_epoch == job.epoch and not self._world.controller.jobs.lifecycle.is_affected(job):
            return True
        has_ring = member.ring_epoch == job.epoch
        return job.transport is Transport.ROCE and job.roce_installed_epoch == job.epoch and not has_ring

    def _check_queue(self, jobs: list[JobRecord]) -> None:
        """No queued job waits that fits beside what runs and what those ahead of it wait for."""
        world = self._world
        assert world.controller is not None
        running, reserved, fitting = background_of(jobs), NO_LOADS, []
        waiting, failed = (
            world.controller.planning.placements.queued(),
            world.controller.state.failures.avoided,
        )
        plans, is_slow = world.plans, world.plans.is_slow and not world.draws.is_calm
        for job in waiting:
            if fits(world, job, failed, add_loads(running, reserved)):
                fitting.append((job.name, job.seq, is_slow))
            if plan := plan_of(world, job, failed, reserved):
                reserved = add_loads(reserved, plan.loads)
        limit_s = WAIT_S + SLOW_PLANS_S * len(waiting) * is_slow
        late = self._fitting.update(fitting, limit_s)
        requested = [(n, s, plans.requests[n]) for n, s, _ in fitting]
        untried = self._untried.update(requested, UNTRIED_S + world.aging_s)
        for name, *_ in late or (untried if plans.idle_s > IDLE_S else ()):
            reason = world.controller.state.registry.get(name).reason
            raise ViolationError(f"{name} waits though it fits ({reason})")
