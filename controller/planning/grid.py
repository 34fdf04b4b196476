# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Plans by GRID (ToN 2023): R-GRIA, Alg. 1, with link limits added and a repair. Several parameter servers get equal
parts. InArt (inart.py) takes the same steps at other parts.

The relaxation (formulation.py) is rounded at random several times (R-GRIA Alg. 1, R-InArt Alg. 2), each result is
repaired to make it feasible, and the best is kept. Rounding keeps the relaxation's rate and may overrun capacities.
Repair finds the greatest rate at which the parts can be packed into few, large nodes, gives each worker a place there
(its rounded one if it can be kept), balances the routes and searches locally. If loads still exceed a capacity at the
end, the rate is scaled down.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from netfold.controller.planning.anneal import SMALL_JOB, anneal
from netfold.controller.planning.formulation import Formulation, FreeShares, Solution
from netfold.controller.planning.layout import SLACK, Draft, finish, result_tree_within, route_results
from netfold.controller.planning.packing import Packer, Style, placed
from netfold.controller.planning.plan import Plan, PlanningError
from netfold.controller.planning.residual_network import ResidualNetwork
from netfold.controller.planning.scheme import Rounded, Task
from netfold.controller.planning.search import TRIALS, improve

ROUNDINGS = 8
LEAST_TRIALS = 2_000
WALKS = 2

MAX_SEARCHED = 64
"""Number of workers times trees up to which the rounded drafts themselves are searched, too."""

PACKINGS = 6
STEP_DOWN = 0.25


def plan_grid(task: Task) -> Plan:
    servers = task.servers()
    return relax_and_round(task, "grid", servers, [1.0 / len(servers)] * len(servers))


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
    if not task.network.paths.has_all_simple_paths:
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


def round_once(
    network: ResidualNetwork, model: Formulation, solution: Solution, rng: np.random.Generator
) -> list[Draft]:
    """Round once: the part of each worker for each server goes whole to one node over one route, both drawn with the
    fractions of the relaxation; so do the routes of the streams of nodes."""
    drafts = []
    for s, server in enumerate(model.servers):
        draft = Draft(server, solution.shares[s])
        for g, group in enumerate(model.groups):
            choices = solution.choices[s, g]
            picks = rng.choice(len(choices), size=len(group.workers), p=[c.fraction for c in choices])
            for worker, pick in zip(group.workers, picks, strict=True):
                choice = choices[pick]
                first = network.link_id[worker, group.switch]
                draft.connect(worker, choice.parent, (first, *choice.route))
        for node in sorted(set(draft.parent.values()) - {server}):
            draft.connect(node, server, _drawn_route(network, model, solution, s, node, rng))
        drafts.append(draft)
    route_results(network, drafts, [w for g in model.groups for w in g.workers])
    return drafts


def drafts_of(network: ResidualNetwork, model: Formulation, solution: Solution) -> list[Draft]:
    """The drafts of an exact solution, in which each group's fractions are whole numbers of workers, with its result
    routes."""
    drafts = []
    for s, server in enumerate(model.servers):
        if solution.shares[s] <= SLACK:
            continue
        draft = Draft(server, solution.shares[s])
        for g, group in enumerate(model.groups):
            members = iter(group.workers)
            for choice in solution.choices[s, g]:
                for worker in islice(members, round(choice.fraction * len(group.workers))):
                    first = network.link_id[worker, group.switch]
                    draft.connect(worker, choice.parent, (first, *choice.route))
        for node in sorted(set(draft.parent.values()) - {server}):
            draft.connect(node, server, max(solution.streams[s, node], key=lambda stream: stream[1])[0])
        paths = {
            network.links[route[-1]][1]: route
            for route, _ in sorted(solution.result_routes[s], key=lambda w: w[1])
        }
        used = {
            link for route in paths.values() for link in route
        }  # a leaf's greatest part is its whole path
        draft.result_links = result_tree_within(
            network, draft, [w for group in model.groups for w in group.workers], used
        )
        drafts.append(draft)
    return drafts


def _drawn_route(
    network: ResidualNetwork,
    model: Formulation,
    solution: Solution,
    s: int,
    node: str,
    rng: np.random.Generator,
) -> tuple[int, ...]:
    streams = solution.streams.get((s, node), ())
    if not streams:
        return network.paths.routes(node, model.servers[s])[0]
    weights = np.array([w for _, w in streams])
    return streams[int(rng.choice(len(streams), p=weights / weights.sum()))][0]


@dataclass(frozen=True)
class Repaired:
    """Drafts and the rate that they reach; `final` if other roundings are not expected to be better."""

    rate: float
    drafts: list[Draft]
    final: bool


def repair(
    network: ResidualNetwork,
    workers: Sequence[str],
    nodes: Sequence[str],
    rounded: Sequence[Draft],
    ceiling: float,
    trials: int = TRIALS,
) -> Repaired:
    """Repair rounded drafts. The result is the best of: drafts packed anew near the rounded ones, at the greatest rate
    that can be packed and, if links forbid that, at lower ones; and for small jobs the rounded drafts themselves. Each
    is improved by local search."""
    small = len(workers) * len(rounded) <= MAX_SEARCHED
    preferences = [Counter(d.parent[w] for w in workers) for d in rounded]
    packers = [Packer(network, workers, nodes, style) for style in Style]
    best = Repaired(0.0, list(rounded), final=False)
    high = ceiling
    for _ in range(PACKINGS):
        reachable = 0.0
        for packer in packers:
            packed = packer.greatest(rounded, preferences, high)
            if packed is None or packed[0] <= best.rate * (1 + SLACK):
                continue
            reachable = max(reachable, packed[0])
            try:
                drafts = placed(network, workers, rounded, packed[2], packed[0])
            except PlanningError:  # some place is cut off by full links
                continue
            target = ceiling if small else packed[0]
            rate = improve(network, drafts, workers, nodes, trials=trials, target=target)
            if rate > best.rate:
                best = Repaired(rate, drafts, final=high == ceiling and rate >= target * (1 - SLACK))
            if rate >= packed[0] * (1 - SLACK) and packer.style is Style.DENSE:
                break
        if best.rate >= reachable * (1 - SLACK):
            break
        high = reachable - (reachable - best.rate) * STEP_DOWN
    if small and not best.final and _within_fan_in(network, rounded):
        drafts = [d.copy() for d in rounded]
        rate = improve(network, drafts, workers, nodes, trials=trials, target=ceiling)
        if rate > best.rate:
            best = Repaired(rate, drafts, final=rate >= ceiling * (1 - SLACK))
    return best


def _within_fan_in(network: ResidualNetwork, drafts: Sequence[Draft]) -> bool:
    return all(
        len(m) <= network.max_children(v) for d in drafts for v, m in d.members().items() if v != d.root
    )
