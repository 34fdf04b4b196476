# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Our values for the papers' figures: every scheme on every drawn instance, means over the draws."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from controller.planning.formulation import Model
from controller.planning.layout import feasible_rate, total_load
from controller.planning.network import Limits, Network
from controller.planning.plan import Plan, PlanningError
from controller.planning.planner import make_plan
from controller.planning.reproduction.published import GRID_FIGURES, INART_FIGURES, Figure, Paper
from controller.planning.reproduction.setups import Setup, draw
from controller.planning.rounding import round_once

NO_FAN_IN_LIMIT = Limits(fan_in=100_000)
MILP_SECONDS = 5.0

FIGURES = {Paper.GRID: GRID_FIGURES, Paper.INART: INART_FIGURES}
Values = dict[str, float]


@dataclass(frozen=True)
class Point:
    """Our means at one x of a figure. `values` are rates by column; `server_over` and `switch_over` say
    how many times its capacity the worst resource was asked for after rounding, before repair (`rounded`
    keeps the LP's rate). A column that no draw has a value for is left out."""

    figure: Figure
    x: int
    values: Values
    server_over: float
    switch_over: float
    draws: int


def reproduce(
    paper: Paper, draws: int, seed: int, progress: Callable[[int, int], None] | None = None
) -> Iterator[Point]:
    """All points of a paper's figures, one by one; `progress` is told how many of all draws are done."""
    points = [(figure, x) for figure in FIGURES[paper] for x in figure.x]
    done = 0
    for figure, x in points:
        found = []
        for number in range(draws):
            found.append(_measure(paper, draw(paper, figure, x, seed + number), seed + number))
            done += 1
            if progress is not None:
                progress(done, len(points) * draws)
        yield _mean(figure, x, found)


@dataclass(frozen=True)
class _Draw:
    values: Values
    server_over: float
    switch_over: float


def _mean(figure: Figure, x: int, draws: list[_Draw]) -> Point:
    columns = dict.fromkeys(name for d in draws for name in d.values)
    values = {name: fmean([d.values[name] for d in draws if name in d.values]) for name in columns}
    return Point(
        figure,
        x,
        values,
        fmean([d.server_over for d in draws]),
        fmean([d.switch_over for d in draws]),
        len(draws),
    )


def _measure(paper: Paper, setup: Setup, seed: int) -> _Draw:
    values: Values = {}

    def run(
        column: str, scheme: str, limits: Limits | None = NO_FAN_IN_LIMIT, **options: str | float
    ) -> Plan | None:
        job = replace(setup.job, scheme=scheme, options=options)
        try:
            plan = make_plan(setup.fabric, job, seed=seed, limits=limits)
        except PlanningError:
            return None
        values[column] = plan.rate
        return plan

    own = run("repaired", "grid" if paper is Paper.GRID else "inart")
    if own is not None and own.bound is not None:
        values["LP bound"] = own.bound
    run("x4", "grid" if paper is Paper.GRID else "inart", trees_per_server=4)
    optimal = run("optimal", "optimal", time_limit=MILP_SECONDS)
    if optimal is not None and optimal.bound is not None:
        values["optimal <="] = optimal.bound
    if paper is Paper.GRID:
        run("installable", "grid", None)
        run("atp", "atp", atp_variant="split")
        run("switchml", "switchml", switchml_variant="server")
        run("none", "none")
    else:
        run("r-inart", "grid")
        run("atp", "atp", atp_variant="whole")
        run("lbmm", "lbmm")
    return _rounding(setup, seed, values)


def _rounding(setup: Setup, seed: int, values: Values) -> _Draw:
    """Add what the published rounding gives by itself: its rate, by how much it overruns, and the rate
    that is left when all is scaled down and nothing else repaired."""
    network = Network(setup.fabric, limits=NO_FAN_IN_LIMIT)
    job, servers = setup.job, setup.job.parameter_servers
    model = Model(
        network, job.workers, servers, network.aggregators(), shares=[1 / len(servers)] * len(servers)
    )
    solution = model.solve()
    drafts = round_once(network, model, solution, np.random.default_rng(seed))
    over = total_load(network, drafts) * solution.rate / np.maximum(network.capacity, 1e-12)
    values["rounded"] = solution.rate
    values["scaled"] = feasible_rate(network, drafts)
    return _Draw(
        values,
        float(over[[network.server_id[s] for s in servers]].max()),
        float(over[[network.switch_id[v] for v in network.aggregators()]].max(initial=0.0)),
    )
