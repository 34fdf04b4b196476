# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Presents a fabric to a planner: numbered resources with their residual capacity, and bounded candidate routes.

A resource is a directed link, the aggregation capacity of a switch, or the ingress of a host. A route is a
tuple of directed link numbers from a child to its parent. Routes are bounded: at most `Limits.paths` per
pair of switches, the shortest first, none longer than the shortest by more than `Limits.stretch` hops. On
a fabric of at most `Limits.small` switches every simple path is a candidate.
"""

from __future__ import annotations

import copy
import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from netfold.controller.planning.plan import JobSpec, Loads, PlanningError
from netfold.topologies.fabric import Fabric

Route = tuple[int, ...]
NO_LOADS = Loads()
UNREACHABLE = 1_000_000
USED_UP = 1e-9
"""Fraction of a capacity below which a remainder is a rounding error, and counts as 0."""


@dataclass(frozen=True)
class Limits:
    """Limits of a search: `paths`, `stretch`, `small` are explained above; `columns`: routed variables of a linear
    model; `nodes`: switches that every worker may use as parent in addition to its own; `fan_in`: maximum children of
    every switch, in place of the number that its program takes (None)."""

    paths: int = 8
    stretch: int = 1
    small: int = 6
    columns: int = 16_000
    nodes: int = 48
    fan_in: int | None = None


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
        self.all_simple_paths = len(fabric.switches) <= self.limits.small
        self._distances: dict[str, dict[str, int]] = {}
        self._between: dict[tuple[str, str, int], tuple[Route, ...]] = {}
        self._routes: dict[tuple[str, str, int], tuple[Route, ...]] = {}

    def _whole(self) -> NDArray[np.float64]:
        """Every resource's capacity without any background (fabric units)."""
        fabric = self.fabric
        whole = [link.rate for link in fabric.links for _ in range(2)]
        whole += [s.capacity for s in fabric.switches]
        whole += [fabric.ingress_capacity(h.name) for h in fabric.hosts]
        return np.array(whole, dtype=np.float64)

    def left_with(self, capacity: NDArray[np.float64]) -> ResidualNetwork:
        """The same network with another residual capacity; candidate routes are shared."""
        other = copy.copy(self)
        other.capacity = capacity
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

    def distances(self, target: str) -> dict[str, int]:
        """Hops from every switch to the switch `target`, over links with capacity left; switches without a path
        are missing."""
        known = self._distances.get(target)
        if known is None:
            known = {target: 0}
            queue = deque([target])
            while queue:
                at = queue.popleft()
                for neighbor in self.neighbors[at]:
                    if neighbor not in known and self.capacity[self.link_id[neighbor, at]] > 0:
                        known[neighbor] = known[at] + 1
                        queue.append(neighbor)
            self._distances[target] = known
        return known

    @cached_property
    def neighbors(self) -> dict[str, list[str]]:
        """The switches next to each switch, in the order of the fabric's links."""
        found: dict[str, list[str]] = {s.name: [] for s in self.fabric.switches}
        for a, b in self.links:
            if a in found and b in found:
                found[a].append(b)
        return found

    @cached_property
    def order(self) -> dict[str, int]:
        return {s.name: i for i, s in enumerate(self.fabric.switches)}

    def attachment(self, node: str) -> str:
        """The switch of a host; a switch itself."""
        return self._attached.get(node, node)

    @cached_property
    def _attached(self) -> dict[str, str]:
        return {h.name: self.fabric.attachment(h.name) for h in self.fabric.hosts}

    def hops(self, child: str, parent: str) -> int:
        """Hops between the switches of two nodes; more than any real distance if there is no path."""
        return self.distances(self.attachment(parent)).get(self.attachment(child), len(self.neighbors))

    def routes(self, child: str, parent: str, most: int | None = None) -> tuple[Route, ...]:
        """The candidate routes from child to parent (hosts or switches), the shortest first; none if every
        path has a link without residual capacity."""
        most = most or self.limits.paths
        key = (child, parent, most)
        known = self._routes.get(key)
        if known is None:
            first, last = self.attachment(child), self.attachment(parent)
            ends = [(a, b) for a, b in ((child, first), (last, parent)) if a != b]
            usable = all(self.capacity[self.link_id[pair]] > 0 for pair in ends)
            head = (self.link_id[child, first],) if child != first else ()
            tail = (self.link_id[last, parent],) if parent != last else ()
            middles = self.between(first, last, most) if usable else ()
            known = tuple((*head, *middle, *tail) for middle in middles)
            self._routes[key] = known
        return known

    def between(self, first: str, last: str, most: int | None = None) -> tuple[Route, ...]:
        """The candidate routes between two switches."""
        most = most or self.limits.paths
        key = (first, last, most)
        known = self._between.get(key)
        if known is None:
            found: list[Route] = []
            shortest = self.distances(last).get(first, UNREACHABLE)
            stretch = len(self.neighbors) if self.all_simple_paths else self.limits.stretch
            bound = 1_000 if self.all_simple_paths else most
            for length in range(shortest, min(shortest, len(self.neighbors)) + stretch + 1):
                for route in self._simple_paths(
                    first, last, length, (first,), self.order[first] + self.order[last]
                ):
                    found.append(route)
                    if len(found) >= bound:
                        break
                if len(found) >= bound:
                    break
            known = tuple(found)
            self._between[key] = known
        return known

    def _simple_paths(
        self, at: str, last: str, length: int, seen: tuple[str, ...], rotation: int
    ) -> Iterator[Route]:
        """Yield simple paths of exactly `length` hops. `rotation` rotates the order of neighbors, so that pairs of
        switches that cannot have all their equal-cost paths as candidates get different ones."""
        if at == last:
            if length == 0:
                yield ()
            return
        distance = self.distances(last)
        neighbors = self.neighbors[at]
        for i in range(len(neighbors)):
            step = neighbors[(i + rotation) % len(neighbors)]
            if step in seen or self.capacity[self.link_id[at, step]] <= 0:
                continue
            if distance.get(step, UNREACHABLE) < length:
                for rest in self._simple_paths(step, last, length - 1, (*seen, step), rotation):
                    yield (self.link_id[at, step], *rest)

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
