# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Plans trees rooted at a switch, with aggregation at every level: the reverse of the result tree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from netfold.controller.planning.candidate_paths import Route
from netfold.controller.planning.layout import (
    SLACK,
    Draft,
    feasible_rate,
    finish,
    fit_shares,
    route_results,
    total_load,
    utilization,
)
from netfold.controller.planning.plan import Plan, PlanningError
from netfold.controller.planning.residual_network import ResidualNetwork
from netfold.controller.planning.scheme import Task
from netfold.topologies.distances import bfs_edges


def plan_rooted(
    task: Task, algorithm: str, roots: Sequence[str], *, able: set[str] | None = None, seeded: bool = False
) -> Plan:
    """Plan one tree per root, in which only switches of `able` (default: all that can) add up; at equal shares, or at
    others if they are better. The bound of the plan holds for any trees rooted at switches: it is the own links of the
    workers, and the sum of the capacities of all switches, of which the stream of every worker needs a part."""
    network, workers = task.network, task.workers
    nodes = network.aggregators()
    drafts = reduction_trees(network, workers, roots, set(nodes) if able is None else able)
    fit_unequal(network, drafts)
    capacity = float(sum(network.capacity[network.switch_id[v]] for v in nodes))
    bound = min(network.access_limit(workers), capacity / len(workers))
    return finish(network, task.job, drafts, task.report(algorithm, bound, seeded=seeded))


def fit_unequal(network: ResidualNetwork, drafts: Sequence[Draft]) -> None:
    """Replace equal shares by unequal ones if these give a better rate."""
    equal = feasible_rate(network, drafts)
    before = [draft.share for draft in drafts]
    if len(drafts) > 1 and fit_shares(network, drafts) <= equal * (1 + SLACK):
        for draft, share in zip(drafts, before, strict=True):
            draft.share = share


def reduction_trees(
    network: ResidualNetwork, workers: Sequence[str], roots: Sequence[str], able: set[str]
) -> list[Draft]:
    """A tree per root that adds up wherever two streams meet at a switch in `able`. While a switch other than a root is
    the fullest resource, trees without it are tried."""
    passing: set[str] = set()
    drafts = _trees(network, workers, roots, able)
    rate = feasible_rate(network, drafts)
    while True:
        worst = _worst_switch(network, drafts)
        if worst is None or worst in roots:
            return drafts
        passing.add(worst)
        try:
            other = _trees(network, workers, roots, able - passing)
        except PlanningError:
            return drafts
        if feasible_rate(network, other) <= rate:
            return drafts
        drafts, rate = other, feasible_rate(network, other)


def _worst_switch(network: ResidualNetwork, drafts: Sequence[Draft]) -> str | None:
    used = utilization(network, total_load(network, drafts))
    worst = int(np.argmax(used))
    return next((v for v, i in network.switch_id.items() if i == worst), None)


def _trees(
    network: ResidualNetwork, workers: Sequence[str], roots: Sequence[str], able: set[str]
) -> list[Draft]:
    """A tree per root. A root that full links separate from a worker is left out while others remain."""
    usable = [root for root in roots if _reaches(network, root, workers)] or list(roots)
    drafts = [Draft(root, 1.0 / len(usable)) for root in usable]
    route_results(network, drafts, workers, both_ways=True)
    for draft in drafts:
        mirror(network, draft, workers, able)
    return drafts


def _reaches(network: ResidualNetwork, root: str, workers: Sequence[str]) -> bool:
    """Whether links with capacity left in both directions join a root with all workers."""

    def usable(at: str) -> Iterator[str]:
        for neighbor in network.neighbors[at]:
            both = (network.link_id[at, neighbor], network.link_id[neighbor, at])
            if all(network.capacity[i] > 0 for i in both):
                yield neighbor

    start = network.attachment(root)
    reached = {start, *(switch for _, switch in bfs_edges(start, usable))}
    return all(network.attachment(w) in reached for w in workers)


def mirror(network: ResidualNetwork, draft: Draft, workers: Sequence[str], able: set[str]) -> None:
    """Set a draft's upstream paths to the reverse of its result tree, from the leaves to the root."""
    upward = {b: (a, network.link_id[b, a]) for a, b in (network.links[i] for i in draft.result_links)}
    waiting: dict[str, list[tuple[str, Route]]] = {}
    for worker in workers:
        switch, link = upward[worker]
        waiting.setdefault(switch, []).append((worker, (link,)))
    for switch in _leaves_first(upward, draft.root, waiting):
        streams = _fold(network, draft, switch, waiting.get(switch, []), able)
        if switch != draft.root:
            above, link = upward[switch]
            waiting.setdefault(above, []).extend((child, (*route, link)) for child, route in streams)


def _fold(
    network: ResidualNetwork, draft: Draft, switch: str, streams: list[tuple[str, Route]], able: set[str]
) -> list[tuple[str, Route]]:
    """Aggregate the streams that meet at a switch, up to its fan-in, and return the streams that leave it. The root
    takes all."""
    most = len(streams) if switch in network.server_id else network.max_children(switch)
    if switch == draft.root:
        if len(streams) > most:
            raise PlanningError(
                f"root {switch} would have {len(streams)} children and {most} are the most; "
                "more switches with aggregation capacity between it and the workers would fit"
            )
        for child, route in streams:
            draft.connect(child, switch, route)
        return []
    if len(streams) < 2 or switch not in able:
        return streams
    for child, route in streams[:most]:
        draft.connect(child, switch, route)
    return [(switch, ()), *streams[most:]]


def _leaves_first(
    upward: dict[str, tuple[str, int]], root: str, leaves: dict[str, list[tuple[str, Route]]]
) -> list[str]:
    depth: dict[str, int] = {root: 0}

    def of(switch: str) -> int:
        if switch not in depth:
            depth[switch] = of(upward[switch][0]) + 1
        return depth[switch]

    for leaf in leaves:
        of(leaf)
    return sorted(depth, key=lambda v: -depth[v])
