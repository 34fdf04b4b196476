# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Presents a fabric to a planner: numbered resources with their residual capacity, and candidate routes.

A resource is a directed link, the aggregation capacity of a switch, or the ingress of a host. candidate_paths.py says
which routes a planner considers.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from netfold.controller.planning.candidate_paths import CandidatePaths, Limits, Route
from netfold.controller.planning.plan import JobSpec, Loads, PlanningError
from netfold.topologies.fabric import Fabric

NO_LOADS = Loads()
USED_UP = 1e-9
"""Fraction of a capacity below which a remainder is a rounding error, and counts as 0."""


class ResidualNetwork:
    """Capacities of a fabric less the loads `background`, never below 0. Capacities and rates are in units of `unit`
    fabric units."""

    def __init__(
        self,
        fabric: Fabric,
        background: Loads = NO_LOADS,
        limits: Limits | None = None,
        unit: float = 1.0,
    ) -> None:
        self.fabric, self.unit = fabric, unit
        self.limits = limits or Limits()
        self.links: list[tuple[str, str]] = []
        capacity: list[float] = []
        for link in fabric.links:
            for pair in ((link.a, link.b), (link.b, link.a)):
                self.links.append(pair)
                capacity.append(link.rate - background.links.get(pair, 0.0))
        self.link_id = {pair: i for i, pair in enumerate(self.links)}
        self.switch_id = {s.name: len(capacity) + i for i, s in enumerate(fabric.switches)}
        capacity += [s.capacity - background.switches.get(s.name, 0.0) for s in fabric.switches]
        self.server_id = {h.name: len(capacity) + i for i, h in enumerate(fabric.hosts)}
        self.capacity_id = {**self.switch_id, **self.server_id}
        """The resource that a child's packets use at their parent: a switch's capacity or a server's ingress."""
        capacity += [
            fabric.ingress_capacity(h.name) - background.servers.get(h.name, 0.0) for h in fabric.hosts
        ]
        self.loopbacks = {
            (s.name, x.port): max(0.0, x.rate - background.loopbacks.get((s.name, x.port), 0.0)) / unit
            for s in fabric.switches
            for x in s.loopbacks
        }
        """Residual capacity of ports in loopback mode. They limit finished plans; no scheme optimizes them."""
        left = np.array(capacity, dtype=np.float64)
        self.capacity: NDArray[np.float64] = np.where(left > USED_UP * self._whole(), left / unit, 0.0)

    def _whole(self) -> NDArray[np.float64]:
        """Every resource's capacity without any background (fabric units)."""
        fabric = self.fabric
        whole = [link.rate for link in fabric.links for _ in range(2)]
        whole += [s.capacity for s in fabric.switches]
        whole += [fabric.ingress_capacity(h.name) for h in fabric.hosts]
        return np.array(whole, dtype=np.float64)

    def left_with(self, capacity: NDArray[np.float64]) -> ResidualNetwork:
        """The same network with another residual capacity and the same candidate routes."""
        other = copy.copy(self)
        other.capacity, other.paths = capacity, self.paths
        return other

    def resource_name(self, resource: int) -> str:
        if resource < len(self.links):
            return "link {}->{}".format(*self.links[resource])
        names = {i: f"switch {n}" for n, i in self.switch_id.items()}
        names |= {i: f"parameter server {n}" for n, i in self.server_id.items()}
        return names[resource]

    def aggregators(self) -> list[str]:
        """The switches with aggregation capacity left, in the fabric's order."""
        return [s.name for s in self.fabric.switches if self.capacity[self.switch_id[s.name]] > 0]

    def max_children(self, switch: str) -> int:
        """The maximum number of children of a switch as a node of a tree."""
        own = self.fabric.switch(switch).max_children
        return own if self.limits.fan_in is None else self.limits.fan_in

    @cached_property
    def neighbors(self) -> dict[str, list[str]]:
        """The switches next to each switch, in the order of the fabric's links."""
        found: dict[str, list[str]] = {s.name: [] for s in self.fabric.switches}
        for a, b in self.links:
            if a in found and b in found:
                found[a].append(b)
        return found

    @cached_property
    def paths(self) -> CandidatePaths:
        """The candidate routes over links with capacity left."""
        capacity = self.capacity.tolist()
        usable = {pair: i for pair, i in self.link_id.items() if capacity[i] > 0}
        return CandidatePaths(self.neighbors, usable, self._attached, self.limits)

    @cached_property
    def order(self) -> dict[str, int]:
        return {s.name: i for i, s in enumerate(self.fabric.switches)}

    def attachment(self, node: str) -> str:
        """The switch of a host; a switch itself."""
        return self._attached.get(node, node)

    @cached_property
    def _attached(self) -> dict[str, str]:
        return {h.name: self.fabric.attachment(h.name) for h in self.fabric.hosts}

    def path(self, route: Route) -> tuple[str, ...]:
        """The node names along a route."""
        return (self.links[route[0]][0], *(self.links[i][1] for i in route))

    def access_limit(self, workers: tuple[str, ...]) -> float:
        """Maximum rate at which every worker can send and receive over its own link."""
        switch = {w: self.fabric.attachment(w) for w in workers}
        both = [self.capacity[self.link_id[pair]] for w, s in switch.items() for pair in ((w, s), (s, w))]
        return float(min(both))


def natural_unit(fabric: Fabric, background: Loads, workers: Sequence[str]) -> float:
    """The power of two (an exact factor) next to the maximum rate of the links of the workers. In this unit rates are
    about 1 or less whatever the unit of the fabric is, so that tolerances have the same meaning everywhere."""
    ends = [(w, fabric.attachment(w)) for w in workers]
    both = [pair for a, b in ends for pair in ((a, b), (b, a))]
    most = min(fabric.link(*pair).rate - background.links.get(pair, 0.0) for pair in both)
    return 2.0 ** math.floor(math.log2(most)) if most > 0 else 1.0


def check_job(fabric: Fabric, job: JobSpec) -> None:
    """Raise PlanningError unless the job's workers and parameter servers are distinct hosts of the fabric."""
    if not job.workers:
        raise PlanningError(
            f"job '{job.name}' has no workers; name at least one host of fabric '{fabric.name}'"
        )
    names = (*job.workers, *job.parameter_servers)
    for name in names:
        if not fabric.is_host(name):
            raise PlanningError(
                f"job '{job.name}' names '{name}', which is no host of fabric '{fabric.name}'"
            )
    if len(set(names)) < len(names):
        twice = next(n for n in names if names.count(n) > 1)
        raise PlanningError(
            f"job '{job.name}' names host '{twice}' twice; a host is one worker or one parameter server"
        )
