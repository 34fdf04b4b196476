# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""One sparse model for GRIA (GRID Eq. 1) and InArt (Eq. 1, 5): each worker's part for a parameter server is
added up in at most one switch, or goes there whole. Beyond the papers it holds link limits in both directions
(also GRID's), the results' way down, and a switch's fan-in; of InArt's printed constraints it mends the link
row (no factor |V|, worker-to-switch paths per server, a switch's stream counted once).

Variables per parameter server s: F_s, its part of the rate; R[s,g,v,p], what the workers of group g send to
node v (or straight to s) over route p; Z[s,v,p], the stream of node v; G[s,l,p] and D[s,e], the results'
routes to leaf l and their load on link e. Workers on one switch with equal links are one group: the
relaxation is convex and symmetric in them, so this loses nothing.

With `shares` given all is divided by the rate and u = 1/rate is minimized (R counts workers, Z is 0 or 1),
which makes the exact problem a MILP; without, the shares are variables too, and exactness takes a binary
beside every R.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

import highspy
import numpy as np

from netfold.controller.planning.network import Network, Route
from netfold.controller.planning.plan import PlanningError


class Form(Enum):
    """LP relaxation, or exact (each worker's part whole, one route per stream)."""

    RELAXED = "relaxed"
    EXACT = "exact"


@dataclass(frozen=True)
class Group:
    """Workers on one switch whose links have equal capacities left."""

    switch: str
    workers: tuple[str, ...]


@dataclass(frozen=True)
class Choice:
    """Part of what a group sends: to `parent` over `route` (from the group's switch on), as a fraction of
    it."""

    parent: str
    route: Route
    fraction: float


@dataclass(frozen=True)
class Solution:
    """`rate` of the solution and `bound` on what the model allows (equal when solved to the end).
    `choices[s, g]` are a group's parts for server s, `streams[s, v]` the routes of node v with their
    weights, `proven` whether the model was solved to optimality, and `complete` whether it held every
    simple path and every node."""

    rate: float
    bound: float
    shares: tuple[float, ...]
    choices: dict[tuple[int, int], tuple[Choice, ...]]
    streams: dict[tuple[int, str], tuple[tuple[Route, float], ...]]
    proven: bool
    complete: bool


def group_workers(network: Network, workers: Sequence[str], *, single: bool = False) -> list[Group]:
    """Workers by switch and access capacity; `single` puts each into a group of its own."""
    groups: dict[tuple[object, ...], list[str]] = defaultdict(list)
    for worker in workers:
        switch = network.attachment(worker)
        up, down = (network.capacity[network.link_id[p]] for p in ((worker, switch), (switch, worker)))
        groups[(worker,) if single else (switch, up, down)].append(worker)
    return [Group(network.attachment(members[0]), tuple(members)) for members in groups.values()]


@dataclass
class _Rows:
    """A sparse model under construction; rows and columns are added in any order."""

    row: list[int] = field(default_factory=list)
    column: list[int] = field(default_factory=list)
    value: list[float] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    lower: list[float] = field(default_factory=list)
    integer: list[bool] = field(default_factory=list)

    def new_column(self, upper: float, *, integer: bool = False, lower: float = 0.0) -> int:
        self.upper.append(upper)
        self.lower.append(lower)
        self.integer.append(integer)
        return len(self.upper) - 1

    def add(self, terms: list[tuple[int, float]], low: float, high: float) -> None:
        at = len(self.low)
        for column, value in terms:
            self.row.append(at)
            self.column.append(column)
            self.value.append(value)
        self.low.append(low)
        self.high.append(high)


NEGLIGIBLE = 1e-7
INF = highspy.kHighsInf
SIMPLEX_COLUMNS = 3_000
"""Larger relaxations are solved by interior point without crossover (to about 1e-8): they are degenerate,
and slow for the simplex method."""


class Model:
    """The model of one job. Build it, then `solve()`."""

    def __init__(
        self,
        network: Network,
        workers: Sequence[str],
        servers: Sequence[str],
        nodes: Sequence[str],
        *,
        shares: Sequence[float] | None = None,
        form: Form = Form.RELAXED,
    ) -> None:
        self.network, self.servers, self.shares, self.form = network, tuple(servers), shares, form
        self.top = network.access_limit(tuple(workers))
        if self.top <= 0:
            raise PlanningError("a worker's own link has no capacity left; free it or leave the worker out")
        self.binary = form is Form.EXACT and shares is None
        self.groups = group_workers(network, workers, single=self.binary)
        self.nodes, self.dropped = self._offered(nodes)
        self.routes_per_pair = self._route_bound()
        self.rows = _Rows()
        self.usage: dict[int, list[tuple[int, float]]] = defaultdict(list)
        self.part: dict[tuple[int, int], list[tuple[int, str, Route]]] = {}
        self.stream: dict[tuple[int, str], list[tuple[int, Route]]] = {}
        self._build()

    def _offered(self, nodes: Sequence[str]) -> tuple[list[str], int]:
        """The nodes offered to all groups: the roomiest, and among equals the ones nearest to the servers."""
        network, most = self.network, self.network.limits.nodes
        if len(nodes) <= most:
            return list(nodes), 0
        near = {v: sum(network.hops(v, s) for s in self.servers) for v in nodes}
        ranked = sorted(nodes, key=lambda v: (-network.capacity[network.switch_id[v]], near[v]))
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

    def _build(self) -> None:
        if self.shares is None:
            self.rate = [self.rows.new_column(min(self.top, self._ingress(s))) for s in self.servers]
        else:
            self.inverse = self.rows.new_column(INF, lower=1.0 / self.top)
        for s in range(len(self.servers)):
            self._server(s)
        self._capacities()

    def _ingress(self, server: str) -> float:
        return float(self.network.capacity[self.network.server_id[server]])

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
        whole = self._whole(s)
        columns: list[tuple[int, str, Route]] = []
        inner: list[tuple[str, int]] = []
        integer = self.form is Form.EXACT and not self.binary
        most = size * self._most(s)
        for parent in (*(v for v in self._candidates(group) if network.routes(v, server, 1)), server):
            for route in network.routes(group.switch, parent, self.routes_per_pair):
                column = self.rows.new_column(most, integer=integer)
                columns.append((column, parent, route))
                self._use(route, column, s)
                if parent == server:
                    self.usage[network.server_id[server]].append((column, self._weight(s)))
                else:
                    inner.append((parent, column))
                    self.usage[network.switch_id[parent]].append((column, self._weight(s)))
        if not columns:
            raise PlanningError(f"no route with capacity left leads from {group.switch} to {server}")
        self._sum_to(whole, [c for c, _, _ in columns], size)
        if self.binary:
            self._one_of([c for c, _, _ in columns], most, at_least=1)
        self.part[s, g] = columns
        return inner

    def _node(self, s: int, node: str, columns: list[tuple[int, int]]) -> None:
        """The stream of a node: as fast as its fastest member, and at most `fan_in` members."""
        network, server = self.network, self.servers[s]
        integer = self.form is Form.EXACT and not self.binary
        streams = [
            (self.rows.new_column(self._most(s), integer=integer), route)
            for route in network.routes(node, server, self.routes_per_pair)
        ]
        for column, route in streams:
            self._use(route, column, s)
            self.usage[network.server_id[server]].append((column, self._weight(s)))
        by_group: dict[int, list[int]] = defaultdict(list)
        for column, g in columns:
            by_group[g].append(column)
        for g, own in by_group.items():
            size = len(self.groups[g].workers)
            self.rows.add([(c, 1.0) for c in own] + [(z, -float(size)) for z, _ in streams], -INF, 0.0)
        if sum(len(self.groups[g].workers) for g in by_group) > network.limits.fan_in:
            fan_in = float(network.limits.fan_in)
            self.rows.add([(c, 1.0) for c, _ in columns] + [(z, -fan_in) for z, _ in streams], -INF, 0.0)
        if self.form is Form.EXACT and self.binary:
            self._one_of([z for z, _ in streams], self._most(s), at_least=0)
        elif integer:
            self.rows.add([(z, 1.0) for z, _ in streams], 0.0, 1.0)
        self.stream[s, node] = streams

    def _results(self, s: int) -> None:
        """The results' way down: a route to every leaf, each link loaded once however many leaves it
        serves."""
        server, network = self.servers[s], self.network
        link_column: dict[int, int] = {}
        integer = self.form is Form.EXACT and not self.binary
        for leaf in dict.fromkeys(g.switch for g in self.groups):
            on_link: dict[int, list[int]] = defaultdict(list)
            ways = []
            for route in network.routes(server, leaf, self.routes_per_pair):
                column = self.rows.new_column(self._most(s), integer=integer)
                ways.append(column)
                for link in route:
                    on_link[link].append(column)
            if not ways:
                raise PlanningError(f"no route with capacity left leads from {server} to {leaf}")
            self._sum_to(self._whole(s), ways, 1)
            if self.binary:
                self._one_of(ways, self._most(s), at_least=1)
            for link, columns in on_link.items():
                if link not in link_column:
                    link_column[link] = self.rows.new_column(INF)
                    self.usage[link].append((link_column[link], self._weight(s)))
                self.rows.add([(c, 1.0) for c in columns] + [(link_column[link], -1.0)], -INF, 0.0)

    def _whole(self, s: int) -> tuple[int, float] | None:
        return None if self.shares is not None else (self.rate[s], 1.0)

    def _most(self, s: int) -> float:
        return 1.0 if self.shares is not None else self.rows.upper[self.rate[s]]

    def _weight(self, s: int) -> float:
        return 1.0 if self.shares is None else self.shares[s]

    def _use(self, route: Route, column: int, s: int) -> None:
        for link in route:
            self.usage[link].append((column, self._weight(s)))

    def _sum_to(self, whole: tuple[int, float] | None, columns: list[int], size: int) -> None:
        terms = [(c, 1.0) for c in columns]
        if whole is None:
            self.rows.add(terms, size, size)
        else:
            self.rows.add([*terms, (whole[0], -float(size))], 0.0, 0.0)

    def _one_of(self, columns: list[int], most: float, *, at_least: int) -> None:
        """Tie a binary to each column; at most one of them is 1."""
        picks = []
        for column in columns:
            pick = self.rows.new_column(1.0, integer=True)
            picks.append((pick, 1.0))
            self.rows.add([(column, 1.0), (pick, -most)], -INF, 0.0)
        self.rows.add(picks, at_least, 1.0)

    def _capacities(self) -> None:
        network = self.network
        for resource, terms in self.usage.items():
            capacity = float(network.capacity[resource])
            if self.shares is None:
                self.rows.add(terms, -INF, capacity)
            else:
                self.rows.add([*terms, (self.inverse, -capacity)], -INF, 0.0)
        if self.shares is None:
            self.rows.add([(c, 1.0) for c in self.rate], 0.0, self.top)

    @property
    def size(self) -> int:
        """The number of integer columns, or of all if there are none."""
        return sum(self.rows.integer) or len(self.rows.upper)

    def solve(self, time_limit: float = 60.0, start: float | None = None) -> Solution:
        """Solve; raise PlanningError when nothing can be sent at all. `start` is a rate that is known to
        be possible: only better solutions are looked for."""
        began = time.perf_counter()
        if start is not None and self.shares is not None:
            self.rows.upper[self.inverse] = 1.0 / start
        solver = self._solver(time_limit)
        solver.run()
        status = solver.getModelStatus()
        info = solver.getInfo()
        found = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible.value
        optimal = status == highspy.HighsModelStatus.kOptimal
        if not found:
            raise PlanningError(
                f"no solution after {time.perf_counter() - began:.1f} s: {solver.modelStatusToString(status)}"
            )
        values = np.asarray(solver.getSolution().col_value)
        return self._read(values, self._proven_bound(info, optimal), optimal)

    def _proven_bound(self, info: highspy.HighsInfo, optimal: bool) -> float:
        value = info.objective_function_value
        bound = info.mip_dual_bound if self.form is Form.EXACT and not optimal else value
        if self.shares is None:
            return float(bound)
        return float(1.0 / bound) if bound > 0 else self.top

    def _solver(self, time_limit: float) -> highspy.Highs:
        rows = self.rows
        order = np.argsort(np.asarray(rows.row, dtype=np.int64), kind="stable")
        starts = np.searchsorted(np.asarray(rows.row)[order], np.arange(len(rows.low) + 1))
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(rows.upper), len(rows.low)
        lp.col_lower_, lp.col_upper_ = np.asarray(rows.lower), np.asarray(rows.upper)
        lp.row_lower_, lp.row_upper_ = np.asarray(rows.low), np.asarray(rows.high)
        cost = np.zeros(len(rows.upper))
        if self.shares is None:
            cost[self.rate] = 1.0
            lp.sense_ = highspy.ObjSense.kMaximize
        else:
            cost[self.inverse] = 1.0
        lp.col_cost_ = cost
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = starts
        lp.a_matrix_.index_ = np.asarray(rows.column, dtype=np.int32)[order]
        lp.a_matrix_.value_ = np.asarray(rows.value)[order]
        if any(rows.integer):
            kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
            lp.integrality_ = [kinds[i] for i in rows.integer]
        solver = highspy.Highs()
        solver.setOptionValue("output_flag", False)
        solver.setOptionValue("threads", 1)
        solver.setOptionValue("random_seed", 0)
        solver.setOptionValue("time_limit", time_limit)
        solver.setOptionValue("mip_rel_gap", 1e-6)
        if self.form is Form.RELAXED and len(rows.upper) > SIMPLEX_COLUMNS:
            solver.setOptionValue("solver", "ipm")
            solver.setOptionValue("run_crossover", "off")
        solver.passModel(lp)
        return solver

    def _read(
        self, values: np.ndarray[tuple[int], np.dtype[np.float64]], bound: float, proven: bool
    ) -> Solution:
        count = len(self.servers)
        if self.shares is None:
            parts = [max(0.0, float(values[c])) for c in self.rate]
            rate = sum(parts)
            shares = tuple(p / rate if rate > 0 else 1.0 / count for p in parts)
        else:
            rate, shares = 1.0 / float(values[self.inverse]), tuple(self.shares)
        choices = {
            key: tuple(Choice(p, r, float(values[c])) for c, p, r in columns if values[c] > NEGLIGIBLE)
            for key, columns in self.part.items()
        }
        streams = {
            key: tuple((r, float(values[c])) for c, r in columns if values[c] > NEGLIGIBLE)
            for key, columns in self.stream.items()
        }
        complete = self.network.all_simple_paths and not self.dropped
        return Solution(rate, bound, shares, _normal(choices), streams, proven, complete)


def _normal(choices: dict[tuple[int, int], tuple[Choice, ...]]) -> dict[tuple[int, int], tuple[Choice, ...]]:
    result = {}
    for key, parts in choices.items():
        total = sum(p.fraction for p in parts)
        result[key] = tuple(Choice(p.parent, p.route, p.fraction / total) for p in parts)
    return result
