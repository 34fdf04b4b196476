# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Plans of jobs that are larger than a node takes children: rate, proven bound, trees and processor time.

python -m netfold.evaluation.speed.large_jobs [--scheme packing] [--seed 1]
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import typer
from rich.table import Table

from netfold.controller.planning.plan import JobSpec, Plan, PlanningError
from netfold.controller.planning.planner import make_plan
from netfold.evaluation.core.command import run_command
from netfold.evaluation.core.experiment import Column, Experiment, Notify, Row, table
from netfold.topologies.fabric import Fabric
from netfold.topologies.generators import fat_tree, leaf_spine


@dataclass(frozen=True)
class LargeJob:
    """`workers` drawn from all hosts of a fabric; all of them if there are no more. `goal_s`: the project's target."""

    name: str
    fabric: Fabric
    workers: int
    goal_s: float | None = None


@dataclass(frozen=True)
class LargeJobRow(Row):
    """`widest`: the most children of a switch in a tree. `cpu_s`: of `make_plan`, validation included. Rates in fabric
    units; 0 where there is no plan."""

    case: str
    workers: int
    rate: float
    bound: float
    trees: int
    nodes: int
    widest: int
    cpu_s: float
    goal_s: float | None
    note: str = ""


COLUMNS = (
    Column[LargeJobRow]("fabric", lambda r: r.case, is_text=True),
    Column[LargeJobRow]("workers", lambda r: r.workers, "d"),
    Column[LargeJobRow]("rate", lambda r: r.rate, ".4g"),
    Column[LargeJobRow]("bound", lambda r: r.bound, ".4g"),
    Column[LargeJobRow]("trees", lambda r: r.trees, "d"),
    Column[LargeJobRow]("nodes of the largest", lambda r: r.nodes, "d"),
    Column[LargeJobRow]("children, at most", lambda r: r.widest, "d"),
    Column[LargeJobRow]("cpu s", lambda r: r.cpu_s, ".2f"),
    Column[LargeJobRow]("", lambda r: r.note, is_text=True),
)


@dataclass(frozen=True)
class LargeJobs(Experiment[LargeJobRow]):
    """Plans of jobs over more racks than a node takes children."""

    name = "bench-large-jobs"
    scheme: Annotated[str, typer.Option(help="The scheme that plans.")] = "auto"
    seed: Annotated[int, typer.Option(help="Seed of the workers.")] = 1

    def rows(self, notify: Notify) -> Iterator[LargeJobRow]:
        for job in large_jobs():
            notify(f"{job.name}, {job.workers} workers")
            yield measure(job, self.scheme, self.seed)

    def tables(self, rows: Sequence[LargeJobRow]) -> Iterable[Table]:
        return [table(f"Large jobs by {self.scheme}, links of 100", COLUMNS, rows)]


def large_jobs() -> list[LargeJob]:
    """Leaf-spines as leaves x spines with 16 hosts a leaf."""
    middle, large = leaf_spine(64, 16, 16), leaf_spine(160, 40, 16)
    return [
        LargeJob("64 x 16", middle, 1024, 5.0),
        LargeJob("64 x 16, 4:1", leaf_spine(64, 16, 16, oversubscription=4.0), 1024),
        LargeJob("160 x 40", large, 64),
        LargeJob("160 x 40", large, 400),
        LargeJob("160 x 40", large, 2560, 20.0),
        LargeJob("fat-tree of k = 16", fat_tree(16), 1024),
    ]


def measure(case: LargeJob, scheme: str, seed: int) -> LargeJobRow:
    hosts = [h.name for h in case.fabric.hosts]
    chosen = random.Random(seed).sample(hosts, case.workers) if case.workers < len(hosts) else hosts
    job = JobSpec("large", tuple(chosen), scheme=scheme)
    fabric = replace(case.fabric)  # a copy: its graph and ports are not computed yet
    started = time.process_time()
    try:
        plan = make_plan(fabric, job)
    except PlanningError as error:
        seconds = time.process_time() - started
        return LargeJobRow(case.name, case.workers, 0, 0, 0, 0, 0, seconds, case.goal_s, str(error))
    seconds = time.process_time() - started
    nodes = max(len(tree.nodes) for tree in plan.trees)
    bound = plan.bound or float("inf")
    return LargeJobRow(
        case.name, case.workers, plan.rate, bound, len(plan.trees), nodes, widest(plan), seconds, case.goal_s
    )


def widest(plan: Plan) -> int:
    """The most children of a node."""
    return max(max(Counter(e.parent for e in tree.edges).values()) for tree in plan.trees)


if __name__ == "__main__":
    run_command(LargeJobs)
