# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Invariants at all times. A watch looks at the world twice a second, and lets programs compute meanwhile."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Sequence

from netfold.controller.jobs.records import JobRecord, JobState, Placement, Transport
from netfold.controller.jobs.slot_allocator import BLOCK, Range
from netfold.controller.switches.failed_elements import FailedElements
from tests.simulation.feasible import possible_plan
from tests.simulation.liveness import Liveness
from tests.simulation.loop import LoopClock
from tests.simulation.member import UNHEARD
from tests.simulation.program import Program
from tests.simulation.reserved import Reserved
from tests.simulation.shares import Shares
from tests.simulation.world import ViolationError, World

LOOK_S = 0.5

LATE_S = 2.0
"""So late may the end of a job be whose time is over."""


class Watch:
    """`look` raises ViolationError."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._liveness = Liveness(world)
        self._reserved = Reserved(world.fabric)
        self._shares = Shares(world.fabric)
        world.observers.append(lambda job: self._shares.on_written(job, LoopClock().wall_s()))
        self._numbered: list[JobRecord] = []
        self._waiting: set[str] = set()
        self._failed = FailedElements()

    async def run(self) -> None:
        while True:
            self.look()
            await asyncio.sleep(LOOK_S)

    def look(self) -> None:
        world = self._world
        if world.cluster is not None:
            world.cluster.leaders.look()
        if world.violations:
            raise ViolationError(world.violations[0])
        if world.file.complaint:
            raise ViolationError(world.file.complaint)
        for program in world.programs.values():
            self._compute(program)
        if world.controller is None or world.process is None or not world.process.is_alive:
            return
        if world.process.is_held:
            world.plans.note_held()
            return
        if world.controller.planning.fabric_changes.applied.is_set():
            return  # another one takes its place
        if self._reserved.fabric is not world.fabric:
            self._reserved = Reserved(world.fabric)
            self._shares.take_fabric(world.fabric)
        if world.has_backup:
            self._shares.is_known = False
        jobs = world.controller.state.registry.all()
        for job in (j for j in jobs if not j.state.is_terminal):
            if lacking := [m.host for m in job.members if not world.fabric.is_host(m.host)]:
                raise ViolationError(f"{job.name} has members at {lacking}, which the fabric has not")
        if not is_same(jobs, self._numbered):
            check_numbers(jobs)
            self._numbered = jobs
        self._reserved.check(jobs)
        queued = world.controller.planning.placements.queued()
        self._shares.check_order(queued, world.programs, LoopClock().wall_s(), world.age_s)
        self._check_time_limits(jobs)
        self._check_epochs(jobs)
        self._check_moves(jobs)
        self._check_first_placements(world.controller.state.failures.failed, jobs)
        for program in world.programs.values():
            self._check_program(program)
        self._check_leases()
        stored = world.controller.state.registry.withdrawals
        if lost := world.operator.lost(stored):
            raise ViolationError(lost)
        if world.controller.state.failures.withdrawn.names != [w.element for w in stored]:
            raise ViolationError(f"plans avoid {world.controller.state.failures.withdrawn}, and not {stored}")
        self._liveness.look(jobs)

    def _check_time_limits(self, jobs: list[JobRecord]) -> None:
        """Raises ViolationError if a job runs longer than its file allows."""
        world, now = self._world, LoopClock().wall_s()
        if world.disk.is_full or LoopClock().monotonic_s() < max(world.busy_until, world.started_at + LATE_S):
            return
        for job in jobs:
            max_s = world.programs[job.name].spec.max_s if job.name in world.programs else 0.0
            if max_s and job.state.is_installed and job.ran_since and now > job.ran_since + max_s + LATE_S:
                raise ViolationError(f"{job.name} runs for longer than its max_s of {max_s:g} s")

    # ---- programs -------------------------------------------------------------------------------------

    def _compute(self, program: Program) -> None:
        """All members of the newest epoch compute while its packets get through."""
        assigned = [m for m in program.alive if m.assignment is not None and not m.is_leaving]
        if not assigned:
            return
        epoch = max(m.assignment.epoch for m in assigned if m.assignment is not None)
        placement = program.placements.get(epoch)
        if placement is None:
            return
        carried = self._carried(program, epoch)
        self._touch_registers(program, placement, carried)
        mine = [m.assignment for m in assigned if m.assignment is not None and m.assignment.epoch == epoch]
        workers = {a.rank for a in mine if not any(t.children for t in a.trees)}
        servers = {r for r in placement.roots if r not in self._world.switches}
        is_whole = workers == set(range(mine[0].workers)) and servers <= {m.host for m in assigned}
        nodes = {n for link in placement.links for n in link if n in self._world.switches}
        adding = {n for tree in placement.trees for n in tree.bases}
        has_sums = all(program.losses[epoch][n] == self._world.switches[n].losses for n in adding)
        if program.spec.transport is Transport.ROCE:
            is_whole = is_whole and all(m.ring_epoch == epoch for m in assigned if m.host in program.workers)
        if is_whole and has_sums and nodes <= carried and not placement.links & self._world.cut:
            program.work_left_s -= LOOK_S
            if program.work_left_s <= 0:
                for member in program.alive:
                    if member.host in program.workers:
                        member.leave()

    def _carried(self, program: Program, epoch: int) -> set[str]:
        """The switches that hold all entries of the job in this epoch, and forward packets."""
        switches = self._world.switches
        seen = [(s.is_up, s.changes) for s in switches.values()]
        before, carrying = program.carrying.get(epoch, (None, set[str]()))
        if before != seen:
            lacking = {
                switch
                for switch, entity in program.entities[epoch]
                if switches[switch].contents.get(entity.key) != entity
            }
            carrying = {n for n, s in switches.items() if s.is_up and n not in lacking}
            program.carrying[epoch] = (seen, carrying)
        return carrying

    def _touch_registers(self, program: Program, placement: Placement, carried: set[str]) -> None:
        for tree in placement.trees:
            owner = (program.spec.name, tree.tree, placement.epoch, program.allocations[placement.epoch])
            for switch, base in tree.bases.items():
                if switch not in carried:
                    continue
                registers = self._world.switches[switch].registers
                for block in Range(base, max(tree.slots, BLOCK)).blocks:
                    seen = registers.get(block)
                    if seen is not None and seen[1] != owner and seen[0] >= placement.epoch:
                        raise ViolationError(
                            f"{owner} uses block {block} of {switch}, whose registers have seen epoch {seen}"
                        )
                    registers[block] = (placement.epoch, owner)

    def _check_epochs(self, jobs: list[JobRecord]) -> None:
        """A job goes back to its previous epoch, whose placement still runs, only while no member had the new one."""
        for job in jobs:
            told = (
                max(self._world.programs[job.name].placements, default=0)
                if job.name in self._world.programs
                else 0
            )
            if job.state is JobState.RUNNING and job.epoch < told:
                raise ViolationError(f"{job.name} runs in epoch {job.epoch}; members had {told}")

    def _check_moves(self, jobs: list[JobRecord]) -> None:
        """A job that moves runs on where it was until all is there: switches that nothing has happened to hold that."""
        world = self._world
        if world.draws.intensity.is_noisy:
            return
        for job in jobs:
            if job.state is not JobState.INSTALLING or job.previous is None or job.name not in world.programs:
                continue
            for name, entity in world.programs[job.name].entities.get(job.previous.epoch, ()):
                held = world.switches[name].contents.get(entity.key)
                if name not in world.changed_at and held != entity:
                    raise ViolationError(
                        f"{job.name} moves from epoch {job.previous.epoch}, and {name} lacks {entity}"
                    )

    def _check_first_placements(self, failed: FailedElements, jobs: list[JobRecord]) -> None:
        """No job that waited is placed over what was known to have failed when it was last looked at, and still is."""
        switches, links = self._failed.switches & failed.switches, self._failed.links & failed.links
        for job in jobs:
            if job.name in self._waiting and job.state is JobState.INSTALLING and job.placement is not None:
                used = (
                    job.placement.links & links,
                    {n for pair in job.placement.links for n in pair} & switches,
                )
                if any(used):
                    raise ViolationError(f"{job.name} waited, and is placed over failed {used}")
        self._waiting, self._failed = {j.name for j in jobs if j.state is JobState.QUEUED}, failed

    def _check_leases(self) -> None:
        """Only members of jobs that have not ended have one."""
        assert self._world.controller is not None
        registry = self._world.controller.state.registry
        for name, host in self._world.controller.jobs.lifecycle.lease_holders:
            if not registry.has_live(name):
                raise ViolationError(f"{host} has a lease in {name}, which has ended")

    # ---- programs' fates ------------------------------------------------------------------------------

    def _check_program(self, program: Program) -> None:
        world, name = self._world, program.spec.name
        assert world.controller is not None
        if not program.is_acknowledged:
            return
        if name not in world.controller.state.registry:
            if "the store was restored" in program.excuses:
                program.is_acknowledged = False
                return
            raise ViolationError(f"{name} was acknowledged, and is gone")
        job = world.controller.state.registry.get(name)
        if program.state == job.state:
            return
        if program.state in (JobState.FAILED, JobState.DONE, JobState.CANCELED):
            raise ViolationError(f"{name} was {program.state}, and is {job.state}")
        program.state = job.state
        if job.state is JobState.FAILED:
            self._check_failure(program, job)
        if job.state is JobState.CANCELED and not program.is_canceled:
            raise ViolationError(f"{name} is canceled, and no operator canceled it")
        is_whole = not program.excuses and not program.early
        if job.state is JobState.DONE and program.work_left_s > 0 and is_whole:
            raise ViolationError(f"{name} is done with {program.work_left_s:g} s of work left")

    def _check_failure(self, program: Program, job: JobRecord) -> None:
        unheard = [m.host for m in program.members.values() if m.outcome.startswith((UNHEARD, "gave up"))]
        if program.excuses or unheard:
            return
        plan = possible_plan(self._world, job)
        if plan:
            raise ViolationError(f"{job.name} failed ({job.reason}), though {plan}")


def is_same(jobs: Sequence[JobRecord], before: Sequence[JobRecord]) -> bool:
    """No record has changed: they are replaced, and never written to."""
    return len(jobs) == len(before) and all(map(operator.is_, jobs, before))


def check_numbers(jobs: list[JobRecord]) -> None:
    """No two jobs share a port of a host, a tree number of a switch, or a slot. Raises ViolationError."""
    trees: dict[tuple[str, int], str] = {}
    blocks: dict[tuple[str, int], str] = {}
    ports: dict[tuple[str, int], str] = {}
    for job in jobs:
        for host in [m.host for m in job.members] if job.state.is_installed else ():
            if ports.setdefault((host, job.udp_port), job.name) != job.name:
                other = ports[host, job.udp_port]
                raise ViolationError(f"{job.name} and {other} share port {job.udp_port} of {host}")
        for placement in (job.placement, job.previous) if job.state.is_installed else ():
            if placement is None:
                continue
            for index, (tree, planned) in enumerate(
                zip(placement.trees, placement.plan.trees, strict=True), 1
            ):
                where = f"{job.name} in epoch {placement.epoch}, tree {index} of the plan"
                for place in {(node, tree.tree) for node in planned.touched}:
                    if trees.setdefault(place, where) != where:
                        raise ViolationError(
                            f"{where} and {trees[place]} share tree {tree.tree} of {place[0]}"
                        )
                for switch, base in tree.bases.items():
                    for block in Range(base, max(tree.slots, BLOCK)).blocks:
                        if blocks.setdefault((switch, block), where) != where:
                            raise ViolationError(
                                f"{where} and {blocks[switch, block]} share block {block} of {switch}"
                            )
