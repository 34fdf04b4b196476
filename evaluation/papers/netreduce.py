# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""NetReduce (ASPLOS 2023): times of flat ring (FR), two levels (TA) and parallel NetReduce (PN) by their cost model,
where they cross, and the sufficient conditions."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.table import Table

from netfold.controller.drawing.chart import legend
from netfold.controller.drawing.palette import BLUE, ORANGE, VERMILION
from netfold.controller.drawing.plot import Plot
from netfold.controller.planning.hierarchy import GIGABYTE, MICROSECOND, Machines
from netfold.evaluation.core.experiment import Column, Experiment, Notify, Row, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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

COLORS = {"FR": VERMILION, "TA": ORANGE, "PN": BLUE}

FINE = 160
"""Points on each axis of the maps."""


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


CONDITION_COLUMNS = (
    Column[Condition]("faster", lambda c: c.name, is_text=True),
    Column[Condition]("if", lambda c: c.claim, is_text=True),
    Column[Condition]("points", lambda c: c.points),
    Column[Condition]("holds", lambda c: c.holds),
    Column[Condition]("faster at", lambda c: c.wins),
    Column[Condition]("holds but not faster", lambda c: c.broken),
)


@dataclass(frozen=True)
class NetReduce(Experiment[CostRow]):
    """NetReduce (ASPLOS 2023): flat ring (FR), two levels (TA) and parallel NetReduce (PN) over the number of GPUs, the
    bandwidth inside machines and the latency, by their cost model; where they cross, and the sufficient conditions."""

    name = "reproduce-netreduce"
    notes = NOTES
    quick: Annotated[bool, typer.Option("--quick", help="The ends of the ranges and few points between.")] = (
        False
    )

    @property
    def grid(self) -> CostGrid:
        return QUICK if self.quick else CostGrid()

    def rows(self, notify: Notify) -> Iterator[CostRow]:
        yield from cost_rows(self.grid)

    def tables(self, rows: Sequence[CostRow]) -> Iterable[Table]:
        """The times for each latency, at numbers of ranks that are powers of two; the crossings; the conditions."""
        ranks = [ranks for ranks in self.grid.ranks if not ranks & (ranks - 1)]
        ms = {(r.intra_gbs, r.ranks, r.latency_us, r.scheme): r.ms for r in rows}

        def times(latency: float, ranks: int) -> Column[float]:
            return Column(
                f"P = {ranks}", lambda intra: _times([ms[intra, ranks, latency, s] for s in SCHEMES])
            )

        def crossing(ranks: int) -> Column[float]:
            def cell(latency: float) -> str:
                return " / ".join(f"{x:.4g}" for x in crossings(machines(1.0, ranks, latency)))

            return Column(f"P = {ranks}", cell)

        for latency in self.grid.latencies_us:
            title = f"FR / TA / PN in ms: 500 MB, {INTER_GBS:g} GB/s between machines, {latency:g} us"
            inside = Column[float]("GB/s inside", lambda intra: intra, "g")
            yield table(title, (inside, *(times(latency, p) for p in ranks)), self.grid.intra_gbs)
        yield table(
            "Bandwidth inside the machines (GB/s) from which PN / TA are faster than FR",
            (Column[float]("latency, us", lambda latency: latency, "g"), *map(crossing, ranks)),
            self.grid.latencies_us,
        )
        yield table("Sufficient conditions over the points", CONDITION_COLUMNS, conditions(self.grid))

    def document(self, rows: Sequence[CostRow]) -> dict[str, Any]:
        found = {c.name: {k: v for k, v in asdict(c).items() if k != "name"} for c in conditions(self.grid)}
        return {"paper": "netreduce", **super().document(rows), "conditions": found, "notes": NOTES}

    def csv_rows(self, rows: Sequence[CostRow]) -> Sequence[Mapping[str, object]]:
        return [row.to_dict() for row in rows]

    def plots(self, rows: Sequence[CostRow]) -> Iterable[Plot]:
        yield Plot(_draw_surfaces, (11.0, 9.0), "surfaces")
        yield Plot(_draw_crossings, (11.0, 7.5), "crossings")


def _times(values: Sequence[float]) -> str:
    """The smallest in bold."""
    return " / ".join(f"[bold]{v:.4g}[/bold]" if v == min(values) else f"{v:.4g}" for v in values)


def crossings(here: Machines) -> tuple[float, float]:
    """GB/s inside at which PN, and TA, take as long as FR, whatever `here` has inside."""
    return (
        here.parallel_beats_flat_from(GRADIENT) / GIGABYTE,
        here.leaders_beat_flat_from(GRADIENT) / GIGABYTE,
    )


def _draw_surfaces(figure: Figure) -> None:
    """Times over ranks and intra-machine bandwidth, a surface per scheme and a picture per latency."""
    every = figure.subplots(2, 2, subplot_kw={"projection": "3d"})
    ranks, intra = np.meshgrid(RANKS, INTRA_GBS)
    for axes, latency in zip(every.flat, LATENCIES_US, strict=True):
        here = [machines(i, p, latency) for i, p in zip(intra.flat, ranks.flat, strict=True)]
        times = {
            "FR": [m.flat_s(GRADIENT) for m in here],
            "TA": [m.leaders_s(GRADIENT) for m in here],
            "PN": [m.parallel_s(GRADIENT) for m in here],
        }
        for scheme, seconds in times.items():
            z = np.reshape(seconds, ranks.shape) * 1e3
            axes.plot_surface(np.log2(ranks), intra, z, color=COLORS[scheme], alpha=0.55, label=scheme)
        axes.set(xlabel="GPUs", ylabel="GB/s inside", zlabel="ms", title=f"latency {latency:g} us")
        axes.set_xticks(np.log2(RANKS[::2]), [str(p) for p in RANKS[::2]])
        axes.view_init(22, -60)
    legend(figure, [every.flat[0]])
    figure.suptitle("NetReduce: all-reduce of 500 MB, 8 GPUs a machine, 12.5 GB/s between machines (ours)")


def _draw_crossings(figure: Figure) -> None:
    """Draw how much faster PN is than the better of the two others, and the lines where two are equal."""
    every = figure.subplots(2, 2, sharex=True, sharey=True)
    ranks = np.unique(np.geomspace(RANKS[0] / 8, RANKS[-1] / 8, FINE).round()).astype(int) * 8
    intra = np.geomspace(INTRA_GBS[0], INTRA_GBS[-1], FINE)
    for axes, latency in zip(every.flat, LATENCIES_US, strict=True):
        gain = np.array([[_gain(machines(i, int(p), latency)) for p in ranks] for i in intra])
        mesh = axes.pcolormesh(ranks, intra, gain, cmap="PuOr", vmin=0.0, vmax=2.0, shading="nearest")
        lines = np.array([crossings(machines(1.0, int(p), latency)) for p in ranks])
        axes.plot(ranks, lines[:, 0], color="black", label="PN = FR")
        axes.plot(ranks, lines[:, 1], color="black", linestyle=":", linewidth=2, label="TA = FR")
        enough = [2 * 7 * p / (8 * (p - 2)) * INTER_GBS for p in ranks]
        axes.plot(ranks, enough, color="black", linestyle="--", label="above: PN < FR at any latency")
        axes.set(xscale="log", yscale="log", ylim=(intra[0], intra[-1]), title=f"latency {latency:g} us")
        axes.set_xticks(RANKS[::2], [str(p) for p in RANKS[::2]], minor=False)
        axes.set_xticks([], minor=True)
        axes.set_yticks(INTRA_GBS[::3], [f"{b:g}" for b in INTRA_GBS[::3]], minor=False)
        axes.set_yticks([], minor=True)
    for axes in every[-1]:
        axes.set_xlabel("GPUs")
    for axes in every[:, 0]:
        axes.set_ylabel("GB/s inside the machines")
    legend(figure, [every.flat[0]])
    figure.colorbar(mesh, ax=every, label="times as fast as the better of FR and TA", extend="max")
    figure.suptitle("NetReduce: where parallel NetReduce (PN) is fastest (purple; ours)")


def _gain(here: Machines) -> float:
    return min(here.flat_s(GRADIENT), here.leaders_s(GRADIENT)) / here.parallel_s(GRADIENT)
