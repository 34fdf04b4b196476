# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Plans by PANAMA (MLSys 2021): several trees rooted at different top switches, with chunks distributed round robin, so
equal shares; if the trees cannot carry equal parts, the shares that give the best rate. The option `trees` of the job
is their number (default 4)."""

from __future__ import annotations

from collections import Counter

from netfold.controller.planning.plan import Plan, PlanningError
from netfold.controller.planning.reduction import plan_rooted
from netfold.controller.planning.scheme import Task
from netfold.topologies.fabric import SwitchRole

TREES = 4


def plan_panama(task: Task) -> Plan:
    tops = _tops(task)
    count = min(task.number("trees", TREES, 1, 64), len(tops))
    start = task.seed % len(tops)
    step = max(1, len(tops) // count)
    spread = [tops[(start + i * step) % len(tops)] for i in range(count)]
    others = [v for v in tops if v not in spread]
    racks = Counter(task.network.attachment(w) for w in task.workers)
    room = {v: _room(task, v, racks) for v in tops}
    roots = sorted((*spread, *others), key=lambda v: -room[v])[:count]
    return plan_rooted(task, "panama", roots, seeded=True)


def _room(task: Task, switch: str, racks: Counter[str]) -> float:
    """The maximum rate of a tree that reaches this root over all its links: they and the workers of its own rack share
    its capacity, and the fullest resource is the limit."""
    network = task.network
    neighbors = network.neighbors[switch]
    own = float(network.capacity[network.switch_id[switch]])
    links = (
        float(network.capacity[network.link_id[p]]) for v in neighbors for p in ((switch, v), (v, switch))
    )
    return min([own / max(1, len(neighbors) + racks[switch]), *links])


def _tops(task: Task) -> list[str]:
    """The candidate roots: core switches, else spines, else all that aggregate."""
    fabric, network = task.network.fabric, task.network
    able = network.aggregators()
    for role in (SwitchRole.CORE, SwitchRole.SPINE):
        tops = [v for v in able if fabric.switch(v).role is role]
        if tops:
            return tops
    if not able:
        raise PlanningError(f"job '{task.job.name}' by panama: no switch has aggregation capacity left")
    return able
