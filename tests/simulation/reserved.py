# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What jobs reserve, and in which order they wait for it; computed without the controller's own sums and ranks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from netfold.controller.jobs.records import JobRecord
from netfold.controller.planning.plan import Plan
from netfold.topologies.fabric import Fabric
from tests.simulation.program import Program
from tests.simulation.world import ViolationError

TOLERANCE = 1e-6


class Reserved:
    """`check` raises ViolationError."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self._seen: list[Plan] = []

    def check(self, jobs: Iterable[JobRecord]) -> None:
        """No link, switch or parameter server has to carry more than it can."""
        held = {j.name: j.placement.plan for j in jobs if j.state.is_installed and j.placement is not None}
        plans = list(held.values())
        if len(plans) == len(self._seen) and all(a is b for a, b in zip(plans, self._seen, strict=True)):
            return
        self._seen = plans
        links: Counter[tuple[str, str]] = Counter()
        nodes: Counter[str] = Counter()
        for plan in plans:
            links.update(plan.loads.links)
            nodes.update(plan.loads.switches)
            nodes.update(plan.loads.servers)
        for (a, b), load in links.items():
            self._check(f"link {a}->{b}", load, self.fabric.link(a, b).rate, held)
        for node, load in nodes.items():
            is_host = self.fabric.is_host(node)
            capacity = self.fabric.ingress_capacity(node) if is_host else self.fabric.switch(node).capacity
            self._check(node, load, capacity, held)

    def _check(self, what: str, load: float, capacity: float, held: Iterable[str]) -> None:
        if load > capacity * (1 + TOLERANCE):
            raise ViolationError(f"{', '.join(held)} reserve {load:g} of {capacity:g} of {what}")


def check_order(queued: list[JobRecord], programs: dict[str, Program], wall_s: float, age_s: float) -> None:
    """Raises ViolationError if jobs wait in another order than by priority, of which each `age_s` that a job waits are
    one point more (docs/reference/jobs.md), then by age."""
    known = [j for j in queued if j.name in programs]

    def rank(job: JobRecord) -> tuple[float, int]:
        points = programs[job.name].spec.priority + max(0.0, wall_s - job.submitted) // age_s
        return -points, job.seq

    right = sorted(known, key=rank)
    if [j.name for j in known] != [j.name for j in right]:
        names = ", ".join(j.name for j in right)
        raise ViolationError(f"the queue is {', '.join(j.name for j in known)}, and not {names}")
