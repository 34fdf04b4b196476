# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""How long planning takes: the papers' fabrics and a 1,024-server fat-tree, every scheme, one process, one thread.

    python -m benchmarks.plan_time [--runs 5] [--json]

Each line is the median of several runs of `make_plan`, validation included, on a fabric that is built but of which
nothing is computed yet (routes, distances and models are part of the time). `cpu s` is the process's own time, which
other load on the machine does not stretch. `goal` is the time the project promises.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from dataclasses import dataclass, replace

from netfold.controller.planning.plan import JobSpec, PlanningError
from netfold.controller.planning.planner import make_plan
from netfold.topologies.fabric import Fabric, SwitchRole
from netfold.topologies.generators import (
    fat_tree,
    grid_leaf_spine,
    inart_fat_tree,
    with_capacities,
    with_parameter_servers,
)

SCHEMES = ("none", "lbmm", "atp", "switchml", "grid", "inart", "panama", "hierarchical", "optimal", "auto")


@dataclass(frozen=True)
class Case:
    name: str
    fabric: Fabric
    job: JobSpec
    goal_s: float


@dataclass(frozen=True)
class Line:
    case: str
    scheme: str
    median_s: float
    worst_s: float
    cpu_s: float
    goal_s: float
    rate: float | None
    note: str = ""


def cases(seed: int) -> list[Case]:
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
) -> Case:
    hosts = rng.sample([h.name for h in fabric.hosts], workers + servers)
    job = JobSpec("bench", tuple(hosts[servers:]), tuple(hosts[:servers]))
    return Case(name, with_parameter_servers(fabric, hosts[:servers], ingress), job, goal_s)


def measure(case: Case, scheme: str, runs: int) -> Line:
    times, cpu, rate, note = [], [], None, ""
    for _ in range(runs):
        fabric = replace(case.fabric)  # a copy: its graph and ports are not computed yet
        began, cpu_began = time.perf_counter(), time.process_time()
        try:
            rate = make_plan(fabric, replace(case.job, scheme=scheme)).rate
        except PlanningError as error:
            note = str(error)
        times.append(time.perf_counter() - began)
        cpu.append(time.process_time() - cpu_began)
    return Line(
        case.name,
        scheme,
        statistics.median(times),
        max(times),
        statistics.median(cpu),
        case.goal_s,
        rate,
        note,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    lines = []
    for case in cases(arguments.seed):
        if not arguments.json:
            print(f"# {case.name} (goal {case.goal_s:g} s)")
            print(
                f"# {'scheme':<10} {'median s':>9} {'worst s':>9} {'cpu s':>7} {'goal/median':>12} {'rate':>10}"
            )
        for scheme in SCHEMES:
            line = measure(case, scheme, arguments.runs)
            lines.append(line)
            if not arguments.json:
                rate = "-" if line.rate is None else f"{line.rate:.4g}"
                factor = f"{line.goal_s / line.median_s:.1f}x"
                times = f"{line.median_s:>9.3f} {line.worst_s:>9.3f} {line.cpu_s:>7.3f}"
                print(f"  {scheme:<10} {times} {factor:>12} {rate:>10}  {line.note}".rstrip(), flush=True)
    if arguments.json:
        print(json.dumps([line.__dict__ for line in lines], indent=2))


if __name__ == "__main__":
    main()
