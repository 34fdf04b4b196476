# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Defines which node is whose child, without routes, and changes a tree so that no node exceeds its maximum children.

If a node has more children than it takes, a child moves to another node, or a new node takes several of them and sends
their sum to a node with room for it. So a tree may have more levels of nodes than its fabric has tiers: of 64 racks two
spines add up 32 each, and one rack's leaf adds up the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Source = tuple[bool, int]
"""A child: a node (True) or one of the workers of a place (False), by number."""


@dataclass
class TreeShape:
    """Shape of a tree: `parent` of every inner node; `placed`: the number of workers of a place that are children of a
    node, by (place, node)."""

    root: int
    parent: dict[int, int] = field(default_factory=dict)
    placed: dict[tuple[int, int], int] = field(default_factory=dict)

    def place(self, place: int, node: int, count: int) -> None:
        self.placed[place, node] = self.placed.get((place, node), 0) + count

    def nodes(self) -> list[int]:
        return [*self.parent, self.root]

    def children(self) -> dict[int, int]:
        """The number of children of every node."""
        count = dict.fromkeys(self.nodes(), 0)
        for node in self.parent.values():
            count[node] += 1
        for (_, node), workers in self.placed.items():
            count[node] += workers
        return count

    def is_below(self, node: int, ancestor: int) -> bool:
        """True if `node` is `ancestor` or sends to it directly or over other nodes."""
        while node != ancestor and node in self.parent:
            node = self.parent[node]
        return node == ancestor

    def drop_idle_nodes(self) -> None:
        """Remove nodes with one child or none: they aggregate nothing."""
        while True:
            count = self.children()
            idle = next((v for v in self.parent if count[v] < 2), None)
            if idle is None:
                return
            above = self.parent.pop(idle)
            for node, its_parent in self.parent.items():
                if its_parent == idle:
                    self.parent[node] = above
            for place, node in [key for key in self.placed if key[1] == idle]:
                self.place(place, above, self.placed.pop((place, node)))


def respect_children(
    shape: TreeShape, first: Floats, step: Floats, max_children: Sequence[int], able: Sequence[bool]
) -> bool:
    """Change a tree until no node has more children than it takes, each time at the least cost for each child less;
    False if that is impossible.

    first  cost of one worker of a place to a node, shape (places, nodes)
    step   cost from node to node, shape (nodes, nodes)
    able   nodes that may be below another one
    """
    while True:
        count = shape.children()
        full = max(count, key=lambda v: count[v] - max_children[v])
        if count[full] <= max_children[full]:
            return True
        relief = _Relief(shape, first, step, max_children, able, count, full)
        if not relief.apply_cheapest():
            return False


class _Relief:
    """Ways to take children from the node `full`."""

    def __init__(
        self,
        shape: TreeShape,
        first: Floats,
        step: Floats,
        max_children: Sequence[int],
        able: Sequence[bool],
        count: dict[int, int],
        full: int,
    ) -> None:
        self._shape, self._first, self._step, self._full = shape, first, step, full
        self._max, self._able, self._count = max_children, able, count
        self._excess = count[full] - max_children[full]
        self._children: list[tuple[Source, int]] = [
            ((True, v), 1) for v, above in shape.parent.items() if above == full
        ]
        self._children += [((False, p), n) for (p, node), n in shape.placed.items() if node == full]

    def apply_cheapest(self) -> bool:
        moved, opened = self._cheapest_move(), self._cheapest_opening()
        if moved is None and opened is None:
            return False
        if opened is None or (moved is not None and moved[0] <= opened[0]):
            assert moved is not None
            _, source, target = moved
            self._move(source, target, 1)
        else:
            _, node, above, taken = opened
            self._shape.parent[node] = above
            for source, workers in taken:
                self._move(source, node, workers)
        return True

    def _cost(self, source: Source, to: int) -> float:
        is_node, number = source
        return float((self._step if is_node else self._first)[number, to])

    def _room(self, node: int) -> int:
        return self._max[node] - self._count[node]

    def _cheapest_move(self) -> tuple[float, Source, int] | None:
        """The cheapest move of one child to another node of the tree, with its cost."""
        best: tuple[float, Source, int] | None = None
        open_nodes = [v for v in self._shape.nodes() if v != self._full and self._room(v) > 0]
        for source, _ in self._children:
            for node in open_nodes:
                if source[0] and self._shape.is_below(node, source[1]):
                    continue
                cost = self._cost(source, node) - self._cost(source, self._full)
                if np.isfinite(cost) and (best is None or cost < best[0]):
                    best = cost, source, node
        return best

    def _cheapest_opening(self) -> tuple[float, int, int, list[tuple[Source, int]]] | None:
        """The cheapest new node, with its cost for each child that leaves the full node, the node above it, and the
        children that it takes."""
        best: tuple[float, int, int, list[tuple[Source, int]]] | None = None
        used = set(self._shape.nodes())
        above_nodes = [v for v in used if v == self._full or self._room(v) > 0]
        below_child = {
            v: {w for w in used if self._shape.is_below(w, v)}
            for (is_node, v), _ in self._children
            if is_node
        }
        for node, is_able in enumerate(self._able):
            if node in used or not is_able:
                continue
            delta = sorted(
                (self._cost(s, node) - self._cost(s, self._full), s, n)
                for s, n in self._children
                if np.isfinite(self._cost(s, node))
            )
            above = min(above_nodes, key=lambda v: (self._step[node, v], v))
            taken, cost, count = [], float(self._step[node, above]), 0
            wanted = min(self._max[node], self._excess + (above == self._full))
            for each, source, workers in delta:
                if source[0] and above in below_child[source[1]]:
                    continue  # the node above has to stay above
                part = min(workers, wanted - count)
                if part > 0:
                    taken.append((source, part))
                    cost, count = cost + part * each, count + part
            gain = count - (above == self._full)
            if gain > 0 and np.isfinite(cost) and (best is None or cost / gain < best[0]):
                best = cost / gain, node, above, taken
        return best

    def _move(self, source: Source, target: int, workers: int) -> None:
        is_node, number = source
        if is_node:
            self._shape.parent[number] = target
            return
        left = self._shape.placed.pop((number, self._full)) - workers
        if left:
            self._shape.placed[number, self._full] = left
        self._shape.place(number, target, workers)
