# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The picture of a plan: the fabric in tiers, both directions of links by load, trees with arrows, switches that add
up."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from netfold.controller.drawing import palette
from netfold.controller.drawing.fabric_layout import (
    ARC_HEIGHT,
    LETTER,
    DrawnNode,
    FabricLayout,
    Points,
    beside,
    lay_out,
    point_on,
)
from netfold.controller.drawing.palette import LOAD_LEVELS, LOAD_WIDTHS, LOADS, TREES, load_level
from netfold.controller.drawing.plot import Plot
from netfold.controller.planning.plan import Loads, Plan
from netfold.topologies.fabric import Fabric

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Direction = tuple[str, str]
Ends = tuple[tuple[str, ...], tuple[str, ...]]
"""The elements that a line stands for, at its start and its end."""

MARGIN = 0.35
HEADER, ROW, BELOW_HOSTS = 1.1, 0.215, 0.42
LOAD_OFFSET, TREE_OFFSET, TREE_STEP, MAX_TREE_WIDTH = 0.035, 0.085, 0.045, 0.14
ARROW = 0.055
DASHES = (0, (3, 1.6))
NAMED_TREES = 6


@dataclass(frozen=True)
class MeasuredLoads:
    """Mean loads of links (fabric units); `interval`: which time they are of, in words."""

    loads: Loads
    interval: str


def fabric_plot(fabric: Fabric, plan: Plan, measured: MeasuredLoads | None = None) -> Plot:
    """The plan on its fabric. Loads are the planned ones, or those measured."""
    picture = _FabricPicture(fabric, plan, measured)
    return Plot(picture.draw, picture.size, arranges_itself=True)


@dataclass(frozen=True)
class _FabricPicture:
    fabric: Fabric
    plan: Plan
    measured: MeasuredLoads | None

    @cached_property
    def layout(self) -> FabricLayout:
        return lay_out(self.fabric)

    @property
    def loads(self) -> Loads:
        return self.plan.loads if self.measured is None else self.measured.loads

    @cached_property
    def used(self) -> dict[Direction, float]:
        """The load of each direction of a link, as a part of its rate."""
        return {
            way: self.loads.links.get(way, 0.0) / link.rate
            for link in self.fabric.links
            for way in ((link.a, link.b), (link.b, link.a))
        }

    @property
    def _leaves_idle_out(self) -> bool:
        """In a crowded fabric lines without a load hide the others."""
        return bool(self.layout.tiers)

    @property
    def legend_rows(self) -> int:
        return 1 + max(len(LOADS), min(len(self.plan.trees), NAMED_TREES + 1))

    @property
    def left(self) -> float:
        longest = max((len(tier.text) for tier in self.layout.tiers), default=0)
        return MARGIN + LETTER * longest

    @property
    def bottom(self) -> float:
        return MARGIN / 2 + ROW * self.legend_rows + BELOW_HOSTS

    @property
    def size(self) -> tuple[float, float]:
        arcs = any(self.layout.is_arc(link.a, link.b) for link in self.fabric.links)
        above = HEADER + ARC_HEIGHT * arcs
        return self.left + self.layout.width + MARGIN, self.bottom + self.layout.height + above

    def draw(self, figure: Figure) -> None:
        """An inch of the figure is 1 of its axes."""
        width, height = self.size
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(-self.left, width - self.left), ylim=(-self.bottom, height - self.bottom))
        axes.set_axis_off()
        self._draw_loads(axes)
        self._draw_trees(axes)
        self._draw_nodes(axes)
        self._write_header(axes)
        self._write_legend(figure)

    # ---- links and trees -------------------------------------------------------------------------------

    def _draw_loads(self, axes: Axes) -> None:
        """A link's two directions lie side by side, each on the right of its way. Of links of a group the fullest is
        shown."""
        scale = self.layout.scale
        shown: dict[Ends, tuple[float, float, Points]] = {}
        for (a, b), used in self.used.items():
            if self._leaves_idle_out and not load_level(used):
                continue
            ends = self._ends(a, b)
            if ends not in shown or shown[ends][0] < used:
                part = 0.42 if self.fabric.is_host(a) or self.fabric.is_host(b) else 0.36
                shown[ends] = (used, part, beside(self.layout.line(a, b), LOAD_OFFSET * scale))
        for used, part, line in sorted(shown.values(), key=lambda item: item[0]):
            level = load_level(used)
            axes.plot(
                *line.T, color=LOADS[level], linewidth=LOAD_WIDTHS[level] * scale, zorder=1 + level / 10
            )
            if level:
                _arrow(axes, line, part, LOADS[level], (ARROW + 0.012 * level) * scale)

    def _ends(self, a: str, b: str) -> Ends:
        return self.layout.place_of[a].members, self.layout.place_of[b].members

    def _draw_trees(self, axes: Axes) -> None:
        """Trees lie outside of the loads: the way up solid, the way down dashed. Links of workers are left out: each
        carries all trees of its worker."""
        roots = {tree.root for tree in self.plan.trees}
        users: dict[Direction, list[tuple[int, bool]]] = defaultdict(list)
        for number, tree in enumerate(self.plan.trees):
            up = {step for edge in tree.edges for step in pairwise(edge.path)}
            for is_up, ways in ((True, up), (False, tree.result_links)):
                for way in ways:
                    if all(end in roots or not self.fabric.is_host(end) for end in way):
                        users[way].append((number, is_up))
        for (a, b), trees in sorted(users.items()):
            step = min(TREE_STEP, MAX_TREE_WIDTH / len(trees))
            scale = self.layout.scale
            for lane, (number, is_up) in enumerate(trees):
                line = beside(self.layout.line(a, b), (TREE_OFFSET + step * lane) * scale)
                color = TREES[number % len(TREES)]
                axes.plot(
                    *line.T, color=color, linewidth=1.2 * scale, linestyle="-" if is_up else DASHES, zorder=2
                )
                if step > TREE_STEP / 2:
                    _arrow(axes, line, 0.6, color, ARROW * scale)

    # ---- nodes -----------------------------------------------------------------------------------------

    def _draw_nodes(self, axes: Axes) -> None:
        roots = {tree.root: TREES[n % len(TREES)] for n, tree in reversed(list(enumerate(self.plan.trees)))}
        adding = {name for tree in self.plan.trees for name in tree.nodes}
        workers = {edge.child for tree in self.plan.trees for edge in tree.edges} - adding
        for place in self.layout.switches:
            self._draw_switch(axes, place, roots.get(place.name), place.name in adding)
        for place in self.layout.hosts:
            self._draw_host(axes, place, roots, workers)
        for tier in self.layout.tiers:
            axes.text(MARGIN - self.left, tier.y, tier.text, ha="left", va="center", fontsize=9)

    def _draw_switch(self, axes: Axes, place: DrawnNode, root: str | None, adds: bool) -> None:
        edge, width = (root, 2.4) if root else (palette.MUTED, 1.0)
        fill = palette.WORKER if adds else palette.NODE
        _box(axes, place, fill, edge, width if place.is_named else min(width, 1.4))
        if not place.is_named:
            return
        capacity = self.fabric.switch(place.name).capacity
        load = self.loads.switches.get(place.name, 0.0)
        share = _percent(load / capacity) if capacity and load else ""
        rise = 0.08 if share else 0.0
        axes.text(place.x, place.y + rise, place.name, ha="center", va="center", fontsize=9, zorder=6)
        if share:
            axes.text(place.x, place.y - 0.09, share, ha="center", va="center", fontsize=8, zorder=6)

    def _draw_host(self, axes: Axes, place: DrawnNode, roots: Mapping[str, str], workers: set[str]) -> None:
        own = [name for name in place.members if name in workers]
        root = next((roots[name] for name in place.members if name in roots), None)
        fill = palette.WORKER if own else palette.NODE
        if place.name not in place.members:
            _box(axes, place, fill, root or palette.MUTED, 2.4 if root else 1.0)
            if place.is_named:
                axes.text(place.x, place.y, place.name, ha="center", va="center", fontsize=8, zorder=6)
            return
        host = self.fabric.host(place.name)
        marker = "s" if host.parameter_server else "o"
        face, edge = (fill, palette.TEXT) if own else (palette.NODE, palette.MUTED)
        axes.scatter(
            place.x,
            place.y,
            s=90,
            marker=marker,
            c=face,
            edgecolors=root or edge,
            linewidths=2.4 if root else 1.0,
            zorder=5,
        )
        axes.text(place.x, place.y - 0.2, place.name, ha="center", va="center", fontsize=8, zorder=6)
        load = self.loads.servers.get(place.name, 0.0)
        if root and load:
            share = _percent(load / self.fabric.ingress_capacity(place.name))
            axes.text(place.x, place.y - 0.34, share, ha="center", va="center", fontsize=8, zorder=6)

    # ---- texts -----------------------------------------------------------------------------------------

    def _write_header(self, axes: Axes) -> None:
        plan = self.plan
        unit = "" if plan.unit == "none" else f" {plan.unit}"
        what = plan.job if plan.job == self.fabric.name else f"{plan.job} on {self.fabric.name}"
        lines = [f"{plan.algorithm}, {plan.rate:.4g}{unit} per worker. Loads: {self._interval()}"]
        if self.used:
            (a, b), most = max(self.used.items(), key=lambda item: item[1])
            rate = self.fabric.link(a, b).rate
            lines.append(f"Fullest link: {a} to {b}, {_percent(most)} of {rate:g}{unit}")
        x, top = MARGIN - self.left, self.size[1] - self.bottom - 0.12
        size = 12.0 if len(what) < 10 * self.size[0] else 9.0
        axes.text(x, top, what, ha="left", va="top", fontsize=size, fontweight="bold")
        for number, line in enumerate(lines):
            place = top - 0.27 - 0.2 * number
            axes.text(x, place, line, ha="left", va="top", fontsize=8.5, color=palette.MUTED)

    def _interval(self) -> str:
        return "as planned" if self.measured is None else self.measured.interval

    def _write_legend(self, figure: Figure) -> None:
        """Three columns: trees, loads, elements."""
        columns = [self._tree_entries(), self._load_entries(), self._node_entries()]
        rows = max(map(len, columns))
        entries = [
            entry for column in columns for entry in [*column, *[(_blank(), "")] * (rows - len(column))]
        ]
        made = figure.legend(
            [handle for handle, _ in entries],
            [text for _, text in entries],
            loc="lower left",
            bbox_to_anchor=(MARGIN / self.size[0], MARGIN / 2 / self.size[1]),
            ncols=len(columns),
            fontsize=8,
            borderaxespad=0,
            borderpad=0,
            handlelength=2.2,
            columnspacing=2.0,
            labelspacing=0.45,
        )
        for number in range(len(columns)):
            made.get_texts()[number * rows].set_fontweight("bold")

    def _tree_entries(self) -> list[tuple[Any, str]]:
        trees = self.plan.trees
        entries = [(_blank(), "Trees: root, share of data")]
        for number, tree in enumerate(trees[:NAMED_TREES]):
            entries.append((_line(TREES[number], 1.4), f"{tree.root}, {_percent(tree.share)}"))
        if len(trees) > NAMED_TREES:
            rest = sum(tree.share for tree in trees[NAMED_TREES:])
            entries.append((_blank(), f"{len(trees) - NAMED_TREES} more, {_percent(rest)}, colors repeat"))
        return entries

    def _load_entries(self) -> list[tuple[Any, str]]:
        limits = [_percent(limit) for limit in LOAD_LEVELS]
        idle = f"below {limits[0]}" + (": left out" if self._leaves_idle_out else "")
        between = (f"{low} to {high}" for low, high in pairwise(limits))
        names = (idle, *between, f"{limits[-1]} and more")
        lines = (_line(color, width) for color, width in zip(LOADS, LOAD_WIDTHS, strict=True))
        return [(_blank(), "Load / rate of a direction"), *zip(lines, names, strict=True)]

    def _node_entries(self) -> list[tuple[Any, str]]:
        entries = [
            (_blank(), "Elements"),
            (_line(palette.TEXT, 1.4), "a tree's way up"),
            (_line(palette.TEXT, 1.4, linestyle=DASHES), "results' way down"),
            (_marker("s", palette.WORKER, palette.MUTED), "switch that adds up" + self._share_words()),
            (_marker("s", palette.WORKER, TREES[0], 2.4), "root, in its tree's color"),
            (_marker("o", palette.WORKER, palette.TEXT), "worker"),
        ]
        if any(place.name not in place.members for place in self.layout.hosts):
            entries[-1] = (
                _marker("s", palette.WORKER, palette.MUTED, size=6),
                "hosts of a switch, with workers",
            )
        elif any(host.parameter_server for host in self.fabric.hosts):
            entries.append((_marker("s", palette.NODE, palette.MUTED, size=7), "parameter server"))
        return entries

    def _share_words(self) -> str:
        return ", % of its capacity" if self.loads.switches else ""


def _percent(part: float) -> str:
    return f"{100 * part:.0f} %"


def _line(color: str, width: float, linestyle: Any = "-") -> Any:
    from matplotlib.lines import Line2D  # noqa: PLC0415 (it takes half a second)

    return Line2D([], [], color=color, linewidth=width, linestyle=linestyle)


def _marker(shape: str, fill: str, edge: str, width: float = 1.0, size: float = 9.0) -> Any:
    from matplotlib.lines import Line2D  # noqa: PLC0415

    return Line2D(
        [],
        [],
        linestyle="none",
        marker=shape,
        markersize=size,
        markerfacecolor=fill,
        markeredgecolor=edge,
        markeredgewidth=width,
    )


def _blank() -> Any:
    from matplotlib.lines import Line2D  # noqa: PLC0415

    return Line2D([], [], linestyle="none")


def _box(axes: Axes, place: DrawnNode, fill: str, edge: str, width: float) -> None:
    from matplotlib.patches import FancyBboxPatch  # noqa: PLC0415

    corner = (place.x - place.width / 2, place.y - place.height / 2)
    round_ = f"round,pad=0,rounding_size={min(0.06, place.height / 4)}"
    axes.add_patch(
        FancyBboxPatch(
            corner,
            place.width,
            place.height,
            boxstyle=round_,
            facecolor=fill,
            edgecolor=edge,
            linewidth=width,
            zorder=5,
        )
    )


def _arrow(axes: Axes, line: Points, part: float, color: str, size: float) -> None:
    """A triangle on the line, at this part of its length."""
    at, direction = point_on(line, part)
    side = np.array([-direction[1], direction[0]]) * size * 0.7
    tip, tail = at + direction * size, at - direction * size * 0.8
    axes.fill(*np.array([tip, tail + side, tail - side]).T, color=color, linewidth=0, zorder=3)
