# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Planning time of every scheme, on the papers' fabrics and a fat-tree of 1,024 servers, in one process and thread.

python -m netfold.evaluation.speed.plan_time [--runs 5]
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import typer
from rich.table import Table

from netfold.controller.planning.plan import JobSpec, PlanningError
from netfold.controller.planning.planner import make_plan
from netfold.evaluation.core.command import run_command
from netfold.evaluation.core.experiment import Column, Experiment, Notify, Row, table
from netfold.topologies.fabric import Fabric, SwitchRole
from netfold.topologies.generators import (
    fat_tree,
    grid_leaf_spine,
    inart_fat_tree,
    with_capacities,
    with_parameter_servers,
)

SCHEMES = (
    "none", "lbmm", "atp", "switchml", "grid", "inart", "panama", "hierarchical", "packing", "optimal", "auto",
)  # fmt: skip


@dataclass(frozen=True)
class PlanCase:
    """`goal_s` is the project's target."""

    name: str
    fabric: Fabric
    job: JobSpec
    goal_s: float


@dataclass(frozen=True)
class PlanTimeRow(Row):
    """Median and maximum of several runs of `make_plan`, validation included, on a fabric of which nothing is computed
    yet: routes, distances and models are part of the time. `cpu_s`: median of the processor time."""

    case: str
    scheme: str
    median_s: float
    max_s: float
    cpu_s: float
    goal_s: float
    rate: float | None
    note: str = ""

    @property
    def goal_over_median(self) -> float:
        return self.goal_s / self.median_s


COLUMNS = (
    Column[PlanTimeRow]("scheme", lambda r: r.scheme, is_text=True),
    Column[PlanTimeRow]("median s", lambda r: r.median_s, ".3f"),
    Column[PlanTimeRow]("max s", lambda r: r.max_s, ".3f"),
    Column[PlanTimeRow]("cpu s", lambda r: r.cpu_s, ".3f"),
    Column[PlanTimeRow]("goal / median", lambda r: r.goal_over_median, ".1f"),
    Column[PlanTimeRow]("rate", lambda r: r.rate, ".4g"),
    Column[PlanTimeRow]("", lambda r: r.note, is_text=True),
)


@dataclass(frozen=True)
class PlanTime(Experiment[PlanTimeRow]):
    """Planning time of every scheme."""

    name = "bench-plan-time"
    runs: Annotated[int, typer.Option(min=1, help="Runs of each scheme.")] = 3
    seed: Annotated[int, typer.Option(help="Seed of workers and capacities.")] = 1

    def rows(self, notify: Notify) -> Iterator[PlanTimeRow]:
        for case in cases(self.seed):
            notify(case.name)
            for scheme in SCHEMES:
                yield measure(case, scheme, self.runs)

    def tables(self, rows: Sequence[PlanTimeRow]) -> Iterable[Table]:
        for case, goal in dict.fromkeys((r.case, r.goal_s) for r in rows):
            yield table(f"{case} (goal {goal:g} s)", COLUMNS, [r for r in rows if r.case == case])


def cases(seed: int) -> list[PlanCase]:
    """GRID's leaf-spine with 250 workers, InArt's fat-tree with 50 and 4 servers, one job of 64 and one of 1,020 on a
    16-ary fat-tree."""
    rng = random.Random(seed)
    grid = grid_leaf_spine()
    leaves = [s.name for s in grid.switches if s.role is SwitchRole.LEAF]
    capacities = dict.fromkeys((s.name for s in grid.switches), 0.0)
    grid = with_capacities(grid, capacities | {v: rng.uniform(100, 3200) for v in leaves})
    large = fat_tree(16, capacity=800.0)
    return [
        _case("GRID leaf-spine 30/30/500, 250 workers", grid, 250, 1, 100.0, 1.0, rng),
        _case("InArt fat-tree 9/18/18/54, 50 workers", inart_fat_tree(), 50, 4, 20.0, 2.0, rng),
        _case("fat-tree 1,024 servers, 64 workers", large, 64, 4, None, 5.0, rng),
        _case("fat-tree 1,024 servers, 1,020 workers", large, 1020, 4, None, 5.0, rng),
    ]


def _case(
    name: str,
    fabric: Fabric,
    workers: int,
    servers: int,
    ingress: float | None,
    goal_s: float,
    rng: random.Random,
) -> PlanCase:
    hosts = rng.sample([h.name for h in fabric.hosts], workers + servers)
    job = JobSpec("bench", tuple(hosts[servers:]), tuple(hosts[:servers]))
    return PlanCase(name, with_parameter_servers(fabric, hosts[:servers], ingress), job, goal_s)


def measure(case: PlanCase, scheme: str, runs: int) -> PlanTimeRow:
    times, cpu, rate, note = [], [], None, ""
    for _ in range(runs):
        fabric = replace(case.fabric)  # a copy: its graph and ports are not computed yet
        started, cpu_started = time.perf_counter(), time.process_time()
        try:
            rate = make_plan(fabric, replace(case.job, scheme=scheme)).rate
        except PlanningError as error:
            note = str(error)
        times.append(time.perf_counter() - started)
        cpu.append(time.process_time() - cpu_started)
    return PlanTimeRow(
        case.name,
        scheme,
        statistics.median(times),
        max(times),
        statistics.median(cpu),
        case.goal_s,
        rate,
        note,
    )


if __name__ == "__main__":
    run_command(PlanTime)
