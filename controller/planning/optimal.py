# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Plans the exact optimum of GRIA and InArt with link limits: each worker's part for a server is aggregated at most
once.

With several servers and few workers the split is a variable of the MILP too; otherwise the MILP is solved at the split
of the best rounded plan. It searches only for better plans than that one, so its answer is never worse. The search is
limited by a number of steps of the solver, which every run repeats (`Effort`). The option `time_limit` (seconds,
default 60) is a safety net: if it ends the search, the rounded plan is the result, whatever was found. The plan's
`stopped` names the limit that ended the search. If the MILP has more than EXACT_COLUMNS integer unknowns, it is not
tried and the rounded plan is the result, with its bound. The bound is the MILP's if it held every simple path, every
node and all splits; otherwise it is one that holds for all of them.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from netfold.controller.planning.formulation import FixedShares, Formulation, FreeShares, NoSolutionError
from netfold.controller.planning.grid import drafts_of, upper_bound
from netfold.controller.planning.inart import plan_inart
from netfold.controller.planning.layout import feasible_rate, finish, fit_shares
from netfold.controller.planning.packing import packing_bound
from netfold.controller.planning.plan import Plan, PlanningError
from netfold.controller.planning.scheme import Task
from netfold.controller.planning.search import improve
from netfold.controller.planning.sparse import Effort, Stopped

FREE_SPLIT_COLUMNS = 400
EXACT_COLUMNS = 4_000


def plan_optimal(task: Task) -> Plan:
    effort = Effort(seconds=task.real("time_limit", Effort.seconds))
    start = plan_inart(task)
    servers, nodes = task.servers(), task.network.aggregators()
    bound = upper_bound(task, servers, nodes)
    bound = min(bound, packing_bound(task.network, task.workers, servers, nodes))
    best, stopped = start, None
    if start.rate < bound * (1 - 1e-6):
        best, bound, stopped = _exact(task, start, bound, effort)
    report = task.report("optimal", bound)
    return replace(
        best,
        algorithm="optimal",
        bound=max(bound, best.rate),
        rounded_rate=None,
        solve_s=report.solve_s,
        seed=start.seed,
        stopped=stopped,
    )


def _exact(task: Task, start: Plan, bound: float, effort: Effort) -> tuple[Plan, float, Stopped | None]:
    """The better of the MILP's plan and `start`, the tighter bound, and the limit that ended the search before its
    proof."""
    network, nodes = task.network, task.network.aggregators()
    model = _model(task, start)
    if model is None:
        return start, bound, None
    every_split = isinstance(model, FreeShares) or len(model.servers) == 1
    try:
        solution = model.solve(effort)
    except NoSolutionError as none:
        if none.stopped is None and every_split and model.complete:
            bound = start.rate  # nothing is better
        return start, bound, none.stopped
    if solution.stopped is Stopped.TIME:
        return start, bound, solution.stopped
    if solution.complete and every_split:
        bound = min(bound, solution.bound)
    drafts = drafts_of(network, model, solution)
    if len(drafts) > 1:
        fit_shares(network, drafts)
    solved = [d.copy() for d in drafts]
    if improve(network, drafts, task.workers, nodes) < feasible_rate(network, solved):
        drafts = solved
    try:
        plan = finish(network, task.job, drafts, task.report("optimal", bound))
    except PlanningError:  # the wiring of a chip forbids these trees
        return start, bound, solution.stopped
    return max(start, plan, key=lambda p: p.rate), bound, solution.stopped


def _model(task: Task, start: Plan) -> Formulation | None:
    network, workers, servers = task.network, task.workers, task.servers()
    nodes = network.aggregators()
    if len(servers) > 1 and len(servers) * len(workers) * (len(nodes) + 1) <= FREE_SPLIT_COLUMNS:
        free = FreeShares(network, workers, servers, nodes, whole=True)
        if free.size <= FREE_SPLIT_COLUMNS * 4:
            return free
    shares: dict[str, float] = defaultdict(float)
    for tree in start.trees:
        shares[tree.root] += tree.share
    used = [s for s in servers if shares[s] > 0]
    parts = [shares[s] for s in used]
    fixed = FixedShares(network, workers, used, nodes, parts, whole=True, above=start.rate)
    return fixed if fixed.size <= EXACT_COLUMNS else None
