# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Finds cheapest Steiner trees by dynamic programming over sets of terminals (Dreyfus and Wagner, Networks 1, 1971). It
is exact; the work grows with three to the power of the number of terminals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

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
