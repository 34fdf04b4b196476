# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""NetReduce (ASPLOS 2023): times of flat ring (FR), two levels (TA) and parallel NetReduce (PN) by their cost model,
where they cross, and the sufficient conditions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.table import Table

from netfold.controller.drawing.chart import legend
from netfold.controller.drawing.palette import BLUE, ORANGE, VERMILION
from netfold.controller.drawing.plot import Plot
from netfold.controller.planning.hierarchy import GIGABYTE, Machines
from netfold.evaluation.core.experiment import Column, Experiment, Notify, table
from netfold.evaluation.papers.netreduce.cost_model import (
    GRADIENT,
    INTER_GBS,
    INTRA_GBS,
    LATENCIES_US,
    NOTES,
    QUICK,
    RANKS,
    SCHEMES,
    Condition,
    CostGrid,
    CostRow,
    conditions,
    cost_rows,
    machines,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLORS = {"FR": VERMILION, "TA": ORANGE, "PN": BLUE}
FINE = 160
"""Points on each axis of the maps."""

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
