# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A planner of your own: one tree, whose leaves add up their racks."""

from __future__ import annotations

from netfold.controller.planning.draft_editor import DraftEditor
from netfold.controller.planning.layout import Draft, finish, route_results
from netfold.controller.planning.plan import Plan
from netfold.controller.planning.scheme import Task


def plan_two_levels(task: Task) -> Plan:
    """One tree, at the root that gives the best rate."""
    plans = [plan_at(task, root) for root in task.network.aggregators()]
    return max(plans, key=lambda plan: plan.rate)


def plan_at(task: Task, root: str) -> Plan:
    """The tree with this root. A draft has the connections of a tree, which its editor makes."""
    network = task.network
    draft = Draft(root, 1.0)
    editor = DraftEditor(network, [draft], ())
    racks = {worker: network.attachment(worker) for worker in task.workers}
    for worker, rack in racks.items():
        editor.place(0, worker, rack)
    for rack in dict.fromkeys(racks.values()):
        if rack != root:
            editor.place(0, rack, root)
    route_results(network, [draft], task.workers)
    return finish(network, task.job, [draft], task.report("two-levels"))
