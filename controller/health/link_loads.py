# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What links carry, by direction: jobs' packets and all others, from what the ports of the switches count.

A link is read where its packets arrive, so what a queue dropped does not count; towards a host, where they depart.
Rates are over the last second or so of a monotonic clock. A switch that counts from zero again, or was away, is
measured from there on; one that has been silent for long is not known.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from netfold.controller.health.foreign import reckoned
from netfold.controller.planning.plan import Loads
from netfold.controller.switches.port_counters import PortCount, PortCounts
from netfold.topologies.fabric import Fabric

WINDOW_S = 0.9
"""Rates are over the shortest time of at least so long that two readings are apart."""

STALE_S = 5.0
"""So long after the last reading of a link its load is not known any more."""

Link = tuple[str, str]
"""From and to."""


@dataclass(frozen=True)
class LinkLoad:
    """In the fabric's unit."""

    foreign: float = 0.0
    jobs: float = 0.0


@dataclass(frozen=True)
class _Reading:
    at: float
    counts: Mapping[Link, PortCount]


class LinkLoads:
    """`counted` takes readings as they come. `scale` is what one bit/s of the fabric is on the wire."""

    def __init__(self, fabric: Fabric, scale: float, now: Callable[[], float] = time.monotonic) -> None:
        self._fabric = fabric
        self._bytes_of_one = fabric.unit.bits_per_second * scale / 8
        self._now = now
        self._near = {(s.name, p): n for s in fabric.switches for n, p in fabric.ports[s.name].items()}
        self._readings: dict[str, deque[_Reading]] = {}
        self._loads: dict[Link, tuple[float, LinkLoad]] = {}

    def counted(self, switch: str, counts: PortCounts) -> None:
        """What a switch's ports have counted since it started."""
        latest = _Reading(self._now(), self._links(switch, counts))
        earlier = self._readings.setdefault(switch, deque())
        if earlier and (latest.at - earlier[-1].at > STALE_S or _began_anew(earlier[-1], latest)):
            earlier.clear()
        while len(earlier) > 1 and latest.at - earlier[1].at >= WINDOW_S:
            earlier.popleft()
        if earlier and latest.at - earlier[0].at >= WINDOW_S:
            self._loads.update(self._rates(earlier[0], latest))
        earlier.append(latest)

    def all(self) -> dict[Link, LinkLoad]:
        """Every direction of a link whose load is known now."""
        since = self._now() - STALE_S
        return {link: load for link, (at, load) in self._loads.items() if at >= since}

    def load(self, link: Link) -> LinkLoad:
        """Of one direction of a link; nothing where it is not known."""
        at, load = self._loads.get(link, (-STALE_S, LinkLoad()))
        return load if at >= self._now() - STALE_S else LinkLoad()

    def foreign(self) -> Loads:
        """What is not the jobs', as a plan has to reckon with it."""
        found = {k: reckoned(load.foreign, self._fabric.link(*k).rate) for k, load in self.all().items()}
        return Loads(links={link: load for link, load in found.items() if load})

    def _links(self, switch: str, counts: PortCounts) -> dict[Link, PortCount]:
        """By direction; what arrives from a switch without counters of its own kind is read by nobody else."""
        found = {(self._near[switch, port], switch): count for port, count in counts.arrivals.items()}
        for port, count in counts.departures.items():
            found[switch, self._near[switch, port]] = count
        return found

    def _rates(self, before: _Reading, after: _Reading) -> dict[Link, tuple[float, LinkLoad]]:
        factor = 1 / (after.at - before.at) / self._bytes_of_one
        found = {}
        for link, count in after.counts.items():
            old = before.counts.get(link)
            if old is not None:
                load = LinkLoad((count.foreign - old.foreign) * factor, (count.jobs - old.jobs) * factor)
                found[link] = (after.at, load)
        return found


def metered_ports(fabric: Fabric, switch: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Of which ports of a switch it is read what arrives, and of which what departs: every direction of a link once."""
    ports = fabric.ports[switch]
    return tuple(ports.values()), tuple(p for near, p in ports.items() if fabric.is_host(near))


def _began_anew(before: _Reading, after: _Reading) -> bool:
    """Some counter went backwards: the switch was restarted, or its pipeline pushed again."""
    old = before.counts
    return any(
        count.foreign < old[link].foreign or count.jobs < old[link].jobs
        for link, count in after.counts.items()
        if link in old
    )
