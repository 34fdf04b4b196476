# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`auto`: the best of the schemes that suit a job; of (nearly) equal ones the simplest, in the order
listed here."""

from __future__ import annotations

from dataclasses import replace

from netfold.controller.planning.atp import plan_atp
from netfold.controller.planning.grid import plan_grid
from netfold.controller.planning.hierarchical import plan_hierarchical
from netfold.controller.planning.inart import plan_inart
from netfold.controller.planning.lbmm import plan_lbmm
from netfold.controller.planning.none import plan_none
from netfold.controller.planning.panama import plan_panama
from netfold.controller.planning.plan import Plan, PlanningError
from netfold.controller.planning.scheme import Scheme, Task
from netfold.controller.planning.switchml import plan_switchml


def plan_inart_split(task: Task) -> Plan:
    """`inart` with several trees for each server: nearer to the bound, for more slots and tree numbers."""
    return plan_inart(task.with_options(trees_per_server=SPLIT))


SPLIT = 4
CLEARLY_BETTER, MUCH_BETTER = 1.005, 1.1
ROOTED_AT_SWITCHES: tuple[Scheme, ...] = (plan_switchml, plan_panama)
ONE_SERVER: tuple[Scheme, ...] = (plan_none, plan_grid, plan_atp)
SEVERAL_SERVERS: tuple[Scheme, ...] = (plan_none, plan_lbmm, plan_inart, plan_atp)


def plan_auto(task: Task) -> Plan:
    """The plan names the scheme that won. Its bound is that scheme's own."""
    count = len(task.job.parameter_servers)
    with_servers = () if count == 0 else ONE_SERVER if count == 1 else SEVERAL_SERVERS
    schemes = [(s, CLEARLY_BETTER) for s in (*ROOTED_AT_SWITCHES, *with_servers)]
    schemes.append((plan_hierarchical, CLEARLY_BETTER))
    if with_servers and "trees_per_server" not in task.job.options:
        schemes.append((plan_inart_split, MUCH_BETTER))
    best: Plan | None = None
    reasons = []
    top = task.network.access_limit(task.workers) * (1 - 1e-6)
    for scheme, factor in schemes:
        if best is not None and best.rate >= top:
            break
        try:
            plan = scheme(task)
        except PlanningError as error:
            reasons.append(str(error))
            continue
        if best is None or plan.rate > best.rate * factor:
            best = plan
    if best is None:
        raise PlanningError(
            f"job '{task.job.name}': no scheme has a plan: " + "; ".join(dict.fromkeys(reasons))
        )
    return replace(best, solve_s=task.report("auto").solve_s)
