# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A drawing of a plan: the fabric in tiers, links colored by load, trees as arrows, aggregating switches
filled."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.collections import LineCollection

from netfold.controller.planning.plan import Loads, Plan
from netfold.topologies.fabric import Fabric, SwitchRole

TIER = {
    SwitchRole.PLAIN: 1,
    SwitchRole.LEAF: 1,
    SwitchRole.AGGREGATION: 2,
    SwitchRole.SPINE: 3,
    SwitchRole.CORE: 3,
}
TREE_COLORS = ("tab:purple", "tab:orange", "tab:cyan", "tab:pink", "tab:olive", "tab:brown")
CROWDED = 80

Spot = tuple[float, float]


def plot_plan(fabric: Fabric, plan: Plan, file: Path, measured: Loads | None = None) -> None:
    """Draw to `file` (its suffix chooses the format). Loads are the plan's, or `measured` ones in fabric
    units."""
    loads = measured or plan.loads
    spots = layout(fabric)
    few = len(fabric.hosts) + len(fabric.switches) <= CROWDED
    width = max(8.0, min(24.0, 0.55 * max(len(fabric.hosts), 1)))
    figure, axes = plt.subplots(figsize=(width, 7.0), layout="constrained")
    _draw_links(figure, axes, fabric, loads, spots)
    _draw_trees(axes, plan, spots, thin=not few)
    _draw_nodes(axes, fabric, plan, loads, spots, labels=few)
    what = "measured load" if measured else "planned load"
    unit = "" if plan.unit == "none" else f" {plan.unit}"
    axes.set_title(
        f"{plan.job} on {fabric.name}: {plan.algorithm}, {plan.rate:.4g}{unit} per worker ({what})"
    )
    axes.set_axis_off()
    axes.margins(0.06)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=130)
    plt.close(figure)


def layout(fabric: Fabric) -> dict[str, Spot]:
    """Hosts in the bottom row in the order of their switches, switches above the middle of what hangs on
    them."""
    tiers: dict[int, list[str]] = defaultdict(list)
    for switch in fabric.switches:
        tiers[TIER[switch.role]].append(switch.name)
    hosts_of: dict[str, list[str]] = defaultdict(list)
    for host in fabric.hosts:
        hosts_of[fabric.attachment(host.name)].append(host.name)
    spots: dict[str, Spot] = {}
    x = 0.0
    for switch in fabric.switches:
        own = hosts_of.get(switch.name, [])
        for i, name in enumerate(own):
            spots[name] = (x + i, 0.0)
        if own:
            spots[switch.name] = (x + (len(own) - 1) / 2, float(TIER[switch.role]))
            x += len(own) + 0.7
    width = max(x - 0.7, 1.0)
    for tier, names in tiers.items():
        free = [n for n in names if n not in spots]
        for i, name in enumerate(free):
            spots[name] = ((i + 0.5) * width / len(free), float(tier))
    row = [s.name for s in fabric.switches if spots[s.name][1] == 1.0]
    if len(row) == len(fabric.switches) and len(row) > 2:
        _bend(row, spots)
    return spots


def _bend(row: list[str], spots: dict[str, Spot]) -> None:
    """Lift the inner switches of a flat fabric, so that a link between outer ones is not drawn over them."""
    for i, name in enumerate(row[1:-1], start=1):
        x, y = spots[name]
        spots[name] = (x, y + 0.5 + 0.25 * (i % 2))


def _draw_links(figure: Any, axes: Any, fabric: Fabric, loads: Loads, spots: dict[str, Spot]) -> None:
    """A link's two directions lie side by side, traffic on the right."""
    segments, values = [], []
    for link in fabric.links:
        for a, b in ((link.a, link.b), (link.b, link.a)):
            segments.append(_beside(spots[a], spots[b]))
            values.append(loads.links.get((a, b), 0.0) / link.rate)
    lines = LineCollection(segments, cmap="RdYlGn_r", linewidths=2.2, zorder=1)
    lines.set_array(values)
    lines.set_clim(0.0, 1.0)
    axes.add_collection(lines)
    figure.colorbar(lines, ax=axes, label="load / rate of the link's direction", shrink=0.7)


def _beside(a: Spot, b: Spot, gap: float = 0.035) -> tuple[Spot, Spot]:
    dx, dy = b[0] - a[0], b[1] - a[1]
    size = (dx * dx + dy * dy) ** 0.5 or 1.0
    ox, oy = dy / size * gap, -dx / size * gap
    return (a[0] + ox, a[1] + oy), (b[0] + ox, b[1] + oy)


def _draw_trees(axes: Any, plan: Plan, spots: dict[str, Spot], *, thin: bool) -> None:
    for number, tree in enumerate(plan.trees):
        color = TREE_COLORS[number % len(TREE_COLORS)]
        label = f"tree {number}: root {tree.root}, share {tree.share:.3g}"
        axes.plot([], [], color=color, label=label)
        for edge in tree.edges:
            points = [spots[n] for n in edge.path]
            shift = 0.05 * (number + 1)
            points = [(x + shift, y) for x, y in points]
            axes.plot(*zip(*points, strict=True), color=color, lw=0.5 if thin else 1.0, alpha=0.6, zorder=2)
            if not thin:
                arrow = {"arrowstyle": "->", "color": color, "lw": 1.2}
                axes.annotate("", xy=points[-1], xytext=points[-2], arrowprops=arrow, zorder=2)
    if len(plan.trees) <= 8:
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=4, fontsize="small")


def _draw_nodes(
    axes: Any, fabric: Fabric, plan: Plan, loads: Loads, spots: dict[str, Spot], *, labels: bool
) -> None:
    adds = {n for t in plan.trees for n in t.nodes}
    workers = {e.child for t in plan.trees for e in t.edges} - adds
    for switch in fabric.switches:
        fill = "tab:blue" if switch.name in adds else "white"
        axes.scatter(
            *spots[switch.name], s=260 if labels else 40, marker="s", c=fill, edgecolors="tab:blue", zorder=3
        )
    for host in fabric.hosts:
        fill = "tab:red" if host.name in adds else "tab:gray" if host.name in workers else "white"
        axes.scatter(
            *spots[host.name], s=90 if labels else 12, c=fill, edgecolors="black", linewidths=0.5, zorder=3
        )
    if not labels:
        return
    for switch in fabric.switches:
        load = loads.switches.get(switch.name, 0.0)
        text = f"{switch.name}\n{load:.3g}/{switch.capacity:.3g}" if switch.capacity else switch.name
        _label(axes, text, spots[switch.name], 14)
    for host in fabric.hosts:
        text = host.name
        if host.name in adds:
            text += f"\n{loads.servers.get(host.name, 0.0):.3g}/{fabric.ingress_capacity(host.name):.3g}"
        _label(axes, text, spots[host.name], -22)


def _label(axes: Any, text: str, spot: Spot, offset: int) -> None:
    box = {"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none", "alpha": 0.8}
    place = {"textcoords": "offset points", "ha": "center", "fontsize": 8, "bbox": box}
    axes.annotate(text, spot, xytext=(0, offset), zorder=4, **place)
