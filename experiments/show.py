# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Tables, plots and the JSON file of a reproduction."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from rich.table import Table

from netfold.experiments.inart_derived import derived_rows
from netfold.experiments.published import HETEROGENEOUS_MEANS, NOTES, REDUCTIONS, Figure, Paper
from netfold.experiments.run import Point

OUR_COLUMNS = {
    Paper.GRID: ("LP bound", "rounded", "scaled", "repaired", "x4", "optimal", "optimal <=", "installable"),
    Paper.INART: ("LP bound", "rounded", "scaled", "repaired", "x4", "optimal", "optimal <=", "r-inart"),
}
BASELINES = {Paper.GRID: ("atp", "switchml", "none"), Paper.INART: ("atp", "lbmm")}
COLORS = {"grid": "tab:blue", "inart": "tab:blue", "r-inart": "tab:cyan", "atp": "tab:orange"}
COLORS |= {
    "switchml": "tab:green",
    "none": "tab:red",
    "lbmm": "tab:red",
    "LP bound": "tab:gray",
    "x4": "tab:purple",
}
LABELS = {"LP bound": "LP bound", "x4": "4 trees per server"}


def figure_table(paper: Paper, figure: Figure, points: Sequence[Point]) -> Table:
    """Ours and the published values of one figure; published ones in brackets."""
    unit = "Gbit/s" if paper is Paper.GRID else "Mbit/s"
    title = f"{paper.label}, Fig. {figure.name}: {figure.title} ({unit}; \\[published])"
    table = Table(title=title)
    table.add_column(figure.axis, justify="right")
    for column in OUR_COLUMNS[paper]:
        table.add_column(column, justify="right")
    table.add_column("over: PS, switch", justify="right")
    for scheme in _schemes(paper):
        table.add_column(
            f"\\[{scheme}]" if scheme in ("grid", "inart", "r-inart") else scheme, justify="right"
        )
    if figure.name == "8a":
        table.add_column("reduction", justify="right")
    for point in points:
        table.add_row(*_row(paper, figure, point))
    if figure.name == "12b" and paper is Paper.INART:
        means = ", ".join(f"{s} {v}" for s, v in HETEROGENEOUS_MEANS.items())
        table.caption = f"published only as means over 2 ... 6 servers: {means}"
    return table


def _schemes(paper: Paper) -> tuple[str, ...]:
    extra = ("r-inart",) if paper is Paper.INART else ()
    return (str(paper), *extra, *BASELINES[paper])


def _row(paper: Paper, figure: Figure, point: Point) -> list[str]:
    cells = [str(point.x), *(_number(point.values.get(c)) for c in OUR_COLUMNS[paper])]
    cells.append(f"x{point.server_over:.1f}, x{point.switch_over:.1f}")
    at = figure.x.index(point.x)
    for scheme in _schemes(paper):
        curve = figure.curves.get(scheme)
        published = "" if curve is None or curve[at] is None else f"[{curve[at]:g}]"
        ours = _number(point.values.get(scheme)) if scheme in BASELINES[paper] else ""
        cells.append(f"{ours} {published}".strip().replace("[", r"\["))
    if figure.name == "8a":
        ours_reduced = 1 - point.values["atp"] / point.values["repaired"]
        cells.append(rf"{ours_reduced:.0%} \[{REDUCTIONS[point.x]}%]")
    return cells


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def plot_figure(paper: Paper, figure: Figure, points: Sequence[Point], file: Path) -> None:
    """Ours solid, the paper's dashed, the LP bound in gray."""
    chart, axes = plt.subplots(figsize=(9.0, 4.6), layout="constrained")
    x = [p.x for p in points]
    for column in ("LP bound", "x4", "repaired", *BASELINES[paper]):
        scheme = str(paper) if column == "repaired" else column
        y = [p.values.get(column, float("nan")) for p in points]
        axes.plot(x, y, "o-", color=COLORS[scheme], label=LABELS.get(column, f"{scheme}, ours"))
    for scheme, curve in figure.curves.items():
        y = [float("nan") if v is None else v for v in curve]
        axes.plot(figure.x, y, "x--", color=COLORS[scheme], alpha=0.7, label=f"{scheme}, published")
    axes.set_xlabel(figure.axis)
    axes.set_ylabel("sending rate, " + ("Gbit/s" if paper is Paper.GRID else "Mbit/s"))
    axes.set_yscale("log" if paper is Paper.GRID else "linear")
    axes.set_title(f"{paper.label}, Fig. {figure.name}: {figure.title}")
    chart.legend(loc="outside right upper", fontsize="small")
    axes.grid(alpha=0.3)
    chart.savefig(file, dpi=130)
    plt.close(chart)


def document(paper: Paper, points: Sequence[Point]) -> str:
    """All values as JSON."""
    rows = [
        {
            "figure": p.figure.name,
            "title": p.figure.title,
            p.figure.axis: p.x,
            "draws": p.draws,
            "ours": p.values,
            "reaching": p.reaching,
            "server_over": p.server_over,
            "switch_over": p.switch_over,
            "published": {s: c[p.figure.x.index(p.x)] for s, c in p.figure.curves.items()},
        }
        for p in points
    ]
    found = {"paper": str(paper), "points": rows, "notes": NOTES[paper]}
    if paper is Paper.INART:
        found["derived"] = derived_rows(points)
    return json.dumps(found, indent=2)
