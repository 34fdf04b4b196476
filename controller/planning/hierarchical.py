# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Plans one tree with any root, a parameter server or a switch, and any number of levels that increase the rate: nodes
may send to nodes.

For each root it starts with the reverse of the result tree, with aggregation wherever streams meet (reduction.py). It
anneals the trees of all roots of a small job, then the best ones for longer; for other jobs it improves the best
server's tree by local search.

The plan has no bound: the rate at which the search ends leaves out the links of the fabric.
"""

from __future__ import annotations

from dataclasses import dataclass

from netfold.controller.planning.anneal import SMALL_JOB, STEPS, anneal
from netfold.controller.planning.layout import Draft, feasible_rate, finish, route_results
from netfold.controller.planning.plan import Plan, PlanningError
from netfold.controller.planning.reduction import reduction_trees
from netfold.controller.planning.residual_network import ResidualNetwork
from netfold.controller.planning.scheme import Task
from netfold.controller.planning.search import TRIALS, improve

SMALL_FABRIC = 16
"""Number of switches up to which a tree is annealed."""
ROOTS, SWITCH_ROOTS = 6, 12
"""Number of roots whose trees are annealed, and number of switches that are tried as roots at all, the roomiest."""
FIRST_STEPS, BEST_ROOTS = STEPS // 3, 2


@dataclass(frozen=True)
class _Rooted:
    rate: float
    draft: Draft


def plan_hierarchical(task: Task) -> Plan:
    network, workers = task.network, task.workers
    nodes = network.aggregators()
    capacity = sum(float(network.capacity[network.switch_id[v]]) for v in nodes)
    ingress = {s: float(network.capacity[network.server_id[s]]) for s in task.job.parameter_servers}
    top = network.access_limit(workers)
    roomiest = sorted(nodes, key=lambda v: -network.capacity[network.switch_id[v]])[:SWITCH_ROOTS]
    found = []
    for root in (*(s for s, room in ingress.items() if room > 0), *roomiest):
        found += _starts(network, workers, root, nodes)
    if not found:
        raise PlanningError(
            f"job '{task.job.name}' by hierarchical: no parameter server or switch with capacity left is reached from "
            "all workers"
        )
    found.sort(key=lambda f: -f.rate)
    target = min(top, max([capacity / len(workers), *ingress.values()]))
    if found[0].rate < target * (1 - 1e-6):
        found = _improved(task, found, nodes, target)
    return finish(network, task.job, [found[0].draft], task.report("hierarchical", seeded=True))


def _starts(network: ResidualNetwork, workers: tuple[str, ...], root: str, nodes: list[str]) -> list[_Rooted]:
    try:
        [draft] = reduction_trees(network, workers, [root], set(nodes))
    except PlanningError:  # more children than a switch may have, or a link that is full in one direction
        try:
            draft = _star(network, workers, root)
        except PlanningError:
            return []
    return [_Rooted(feasible_rate(network, [draft]), draft)]


def _star(network: ResidualNetwork, workers: tuple[str, ...], root: str) -> Draft:
    """A draft in which all workers send to the root, over shortest routes."""
    if root not in network.server_id and len(workers) > network.max_children(root):
        raise PlanningError(f"root {root} would have {len(workers)} children")
    draft = Draft(root, 1.0)
    for worker in workers:
        routes = network.paths.routes(worker, root, 1)
        if not routes:
            raise PlanningError(f"no route with capacity left leads from {worker} to {root}")
        draft.connect(worker, root, routes[0])
    route_results(network, [draft], workers)
    return draft


def _improved(task: Task, found: list[_Rooted], nodes: list[str], target: float) -> list[_Rooted]:
    """The drafts after they are improved, the best first."""
    network, workers = task.network, task.workers
    if len(workers) > SMALL_JOB or len(network.switch_id) > SMALL_FABRIC:
        servers = [f for f in found if f.draft.root in network.server_id][:1]
        for rooted in servers:
            draft = rooted.draft.copy()
            rate = improve(
                network, [draft], workers, nodes, trials=TRIALS // 4, target=target, has_levels=True
            )
            found = [*found, _Rooted(rate, draft)]
        return sorted(found, key=lambda f: -f.rate)

    def annealed(rooted: _Rooted, steps: int) -> _Rooted:
        [draft] = anneal(
            network,
            [rooted.draft],
            workers,
            nodes,
            has_levels=True,
            steps=steps,
            target=target,
            seed=task.seed,
        )
        return _Rooted(feasible_rate(network, [draft]), draft)

    first = sorted((annealed(f, FIRST_STEPS) for f in found[:ROOTS]), key=lambda f: -f.rate)
    longer = [annealed(f, STEPS) for f in first[:BEST_ROOTS]]
    return sorted((*longer, *first), key=lambda f: -f.rate)
