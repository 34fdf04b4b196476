# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Finds the cheapest paths between all switches at a cost of each link."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from netfold.controller.planning.packing_problem import PackingProblem
from netfold.controller.planning.residual_network import Route

Floats = NDArray[np.float64]


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
