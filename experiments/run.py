# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Our values for the papers' figures: every scheme on every drawn instance, means over the draws."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from statistics import fmean

import numpy as np

from netfold.controller.planning.layout import feasible_rate, total_load
from netfold.controller.planning.network import Limits
from netfold.controller.planning.plan import Plan, PlanningError
from netfold.controller.planning.planner import SideBySide
from netfold.controller.planning.rounding import round_once
from netfold.controller.planning.scheme import Task
from netfold.experiments.published import GRID_FIGURES, INART_FIGURES, Figure, Paper
from netfold.experiments.setups import draw
from netfold.experiments.sweep.cache import Cache
from netfold.experiments.sweep.point import Json
from netfold.experiments.sweep.sweep import Place, Progress, sweep

NO_FAN_IN_LIMIT = Limits(fan_in=100_000)

FIGURES = {Paper.GRID: GRID_FIGURES, Paper.INART: INART_FIGURES}
Values = dict[str, float]


@dataclass(frozen=True)
class Point:
    """Our means at one x of a figure. `values` are rates by column; `server_over` and `switch_over` say
    how many times its capacity the worst resource was asked for after rounding, before repair (`rounded`
    keeps the LP's rate). `reaching` says, by scheme, how many whole gradients reach the parameter servers in
    an iteration. A column that no draw has a value for is left out."""

    figure: Figure
    x: int
    values: Values
    reaching: Values
    server_over: float
    switch_over: float
    draws: int


@dataclass(frozen=True)
class Extent:
    """How much of a paper's figures: every `stride`-th x (the first one always), so many random draws for each,
    from `seed` on."""

    draws: int = 3
    seed: int = 0
    stride: int = 1

    def points(self, paper: Paper) -> list[tuple[Figure, int]]:
        return [(figure, x) for figure in FIGURES[paper] for x in figure.x[:: self.stride]]


@dataclass(frozen=True)
class Instance:
    """One draw of one point of a figure, as sweeps take it."""

    paper: Paper
    figure: str
    x: int
    seed: int


def reproduce(
    paper: Paper,
    extent: Extent,
    place: Place,
    cache: Cache | None = None,
    progress: Progress | None = None,
) -> Iterator[Point]:
    """All points of a paper's figures, one by one; `progress` is told how many of all draws are done. Values do not
    depend on the place. Raises SweepError."""
    points = extent.points(paper)
    instances = [
        Instance(paper, figure.name, x, extent.seed + draw)
        for figure, x in points
        for draw in range(extent.draws)
    ]
    found: list[_Draw] = []
    remaining = iter(points)
    for result in sweep(measure, instances, place, cache, progress):
        assert isinstance(result, dict)
        found.append(_Draw(**result))
        if len(found) == extent.draws:
            yield _mean(*next(remaining), found)
            found = []


@dataclass(frozen=True)
class _Draw:
    values: Values
    reaching: Values
    server_over: float
    switch_over: float


def _mean(figure: Figure, x: int, draws: list[_Draw]) -> Point:
    return Point(
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
    """Rates by column, and how much rounding overran: the fields of a draw."""
    paper, seed = instance.paper, instance.seed
    figure = next(f for f in FIGURES[paper] if f.name == instance.figure)
    setup = draw(paper, figure, instance.x, seed)
    free = SideBySide(setup.fabric, setup.job, seed=seed, limits=NO_FAN_IN_LIMIT)
    values: Values = {}
    reaching: Values = {}

    def run(column: str, scheme: str, among: SideBySide = free, **options: str | float) -> Plan | None:
        try:
            plan = among.plan(scheme, options)
        except PlanningError:
            return None
        values[column] = plan.rate
        reaching[column] = sum(plan.loads.servers.values()) / plan.rate
        return plan

    own = run("repaired", "grid" if paper is Paper.GRID else "inart")
    if own is not None and own.bound is not None:
        values["LP bound"] = own.bound
    run("x4", "grid" if paper is Paper.GRID else "inart", trees_per_server=4)
    optimal = run("optimal", "optimal")
    if optimal is not None and optimal.bound is not None:
        values["optimal <="] = optimal.bound
    if paper is Paper.GRID:
        run("installable", "grid", SideBySide(setup.fabric, setup.job, seed=seed))
        run("atp", "atp", atp_variant="split")
        run("switchml", "switchml", switchml_variant="server")
        run("none", "none")
    else:
        run("r-inart", "grid")
        run("atp", "atp", atp_variant="whole")
        run("lbmm", "lbmm")
    return asdict(_rounding(free.task, seed, values, reaching))


def _rounding(task: Task, seed: int, values: Values, reaching: Values) -> _Draw:
    """Add what the published rounding gives by itself: its rate, by how much it overruns, and the rate
    that is left when all is scaled down and nothing else repaired."""
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
