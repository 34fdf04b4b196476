# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Defines the problem of packing aggregation trees: the switches and servers that may be nodes, the places from which
workers send, and the resources that a tree uses. Workers of one place (a switch) are alike in every tree except for
their own links, which every tree uses equally; the slowest of them is `access`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netfold.controller.planning.candidate_paths import Route
from netfold.controller.planning.plan import PlanningError
from netfold.controller.planning.residual_network import ResidualNetwork

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Place:
    """The workers on one switch, which is given by its number."""

    switch: int
    workers: tuple[str, ...]


@dataclass(frozen=True)
class Node:
    """A switch that may aggregate, or a parameter server.

    switch        number of the switch, or of the switch of the server
    spent         resources that the packets of every child use
    sent          resources that a result uses (the link of a server)
    max_children  number of children that it can have
    """

    name: str
    switch: int
    spent: tuple[int, ...]
    sent: tuple[int, ...]
    max_children: int
    is_server: bool


class PackingProblem:
    """A job on a residual network. Switches and nodes are numbers. Raises PlanningError if the link of a worker is
    full, or if there is no node."""

    def __init__(self, network: ResidualNetwork, workers: Sequence[str], servers: Sequence[str]) -> None:
        self.network = network
        self.access = network.access_limit(tuple(workers))
        if self.access <= 0:
            raise PlanningError(
                f"the link of worker {_cut_off(network, workers)} has nothing left; fewer jobs would fit"
            )
        number = network.order
        self.switches = tuple(number)
        self.nodes = (
            *(self._switch_node(v) for v in network.aggregators()),
            *(node for s in servers for node in self._server_node(s)),
        )
        if not self.nodes:
            raise PlanningError("no switch has aggregation capacity left, and no parameter server ingress")
        at: dict[int, list[str]] = {}
        for worker in workers:
            at.setdefault(number[network.attachment(worker)], []).append(worker)
        self.places = tuple(Place(switch, tuple(names)) for switch, names in sorted(at.items()))
        pairs = [
            (number[a], number[b], i)
            for i, (a, b) in enumerate(network.links)
            if a in number and b in number and network.capacity[i] > 0
        ]
        self.tail, self.head, self.link = (np.array([p[k] for p in pairs], dtype=np.int64) for k in range(3))
        self.link_between = {(a, b): i for a, b, i in pairs}
        back = [self.link_between.get((b, a), -1) for a, b, _ in pairs]
        self.back = np.array(back, dtype=np.int64)
        """The resource of the other direction of each link; -1: it has no capacity left."""

    def _switch_node(self, name: str) -> Node:
        network = self.network
        spent = (network.switch_id[name],)
        return Node(name, network.order[name], spent, (), network.max_children(name), is_server=False)

    def _server_node(self, name: str) -> list[Node]:
        """The node of a server; an empty list if the server or its link has no capacity left."""
        network = self.network
        at = network.attachment(name)
        into, out = network.link_id[at, name], network.link_id[name, at]
        spent = (into, network.server_id[name])
        if any(network.capacity[i] <= 0 for i in (*spent, out)):
            return []
        return [Node(name, network.order[at], spent, (out,), len(network.server_id), is_server=True)]


def _cut_off(network: ResidualNetwork, workers: Sequence[str]) -> str:
    return next(w for w in workers if network.access_limit((w,)) <= 0)


class Paths:
    """Cheapest paths; `cost[a, b]` is from switch a to switch b. The argument `cost` is of the links, above 0, in the
    order of `problem.link`."""

    def __init__(self, problem: PackingProblem, cost: Floats) -> None:
        # Not at the top: SciPy takes half a second, and a controller may never need it.
        from scipy.sparse import csr_array  # noqa: PLC0415
        from scipy.sparse.csgraph import dijkstra  # noqa: PLC0415

        n = len(problem.switches)
        usable = np.isfinite(cost)
        # Of 32 bits: SciPy 1.13 keeps the type, and its Dijkstra takes no other.
        ends = tuple(e[usable].astype(np.int32) for e in (problem.tail, problem.head))
        graph = csr_array((cost[usable], ends), shape=(n, n))
        self._problem = problem
        self.cost, self._before = dijkstra(graph, return_predecessors=True)

    def route(self, first: int, last: int) -> Route:
        links: list[int] = []
        while last != first:
            before = int(self._before[first, last])
            links.append(self._problem.link_between[before, last])
            last = before
        return tuple(reversed(links))
