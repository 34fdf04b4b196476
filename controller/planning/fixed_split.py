# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Plans a running job by R-InArt (WWW 2024, Alg. 2): nodes and routes are planned again on the residual network, while
the split of the gradient stays.

Trees of parameter servers keep their servers: the relaxation at these shares is rounded, as published, and repaired at
these shares. Trees that are rooted at switches keep only their shares: one after the other, the largest first, each
gets the root at which the rate of the job is best.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from netfold.controller.planning.grid import repair, round_once
from netfold.controller.planning.layout import SLACK, Draft, feasible_rate, finish, route_results
from netfold.controller.planning.plan import Plan, PlanningError, Tree
from netfold.controller.planning.reduction import mirror
from netfold.controller.planning.scheme import Task
from netfold.controller.planning.search import TRIALS, improve

NAME = "r-inart"
ROUNDINGS = 2
"""Maximum roundings, because the job waits for the plan."""

ROOTS = 16
"""Number of switches that are tried as the root of a tree, the roomiest first."""


def plan_fixed_split(task: Task, trees: Sequence[Tree]) -> Plan:
    """Plan the job of `trees` at their shares. Raises PlanningError."""
    served = [t for t in trees if t.root in task.network.server_id]
    if served and len(served) < len(trees):
        raise PlanningError(
            f"job '{task.job.name}': fixed-split needs all roots at servers, or all at switches"
        )
    drafts = _at_servers(task, trees) if served else _at_switches(task, [t.share for t in trees])
    return finish(task.network, task.job, drafts, task.report(NAME, seeded=True))


def _at_servers(task: Task, trees: Sequence[Tree]) -> list[Draft]:
    network, workers = task.network, task.workers
    servers = tuple(dict.fromkeys(t.root for t in trees))
    missing = [s for s in servers if s not in task.servers()]
    if missing:
        raise PlanningError(f"job '{task.job.name}': server {missing[0]} has no ingress left")
    shares = tuple(sum(t.share for t in trees if t.root == s) for s in servers)
    copies = max(1, len(trees) // len(servers))
    model, solution = task.relaxed(servers, shares)
    nodes, rng = network.aggregators(), np.random.default_rng(task.seed)
    best: list[Draft] = []
    rate = 0.0
    for _ in range(min(ROUNDINGS, task.number("roundings", ROUNDINGS, 1, 10_000))):
        rounded = [d for _ in range(copies) for d in round_once(network, model, solution, rng)]
        for draft in rounded:
            draft.share /= copies
        drafts = repair(network, workers, nodes, rounded, solution.rate, TRIALS // 8).drafts
        for draft, as_given in zip(drafts, rounded, strict=True):
            draft.share = as_given.share  # the repair may have found better ones
        reached = improve(network, drafts, workers, nodes, trials=TRIALS // 8, fit=False)
        if reached > rate:
            best, rate = drafts, reached
        if rate >= solution.rate * (1 - SLACK):
            break
    if not best:
        raise PlanningError(f"job '{task.job.name}': no rounding at the shares that it has leaves any rate")
    return best


def _at_switches(task: Task, shares: Sequence[float]) -> list[Draft]:
    network, workers = task.network, task.workers
    able = set(network.aggregators())
    roomiest = sorted(able, key=lambda v: (-network.capacity[network.switch_id[v]], network.order[v]))[:ROOTS]
    placed: list[Draft] = []
    for share in sorted(shares, reverse=True):
        found: list[tuple[float, list[Draft]]] = []
        for root in roomiest:
            drafts = [*(d.copy() for d in placed), Draft(root, share)]
            try:
                route_results(network, drafts, workers, both_ways=True)
                for draft in drafts:
                    draft.parent, draft.route = {}, {}
                    mirror(network, draft, workers, able)
            except PlanningError:
                continue
            found.append((feasible_rate(network, drafts), drafts))
        if not found:
            raise PlanningError(
                f"job '{task.job.name}': no switch reaches all its workers over links with capacity"
            )
        placed = max(found, key=lambda pair: pair[0])[1]
    return placed
