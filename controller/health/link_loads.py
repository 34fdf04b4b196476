# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Measures loads of links by direction, of jobs and of cross traffic, from the port counters of switches.

A link is read where its packets arrive, so that dropped packets do not count; towards a host, where they depart. Rates
are over the time between two readings (monotonic clock). A switch whose counters restart at zero is measured from then
on; the load of one without recent readings is unknown.

All links are rows of one array, those of a switch together: a measurement of thousands of links is a few operations.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netfold.controller.planning.plan import Loads
from netfold.controller.switches.port_counters import PortCounts
from netfold.topologies.fabric import Fabric

WINDOW_S = 0.4
"""Minimum length, in seconds, of the interval between two readings over which a rate is taken; the shortest such
interval is used."""

STALE_S = 5.0
"""Age of the last reading, in seconds, after which a load is unknown."""

MOVING = 0.05
"""Fraction of a link's rate: a load that changed by more between two readings may still be changing."""

Link = tuple[str, str]
"""Sender and receiver of a direction of a link."""

NOISE = 0.02
"""Fraction of a link's rate below which cross traffic is ignored (ARP, an operator's terminal, the controller's
probes)."""

MAX_SHARE = 0.9
"""Maximum fraction of a link's rate that cross traffic counts for. It may be elastic, and then yields to a job."""


@dataclass(frozen=True)
class LinkLoad:
    """Load of a link in the unit of the fabric."""

    cross_traffic: float = 0.0
    jobs: float = 0.0


NOTHING = LinkLoad()


@dataclass(frozen=True)
class _Reading:
    at: float
    counts: PortCounts


class LinkLoads:
    """Loads of all links, from the readings that `counted` takes. `scale`: bits on the wire for one bit of the rates of
    the fabric's file."""

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
        self._loads: NDArray[np.float64] = np.zeros((len(self._links), 2))  # cross traffic, jobs
        self._at = np.full(len(self._links), -np.inf)
        self._readings: dict[str, deque[_Reading]] = {}
        self._revision = 0
        self._revised = np.zeros(len(self._links), dtype=np.int64)

    def counted(self, switch: str, counts: PortCounts, sent_at: float) -> bool:
        """Add the port counts of a switch. The request's time, `sent_at`, is nearer to the time of counting than the
        time of the answer. Returns True while a load changes."""
        latest = _Reading(sent_at, counts)
        earlier = self._readings.setdefault(switch, deque())
        if earlier and (latest.at - earlier[-1].at > STALE_S or _has_restarted(earlier[-1], latest)):
            earlier.clear()
        while len(earlier) > 1 and latest.at - earlier[1].at >= WINDOW_S:
            earlier.popleft()
        moving = False
        if earlier and latest.at - earlier[0].at >= WINDOW_S:
            moving = self._measure(self._rows[switch], earlier[0], latest)
        earlier.append(latest)
        return moving

    def all(self) -> dict[Link, LinkLoad]:
        """The load of each direction of a link whose load is known."""
        known = np.flatnonzero(self._at >= self._now() - STALE_S)
        return {self._links[row]: LinkLoad(*self._loads[row].tolist()) for row in known.tolist()}

    @property
    def links(self) -> Sequence[Link]:
        """The rows of `measured`."""
        return self._links

    def rows_of(self, switch: str) -> range:
        """The rows that a reading of this switch fills."""
        rows = self._rows[switch]
        return range(rows.start, rows.stop)

    def revised(self, since: int) -> tuple[int, NDArray[np.intp]]:
        """The current revision, and the rows that were measured after revision `since`."""
        return self._revision, np.flatnonzero(self._revised > since)

    def is_stale(self) -> NDArray[np.bool_]:
        """For each row, whether its load is unknown."""
        return self._at < self._now() - STALE_S

    def measured(self, rows: NDArray[np.intp]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Cross traffic and load of jobs in these rows, and the rates of their links."""
        return self._loads[rows], self._rates[rows]

    def load(self, link: Link) -> LinkLoad:
        """The load of one direction of a link; 0 if it is unknown."""
        row = self._row.get(link)
        if row is None or self._at[row] < self._now() - STALE_S:
            return NOTHING
        return LinkLoad(*self._loads[row].tolist())

    def cross_traffic(self) -> Loads:
        """The measured cross traffic, as loads that a plan assumes."""
        measured = self._loads[:, 0]
        rows = np.flatnonzero((measured > NOISE * self._rates) & (self._at >= self._now() - STALE_S))
        counted = np.minimum(measured[rows], MAX_SHARE * self._rates[rows])
        return Loads(links={self._links[r]: f for r, f in zip(rows.tolist(), counted.tolist(), strict=True)})

    def _measure(self, rows: slice, before: _Reading, after: _Reading) -> bool:
        self._revision += 1
        self._revised[rows] = self._revision
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
    """The ports of a switch whose arrivals are read, and those whose departures: each direction of a link once."""
    ports = fabric.ports[switch]
    return tuple(ports.values()), tuple(p for near, p in ports.items() if fabric.is_host(near))


def _directions(fabric: Fabric, switch: str) -> list[Link]:
    """The directions of links of a switch, in the order of `metered_ports`."""
    near = list(fabric.ports[switch])
    return [(n, switch) for n in near] + [(switch, n) for n in near if fabric.is_host(n)]


def _has_restarted(before: _Reading, after: _Reading) -> bool:
    """Whether a counter went backwards: the switch was restarted, or its pipeline pushed."""
    return after.counts is not before.counts and bool((after.counts < before.counts).any())


def planning_load(load: float, rate: float) -> float:
    """The cross traffic that a plan assumes if `load` is measured on a link of `rate`; 0: none."""
    return min(load, MAX_SHARE * rate) if load > NOISE * rate else 0.0
