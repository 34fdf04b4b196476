# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Compares a planner of your own with the published ones: it tries every switch as the root, and takes the best.

Run `python examples/own_planner.py [FABRIC]`.
"""

import sys
from collections.abc import Iterator

from netfold.controller.planning.plan import JobSpec, Plan, PlanningError
from netfold.controller.planning.planner import make_plan
from netfold.controller.planning.reduction import plan_rooted
from netfold.controller.planning.scheme import Task
from netfold.controller.planning.scheme_registry import SCHEMES
from netfold.topologies.fabric import Fabric
from netfold.topologies.spec import load_fabric


def plan_best_root(task: Task) -> Plan:
    """One tree, rooted at the switch that gives the highest rate."""
    plans = []
    for root in task.network.aggregators():
        try:
            plans.append(plan_rooted(task, "best-root", [root]))
        except PlanningError:
            continue  # this switch cannot be the root
    if not plans:
        raise PlanningError(f"job '{task.job.name}' by best-root: no switch can be the root")
    return max(plans, key=lambda plan: plan.rate)


def plans(fabric: Fabric) -> Iterator[Plan]:
    """The plans of a job of all workers."""
    SCHEMES["best-root"] = plan_best_root  # in a package: entry point netfold.planners
    workers = tuple(host.name for host in fabric.hosts if not host.parameter_server)
    servers = tuple(host.name for host in fabric.hosts if host.parameter_server)
    for scheme in ("best-root", "switchml", "panama", "atp", "none"):
        yield make_plan(fabric, JobSpec("mine", workers, servers, scheme=scheme))


def main() -> None:
    fabric = load_fabric(sys.argv[1] if len(sys.argv) > 1 else "leaf-spine-4x2")
    for plan in plans(fabric):
        roots = ", ".join(tree.root for tree in plan.trees)
        print(f"{plan.algorithm:>10}: {plan.rate:6.1f} {plan.unit}, roots {roots}")


if __name__ == "__main__":
    main()
