# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Invariants of reservations while the planner has nothing to do: no capacity for two queued jobs, and none only for
jobs that have no plan. Capacity reserved without need holds back other jobs, and capacity that is not reserved is taken
by them. A job that passes another one by its age is planned in its new place with the next event. Two may hold the same
capacity until then."""

from __future__ import annotations

from collections.abc import Iterator

from netfold.controller.lifecycle.capacity import fits, uses_failed
from netfold.controller.planning.residual_network import NO_LOADS
from netfold.controller.planning.validate import add_loads
from tests.simulation.feasible import plan_of
from tests.simulation.lasting import Lasting
from tests.simulation.world import ViolationError, World

SETTLE_S, IDLE_S = 3.0, 1.0
"""So long may another reservation be right, if the planner has been idle for IDLE_S by then."""


class Reservations:
    """`look` raises ViolationError."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._wrong: Lasting[tuple[str, int, str]] = Lasting()

    def clear(self) -> None:
        self._wrong.clear()

    def look(self) -> None:
        """No job is planned because the age of jobs changes their order: that may last for a point's time."""
        lasting = self._wrong.update(self._find_wrong(), SETTLE_S + self._world.aging_s)
        if self._world.plans.idle_s > IDLE_S:
            for name, _, what in lasting:
                raise ViolationError(f"{name} waits, and {what}")

    def _find_wrong(self) -> Iterator[tuple[str, int, str]]:
        world = self._world
        assert world.controller is not None
        queue, failed = world.controller.planning.placements._queue, world.controller.state.failures.avoided
        reserved = NO_LOADS
        for job in queue.jobs():
            held = queue.of(job.name)
            if held is None or uses_failed(held.plan, failed, job.excluded):
                if queue.is_tried(job, failed) and plan_of(world, job, failed, reserved) is not None:
                    yield job.name, job.seq, "counts as one that fits nowhere, though there is a plan"
                continue
            if not world.aging_s and not fits(world.fabric, held.plan, reserved):
                yield job.name, job.seq, "what is reserved for it is reserved ahead of it, too"
            reserved = add_loads(reserved, held.plan.loads)
