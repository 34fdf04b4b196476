# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""NetReduce's simulation of large clusters: flat ring (FR), two levels (TA) and parallel NetReduce (PN), by their
cost model (controller/planning/hierarchy.py), and where one is faster than another."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from netfold.controller.planning.hierarchy import GIGABYTE, MICROSECOND, Machines
from netfold.evaluation.core.experiment import Row

PER_HOST = 8
INTER_GBS = 12.5
GRADIENT = 500_000_000
INTRA_GBS = (15.75, 18.0, 20.0, 22.0, 24.0, 28.0, 31.5, 40.0, 50.0, 63.0, 80.0, 100.0)
RANKS = (32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
LATENCIES_US = (0.1, 1.0, 10.0, 100.0)
SCHEMES = ("FR", "TA", "PN")

NOTES = (
    "From the paper: 8 GPUs a machine, 12.5 GB/s between machines, 15.75 (PCIe 3.0 x16) to 100 GB/s inside them, 32 to "
    "1,024 GPUs, latencies of 0.1 to 100 us.",
    "Not stated there, or not to be had, and chosen here: a gradient of 500 MB, the points between the ends, one "
    "latency for messages inside and between machines, all GPUs of a machine on one network link, and the equations, "
    "which are derived from the paper's description (controller/planning/hierarchy.py).",
    "No values of the paper's figure could be had, so none are drawn. Its claim that can be checked is that there are "
    "sufficient conditions, by the bandwidths alone, under which PN is fastest: see docs/explanation/simulator.md.",
)


@dataclass(frozen=True)
class CostRow(Row):
    """A scheme's time at a point of the grid."""

    intra_gbs: float
    ranks: int
    latency_us: float
    scheme: str
    ms: float


@dataclass(frozen=True)
class CostGrid:
    """The points that are shown: each combination."""

    intra_gbs: tuple[float, ...] = INTRA_GBS
    ranks: tuple[int, ...] = RANKS
    latencies_us: tuple[float, ...] = LATENCIES_US

    def points(self) -> Iterator[tuple[float, int, float]]:
        return itertools.product(self.intra_gbs, self.ranks, self.latencies_us)


QUICK = CostGrid((15.75, 20.0, 24.0, 50.0, 100.0), (32, 128, 1024), LATENCIES_US)


def machines(intra_gbs: float, ranks: int, latency_us: float) -> Machines:
    """The paper's cluster at a point."""
    latency = latency_us * MICROSECOND
    return Machines(ranks // PER_HOST, PER_HOST, intra_gbs * GIGABYTE, INTER_GBS * GIGABYTE, latency, latency)


def cost_rows(grid: CostGrid) -> list[CostRow]:
    """Compute all schemes at all points."""
    found: list[CostRow] = []
    for intra, ranks, latency in grid.points():
        here = machines(intra, ranks, latency)
        seconds = (here.flat_s(GRADIENT), here.leaders_s(GRADIENT), here.parallel_s(GRADIENT))
        found += [
            CostRow(intra, ranks, latency, scheme, s * 1e3)
            for scheme, s in zip(SCHEMES, seconds, strict=True)
        ]
    return found


@dataclass(frozen=True)
class Condition:
    """A sufficient condition, counted over the points: at `holds` of them it holds, at `wins` the scheme is faster, and
    at `broken` it holds although the scheme is not faster, which must be none."""

    name: str
    claim: str
    points: int
    holds: int
    wins: int
    broken: int


def conditions(grid: CostGrid) -> tuple[Condition, ...]:
    """Those of docs/explanation/simulator.md, each by its own inequality; the cost model decides which scheme
    is faster."""
    n, inter = PER_HOST, INTER_GBS
    beats_flat: list[tuple[bool, bool]] = []
    leaders_beat_flat: list[tuple[bool, bool]] = []
    beats_leaders: list[tuple[bool, bool]] = []
    for intra, ranks, latency in grid.points():
        here = machines(intra, ranks, latency)
        flat, leaders, parallel = (
            here.flat_s(GRADIENT), here.leaders_s(GRADIENT), here.parallel_s(GRADIENT)
        )  # fmt: skip
        hosts, moved = ranks // n, latency * MICROSECOND * intra * GIGABYTE
        beats_flat.append((intra / inter > 2 * (n - 1) * ranks / (n * (ranks - 2)), parallel < flat))
        beats_leaders.append((hosts >= 2 and n * (n - hosts) * moved < GRADIENT, parallel < leaders))
        leaders_beat_flat.append((intra / inter > ranks / (n - 1), leaders < flat))
    return (
        _counted("PN < FR", "B_intra / B_inter > 2 (n-1) P / (n (P-2))", beats_flat),
        _counted("PN < TA", "H >= 2 and M > n (n-H) a B_intra", beats_leaders),
        _counted("TA < FR", "B_intra / B_inter > P / (n-1)", leaders_beat_flat),
    )


def _counted(name: str, claim: str, found: list[tuple[bool, bool]]) -> Condition:
    return Condition(
        name,
        claim,
        len(found),
        sum(holds for holds, _ in found),
        sum(wins for _, wins in found),
        sum(holds and not wins for holds, wins in found),
    )
