# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Rounds the relaxation at random (R-GRIA Alg. 1, R-InArt Alg. 2), and repairs the result to make it feasible.

Rounding keeps the relaxation's rate and may overrun capacities. Repair finds the greatest rate at which the parts can
be packed into few, large nodes, gives each worker a place there (its rounded one if it can be kept), balances the
routes and searches locally. If loads still exceed a capacity at the end, the rate is scaled down.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from netfold.controller.planning.formulation import Formulation, Solution
from netfold.controller.planning.layout import SLACK, Draft, result_tree_within, route_results
from netfold.controller.planning.packing import Packer, Style, placed
from netfold.controller.planning.plan import PlanningError
from netfold.controller.planning.residual_network import ResidualNetwork
from netfold.controller.planning.search import TRIALS, improve

SMALL_JOB = 64
PACKINGS = 6
STEP_DOWN = 0.25


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
        ways = {
            network.links[route[-1]][1]: route
            for route, _ in sorted(solution.result_routes[s], key=lambda w: w[1])
        }
        used = {link for route in ways.values() for link in route}  # a leaf's greatest part is its whole way
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
        return network.routes(node, model.servers[s])[0]
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
    small = len(workers) * len(rounded) <= SMALL_JOB
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
