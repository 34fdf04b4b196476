# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Says which paths a tree considers: the candidate routes between two nodes of a residual network.

A route is a tuple of directed link numbers from a child to its parent; every link of it has capacity left. Between two
switches there are at most `Limits.paths` candidates, the shortest first, none longer than the shortest by more than
`Limits.stretch` hops. On a fabric of at most `Limits.small` switches every simple path is a candidate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from netfold.topologies.distances import distances

Route = tuple[int, ...]
UNREACHABLE = 1_000_000
MAX_SIMPLE_PATHS = 1_000
"""Maximum candidates between two switches of a fabric in which every simple path is one."""


@dataclass(frozen=True)
class Limits:
    """Limits of a search: `paths`, `stretch`, `small` are explained above; `columns`: routed variables of a linear
    model; `nodes`: switches that every worker may use as parent in addition to its own; `fan_in`: maximum children of
    every switch, in place of the number that its program takes (None)."""

    paths: int = 8
    stretch: int = 1
    small: int = 6
    columns: int = 16_000
    nodes: int = 48
    fan_in: int | None = None


class CandidatePaths:
    """Candidate routes over the links that have capacity left, which `usable` numbers by their ends. `neighbors` has
    the switches next to each switch, `attachment` the switch of each host."""

    def __init__(
        self,
        neighbors: Mapping[str, Sequence[str]],
        usable: Mapping[tuple[str, str], int],
        attachment: Mapping[str, str],
        limits: Limits,
    ) -> None:
        self.limits = limits
        self.has_all_simple_paths = len(neighbors) <= limits.small
        self._neighbors = neighbors
        self._usable = usable
        self._attachment = attachment
        self._upstream = {at: [n for n in near if (n, at) in usable] for at, near in neighbors.items()}
        self._order = {switch: i for i, switch in enumerate(neighbors)}
        self._distances: dict[str, dict[str, int]] = {}
        self._between: dict[tuple[str, str, int], tuple[Route, ...]] = {}
        self._routes: dict[tuple[str, str, int], tuple[Route, ...]] = {}

    def hops(self, child: str, parent: str) -> int:
        """Hops between the switches of two nodes; more than any real distance if there is no path."""
        first, last = self._attachment.get(child, child), self._attachment.get(parent, parent)
        return self._distances_to(last).get(first, len(self._neighbors))

    def routes(self, child: str, parent: str, most: int | None = None) -> tuple[Route, ...]:
        """The candidate routes from child to parent (hosts or switches), the shortest first; none if every path has a
        link without capacity left."""
        most = most or self.limits.paths
        key = (child, parent, most)
        known = self._routes.get(key)
        if known is None:
            first, last = self._attachment.get(child, child), self._attachment.get(parent, parent)
            ends = [(a, b) for a, b in ((child, first), (last, parent)) if a != b]
            is_usable = all(pair in self._usable for pair in ends)
            head = (self._usable[child, first],) if is_usable and child != first else ()
            tail = (self._usable[last, parent],) if is_usable and parent != last else ()
            middles = self.between(first, last, most) if is_usable else ()
            known = tuple((*head, *middle, *tail) for middle in middles)
            self._routes[key] = known
        return known

    def between(self, first: str, last: str, most: int | None = None) -> tuple[Route, ...]:
        """The candidate routes between two switches."""
        most = most or self.limits.paths
        key = (first, last, most)
        known = self._between.get(key)
        if known is None:
            bound = MAX_SIMPLE_PATHS if self.has_all_simple_paths else most
            known = self._between[key] = tuple(islice(self._shortest_first(first, last), bound))
        return known

    def _shortest_first(self, first: str, last: str) -> Iterator[Route]:
        switches = len(self._neighbors)
        shortest = self._distances_to(last).get(first, UNREACHABLE)
        stretch = switches if self.has_all_simple_paths else self.limits.stretch
        rotation = self._order[first] + self._order[last]
        for length in range(shortest, min(shortest, switches) + stretch + 1):
            yield from self._simple_paths(first, last, length, (first,), rotation)

    def _simple_paths(
        self, at: str, last: str, length: int, seen: tuple[str, ...], rotation: int
    ) -> Iterator[Route]:
        """Yield simple paths of exactly `length` hops. `rotation` rotates the order of neighbors, so that pairs of
        switches that cannot have all their equal-cost paths as candidates get different ones."""
        if at == last:
            if length == 0:
                yield ()
            return
        distance = self._distances_to(last)
        neighbors = self._neighbors[at]
        for i in range(len(neighbors)):
            step = neighbors[(i + rotation) % len(neighbors)]
            if step in seen or (at, step) not in self._usable:
                continue
            if distance.get(step, UNREACHABLE) < length:
                for rest in self._simple_paths(step, last, length - 1, (*seen, step), rotation):
                    yield (self._usable[at, step], *rest)

    def _distances_to(self, target: str) -> dict[str, int]:
        """Hops from every switch to the switch `target`; switches without a path are missing."""
        known = self._distances.get(target)
        if known is None:
            known = self._distances[target] = distances(self._upstream, target)
        return known
