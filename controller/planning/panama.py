# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""PANAMA (MLSys 2021): several trees rooted at different top switches, chunks dealt out round robin, so
equal shares. The job's option `trees` is their number (default 4)."""

from __future__ import annotations

from netfold.controller.planning.plan import Plan, PlanningError
from netfold.controller.planning.reduction import plan_rooted
from netfold.controller.planning.scheme import Task
from netfold.topologies.fabric import SwitchRole

TREES = 4


def plan_panama(task: Task) -> Plan:
    roots = _roots(task)
    count = min(task.number("trees", TREES, 1, 64), len(roots))
    start = task.seed % len(roots)
    step = max(1, len(roots) // count)
    return plan_rooted(
        task, "panama", [roots[(start + i * step) % len(roots)] for i in range(count)], seeded=True
    )


def _roots(task: Task) -> list[str]:
    """Core switches, else spines, else all that aggregate; the roomiest first among those nearest to the
    workers."""
    fabric, network = task.network.fabric, task.network
    able = network.aggregators()
    for role in (SwitchRole.CORE, SwitchRole.SPINE):
        tops = [v for v in able if fabric.switch(v).role is role]
        if tops:
            return tops
    if not able:
        raise PlanningError(f"job '{task.job.name}' by panama: no switch has aggregation capacity left")
    return able
