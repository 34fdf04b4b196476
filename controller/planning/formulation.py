# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Defines the linear models of GRIA (GRID Eq. 1) and InArt (Eq. 1, 5): each worker's part for a
parameter server is added up in at most one switch, or goes there whole. Beyond the papers they hold link limits in both
directions (also GRID's), the result tree, and a switch's fan-in. They correct the link row of InArt's printed
constraints (no factor |V|, worker-to-switch paths per server, a switch's stream counted once).

Variables per parameter server s: R[s,g,v,p], the rate that the workers of group g send to node v (or straight to s)
over route p; Z[s,v,p], the stream of node v; G[s,l,p] and D[s,e], the results' routes to leaf l and their load on link
e. Workers on one switch with equal links are one group: the relaxation is convex and symmetric in them, so this loses
nothing.

There are two ways to fix the scale. `FixedShares` counts streams: all is divided by the rate, whose inverse
is minimized. `FreeShares` counts rates: each server's part of the rate is a variable too. Both are the papers'
relaxation, or exact (`whole`): each worker's part whole, one route per stream.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netfold.controller.planning.candidate_paths import Route
from netfold.controller.planning.plan import PlanningError
from netfold.controller.planning.residual_network import ResidualNetwork
from netfold.controller.planning.sparse import INF, Effort, LinearProgram, Stopped

NEGLIGIBLE = 1e-7
RELAXED = Effort()


@dataclass(frozen=True)
class Group:
    """Workers on one switch whose links have equal capacities left."""

    switch: str
    workers: tuple[str, ...]


@dataclass(frozen=True)
class Choice:
    """The part of the rate of a group that goes to `parent` over `route` (from the switch of the group on), as a
    fraction."""

    parent: str
    route: Route
    fraction: float


@dataclass(frozen=True)
class Solution:
    """A solution: its `rate` and the `bound` on the rate that the model allows (equal when solved to the end).
    `choices[s, g]` are the parts of a group for server s, `streams[s, v]` the routes of node v and `result_routes[s]`
    the routes of the results with their weights. `stopped` is the limit that ended the search before its proof, and
    `complete` whether the model held every simple path and every node."""

    rate: float
    bound: float
    shares: tuple[float, ...]
    choices: dict[tuple[int, int], tuple[Choice, ...]]
    streams: dict[tuple[int, str], tuple[tuple[Route, float], ...]]
    result_routes: dict[int, tuple[tuple[Route, float], ...]]
    stopped: Stopped | None
    complete: bool


class NoSolutionError(PlanningError):
    """The model has no solution; `stopped`: limit that ended the search before a proof."""

    def __init__(self, message: str, stopped: Stopped | None) -> None:
        super().__init__(message)
        self.stopped = stopped


def group_workers(network: ResidualNetwork, workers: Sequence[str], *, single: bool = False) -> list[Group]:
    """Workers by switch and access capacity; `single` puts each into a group of its own."""
    groups: dict[tuple[object, ...], list[str]] = defaultdict(list)
    for worker in workers:
        switch = network.attachment(worker)
        up, down = (network.capacity[network.link_id[p]] for p in ((worker, switch), (switch, worker)))
        groups[(worker,) if single else (switch, up, down)].append(worker)
    return [Group(network.attachment(members[0]), tuple(members)) for members in groups.values()]


class Formulation(ABC):
    """The model of one job. Build it, then `solve()`."""

    def __init__(
        self,
        network: ResidualNetwork,
        workers: Sequence[str],
        servers: Sequence[str],
        nodes: Sequence[str],
        *,
        whole: bool,
        single: bool = False,
    ) -> None:
        self.network, self.servers, self.whole = network, tuple(servers), whole
        self.top = network.access_limit(tuple(workers))
        if self.top <= 0:
            raise PlanningError("a worker's own link has no capacity left; free it or leave the worker out")
        self.groups = group_workers(network, workers, single=single)
        self.nodes, self.dropped = self._offered(nodes)
        self.routes_per_pair = self._route_bound()
        self.program = LinearProgram()
        self.usage: dict[int, list[tuple[int, float]]] = defaultdict(list)
        self.part: dict[tuple[int, int], list[tuple[int, str, Route]]] = {}
        self.stream: dict[tuple[int, str], list[tuple[int, Route]]] = {}
        self.result_routes: dict[int, list[tuple[int, Route]]] = defaultdict(list)

    # ---- what fixes the scale ----------------------------------------------------------------------------

    @abstractmethod
    def new_stream(self, s: int, size: int) -> int:
        """A column for the stream of up to `size` senders of the tree of server s over one route."""

    @abstractmethod
    def all_of(self, s: int, columns: list[int], size: int) -> None:
        """Require that the columns together are the streams of `size` senders; each sender's part has one route if it
        is whole."""

    @abstractmethod
    def at_most_one(self, s: int, columns: list[int]) -> None:
        """Require that at most one of the columns, each of one sender, is in use if streams are whole."""

    @abstractmethod
    def weight(self, s: int) -> float:
        """Load on a resource per unit of a column of the tree of server s."""

    @abstractmethod
    def within_capacities(self) -> None:
        """Add rows that keep the `usage` of each resource within its capacity."""

    @abstractmethod
    def scale(self, values: NDArray[np.float64]) -> tuple[float, tuple[float, ...]]:
        """The rate and the servers' shares."""

    @abstractmethod
    def rate_bound(self, objective: float) -> float:
        """The rate that a bound on the objective allows."""

    # ---- building ----------------------------------------------------------------------------------------

    def build(self) -> None:
        for s in range(len(self.servers)):
            self._server(s)
        self.within_capacities()

    def _offered(self, nodes: Sequence[str]) -> tuple[list[str], int]:
        """The nodes offered to all groups: the roomiest, and among equals the ones nearest to the servers."""
        network, most = self.network, self.network.limits.nodes
        if len(nodes) <= most:
            return list(nodes), 0
        hops = {v: sum(network.paths.hops(v, s) for s in self.servers) for v in nodes}
        ranked = sorted(nodes, key=lambda v: (-network.capacity[network.switch_id[v]], hops[v]))
        return ranked[:most], len(nodes) - most

    def _route_bound(self) -> int:
        pairs = len(self.servers) * len(self.groups) * (len(self.nodes) + 1)
        return max(1, min(self.network.limits.paths, self.network.limits.columns // max(1, pairs)))

    def _candidates(self, group: Group) -> list[str]:
        own = group.switch
        extra = (
            [own] if own not in self.nodes and self.network.capacity[self.network.switch_id[own]] > 0 else []
        )
        return self.nodes + extra

    def _server(self, s: int) -> None:
        members: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for g, group in enumerate(self.groups):
            for node, column in self._worker_columns(s, g, group):
                members[node].append((column, g))
        for node, columns in members.items():
            self._node(s, node, columns)
        self._results(s)

    def _worker_columns(self, s: int, g: int, group: Group) -> list[tuple[str, int]]:
        """The columns R of a group; returns (node, column) of those that go to a node."""
        network, server, size = self.network, self.servers[s], len(group.workers)
        columns: list[tuple[int, str, Route]] = []
        inner: list[tuple[str, int]] = []
        for parent in (*(v for v in self._candidates(group) if network.paths.routes(v, server, 1)), server):
            for route in network.paths.routes(group.switch, parent, self.routes_per_pair):
                column = self.new_stream(s, size)
                columns.append((column, parent, route))
                self._use(route, column, s)
                self.usage[network.capacity_id[parent]].append((column, self.weight(s)))
                if parent != server:
                    inner.append((parent, column))
        if not columns:
            raise PlanningError(f"no route with capacity left leads from {group.switch} to {server}")
        self.all_of(s, [c for c, _, _ in columns], size)
        self.part[s, g] = columns
        return inner

    def _node(self, s: int, node: str, columns: list[tuple[int, int]]) -> None:
        """The stream of a node: as fast as its fastest member, and no more members than it takes."""
        network, server, program = self.network, self.servers[s], self.program
        streams = [
            (self.new_stream(s, 1), route)
            for route in network.paths.routes(node, server, self.routes_per_pair)
        ]
        for column, route in streams:
            self._use(route, column, s)
            self.usage[network.server_id[server]].append((column, self.weight(s)))
        by_group: dict[int, list[int]] = defaultdict(list)
        for column, g in columns:
            by_group[g].append(column)
        for g, own in by_group.items():
            size = len(self.groups[g].workers)
            program.add([(c, 1.0) for c in own] + [(z, -float(size)) for z, _ in streams], -INF, 0.0)
        if sum(len(self.groups[g].workers) for g in by_group) > network.max_children(node):
            fan_in = float(network.max_children(node))
            program.add([(c, 1.0) for c, _ in columns] + [(z, -fan_in) for z, _ in streams], -INF, 0.0)
        self.at_most_one(s, [z for z, _ in streams])
        self.stream[s, node] = streams

    def _results(self, s: int) -> None:
        """The result tree: a route to every leaf; a link counts once for all its leaves."""
        server, network = self.servers[s], self.network
        link_column: dict[int, int] = {}
        for leaf in dict.fromkeys(g.switch for g in self.groups):
            on_link: dict[int, list[int]] = defaultdict(list)
            columns_to_leaf = []
            for route in network.paths.routes(server, leaf, self.routes_per_pair):
                column = self.new_stream(s, 1)
                columns_to_leaf.append(column)
                self.result_routes[s].append((column, route))
                for link in route:
                    on_link[link].append(column)
            if not columns_to_leaf:
                raise PlanningError(f"no route with capacity left leads from {server} to {leaf}")
            self.all_of(s, columns_to_leaf, 1)
            for link, columns in on_link.items():
                if link not in link_column:
                    link_column[link] = self.program.new_column(INF)
                    self.usage[link].append((link_column[link], self.weight(s)))
                self.program.add([(c, 1.0) for c in columns] + [(link_column[link], -1.0)], -INF, 0.0)

    def _use(self, route: Route, column: int, s: int) -> None:
        for link in route:
            self.usage[link].append((column, self.weight(s)))

    # ---- solving -----------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """The number of integer columns, or of all if there are none."""
        return self.program.size

    @property
    def complete(self) -> bool:
        """Whether the model holds every simple path and every node."""
        return self.network.paths.has_all_simple_paths and not self.dropped

    def solve(self, effort: Effort = RELAXED) -> Solution:
        """Solve. Raises NoSolutionError when nothing can be sent, or nothing was found."""
        outcome = self.program.solve(effort)
        if outcome.values is None:
            raise NoSolutionError(f"no solution: {outcome.status}", outcome.stopped)
        values = outcome.values
        rate, shares = self.scale(values)
        if rate <= NEGLIGIBLE * self.top:
            raise NoSolutionError("no solution in which anything is sent", outcome.stopped)

        def used(columns: list[tuple[int, Route]]) -> tuple[tuple[Route, float], ...]:
            return tuple((r, float(values[c])) for c, r in columns if values[c] > NEGLIGIBLE)

        choices = {
            key: tuple(Choice(p, r, float(values[c])) for c, p, r in columns if values[c] > NEGLIGIBLE)
            for key, columns in self.part.items()
        }
        return Solution(
            rate,
            self.rate_bound(outcome.bound),
            shares,
            _normal(choices),
            {key: used(columns) for key, columns in self.stream.items()},
            {s: used(columns) for s, columns in self.result_routes.items()},
            outcome.stopped,
            self.complete,
        )


def _normal(choices: dict[tuple[int, int], tuple[Choice, ...]]) -> dict[tuple[int, int], tuple[Choice, ...]]:
    result = {}
    for key, parts in choices.items():
        total = sum(p.fraction for p in parts)
        result[key] = tuple(Choice(p.parent, p.route, p.fraction / total) for p in parts)
    return result


class FixedShares(Formulation):
    """The model at given shares of the servers, divided by the rate, so that it stays linear: R counts workers, Z is 0
    or 1, and u = 1/rate is minimized. `above` is a rate that is known to be possible: only better ones are sought."""

    def __init__(
        self,
        network: ResidualNetwork,
        workers: Sequence[str],
        servers: Sequence[str],
        nodes: Sequence[str],
        shares: Sequence[float],
        *,
        whole: bool = False,
        above: float | None = None,
    ) -> None:
        super().__init__(network, workers, servers, nodes, whole=whole)
        self.shares = tuple(shares)
        slowest = INF if above is None else 1.0 / above
        self.inverse = self.program.new_column(slowest, lower=1.0 / self.top)
        self.program.cost = {self.inverse: 1.0}
        self.build()

    def new_stream(self, s: int, size: int) -> int:
        return self.program.new_column(float(size), integer=self.whole)

    def all_of(self, s: int, columns: list[int], size: int) -> None:
        self.program.add([(c, 1.0) for c in columns], size, size)

    def at_most_one(self, s: int, columns: list[int]) -> None:
        if self.whole:
            self.program.add([(c, 1.0) for c in columns], 0.0, 1.0)

    def weight(self, s: int) -> float:
        return self.shares[s]

    def within_capacities(self) -> None:
        for resource, terms in self.usage.items():
            capacity = float(self.network.capacity[resource])
            self.program.add([*terms, (self.inverse, -capacity)], -INF, 0.0)

    def scale(self, values: NDArray[np.float64]) -> tuple[float, tuple[float, ...]]:
        return 1.0 / float(values[self.inverse]), self.shares

    def rate_bound(self, objective: float) -> float:
        return float(1.0 / objective) if objective > 0 else self.top


class FreeShares(Formulation):
    """The model in which the part F of the rate is a variable for each server: columns are rates, and the sum of F is
    maximized. If streams are whole, each has an additional binary, and each worker is a group of its own."""

    def __init__(
        self,
        network: ResidualNetwork,
        workers: Sequence[str],
        servers: Sequence[str],
        nodes: Sequence[str],
        *,
        whole: bool = False,
    ) -> None:
        super().__init__(network, workers, servers, nodes, whole=whole, single=whole)
        ingress = [float(network.capacity[network.server_id[s]]) for s in servers]
        self.most = [min(self.top, i) for i in ingress]
        self.rate = [self.program.new_column(most) for most in self.most]
        self.program.cost = dict.fromkeys(self.rate, -1.0)
        self.build()

    def new_stream(self, s: int, size: int) -> int:
        return self.program.new_column(size * self.most[s])

    def all_of(self, s: int, columns: list[int], size: int) -> None:
        self.program.add([*((c, 1.0) for c in columns), (self.rate[s], -float(size))], 0.0, 0.0)
        self._one_of(s, columns, at_least=1)

    def at_most_one(self, s: int, columns: list[int]) -> None:
        self._one_of(s, columns, at_least=0)

    def _one_of(self, s: int, columns: list[int], *, at_least: int) -> None:
        """Tie a binary to each column; at most one of them is 1."""
        if self.whole:
            picks = [(self.program.new_column(1.0, integer=True), 1.0) for _ in columns]
            for column, (pick, _) in zip(columns, picks, strict=True):
                self.program.add([(column, 1.0), (pick, -self.most[s])], -INF, 0.0)
            self.program.add(picks, at_least, 1.0)

    def weight(self, s: int) -> float:
        return 1.0

    def within_capacities(self) -> None:
        for resource, terms in self.usage.items():
            self.program.add(terms, -INF, float(self.network.capacity[resource]))
        self.program.add([(c, 1.0) for c in self.rate], 0.0, self.top)

    def scale(self, values: NDArray[np.float64]) -> tuple[float, tuple[float, ...]]:
        parts = [max(0.0, float(values[c])) for c in self.rate]
        rate = sum(parts)
        return rate, tuple(p / rate if rate > 0 else 1.0 / len(parts) for p in parts)

    def rate_bound(self, objective: float) -> float:
        return -objective
