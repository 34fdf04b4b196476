# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Our values for the rate figures of GRID and InArt: every scheme on every random instance, means over the
instances."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.table import Table

from netfold.controller.drawing.chart import legend, log_y
from netfold.controller.drawing.palette import BLUE, GREEN, MUTED, ORANGE, PURPLE, SKY, TEXT, VERMILION
from netfold.controller.drawing.plot import Plot
from netfold.controller.planning.candidate_paths import Limits
from netfold.controller.planning.grid import round_once
from netfold.controller.planning.layout import feasible_rate, total_load
from netfold.controller.planning.plan import Plan, PlanningError
from netfold.controller.planning.planner import SchemeComparison
from netfold.controller.planning.scheme import Task
from netfold.evaluation.core.experiment import Column, Experiment, Notify, table
from netfold.evaluation.papers import inart_derived
from netfold.evaluation.papers.grid import GRID
from netfold.evaluation.papers.inart import HETEROGENEOUS_MEANS, INART, REDUCTIONS
from netfold.evaluation.papers.rate_figure import Figure, RatePaper, RatePoint, Values
from netfold.simulator.command.options import Seed, SweepOptions
from netfold.simulator.sweep.task import Json

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

NO_FAN_IN_LIMIT = Limits(fan_in=100_000)
PAPERS = {paper.name: paper for paper in (GRID, INART)}
COMMON_COLUMNS = ("LP bound", "rounded", "scaled", "repaired", "x4", "optimal", "optimal <=")
COLORS = {"grid": BLUE, "inart": BLUE, "r-inart": SKY, "atp": ORANGE, "switchml": GREEN, "none": VERMILION}
COLORS |= {"lbmm": VERMILION, "LP bound": MUTED, "x4": PURPLE}
MARKERS = {"grid": "o", "inart": "o", "r-inart": "P", "atp": "s", "switchml": "D", "none": "v", "lbmm": "v"}
MARKERS |= {"LP bound": "", "x4": "^"}
LABELS = {"LP bound": "LP bound", "x4": "4 trees per server, ours"}


@dataclass(frozen=True)
class Instance:
    """A random instance of a point of a figure: the parameters of a sweep's task."""

    paper: str
    figure: str
    x: int
    seed: int


@dataclass(frozen=True)
class Rates(SweepOptions, Experiment[RatePoint]):
    """Every x of the figures, or every other one (`quick`), with random instances from `seed` on. `only`: names of
    figures; empty: all."""

    draws: Annotated[
        int,
        typer.Option(
            min=0, max=100, help="Random instances of each point; means are shown. 0: 3, --quick: 1."
        ),
    ] = 0
    seed: Seed = 0
    quick: Annotated[
        bool, typer.Option("--quick", help="Every other point of each figure, from one instance.")
    ] = False
    only: Sequence[str] = ()

    @property
    @abstractmethod
    def paper(self) -> RatePaper: ...

    @property
    def name(self) -> str:
        return f"reproduce-{self.paper.name}"

    @property
    def notes(self) -> Sequence[str]:
        return self.paper.notes

    def points(self) -> list[tuple[Figure, int]]:
        figures = [f for f in self.paper.figures if not self.only or f.name in self.only]
        return [(figure, x) for figure in figures for x in figure.x[:: 2 if self.quick else 1]]

    def rows(self, notify: Notify) -> Iterator[RatePoint]:
        """Raises SweepError."""
        points, draws = self.points(), self.draws or (1 if self.quick else 3)
        instances = [
            Instance(self.paper.name, figure.name, x, self.seed + draw)
            for figure, x in points
            for draw in range(draws)
        ]
        found: list[_Draw] = []
        remaining = iter(points)
        for result in self.sweep(measure, instances, f"planning {self.paper.label}'s setups"):
            found.append(_Draw(**result))
            if len(found) == draws:
                yield _mean(*next(remaining), found)
                found = []

    def tables(self, rows: Sequence[RatePoint]) -> Iterable[Table]:
        for figure in dict.fromkeys(p.figure.name for p in rows):
            yield figure_table(self.paper, [p for p in rows if p.figure.name == figure])
        if self.paper is INART:
            yield inart_derived.derived_table(rows)

    def document(self, rows: Sequence[RatePoint]) -> dict[str, Any]:
        found = {"paper": self.paper.name, "points": [p.to_dict() for p in rows], "notes": self.notes}
        return {**found, "derived": inart_derived.derived_rows(rows)} if self.paper is INART else found

    def plots(self, rows: Sequence[RatePoint]) -> Iterable[Plot]:
        for name in dict.fromkeys(p.figure.name for p in rows):
            own = [p for p in rows if p.figure.name == name]

            def draw(canvas: Canvas, own: Sequence[RatePoint] = own) -> None:
                _draw_figure(canvas, self.paper, own)

            yield Plot(draw, (9.0, 4.6), f"fig{name}")


class Grid(Rates):
    """GRID (ToN 2023): plan its simulated setups by every scheme; bound, rounded, repaired and optimal rates beside the
    published figures."""

    paper = GRID


class InArt(Rates):
    """InArt (WWW 2024): plan its simulated setups, which have several parameter servers, by every scheme; rates beside
    the published figures."""

    paper = INART


# ---- one instance ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Draw:
    values: Values
    reaching: Values
    server_over: float
    switch_over: float


def _mean(figure: Figure, x: int, draws: list[_Draw]) -> RatePoint:
    return RatePoint(
        figure,
        x,
        _means([d.values for d in draws]),
        _means([d.reaching for d in draws]),
        fmean([d.server_over for d in draws]),
        fmean([d.switch_over for d in draws]),
        len(draws),
    )


def _means(draws: list[Values]) -> Values:
    columns = dict.fromkeys(name for d in draws for name in d)
    return {name: fmean([d[name] for d in draws if name in d]) for name in columns}


def measure(instance: Instance) -> Json:
    """Rates by column, and by how much rounding overloads resources: the fields of a _Draw."""
    paper, seed = PAPERS[instance.paper], instance.seed
    figure = next(f for f in paper.figures if f.name == instance.figure)
    setup = paper.draw(figure, instance.x, seed)
    unlimited = SchemeComparison(setup.fabric, setup.job, seed=seed, limits=NO_FAN_IN_LIMIT)
    values: Values = {}
    reaching: Values = {}

    def run(
        column: str, scheme: str, options: Mapping[str, str | float], schemes: SchemeComparison = unlimited
    ) -> Plan | None:
        try:
            plan = schemes.plan(scheme, dict(options))
        except PlanningError:
            return None
        values[column] = plan.rate
        reaching[column] = sum(plan.loads.servers.values()) / plan.rate
        return plan

    own = run("repaired", paper.scheme, {})
    if own is not None and own.bound is not None:
        values["LP bound"] = own.bound
    run("x4", paper.scheme, {"trees_per_server": 4})
    optimal = run("optimal", "optimal", {})
    if optimal is not None and optimal.bound is not None:
        values["optimal <="] = optimal.bound
    for column, variant in paper.variants.items():
        limited = SchemeComparison(setup.fabric, setup.job, seed=seed) if variant.limits_fan_in else unlimited
        run(column, variant.scheme, variant.options, limited)
    return asdict(_rounding(unlimited.task, seed, values, reaching))


def _rounding(task: Task, seed: int, values: Values, reaching: Values) -> _Draw:
    """Adds what the published rounding gives by itself: its rate, its overload, and the rate that remains if all
    streams are scaled down and nothing else is repaired."""
    network, servers = task.network, task.job.parameter_servers
    model, solution = task.relaxed(servers, [1 / len(servers)] * len(servers))
    drafts = round_once(network, model, solution, np.random.default_rng(seed))
    over = total_load(network, drafts) * solution.rate / np.maximum(network.capacity, 1e-12)
    values["rounded"] = solution.rate * network.unit
    values["scaled"] = feasible_rate(network, drafts) * network.unit
    return _Draw(
        values,
        reaching,
        float(over[[network.server_id[s] for s in servers]].max()),
        float(over[[network.switch_id[v] for v in network.aggregators()]].max(initial=0.0)),
    )


# ---- tables and plots -----------------------------------------------------------------------------


def figure_table(paper: RatePaper, points: Sequence[RatePoint]) -> Table:
    """Our values of one figure, and the published ones in brackets."""
    figure = points[0].figure

    def ours(column: str) -> Column[RatePoint]:
        return Column(column, lambda p: p.values.get(column), ".4g")

    def published(scheme: str) -> Column[RatePoint]:
        def cell(point: RatePoint) -> str:
            value, theirs = point.values.get(scheme), point.published(scheme)
            shown = ("-" if value is None else f"{value:.4g}") if scheme in paper.baselines else ""
            return shown if theirs is None else rf"{shown} \[{theirs:g}]".strip()

        return Column(scheme if scheme in paper.baselines else rf"\[{scheme}]", cell)

    extra = tuple(column for column in paper.variants if column not in paper.baselines)
    columns = [
        Column[RatePoint](figure.axis, lambda p: p.x),
        *(ours(column) for column in (*COMMON_COLUMNS, *extra)),
        Column[RatePoint]("over: PS, switch", lambda p: f"x{p.server_over:.1f}, x{p.switch_over:.1f}"),
        *(published(scheme) for scheme in (paper.scheme, *paper.further_curves, *paper.baselines)),
    ]
    if figure.name == "8a":
        columns.append(Column("reduction", _reduction))
    caption = None
    if figure.name == "12b" and paper is INART:
        means = ", ".join(f"{s} {v}" for s, v in HETEROGENEOUS_MEANS.items())
        caption = f"published only as means over 2 ... 6 servers: {means}"
    title = f"{paper.label}, Fig. {figure.name}: {figure.title} ({paper.unit}; \\[published])"
    return table(title, columns, points, caption)


def _reduction(point: RatePoint) -> str:
    return rf"{1 - point.values['atp'] / point.values['repaired']:.0%} \[{REDUCTIONS[point.x]}%]"


def _draw_figure(canvas: Canvas, paper: RatePaper, points: Sequence[RatePoint]) -> None:
    """Our values as lines, the published ones dashed."""
    figure, axes = points[0].figure, canvas.subplots()
    x = [p.x for p in points]
    for column in ("LP bound", "x4", "repaired", *paper.baselines):
        scheme = paper.scheme if column == "repaired" else column
        y = [p.values.get(column, float("nan")) for p in points]
        label = LABELS.get(column, f"{scheme}, ours")
        axes.plot(x, y, color=COLORS.get(scheme, TEXT), marker=MARKERS.get(scheme, "o"), ms=4, label=label)
    for scheme, curve in figure.curves.items():
        y = [float("nan") if v is None else v for v in curve]
        axes.plot(figure.x, y, "x--", color=COLORS.get(scheme, TEXT), label=f"{scheme}, published")
    axes.set(xlabel=figure.axis, ylabel=f"sending rate, {paper.unit}")
    if paper.is_logarithmic:
        log_y(axes)
    axes.set_title(f"{paper.label}, Fig. {figure.name}: {figure.title}")
    legend(canvas, [axes])
