# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What links carry, by direction: jobs' packets and all others, from what the ports of the switches count.

A link is read where its packets arrive, so what a queue dropped does not count; towards a host, where they depart.
Rates are over the time between two readings or so, by a monotonic clock. A switch that counts from zero again, or was
away, is measured from there on; one that has been silent for long is not known.

All links are rows of one array, those of a switch together, so that looking at thousands of them is a few operations.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netfold.controller.health.foreign import MOST, NOISE
from netfold.controller.planning.plan import Loads
from netfold.controller.switches.port_counters import PortCounts
from netfold.topologies.fabric import Fabric

WINDOW_S = 0.4
"""Rates are over the shortest time of at least so long that two readings are apart."""

STALE_S = 5.0
"""So long after the last reading of a link its load is not known any more."""

MOVING = 0.05
"""Of a link's rate: a load that changed by so much between two readings may still be changing."""

Link = tuple[str, str]
"""From and to."""


@dataclass(frozen=True)
class LinkLoad:
    """In the fabric's unit."""

    foreign: float = 0.0
    jobs: float = 0.0


NOTHING = LinkLoad()


@dataclass(frozen=True)
class _Reading:
    at: float
    counts: PortCounts


class LinkLoads:
    """`counted` takes readings as they come. `scale` is what one bit/s of the fabric is on the wire."""

    def __init__(self, fabric: Fabric, scale: float, now: Callable[[], float] = time.monotonic) -> None:
        self._bytes_of_one = fabric.unit.bits_per_second * scale / 8
        self._now = now
        self._links: list[Link] = []
        self._rows: dict[str, slice] = {}
        for switch in (s.name for s in fabric.switches):
            first = len(self._links)
            self._links += _directions(fabric, switch)
            self._rows[switch] = slice(first, len(self._links))
        self._row = {link: row for row, link in enumerate(self._links)}
        self._rates = np.array([fabric.link(*link).rate for link in self._links])
        self._loads: NDArray[np.float64] = np.zeros((len(self._links), 2))  # foreign, jobs
        self._at = np.full(len(self._links), -np.inf)
        self._readings: dict[str, deque[_Reading]] = {}

    def counted(self, switch: str, counts: PortCounts, asked: float) -> bool:
        """What a switch's ports have counted since it started. When it was `asked`, by this one's clock, is nearer to
        when it counted than when its answer was taken. True if what they carry is changing."""
        latest = _Reading(asked, counts)
        earlier = self._readings.setdefault(switch, deque())
        if earlier and asked < earlier[-1].at:  # it is asked in two ways, and one answer overtook the other
            return False
        if earlier and (latest.at - earlier[-1].at > STALE_S or _began_anew(earlier[-1], latest)):
            earlier.clear()
        while len(earlier) > 1 and latest.at - earlier[1].at >= WINDOW_S:
            earlier.popleft()
        moving = False
        if earlier and latest.at - earlier[0].at >= WINDOW_S:
            moving = self._measure(self._rows[switch], earlier[0], latest)
        earlier.append(latest)
        return moving

    def all(self) -> dict[Link, LinkLoad]:
        """Every direction of a link whose load is known now."""
        known = np.flatnonzero(self._at >= self._now() - STALE_S)
        return {self._links[row]: LinkLoad(*self._loads[row].tolist()) for row in known.tolist()}

    def load(self, link: Link) -> LinkLoad:
        """Of one direction of a link; nothing where it is not known."""
        row = self._row.get(link)
        if row is None or self._at[row] < self._now() - STALE_S:
            return NOTHING
        return LinkLoad(*self._loads[row].tolist())

    def foreign(self) -> Loads:
        """What is not the jobs', as a plan has to reckon with it (foreign.py)."""
        foreign = self._loads[:, 0]
        rows = np.flatnonzero((foreign > NOISE * self._rates) & (self._at >= self._now() - STALE_S))
        counted = np.minimum(foreign[rows], MOST * self._rates[rows])
        return Loads(links={self._links[r]: f for r, f in zip(rows.tolist(), counted.tolist(), strict=True)})

    def _measure(self, rows: slice, before: _Reading, after: _Reading) -> bool:
        self._at[rows] = np.where(after.counts[:, 0] < 0, -np.inf, after.at)
        if after.counts is before.counts:  # nothing was counted
            changed = self._loads[rows].any()
            self._loads[rows] = 0.0
            return bool(changed)
        rates = (after.counts - before.counts) / ((after.at - before.at) * self._bytes_of_one)
        changed = np.abs(rates - self._loads[rows]).max(axis=1, initial=0.0) > MOVING * self._rates[rows]
        self._loads[rows] = rates
        return bool(changed.any())


def metered_ports(fabric: Fabric, switch: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Of which ports of a switch it is read what arrives, and of which what departs: every direction of a link once."""
    ports = fabric.ports[switch]
    return tuple(ports.values()), tuple(p for near, p in ports.items() if fabric.is_host(near))


def _directions(fabric: Fabric, switch: str) -> list[Link]:
    """In the order of `metered_ports`; what arrives from a switch without counters of its own kind is read by nobody
    else."""
    near = list(fabric.ports[switch])
    return [(n, switch) for n in near] + [(switch, n) for n in near if fabric.is_host(n)]


def _began_anew(before: _Reading, after: _Reading) -> bool:
    """Some counter went backwards: the switch was restarted, or its pipeline pushed again."""
    return after.counts is not before.counts and bool((after.counts < before.counts).any())
