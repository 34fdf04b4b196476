# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Draws places and times: workers of jobs on the hosts of a fabric, and background flows between them."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import numpy as np

from netfold.simulator.scenario import Flow, ScenarioError, TcpVariant
from netfold.simulator.workloads.sizes import Sizes
from netfold.topologies.fabric import Fabric


class WorkerPlacement(StrEnum):
    RACK = "rack"
    """Workers fill whole racks, one after the other, beginning with a random one."""
    SCATTERED = "scattered"
    """Workers are on any hosts, all with the same probability."""


def place(
    fabric: Fabric,
    workers: int,
    placement: WorkerPlacement,
    random: np.random.Generator,
    free: Sequence[str] | None = None,
) -> tuple[str, ...]:
    """Draws hosts for a job's workers, out of those that are `free` (default: all but parameter servers), rack by
    rack."""
    hosts = [h.name for h in fabric.hosts if not h.parameter_server] if free is None else list(free)
    if workers > len(hosts):
        raise ScenarioError(f"{workers} workers do not fit on {len(hosts)} hosts of {fabric.name}")
    if placement is WorkerPlacement.SCATTERED:
        return tuple(hosts[i] for i in sorted(random.choice(len(hosts), workers, replace=False)))
    racks: dict[str, list[str]] = {}
    for host in hosts:
        racks.setdefault(fabric.attachment(host), []).append(host)
    names = list(racks)
    first = int(random.integers(len(names)))
    ordered = [h for rack in (*names[first:], *names[:first]) for h in racks[rack]]
    return tuple(ordered[:workers])


def arrivals(rate: float, until: float, random: np.random.Generator) -> list[float]:
    """Draws a Poisson process: seconds before `until`, `rate` of them a second on average."""
    gaps = random.exponential(1 / rate, max(16, int(rate * until * 1.2 + 10 * (rate * until) ** 0.5)))
    times = np.cumsum(gaps)
    return [float(t) for t in times[times < until]]


def background(
    fabric: Fabric,
    load: float,
    sizes: Sizes,
    until: float,
    random: np.random.Generator,
    transport: TcpVariant = TcpVariant.DCTCP,
) -> tuple[Flow, ...]:
    """Draws flows between random hosts, arriving as Poisson: their payload is `load` of what all hosts' links carry
    one way."""
    hosts = [h.name for h in fabric.hosts]
    rates = sum(fabric.link(h, fabric.attachment(h)).rate for h in hosts)
    per_second = load * rates * fabric.unit.bits_per_second / 8 / sizes.mean
    starts = arrivals(per_second, until, random)
    source = random.integers(len(hosts), size=len(starts))
    target = (source + random.integers(1, len(hosts), size=len(starts))) % len(hosts)
    drawn = sizes.draw(random, len(starts))
    return tuple(
        Flow(hosts[a], hosts[b], size, start, transport)
        for a, b, size, start in zip(source.tolist(), target.tolist(), drawn.tolist(), starts, strict=True)
    )
