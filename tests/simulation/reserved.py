# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs reserve no more than their links and nodes can carry. The sums are not the controller's own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from netfold.controller.jobs.records import JobRecord
from netfold.controller.planning.plan import Plan
from netfold.topologies.fabric import Fabric
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
