# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Distances in a graph of nodes and their neighbors.

Every process that reads a fabric asks for them: a graph library would be a third of such a process's start.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping


def distances(neighbors: Mapping[str, Iterable[str]], start: str) -> dict[str, int]:
    """Hops of the shortest path from `start` to each node that it reaches, nearest first (breadth-first search)."""
    found = {start: 0}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        for neighbor in neighbors[node]:
            if neighbor not in found:
                found[neighbor] = found[node] + 1
                queue.append(neighbor)
    return found
