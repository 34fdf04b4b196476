# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Finds cheap trees at given prices of resources, and a cost that no tree is below.

The resources of a tree are a sum over its streams and its result links, so a cheapest one is a Steiner tree: of the
streams over the nodes, and of the results over the switches. With few places both are exact (steiner.py); beyond that a
tree grows from its root, one place after the other (Takahashi and Matsuyama, Math. Japonica 24, 1980), and each place
alone bounds the cost. The bound leaves out two conditions: the maximum children of a node, except for those of its own
rack, and that results which a switch as root resends have to join the result tree (resend_paths.py). Trees that break
them are mended or not returned.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netfold.controller.planning.packing_problem import PackingProblem, Paths
from netfold.controller.planning.steiner import Arrival, SetMove, SteinerTable, grow
from netfold.controller.planning.tree_columns import (
    TreeColumn,
    TreeStream,
    can_resend,
    make_column,
    mirrored,
    spanning,
)
from netfold.controller.planning.tree_shape import TreeShape, respect_children

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

EXACT_TERMINALS = 10
EXACT_WORK = 4_000_000
"""Limit of the work (three to the power of the terminals, times nodes) up to which the cheapest tree is found
exactly."""
ROOTS = 3
"""Number of roots that get a tree in each round."""


@dataclass(frozen=True)
class Priced:
    """Valid trees, and a cost below which there is none."""

    columns: tuple[TreeColumn, ...]
    lower: float


@dataclass(frozen=True)
class _Terminal:
    """`count` workers of a place; `away`: they have another parent than their own switch, which is full."""

    place: int
    count: int
    away: bool


class TreePricing:
    """Trees of a problem at prices, which are above 0."""

    def __init__(self, problem: PackingProblem) -> None:
        self._problem = problem
        own = {node.switch: u for u, node in enumerate(problem.nodes) if not node.is_server}
        self._own = [own.get(place.switch) for place in problem.places]
        self._at = np.array([node.switch for node in problem.nodes], dtype=np.int64)
        self._from = np.array([place.switch for place in problem.places], dtype=np.int64)
        self._servers = np.array([node.is_server for node in problem.nodes], dtype=np.bool_)
        self._max_children = [node.max_children for node in problem.nodes]
        self._able = [not node.is_server for node in problem.nodes]
        self._terminals = tuple(self._split_places())
        self.is_exact = (
            len(self._terminals) <= EXACT_TERMINALS
            and 3 ** len(self._terminals) * len(problem.switches) <= EXACT_WORK
        )

    def _split_places(self) -> Iterator[_Terminal]:
        for p, place in enumerate(self._problem.places):
            own, count = self._own[p], len(place.workers)
            fit = count if own is None else min(count, self._max_children[own])
            yield _Terminal(p, fit, away=False)
            if fit < count:
                yield _Terminal(p, count - fit, away=True)

    def price(
        self, prices: Floats, access: float, known: Collection[object] = (), enough: float = np.inf
    ) -> Priced:
        """Find up to ROOTS columns whose keys are not `known` yet, if trees of their root can cost less than `enough`.
        `access`: the price of the own links of all workers together."""
        at_prices = _AtPrices(self, self._problem, prices)
        lower, columns = at_prices.exact(enough - access) if self.is_exact else at_prices.grown()
        new: dict[object, TreeColumn] = {}
        for column in columns:
            if column.key not in known:
                new[column.key] = column
            if len(new) >= ROOTS:
                break
        return Priced(tuple(new.values()), lower + access)


class _AtPrices:
    def __init__(self, pricing: TreePricing, problem: PackingProblem, prices: Floats) -> None:
        self._pricing, self._problem = pricing, problem
        self._at, self._from, self._own = pricing._at, pricing._from, pricing._own
        self._link_cost = prices[problem.link]
        back = np.where(problem.back >= 0, prices[problem.back], np.inf)
        self._back_cost = back
        self._paths = Paths(problem, self._link_cost)
        self._both = Paths(problem, self._link_cost + back)
        self._spent = np.array([prices[list(node.spent)].sum() for node in problem.nodes])
        self._sent = np.array([prices[list(node.sent)].sum() for node in problem.nodes])

    # ---- few places ----------------------------------------------------------------------------------------

    def exact(self, enough: float) -> tuple[float, Iterator[TreeColumn]]:
        up = self._up_table(self._paths)
        distance = self._paths.cost
        down = SteinerTable(distance[:, self._from].T, distance.T)
        cost = up.cost[up.everything] + down.cost[down.everything, self._at] + self._sent
        roots = [int(r) for r in np.argsort(cost, kind="stable") if cost[r] < enough]
        return float(cost.min(initial=np.inf)), self._cheapest(up, down, roots)

    def _cheapest(self, up: SteinerTable, down: SteinerTable, roots: Sequence[int]) -> Iterator[TreeColumn]:
        both: SteinerTable | None = None
        for root in roots:
            shape = self._shape(up, root)
            own_way = self._with_results(shape, self._paths, self._results(down, root))
            if own_way is not None:
                yield own_way
                continue
            both = both or self._up_table(self._both)
            for other, paths in ((shape, self._paths), (self._shape(both, root), self._both)):
                column = self._with_results(other, paths, None)
                if column is not None:
                    yield column

    def _up_table(self, paths: Paths) -> SteinerTable:
        first = []
        bundles: dict[int, Paths] = {}
        for terminal in self._pricing._terminals:
            count = terminal.count
            reach = paths.cost[self._from[terminal.place], self._at] + self._spent
            if count > 1 and paths is self._both:
                if count not in bundles:
                    bundles[count] = Paths(self._problem, self._link_cost * count + self._back_cost)
                whole = bundles[count].cost[self._from[terminal.place], self._at]
                reach = whole / count + self._spent
            if terminal.away:
                reach = reach.copy()
                reach[self._own[terminal.place]] = np.inf
            first.append(count * reach)
        return SteinerTable(np.array(first), self._step(paths))

    def _step(self, paths: Paths) -> Floats:
        step: Floats = paths.cost[np.ix_(self._at, self._at)] + self._spent[None, :]
        step[self._pricing._servers, :] = np.inf
        return step

    def _shape(self, table: SteinerTable, root: int) -> TreeShape | None:
        if not np.isfinite(table.cost[table.everything, root]):
            return None
        shape = TreeShape(root)
        for part in table.tree(root):
            if isinstance(part, Arrival):
                terminal = self._pricing._terminals[part.terminal]
                shape.place(terminal.place, part.target, terminal.count)
            elif part.source != root and part.source not in shape.parent:
                shape.parent[part.source] = part.target
        return shape if all(self._leads_up(shape, v) for v in shape.parent) else None

    def _leads_up(self, shape: TreeShape, node: int) -> bool:
        for _ in range(len(shape.parent) + 1):
            if node == shape.root:
                return True
            if node not in shape.parent:
                return False
            node = shape.parent[node]
        return False

    def _results(self, table: SteinerTable, root: int) -> set[int]:
        links: set[int] = set()
        for part in table.tree(int(self._at[root])):
            last = part.source if isinstance(part, SetMove) else int(self._from[part.terminal])
            links.update(self._paths.route(part.target, last))
        return links

    # ---- many places ---------------------------------------------------------------------------------------

    def grown(self) -> tuple[float, Iterator[TreeColumn]]:
        return self._lower(), self._grown()

    def _grown(self) -> Iterator[TreeColumn]:
        for root in self._likely_roots():
            shape = grow(self._problem, self._both, self._spent, root, self._own)
            column = self._with_results(shape, self._both, None)
            if column is not None:
                yield column

    def _likely_roots(self) -> list[int]:
        to_all = self._both.cost[np.ix_(self._from, self._at)].sum(axis=0)
        order = [int(r) for r in np.argsort(to_all, kind="stable") if np.isfinite(to_all[r])]
        switches = [r for r in order if not self._pricing._servers[r]][:ROOTS]
        return switches + [r for r in order if self._pricing._servers[r]][:ROOTS]

    def _lower(self) -> float:
        """A lower bound of the cost: the sum over places of the least cost of the streams of a place and of its own
        switch, and of the link of the results to it. One place may have the root."""
        into = np.full(len(self._problem.switches), np.inf)
        np.minimum.at(into, self._problem.head, self._link_cost)
        total, saved = 0.0, 0.0
        for p, place in enumerate(self._problem.places):
            own, count = self._own[p], len(place.workers)
            reach = self._paths.cost[self._from[p], self._at] + self._spent
            result = float(into[place.switch])
            here = self._at == self._from[p]
            others = reach.copy()
            if own is not None:
                others[own] = np.inf
            other = float(others.min(initial=np.inf))
            inner = at_root = count * other
            if own is not None:
                fit = min(count, self._pricing._max_children[own])
                gathered = fit * float(self._spent[own]) + ((count - fit) * other if count > fit else 0.0)
                inner, at_root = min(inner, gathered + other), min(inner, gathered)
            if not here.any():
                total += inner + result
                continue
            result = result if np.isfinite(result) else 0.0
            inner = inner if np.isfinite(inner) else at_root
            total += inner + result
            saved = max(saved, inner - at_root + result)
        return total - saved

    # ---- columns -------------------------------------------------------------------------------------------

    def _with_results(
        self, shape: TreeShape | None, paths: Paths, result_links: set[int] | None
    ) -> TreeColumn | None:
        """The column of a shape with these results, or (None) with those that mirror its streams; None if it is not
        valid."""
        if shape is None:
            return None
        if result_links is None:
            first = self._both.cost[np.ix_(self._from, self._at)] + self._spent
            if not respect_children(
                shape, first, self._step(self._both), self._pricing._max_children, self._pricing._able
            ):
                return None
        elif any(n > self._pricing._max_children[v] for v, n in shape.children().items()):
            return None
        shape.drop_idle_nodes()
        streams = self._streams(shape, paths)
        if streams is None:
            return None
        links = mirrored(self._problem, streams) if result_links is None else result_links
        result = None if links is None else spanning(self._problem, shape.root, links)
        if result is None or not can_resend(self._problem, shape.root, streams, result):
            return None
        return make_column(self._problem, shape.root, streams, result)

    def _streams(self, shape: TreeShape, paths: Paths) -> list[TreeStream] | None:
        edges: list[tuple[int | None, int | None, int, int]] = []
        edges += [(None, v, 1, above) for v, above in shape.parent.items()]
        edges += [(p, None, n, v) for (p, v), n in shape.placed.items()]
        streams = []
        for place, node, count, parent in edges:
            first = int(self._at[node] if node is not None else self._from[place])
            last = int(self._at[parent])
            if not np.isfinite(paths.cost[first, last]):
                return None
            streams.append(TreeStream(place, node, count, parent, paths.route(first, last)))
        return streams
