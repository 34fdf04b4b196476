# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Breadth-first search, for all that looks for nodes or paths with the fewest hops.

Every process that reads a fabric searches it, and a planner searches it thousands of times. networkx would take a third
of the start of such a process, and more time for a search (docs/decisions/0061-searches-of-paths.md).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


def bfs_edges(start: Node, neighbors: Callable[[Node], Iterable[Node]]) -> Iterator[tuple[Node, Node]]:
    """Yield (node, neighbor) for each node that `start` reaches, nearest first: the search found `neighbor` from
    `node`."""
    found, queue = {start}, [start]
    for node in queue:  # grows
        for neighbor in neighbors(node):
            if neighbor not in found:
                found.add(neighbor)
                queue.append(neighbor)
                yield node, neighbor


def distances(neighbors: Mapping[str, Iterable[str]], start: str) -> dict[str, int]:
    """Hops of the shortest path from `start` to each node that it reaches, nearest first."""
    hops, queue = {start: 0}, [start]
    for node in queue:  # as bfs_edges, whose steps would cost a seventh of the time
        for neighbor in neighbors[node]:
            if neighbor not in hops:
                hops[neighbor] = hops[node] + 1
                queue.append(neighbor)
    return hops
