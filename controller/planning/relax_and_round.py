# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Plans by the common steps of `grid` and `inart`: relax, round several times, repair each, keep the best."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from netfold.controller.planning.anneal import SMALL_JOB, anneal
from netfold.controller.planning.layout import SLACK, finish
from netfold.controller.planning.models import FreeShares
from netfold.controller.planning.plan import Plan
from netfold.controller.planning.residual_network import ResidualNetwork
from netfold.controller.planning.rounding import Repaired, repair, round_once
from netfold.controller.planning.scheme import Rounded, Task
from netfold.controller.planning.search import TRIALS, improve

ROUNDINGS = 8
LEAST_TRIALS = 2_000
WALKS = 2


def relax_and_round(task: Task, algorithm: str, servers: Sequence[str], shares: Sequence[float]) -> Plan:
    """Plan by randomized rounding of the relaxation at the given shares. The option `trees_per_server` splits the part
    of each server over that number of trees, which have nodes of their own."""
    roundings = task.number("roundings", ROUNDINGS, 1, 10_000)
    copies = task.number("trees_per_server", 1, 1, 16)
    key = (tuple(servers), tuple(shares)), roundings, copies
    if key not in task.roundings:
        task.roundings[key] = _round(task, servers, shares, roundings, copies)
    found = task.roundings[key]
    report = task.report(algorithm, found.bound, found.relaxed_rate, seeded=True)
    return finish(task.network, task.job, [d.copy() for d in found.drafts], report)


def _round(
    task: Task, servers: Sequence[str], shares: Sequence[float], roundings: int, copies: int
) -> Rounded:
    network, workers = task.network, task.workers
    nodes = network.aggregators()
    model, solution = task.relaxed(servers, shares)
    bound = upper_bound(task, servers, nodes)
    rng = np.random.default_rng(task.seed)
    best: Repaired | None = None
    for _ in range(roundings):
        rounded = [d for _ in range(copies) for d in round_once(network, model, solution, rng)]
        for draft in rounded:
            draft.share /= copies
        found = repair(network, workers, nodes, rounded, bound, max(TRIALS // roundings, LEAST_TRIALS))
        if best is None or found.rate > best.rate * (1 + SLACK):
            best = found
        if best.final:
            break
    assert best is not None
    if copies == 1 and len(workers) * len(servers) <= SMALL_JOB and best.rate < bound * (1 - SLACK):
        best = _annealed(task, best, nodes, bound)
    return Rounded(tuple(best.drafts), solution.rate, bound)


def _annealed(task: Task, best: Repaired, nodes: Sequence[str], bound: float) -> Repaired:
    network, workers = task.network, task.workers
    for walk in range(WALKS):
        drafts = anneal(network, best.drafts, workers, nodes, target=bound, seed=task.seed + walk)
        rate = improve(network, drafts, workers, nodes, target=bound)
        if rate > best.rate:
            best = Repaired(rate, drafts, final=False)
        if rate >= bound * (1 - SLACK):
            break
    return best


def upper_bound(task: Task, servers: Sequence[str], nodes: Sequence[str]) -> float:
    """An upper bound over all shares and all routes: the relaxation with free shares where it holds every
    simple path and every node, the bound with free routing elsewhere."""
    free = free_routing_bound(task.network, task.workers, servers, nodes)
    if not task.network.all_simple_paths:
        return free
    return min(free, FreeShares(task.network, task.workers, servers, nodes).solve().bound)


def free_routing_bound(
    network: ResidualNetwork, workers: Sequence[str], servers: Sequence[str], nodes: Sequence[str]
) -> float:
    """An upper bound of the rate that holds for all routes: links inside the fabric are left out. Then all
    workers are alike and the relaxation has a closed form in the sums of switch capacity C and server
    ingress B: f = B / k while n f <= C, else c + (B - k c) / n with c = C / n; k = max(1, n / fan-in) is
    the number of streams that n members of nodes need at the least."""
    n = len(workers)
    k = max(1.0, n / max((network.max_children(v) for v in nodes), default=n))
    each = float(sum(network.capacity[network.switch_id[v]] for v in nodes)) / n
    ingress = float(sum(network.capacity[network.server_id[s]] for s in servers))
    rate = ingress / k
    if rate > each:
        rate = each + max(0.0, ingress - k * each) / n if k < n else ingress / n
    return min(rate, network.access_limit(tuple(workers)))
