# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Draws the pictures of examples/README.md: `make example-pictures`. A test compares them with the committed ones.

Plans and sweeps are computed anew. What differs from run to run is drawn from a committed recording: straggler.json is
of `examples/straggler.py --out`, and docs/tutorials/training.json of `make train`.
"""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from examples import own_planner, sweep
from netfold.controller.drawing import palette
from netfold.controller.drawing.chart import legend, reference, series
from netfold.controller.drawing.fabric_layout import beside, lay_out
from netfold.controller.drawing.plot import Plot, render
from netfold.controller.planning.plan import JobSpec, Plan
from netfold.controller.planning.planner import make_plan
from netfold.topologies.fabric import Fabric
from netfold.topologies.spec import load_fabric

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FOLDER = Path(__file__).parent
TRAINING = FOLDER.parents[1] / "docs/tutorials/training.json"
WIDE, TALL = (7.0, 2.8), (7.0, 3.4)  # inches
FOUR_HOSTS = ("h1", "h2", "h5", "h6")
FAILED = "spine1"
LAYERS = ((64, 32), (64,), (2, 64), (2,))
"""The shapes of the weights of examples/fsdp.py."""


def draw_ddp(figure: Figure) -> None:
    """The loss by training step, and the median duration of a step."""
    reports = json.loads(TRAINING.read_text())
    losses, times = figure.subplots(1, 2, width_ratios=(3, 2))
    for number, (transport, report) in enumerate(reports.items()):
        style = {**series(number), "markevery": 8, "label": transport}
        losses.plot(range(1, len(report["loss"]) + 1), report["loss"], **style)
    losses.set(xlabel="step", ylabel="loss")
    losses.set_ylim(bottom=0)
    losses.legend()
    medians = {name: statistics.median(report["step_ms"]) for name, report in reports.items()}
    _bars(times, medians, "median step, ms", palette.SERIES)


def draw_fsdp(figure: Figure) -> None:
    """The weights that each rank keeps: of each layer the rows that `torch.chunk` gives it."""
    axes = figure.subplots()
    for rank in range(len(FOUR_HOSTS)):
        start = kept = 0
        for shape in LAYERS:
            row = shape[1] if len(shape) > 1 else 1
            rows = -(-shape[0] // len(FOUR_HOSTS))
            first, end = min(rank * rows, shape[0]), min((rank + 1) * rows, shape[0])
            axes.barh(rank, shape[0] * row, left=start, height=0.6, color=palette.GRID)
            axes.barh(rank, (end - first) * row, left=start + first * row, height=0.6, color=palette.BLUE)
            kept += (end - first) * row
            start += shape[0] * row
        axes.text(start + 25, rank, f"{kept} kept", va="center", fontsize=9)
    axes.set_yticks(range(len(FOUR_HOSTS)), [f"rank {rank}, {host}" for rank, host in enumerate(FOUR_HOSTS)])
    axes.invert_yaxis()
    axes.set_xlim(0, 2500)
    axes.set(xlabel="weights of the model; gray ones are gathered for a layer's turn")
    axes.grid(visible=False)


def draw_mpi(figure: Figure) -> None:
    """The numbers of eight ranks on four hosts, added up on their way."""
    fabric = load_fabric("leaf-spine-2x2")
    plan = make_plan(fabric, JobSpec("mpi-0", FOUR_HOSTS))
    values = {host: number + number + 4 for number, host in enumerate(FOUR_HOSTS)}
    tree = plan.trees[0]
    sums = {
        child: sum(values[worker] for worker in tree.workers_below(child))
        for child in (*tree.nodes, *FOUR_HOSTS)
    }
    sums[tree.root] = sum(values.values())
    notes = {node: f"{total}" for node, total in sums.items()}
    notes |= {host: f"{host}\n{number} + {number + 4}" for number, host in enumerate(FOUR_HOSTS)}
    draw_trees(figure.subplots(), fabric, plan, notes=notes)


def draw_own_planner(figure: Figure) -> None:
    rates = {plan.algorithm: plan.rate for plan in own_planner.plans(load_fabric("leaf-spine-4x2"))}
    axes = figure.subplots()
    _bars(axes, rates, "rate of the plan, Mbit/s", (palette.VERMILION, *[palette.BLUE] * len(rates)))


def draw_straggler(figure: Figure) -> None:
    """How long each sum took, and which ones are without the worker that paused."""
    sums = json.loads((FOLDER / "straggler.json").read_text())
    axes = figure.subplots()
    everyone = max(one["contributors"] for one in sums)
    for number, (is_partial, label) in enumerate(((False, "of all four workers"), (True, "without h6"))):
        calls = [n for n, one in enumerate(sums) if (one["contributors"] < everyone) == is_partial]
        axes.plot(
            calls, [sums[n]["ms"] for n in calls], **series(number) | {"linestyle": "none"}, label=label
        )
    axes.axhline(500, **reference(label="the pause of h6"))
    axes.set(xlabel="sum", ylabel="ms", yscale="log")
    axes.yaxis.set_major_formatter("{x:g}")
    legend(figure, [axes])


def draw_failure(figure: Figure) -> None:
    """The trees before the spine dies, and those that the controller plans without it."""
    whole = load_fabric("leaf-spine-2x2")
    left = replace(
        whole,
        switches=tuple(switch for switch in whole.switches if switch.name != FAILED),
        links=tuple(link for link in whole.links if FAILED not in (link.a, link.b)),
    )
    workers = tuple(host.name for host in whole.hosts if not host.parameter_server)
    before, after = figure.subplots(1, 2)
    for axes, fabric, failed, title in (
        (before, whole, None, "job epoch 1"),
        (after, left, FAILED, f"job epoch 2, without {FAILED}"),
    ):
        plan = make_plan(fabric, JobSpec("training", workers, scheme="panama"))
        draw_trees(axes, whole, plan, failed=failed)
        axes.set_title(title)


def draw_cross_traffic(figure: Figure) -> None:
    """The tree of the job, and one of the two paths that the flow may take."""
    fabric = load_fabric("leaf-spine-2x2")
    plan = make_plan(fabric, JobSpec("beside", ("h1", "h5"), scheme="switchml"))
    spine = next(name for name in plan.trees[0].touched if name.startswith("spine"))
    axes = figure.subplots()
    draw_trees(axes, fabric, plan, flow=("h4", "leaf1", spine, "leaf2", "h8"))
    axes.set_title("The job of h1 and h5 in blue, 60 Mbit/s from h4 to h8 in red")


def draw_roce(figure: Figure) -> None:
    """Where packets have which form."""
    fabric = load_fabric("leaf-spine-2x2")
    plan = make_plan(fabric, JobSpec("rdma", FOUR_HOSTS))
    notes = {host: f"{host}\nRoCE" for host in FOUR_HOSTS} | dict.fromkeys(("leaf1", "leaf2"), "adds up RoCE")
    draw_trees(figure.subplots(), fabric, plan, notes=notes)


def draw_bmv2(figure: Figure) -> None:
    fabric = load_fabric("single")
    plan = make_plan(fabric, JobSpec("sums", ("h1", "h2", "h3")))
    draw_trees(figure.subplots(), fabric, plan, notes={plan.trees[0].root: "simple_switch_grpc"})


def draw_sweep(figure: Figure) -> None:
    sweep.draw(figure, sweep.all_times())


def draw_trees(
    axes: Axes,
    fabric: Fabric,
    plan: Plan,
    *,
    failed: str | None = None,
    flow: tuple[str, ...] = (),
    notes: Mapping[str, str] | None = None,
) -> None:
    """Each tree's way up in its color over the links in gray, with a note next to elements."""
    layout = lay_out(fabric)
    roots = {tree.root: palette.TREES[number] for number, tree in enumerate(plan.trees)}
    workers = {edge.path[0] for tree in plan.trees for edge in tree.edges}
    for link in fabric.links:
        is_lost = failed in (link.a, link.b)
        style = ":" if is_lost else "-"
        axes.plot(
            *layout.line(link.a, link.b).T, color=palette.LOADS[0], linewidth=1.5, zorder=1, linestyle=style
        )
    for number, tree in enumerate(plan.trees):
        for a, b in sorted({step for edge in tree.edges for step in pairwise(edge.path)}):
            line = beside(layout.line(a, b), 0.05 * (number - (len(plan.trees) - 1) / 2))
            axes.plot(*line.T, color=palette.TREES[number], linewidth=2, zorder=2)
    for a, b in pairwise(flow):
        offset = 0.0 if fabric.is_host(a) or fabric.is_host(b) else 0.08
        axes.plot(*beside(layout.line(a, b), offset).T, color=palette.LOADS[5], linewidth=2, zorder=2)
    box = {"boxstyle": "round,pad=0.35", "linewidth": 1.5}
    for place in layout.switches:
        edge = palette.LOADS[5] if place.name == failed else roots.get(place.name, palette.MUTED)
        look = {**box, "facecolor": palette.NODE, "edgecolor": edge}
        axes.text(place.x, place.y, place.name, ha="center", va="center", fontsize=10, bbox=look, zorder=5)
        if place.name == failed:
            axes.plot(
                place.x, place.y, "x", color=palette.LOADS[5], markersize=26, markeredgewidth=2.5, zorder=6
            )
    for place in layout.hosts:
        fill = palette.WORKER if place.name in workers or place.name in flow else palette.NODE
        axes.plot(place.x, place.y, "o", color=fill, markeredgecolor=palette.MUTED, markersize=9, zorder=5)
        if not (notes and place.name in notes):
            axes.text(place.x, place.y - 0.18, place.name, ha="center", va="top", fontsize=9)
    for name, note in (notes or {}).items():
        place = layout.place_of[name]
        is_host = fabric.is_host(name)
        x, y = (place.x, place.y - 0.18) if is_host else (place.x + 0.42, place.y)
        horizontal, vertical = ("center", "top") if is_host else ("left", "center")
        axes.text(
            x,
            y,
            note,
            fontsize=9 if is_host else 10,
            fontweight="normal" if is_host else "bold",
            zorder=6,
            ha=horizontal,
            va=vertical,
        )
    axes.set_axis_off()
    axes.set_ylim(-0.6, layout.height + 0.35)
    axes.margins(x=0.04)


def _bars(axes: Axes, values: Mapping[str, float], label: str, colors: tuple[str, ...]) -> None:
    for number, (name, value) in enumerate(values.items()):
        axes.barh(name, value, color=colors[number])
        axes.text(value, number, f" {value:.0f}", va="center", fontsize=9)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.15 * max(values.values()))
    axes.set(xlabel=label)
    axes.grid(visible=False, axis="y")


DRAWINGS: dict[str, tuple[Callable[[Figure], None], tuple[float, float]]] = {
    "ddp": (draw_ddp, WIDE),
    "fsdp": (draw_fsdp, WIDE),
    "mpi": (draw_mpi, TALL),
    "own_planner": (draw_own_planner, WIDE),
    "straggler": (draw_straggler, WIDE),
    "failure": (draw_failure, WIDE),
    "cross_traffic": (draw_cross_traffic, TALL),
    "roce": (draw_roce, TALL),
    "bmv2": (draw_bmv2, WIDE),
    "sweep": (draw_sweep, TALL),
}


def picture(name: str) -> str:
    """The SVG of the program's picture."""
    draw, size = DRAWINGS[name]
    svg = render(Plot(draw, size), "svg").decode()
    return re.sub(r"(\d\.\d{3})\d+", r"\1", svg)


def main() -> None:
    for name in DRAWINGS:
        (FOLDER / f"{name}.svg").write_text(picture(name))


if __name__ == "__main__":
    main()
