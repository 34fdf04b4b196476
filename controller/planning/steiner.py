# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Finds cheap Steiner trees: the cheapest ones of few places, and cheap ones of many.

The cheapest are found by dynamic programming over sets of terminals (Dreyfus and Wagner, Networks 1, 1971). The work
grows with three to the power of the number of terminals. A tree of many places grows from its root: the place that is
cheapest to connect comes next (Takahashi and Matsuyama). It sends to a node of the tree, or to a switch that a stream
of the tree passes, which becomes a node.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from netfold.controller.planning.packing_problem import PackingProblem, Paths
from netfold.controller.planning.tree_shape import Source, TreeShape

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class SetMove:
    """The whole set `terminals` moves from node `source` to node `target`."""

    terminals: int
    source: int
    target: int


@dataclass(frozen=True)
class Arrival:
    """Terminal number `terminal` arrives at node `target` by itself."""

    terminal: int
    target: int


class SteinerTable:
    """Table of costs; `cost[s, u]` is the least cost at which the terminals of set `s` (bit i: terminal i) meet at node
    `u`.

    first  cost of terminal i by itself to node u, shape (terminals, nodes)
    step   cost from node u to node v of all terminals that met at u, shape (nodes, nodes); it holds the triangle
           inequality
    """

    def __init__(self, first: Floats, step: Floats) -> None:
        self._step = step
        terminals, nodes = first.shape
        self.everything = (1 << terminals) - 1
        self._merged = np.full((1 << terminals, nodes), np.inf)
        self.cost = np.full((1 << terminals, nodes), np.inf)
        self._merged[[1 << i for i in range(terminals)]] = first
        for sets, parts in _by_size(terminals):
            if parts.shape[1]:
                together = self.cost[parts] + self.cost[sets[:, None] ^ parts]
                self._merged[sets] = together.min(axis=1)
            merged = self._merged[sets]
            self.cost[sets] = np.minimum(merged, (merged[:, :, None] + step[None, :, :]).min(axis=1))

    def tree(self, node: int) -> Iterator[SetMove | Arrival]:
        """The parts of a cheapest tree in which all terminals meet at `node`."""
        open_sets = [(self.everything, node)]
        while open_sets:
            terminals, at = open_sets.pop()
            through = self._merged[terminals] + self._step[:, at]
            source = int(through.argmin())
            if through[source] < self._merged[terminals, at]:
                yield SetMove(terminals, source, at)
                at = source
            if terminals & (terminals - 1) == 0:
                yield Arrival(terminals.bit_length() - 1, at)
                continue
            parts = _parts(terminals)
            part = int(parts[(self.cost[parts, at] + self.cost[terminals ^ parts, at]).argmin()])
            open_sets += [(part, at), (terminals ^ part, at)]


@cache
def _by_size(terminals: int) -> tuple[tuple[Ints, Ints], ...]:
    """All sets by size, each with its proper parts that hold its lowest terminal: (sets,), (sets, parts)."""
    sizes: list[list[int]] = [[] for _ in range(terminals + 1)]
    for s in range(1, 1 << terminals):
        sizes[s.bit_count()].append(s)
    return tuple((np.array(sets), np.stack([_parts(s) for s in sets])) for sets in sizes[1:])


@cache
def _parts(terminals: int) -> Ints:
    """The proper parts of a set that hold its lowest terminal."""
    lowest = terminals & -terminals
    rest = terminals ^ lowest
    found, part = [], rest
    while part:
        part = (part - 1) & rest
        found.append(part | lowest)
    return np.array(found, dtype=np.int64)


def grow(
    problem: PackingProblem, paths: Paths, spent: Floats, root: int, own: Sequence[int | None]
) -> TreeShape | None:
    """Grow a tree with this root. `spent`: price of a child by node; `own`: the node of the switch of each place. None
    if no path joins a place with the root."""
    tree = _Growth(problem, paths, spent, root)
    waiting = list(range(len(problem.places)))
    while waiting:
        costs = [tree.cost(p, own[p]) for p in waiting]
        place = waiting.pop(int(np.argmin(costs)))
        if not np.isfinite(min(costs)):
            return None
        tree.connect(place, own[place])
    return tree.shape()


class _Growth:
    def __init__(self, problem: PackingProblem, paths: Paths, spent: Floats, root: int) -> None:
        self._problem, self._paths, self._spent, self._root = problem, paths, spent, root
        self._node_at = {n.switch: u for u, n in enumerate(problem.nodes) if not n.is_server}
        self._parent: dict[Source, int] = {}
        n = len(problem.switches)
        self._best = np.full(n, np.inf)
        """The least cost of a stream from every switch into the tree, with the node where it ends and the stream to
        split for it."""
        self._target = np.full(n, -1, dtype=np.int64)
        self._split: dict[int, Source] = {}
        self._in_tree = {root}
        self._offer(root, 0.0)

    def cost(self, place: int, own: int | None) -> float:
        switch, count = self._problem.places[place].switch, len(self._problem.places[place].workers)
        direct = count * float(self._best[switch])
        return direct if own is None or own in self._in_tree else min(direct, self._gathered(place, own))

    def _gathered(self, place: int, own: int) -> float:
        count = len(self._problem.places[place].workers)
        if count < 2:
            return float("inf")
        return float(count * self._spent[own] + self._best[self._problem.places[place].switch])

    def connect(self, place: int, own: int | None) -> None:
        switch = self._problem.places[place].switch
        count = len(self._problem.places[place].workers)
        gathers = own is not None and own not in self._in_tree
        if gathers and own is not None and self._gathered(place, own) <= count * self._best[switch]:
            self._join((True, own), switch)
            self._parent[False, place] = own
        else:
            self._join((False, place), switch)

    def _join(self, child: Source, switch: int) -> None:
        target = int(self._target[switch])
        if target not in self._in_tree:
            self._split_for(target)
        self._connect(child, target)

    def _split_for(self, node: int) -> None:
        """Let a stream that passes a switch end there."""
        child = self._split[node]
        while self._problem.nodes[node].switch not in self._passed(child):
            child = (True, self._parent[child])
        above = self._parent[child]
        self._connect((True, node), above)
        self._parent[child] = node

    def _connect(self, child: Source, parent: int) -> None:
        self._parent[child] = parent
        is_node, number = child
        if is_node:
            self._in_tree.add(number)
            self._offer(number, 0.0)
        for switch in self._passed(child):
            node = self._node_at.get(switch)
            if node is not None and node not in self._in_tree:
                self._split[node] = child
                self._offer(node, float(self._spent[node]))

    def _passed(self, child: Source) -> list[int]:
        """The switches between that of a child and that of its parent."""
        is_node, number = child
        first = (self._problem.nodes if is_node else self._problem.places)[number].switch
        last = self._problem.nodes[self._parent[child]].switch
        route = self._paths.route(first, last)
        order, links = self._problem.network.order, self._problem.network.links
        return [first] * (not is_node) + [order[links[i][1]] for i in route[:-1]]

    def _offer(self, node: int, extra: float) -> None:
        cost = self._paths.cost[:, self._problem.nodes[node].switch] + self._spent[node] + extra
        better = cost < self._best
        self._best[better] = cost[better]
        self._target[better] = node

    def shape(self) -> TreeShape:
        shape = TreeShape(self._root)
        for (is_node, number), parent in self._parent.items():
            if is_node:
                shape.parent[number] = parent
            else:
                shape.place(number, parent, len(self._problem.places[number].workers))
        return shape
