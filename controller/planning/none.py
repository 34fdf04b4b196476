# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Plans without aggregation (Geryon): every worker sends straight to the one parameter server, over balanced routes."""

from __future__ import annotations

from collections.abc import Sequence

from netfold.controller.planning.draft_editor import DraftEditor
from netfold.controller.planning.grid import upper_bound
from netfold.controller.planning.layout import Draft, finish
from netfold.controller.planning.plan import Plan
from netfold.controller.planning.scheme import Task
from netfold.controller.planning.search import improve


def plan_none(task: Task) -> Plan:
    """Plan one tree, rooted at the server that gives the best rate; of equals, the first one named."""
    plans = [plan_direct(task, "none", [s], [1.0]) for s in task.servers()]
    return max(plans, key=lambda p: p.rate)


def plan_direct(task: Task, algorithm: str, servers: Sequence[str], shares: Sequence[float]) -> Plan:
    """Plan one tree per server in which all nodes pass through."""
    network, workers = task.network, task.workers
    drafts = [Draft(s, share) for s, share in zip(servers, shares, strict=True)]
    editor = DraftEditor(network, drafts, ())
    for worker in workers:
        for t, server in enumerate(servers):
            editor.place(t, worker, server)
    improve(network, drafts, workers, (), fit=False)
    return finish(network, task.job, drafts, task.report(algorithm, upper_bound(task, servers, ())))
