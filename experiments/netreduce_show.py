# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Tables, pictures, JSON and CSV of NetReduce's simulation."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from rich.table import Table

from netfold.controller.planning.hierarchy import GIGABYTE, Machines
from netfold.experiments.netreduce import (
    GRADIENT,
    INTER_GBS,
    INTRA_GBS,
    LATENCIES_US,
    NOTES,
    RANKS,
    SCHEMES,
    Condition,
    Grid,
    Row,
    machines,
)

COLORS = {"FR": "tab:red", "TA": "tab:orange", "PN": "tab:blue"}
FINE = 160
"""Points on each axis of the maps."""


def document(rows: Sequence[Row], found: Sequence[Condition]) -> str:
    """All values as JSON."""
    return json.dumps(
        {
            "paper": "netreduce",
            "rows": [asdict(r) for r in rows],
            "conditions": {
                c.name: {k: v for k, v in asdict(c).items() if k != "name"} for c in found
            },
            "notes": NOTES,
        },
        indent=2,
    )  # fmt: skip


def table_of(rows: Sequence[Row]) -> str:
    """The rows as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = [f.name for f in fields(Row)]
    writer.writerow(names)
    writer.writerows([getattr(row, name) for name in names] for row in rows)
    return text.getvalue()


def time_tables(grid: Grid, rows: Sequence[Row]) -> list[Table]:
    """A table per latency: the three times at each point whose number of ranks is a power of two, the least in
    bold."""
    columns = [ranks for ranks in grid.ranks if not ranks & (ranks - 1)]
    ms = {(r.intra_gbs, r.ranks, r.latency_us, r.scheme): r.ms for r in rows}
    tables = []
    for latency in grid.latencies_us:
        table = Table(
            title=f"FR / TA / PN in ms: 500 MB, {INTER_GBS:g} GB/s between machines, {latency:g} us"
        )
        table.add_column("GB/s inside", justify="right")
        for ranks in columns:
            table.add_column(f"P = {ranks}", justify="right")
        for intra in grid.intra_gbs:
            cells = ([ms[intra, ranks, latency, s] for s in SCHEMES] for ranks in columns)
            table.add_row(f"{intra:g}", *(_cell(values) for values in cells))
        tables.append(table)
    return tables


def _cell(values: Sequence[float]) -> str:
    return " / ".join(f"[bold]{v:.4g}[/bold]" if v == min(values) else f"{v:.4g}" for v in values)


def crossing_table(grid: Grid) -> Table:
    """From which intra-machine bandwidth on PN and TA are faster than FR."""
    table = Table(title="Faster than FR from so many GB/s inside the machines: PN / TA")
    table.add_column("latency, us", justify="right")
    columns = [ranks for ranks in grid.ranks if not ranks & (ranks - 1)]
    for ranks in columns:
        table.add_column(f"P = {ranks}", justify="right")
    for latency in grid.latencies_us:
        here = (machines(1.0, ranks, latency) for ranks in columns)
        table.add_row(f"{latency:g}", *(" / ".join(f"{x:.4g}" for x in crossings(m)) for m in here))
    return table


def crossings(here: Machines) -> tuple[float, float]:
    """GB/s inside at which PN, and TA, take as long as FR, whatever `here` has inside."""
    return (
        here.parallel_beats_flat_from(GRADIENT) / GIGABYTE,
        here.leaders_beat_flat_from(GRADIENT) / GIGABYTE,
    )


def condition_table(found: Sequence[Condition]) -> Table:
    table = Table(title="Sufficient conditions over the points")
    for head in ("faster", "if", "points", "holds", "faster at", "holds but not faster"):
        table.add_column(head, justify="left" if head in ("faster", "if") else "right")
    for c in found:
        table.add_row(c.name, c.claim, str(c.points), str(c.holds), str(c.wins), str(c.broken))
    return table


def plot_surfaces(file: Path) -> None:
    """Times over ranks and intra-machine bandwidth, a surface per scheme and a picture per latency."""
    chart, every = plt.subplots(
        2, 2, figsize=(11.0, 9.0), subplot_kw={"projection": "3d"}, layout="constrained"
    )
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
        axes.set(xlabel="GPUs", ylabel="GB/s inside", zlabel="ms", title=f"{latency:g} us a message")
        axes.set_xticks(np.log2(RANKS[::2]), [str(p) for p in RANKS[::2]])
        axes.view_init(22, -60)
    every.flat[0].legend(loc="upper left")
    chart.suptitle("NetReduce: all-reduce of 500 MB, 8 GPUs a machine, 12.5 GB/s between machines (ours)")
    chart.savefig(file, dpi=120)
    plt.close(chart)


def plot_crossings(file: Path) -> None:
    """How much faster PN is than the better of the two others, and the lines where two are equal."""
    chart, every = plt.subplots(2, 2, figsize=(11.0, 7.5), sharex=True, sharey=True, layout="constrained")
    ranks = np.unique(np.geomspace(RANKS[0] / 8, RANKS[-1] / 8, FINE).round()).astype(int) * 8
    intra = np.geomspace(INTRA_GBS[0], INTRA_GBS[-1], FINE)
    for axes, latency in zip(every.flat, LATENCIES_US, strict=True):
        gain = np.array([[_gain(machines(i, int(p), latency)) for p in ranks] for i in intra])
        mesh = axes.pcolormesh(ranks, intra, gain, cmap="RdBu", vmin=0.0, vmax=2.0, shading="nearest")
        lines = np.array([crossings(machines(1.0, int(p), latency)) for p in ranks])
        axes.plot(ranks, lines[:, 0], color=COLORS["PN"], label="PN = FR")
        axes.plot(ranks, lines[:, 1], color=COLORS["TA"], label="TA = FR")
        enough = [2 * 7 * p / (8 * (p - 2)) * INTER_GBS for p in ranks]
        axes.plot(ranks, enough, "k--", label="above: PN < FR at any latency")
        axes.set(xscale="log", yscale="log", ylim=(intra[0], intra[-1]), title=f"{latency:g} us a message")
        axes.set_xticks(RANKS[::2], [str(p) for p in RANKS[::2]], minor=False)
        axes.set_xticks([], minor=True)
        axes.set_yticks(INTRA_GBS[::3], [f"{b:g}" for b in INTRA_GBS[::3]], minor=False)
        axes.set_yticks([], minor=True)
    for axes in every[-1]:
        axes.set_xlabel("GPUs")
    for axes in every[:, 0]:
        axes.set_ylabel("GB/s inside the machines")
    every.flat[0].legend(loc="upper right", fontsize="small")
    chart.colorbar(mesh, ax=every, label="times as fast as the better of FR and TA", extend="max")
    chart.suptitle("NetReduce: where parallel NetReduce (PN) is fastest (blue; ours)")
    chart.savefig(file, dpi=120)
    plt.close(chart)


def _gain(here: Machines) -> float:
    return min(here.flat_s(GRADIENT), here.leaders_s(GRADIENT)) / here.parallel_s(GRADIENT)
