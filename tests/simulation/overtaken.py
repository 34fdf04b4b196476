# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""No job starves the first of the queue: what starts after it, and does not precede it, leaves it a place."""

from __future__ import annotations

from netfold.controller.jobs.records import JobRecord
from netfold.controller.lifecycle.capacity import background_of, uses_failed
from netfold.controller.lifecycle.capacity import fits as fits_beside
from netfold.controller.planning.residual_network import NO_LOADS
from tests.simulation.feasible import fits
from tests.simulation.loop import LoopClock
from tests.simulation.world import ViolationError, World


class Overtaken:
    """`look` raises ViolationError."""

    def __init__(self, world: World) -> None:
        self._world = world
        world.observers.append(self._on_written)
        self.clear()

    def clear(self) -> None:
        """Another job is the first, or waits under other conditions, from which on later jobs are noted."""
        self._conditions: tuple[object, ...] = ()
        self._before: set[int] = set()
        self._later: set[int] = set()
        self._placed: dict[int, int] = {}

    def _on_written(self, job: JobRecord) -> None:
        """Note the epoch in which a job is first placed. It may have moved by the next look."""
        if job.state.is_installed:
            self._placed.setdefault(job.seq, job.epoch)

    def look(self, jobs: list[JobRecord]) -> None:
        """A job that is moved (a repair takes what is reserved) or precedes the first one is not its follower."""
        world = self._world
        assert world.controller is not None
        queued = world.controller.planning.placements.queued()
        if not queued:
            self.clear()
            return
        first, failed = queued[0], world.controller.state.failures.avoided
        installed = {j.seq: j for j in jobs if j.state.is_installed}
        conditions = (first.seq, first.excluded, first.added, failed, world.started_at)
        if conditions != self._conditions:
            self.clear()
            self._conditions, self._before = conditions, set(installed)
            return
        new = {s: j for s, j in installed.items() if s not in self._before and self._follows(j, first)}
        is_more = new.keys() - self._later
        self._later = set(new)
        stayed = [j for s, j in new.items() if j.epoch == self._placed[s]]
        if not is_more or not fits(world, first, failed, NO_LOADS):
            return
        others, held = background_of(stayed), world.controller.planning.placements._queue.of(first.name)
        is_usable = held is not None and not uses_failed(held.plan, failed, first.excluded)
        if held is not None and is_usable and fits_beside(world.fabric, held.plan, others):
            return  # a heuristic may not find again what is reserved
        if not fits(world, first, failed, others):
            names = ", ".join(j.name for j in stayed)
            raise ViolationError(
                f"{first.name} is first in the queue, and {names}, which came later, in its place"
            )

    def _ends_s(self, first: JobRecord) -> float:
        """The last known end of a job that ran before the first one waited."""
        assert self._world.controller is not None
        ends = (
            j.ran_since + self._world.programs[j.name].spec.max_s
            for j in self._world.controller.state.registry.all()
            if j.state.is_installed and j.seq < first.seq and j.name in self._world.programs
        )
        return max(ends, default=0.0)

    def _follows(self, job: JobRecord, first: JobRecord) -> bool:
        """It is no more urgent, came later, and may be there when the first one could start."""
        programs = self._world.programs
        if job.name not in programs or first.name not in programs or job.seq < first.seq:
            return False
        if job.tenant != first.tenant and not programs[job.name].spec.max_s:
            return False  # shares decide (shares.py)
        if (max_s := programs[job.name].spec.max_s) and self._ends_s(first) >= LoopClock().wall_s() + max_s:
            return False
        return programs[job.name].spec.priority <= programs[first.name].spec.priority
