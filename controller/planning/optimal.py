# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The exact optimum of GRIA and InArt with link limits: each worker's part for a server is aggregated at most
once.

With several servers and few workers the split is a variable of the MILP too; else the MILP is solved at
the split of the best rounded plan. It looks only for what is better than that plan, so its answer is never
worse, and stops after `time_limit` seconds (the job's option, default 10); where it has more than
EXACT_COLUMNS integer unknowns it is not tried and the rounded plan stands beside its bound. The bound is
the MILP's where it held every simple path, every node and all splits; else one that holds for all of them.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from netfold.controller.planning.formulation import Form, Model
from netfold.controller.planning.inart import plan_inart
from netfold.controller.planning.layout import finish
from netfold.controller.planning.packing import packing_bound
from netfold.controller.planning.plan import Plan, PlanningError
from netfold.controller.planning.relaxed import upper_bound
from netfold.controller.planning.rounding import drafts_of
from netfold.controller.planning.scheme import Task
from netfold.controller.planning.search import improve

FREE_SPLIT_COLUMNS = 400
EXACT_COLUMNS = 4_000


def plan_optimal(task: Task) -> Plan:
    time_limit = task.real("time_limit", 10.0)
    start = plan_inart(task)
    servers, nodes = task.servers(), task.network.aggregators()
    bound = upper_bound(task, servers, nodes)
    bound = min(bound, packing_bound(task.network, task.workers, servers, nodes))
    best = start
    if start.rate < bound * (1 - 1e-6):
        best, bound = _exact(task, start, bound, time_limit)
    report = task.report("optimal", bound)
    return replace(
        best,
        algorithm="optimal",
        bound=max(bound, best.rate),
        rounded_rate=None,
        solve_s=report.solve_s,
        seed=start.seed,
    )


def _exact(task: Task, start: Plan, bound: float, time_limit: float) -> tuple[Plan, float]:
    """The better of the MILP's plan and `start`, and the tighter bound."""
    network, nodes = task.network, task.network.aggregators()
    model = _model(task, start)
    if model is None:
        return start, bound
    try:
        known = None if model.shares is None else start.rate
        solution = model.solve(time_limit, known)
    except PlanningError:  # nothing better than `start` was found in time, or there is nothing better
        return start, bound
    if solution.complete and (model.shares is None or len(model.servers) == 1):
        bound = min(bound, solution.bound)
    drafts = drafts_of(network, model, solution)
    improve(network, drafts, task.workers, nodes)
    plan = finish(network, task.job, drafts, task.report("optimal", bound))
    return max(plan, start, key=lambda p: p.rate), bound


def _model(task: Task, start: Plan) -> Model | None:
    network, workers, servers = task.network, task.workers, task.servers()
    nodes = network.aggregators()
    if len(servers) > 1 and len(servers) * len(workers) * (len(nodes) + 1) <= FREE_SPLIT_COLUMNS:
        free = Model(network, workers, servers, nodes, form=Form.EXACT)
        if free.size <= FREE_SPLIT_COLUMNS * 4:
            return free
    shares: dict[str, float] = defaultdict(float)
    for tree in start.trees:
        shares[tree.root] += tree.share
    used = [s for s in servers if shares[s] > 0]
    fixed = Model(network, workers, used, nodes, shares=[shares[s] for s in used], form=Form.EXACT)
    return fixed if fixed.size <= EXACT_COLUMNS else None
