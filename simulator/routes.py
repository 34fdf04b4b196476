# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Numbers the fabric's directed links, and chooses an equal-cost shortest path for a pair of hosts by a hash, as
switches do. Both levels take their paths from here, so they simulate the same paths."""

from __future__ import annotations

from functools import cached_property, lru_cache
from hashlib import blake2b

import numpy as np

from netfold.simulator.scenario import NetworkSettings
from netfold.topologies.distances import distances
from netfold.topologies.fabric import Fabric

Path = tuple[int, ...]


class LinkTable:
    """Directed links are numbered as in `fabric.links`: link i is 2i from a to b and 2i + 1 back.

    rates   bytes/s on the wire
    delays  seconds one way
    queues  bytes that wait at most
    """

    def __init__(self, fabric: Fabric, settings: NetworkSettings) -> None:
        self.fabric = fabric
        self.pairs = [pair for x in fabric.links for pair in ((x.a, x.b), (x.b, x.a))]
        self.number = {pair: i for i, pair in enumerate(self.pairs)}
        bytes_per_second = fabric.unit.bits_per_second / 8
        each = [x for x in fabric.links for _ in range(2)]
        self.rates = np.array([x.rate * bytes_per_second for x in each])
        self.delays = np.array([x.delay_ms / 1e3 or settings.hop_delay_s for x in each])
        self.queues = np.array(
            [settings.queue_bytes or x.queue * settings.packet_bytes for x in each], dtype=np.float64
        )
        self._candidates: dict[tuple[str, str], list[tuple[int, str]]] = {}
        self._distances: dict[str, dict[str, int]] = {}

    @cached_property
    def attachment(self) -> dict[str, str]:
        """Returns the switch of each host."""
        found = {}
        for link in self.fabric.links:
            for a, b in ((link.a, link.b), (link.b, link.a)):
                if self.fabric.is_host(a):
                    found[a] = b
        return found

    @cached_property
    def _neighbors(self) -> dict[str, list[str]]:
        neighbors: dict[str, list[str]] = {s.name: [] for s in self.fabric.switches}
        for a, b in self.pairs:
            if a in neighbors and b in neighbors:
                neighbors[a].append(b)
        return neighbors

    def path(self, source: str, destination: str, choice: int) -> Path:
        """Returns the links from host to host. `choice` selects one of the equal-cost paths, all with the same
        probability."""
        at, last = self.attachment[source], self.attachment[destination]
        links = [self.number[source, at]]
        while at != last:
            hops = self.next_hops(at, last)
            choice, number = divmod(choice, len(hops))
            link, at = hops[number]
            links.append(link)
        links.append(self.number[last, destination])
        return tuple(links)

    def next_hops(self, at: str, last: str) -> list[tuple[int, str]]:
        """Returns the links from one switch that are on a shortest path to another, with the switches at their
        ends."""
        known = self._candidates.get((at, last))
        if known is None:
            distance = self._distance(last)
            known = [(self.number[at, v], v) for v in self._neighbors[at] if distance[v] < distance[at]]
            self._candidates[at, last] = known
        return known

    def _distance(self, last: str) -> dict[str, int]:
        known = self._distances.get(last)
        if known is None:
            known = distances(self._neighbors, last)
            self._distances[last] = known
        return known

    def latency(self, path: Path) -> float:
        """Returns the seconds one way through empty queues, without the time to send."""
        return float(self.delays[list(path)].sum())


@lru_cache(maxsize=1)
def link_table(fabric: Fabric, settings: NetworkSettings) -> LinkTable:
    """Returns the links of a fabric. The last result is cached: a point of a sweep simulates one fabric many times,
    and computing routes is expensive."""
    return LinkTable(fabric, settings)


def path_hash(seed: int, kind: str, number: int) -> int:
    """Returns the hash that chooses the path of a flow (`kind` "flow", by its place in the scenario) or of a hop of
    a job (`kind` its name)."""
    return int.from_bytes(blake2b(f"{seed} {kind} {number}".encode(), digest_size=8).digest(), "little")
