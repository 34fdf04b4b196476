# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Defines a mutable draft of trees, and turns it into a plan.

A draft tree gives each child (worker or inner node) its parent and its route. The draft keeps the load of every
resource for rate 1, so that the rate that all capacities allow is one over the greatest utilization.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from netfold.controller.planning.candidate_paths import Route
from netfold.controller.planning.pipes import check_pipes, loopback_loads, loopback_rate
from netfold.controller.planning.plan import Edge, InvalidPlanError, JobSpec, Loads, Plan, PlanningError, Tree
from netfold.controller.planning.residual_network import ResidualNetwork
from netfold.controller.planning.sparse import INF, Effort, LinearProgram
from netfold.topologies.distances import bfs_edges

SLACK = 1e-9


@dataclass
class Draft:
    """One tree under construction. `parent` and `route` have an entry for every child, `result_links` holds link
    numbers."""

    root: str
    share: float
    parent: dict[str, str] = field(default_factory=dict)
    route: dict[str, Route] = field(default_factory=dict)
    result_links: tuple[int, ...] = ()

    def connect(self, child: str, parent: str, route: Route) -> None:
        self.parent[child] = parent
        self.route[child] = route

    def members(self) -> dict[str, list[str]]:
        """The children of every node and of the root."""
        members: dict[str, list[str]] = {}
        for child, parent in self.parent.items():
            members.setdefault(parent, []).append(child)
        return members

    def copy(self) -> Draft:
        return Draft(self.root, self.share, dict(self.parent), dict(self.route), self.result_links)


def unit_load(network: ResidualNetwork, draft: Draft, weight: float | None = None) -> NDArray[np.float64]:
    """The load of every resource at `weight` (default: the draft's share)."""
    used: list[int] = list(draft.result_links)
    for child, parent in draft.parent.items():
        used.extend(draft.route[child])
        used.append(network.capacity_id[parent])
    count = np.bincount(np.asarray(used, dtype=np.int64), minlength=len(network.capacity))
    return np.asarray(count * (draft.share if weight is None else weight), dtype=np.float64)


def total_load(network: ResidualNetwork, drafts: Iterable[Draft]) -> NDArray[np.float64]:
    load = np.zeros(len(network.capacity))
    for draft in drafts:
        load += unit_load(network, draft)
    return load


def utilization(network: ResidualNetwork, load: NDArray[np.float64]) -> NDArray[np.float64]:
    """Load over capacity; infinite for a load on a resource without capacity."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(load > 0, load / network.capacity, 0.0)


def feasible_rate(network: ResidualNetwork, drafts: Sequence[Draft]) -> float:
    """The rate at which the fullest resource is just full."""
    worst = float(utilization(network, total_load(network, drafts)).max())
    return 0.0 if not np.isfinite(worst) else 1.0 / worst


def route_results(
    network: ResidualNetwork, drafts: Sequence[Draft], workers: Sequence[str], *, both_ways: bool = False
) -> None:
    """Give every draft its result tree: a shortest-path tree that avoids links which it would make the fullest.
    With `both_ways` it uses only links that have capacity left in both directions. Raises PlanningError if
    there is none."""
    for draft in drafts:
        draft.result_links = ()
    load = total_load(network, drafts)
    for draft in sorted(drafts, key=lambda d: -d.share):
        draft.result_links = result_tree(network, draft, workers, load, both_ways)
        load[list(draft.result_links)] += draft.share


def result_tree(
    network: ResidualNetwork,
    draft: Draft,
    workers: Sequence[str],
    load: NDArray[np.float64],
    both_ways: bool = False,
) -> tuple[int, ...]:
    """The result tree of cheapest paths: a link costs one hop, and much more if it exceeds the present worst
    utilization."""
    used = utilization(network, load)
    worst = float(used[np.isfinite(used)].max(initial=1e-12)) or 1e-12

    def cost(a: str, b: str) -> float:
        link = network.link_id[a, b]
        capacity = float(network.capacity[link])
        if capacity <= 0 or (both_ways and network.capacity[network.link_id[b, a]] <= 0):
            return INF
        over = max(0.0, (float(load[link]) + draft.share) / capacity / worst - 1.0)
        return 1.0 + (10.0 + 10.0 * over if over > SLACK else 0.0)

    wanted = {network.attachment(w) for w in workers}
    via = cheapest_links(network, network.attachment(draft.root), cost, wanted)
    if cut_off := wanted - via.keys() - {network.attachment(draft.root)}:
        raise PlanningError(f"no link with capacity left leads from {draft.root} to {min(cut_off)}")
    return result_tree_by(network, draft, workers, via)


def cheapest_links(
    network: ResidualNetwork,
    start: str,
    cost: Callable[[str, str], float],
    wanted: Collection[str] | None = None,
) -> dict[str, int]:
    """The last link of a cheapest path from the switch `start` to each other switch that it reaches (Dijkstra). `cost`
    is that of the link from a switch to another one, INF if paths cannot use it. The search ends when it has the paths
    to `wanted`; None: all."""
    distance, via = {start: 0.0}, dict[str, int]()
    queue = [(0.0, network.order[start], start)]
    missing = None if wanted is None else set(wanted)
    while queue and (missing is None or missing):
        length, _, at = heapq.heappop(queue)
        if length > distance[at]:
            continue
        if missing:
            missing.discard(at)
        for neighbor in network.neighbors[at]:
            through = length + cost(at, neighbor)
            if through < distance.get(neighbor, INF) - SLACK:
                distance[neighbor], via[neighbor] = through, network.link_id[at, neighbor]
                heapq.heappush(queue, (through, network.order[neighbor], neighbor))
    return via


def result_tree_within(
    network: ResidualNetwork, draft: Draft, workers: Sequence[str], links: Collection[int]
) -> tuple[int, ...]:
    """The result tree within `links`, which reach every worker's switch from the root."""

    def within(at: str) -> Iterator[str]:
        return (n for n in network.neighbors[at] if network.link_id[at, n] in links)

    via = {b: network.link_id[a, b] for a, b in bfs_edges(network.attachment(draft.root), within)}
    return result_tree_by(network, draft, workers, via)


def result_tree_by(
    network: ResidualNetwork, draft: Draft, workers: Sequence[str], via: Mapping[str, int]
) -> tuple[int, ...]:
    """The links from the root to every worker; `via`: the link to each switch."""
    start = network.attachment(draft.root)
    links = _back(network, start, {network.attachment(w) for w in workers}, via)
    if draft.root != start:
        links = [network.link_id[draft.root, start], *links]
    return (*links, *(network.link_id[network.attachment(w), w] for w in workers))


def _back(network: ResidualNetwork, start: str, wanted: set[str], via: Mapping[str, int]) -> list[int]:
    links: dict[int, None] = {}
    for leaf in sorted(wanted, key=lambda v: network.order[v]):
        at = leaf
        while at != start and via[at] not in links:
            links[via[at]] = None
            at = network.links[via[at]][0]
    return list(links)


def fit_shares(network: ResidualNetwork, drafts: Sequence[Draft]) -> float:
    """Give each draft the share that makes the total rate greatest (a linear program with one unknown for each tree)
    and return that rate."""
    loads = np.stack([unit_load(network, d, 1.0) for d in drafts], axis=1)
    program = LinearProgram(cost=dict.fromkeys(range(len(drafts)), -1.0))
    for _ in drafts:
        program.new_column(INF)
    for resource in np.flatnonzero(loads.any(axis=1)):
        used = [(tree, float(load)) for tree, load in enumerate(loads[resource]) if load]
        program.add(used, -INF, float(network.capacity[resource]))
    rates = program.solve(Effort()).values
    total = 0.0 if rates is None else float(rates.sum())
    if rates is None or total <= SLACK:
        return 0.0
    for draft, part in zip(drafts, rates, strict=True):
        draft.share = max(0.0, float(part)) / total
    return total


def pass_single_children(network: ResidualNetwork, draft: Draft) -> None:
    """Let a node with one child forward its packets: aggregating a single stream would cost capacity and slots."""
    members = draft.members()
    for node in list(members):
        if node == draft.root or len(members[node]) != 1:
            continue
        [child] = members[node]
        route = (*draft.route[child], *draft.route[node])
        path = network.path(route)
        if len(set(path)) == len(path):
            above = draft.parent[node]
            draft.connect(child, above, route)
            del draft.parent[node], draft.route[node], members[node]
            members[above] = [child if member == node else member for member in members[above]]


@dataclass(frozen=True)
class Report:
    """A scheme's figures of its plan in addition to the trees."""

    algorithm: str
    bound: float | None = None
    rounded_rate: float | None = None
    seed: int | None = None
    solve_s: float = 0.0
    stopped: str | None = None


def finish(network: ResidualNetwork, job: JobSpec, drafts: Sequence[Draft], report: Report) -> Plan:
    """The plan of the drafts, at the rate that every capacity allows. Trees without a share are left out."""
    kept = [d for d in drafts if d.share > SLACK]
    if not kept:
        raise PlanningError(f"job '{job.name}' by {report.algorithm}: no tree has a share")
    whole = sum(d.share for d in kept)
    for draft in kept:
        draft.share /= whole
        pass_single_children(network, draft)
    load = total_load(network, kept)
    used = utilization(network, load)
    worst = int(used.argmax())
    rate = 1.0 / float(used[worst]) if np.isfinite(used[worst]) else 0.0
    trees = tuple(as_tree(network, d) for d in kept)
    if rate <= 0:
        total = f"{capacity_of(network, worst):g} {network.fabric.unit.name}"
        raise PlanningError(
            f"job '{job.name}' by {report.algorithm}: {network.resource_name(worst)} has nothing left of its "
            f"{total}; another scheme or fewer jobs would fit"
        )
    looped = loopback_loads(network.fabric, trees, 1.0)
    rate = min(rate, _looped_rate(network, job, trees, looped, report))
    bound = None if report.bound is None else max(report.bound, rate)
    return Plan(
        job=job.name,
        fabric=network.fabric.name,
        algorithm=report.algorithm,
        unit=network.fabric.unit.name,
        trees=trees,
        rate=rate,
        loads=replace(
            as_loads(network, load * rate), loopbacks={port: part * rate for port, part in looped.items()}
        ),
        bound=bound,
        rounded_rate=report.rounded_rate,
        solve_s=report.solve_s,
        seed=report.seed,
        stopped=report.stopped,
    )


def _looped_rate(
    network: ResidualNetwork,
    job: JobSpec,
    trees: Sequence[Tree],
    looped: Mapping[tuple[str, int], float],
    report: Report,
) -> float:
    """The rate at which loopback ports carry the looped packets. Raises PlanningError if there is none."""
    here = f"job '{job.name}' by {report.algorithm}"
    for tree in trees:
        try:
            check_pipes(network.fabric, tree, f"{here}, tree of root {tree.root}")
        except InvalidPlanError as error:  # the fabric's wiring, not the scheme, forbids this tree
            raise PlanningError(str(error)) from error
    rate = float("inf")
    for (switch, port), part in looped.items():
        left = network.loopbacks[switch, port]
        if left * network.unit <= SLACK * loopback_rate(network.fabric, switch, port):
            raise PlanningError(
                f"{here}: loopback port {port} of switch {switch} has nothing left; fewer jobs, another loopback port "
                "or all children in one pipe would fit"
            )
        rate = min(rate, left / part)
    return rate


def as_tree(network: ResidualNetwork, draft: Draft) -> Tree:
    edges = tuple(
        Edge(child, parent, network.path(draft.route[child])) for child, parent in draft.parent.items()
    )
    return Tree(draft.root, draft.share, edges, tuple(network.links[i] for i in draft.result_links))


def as_loads(network: ResidualNetwork, load: NDArray[np.float64]) -> Loads:
    def named(ids: Mapping[str, int]) -> dict[str, float]:
        return {name: float(load[i]) for name, i in ids.items() if load[i] > 0}

    links = {pair: float(load[i]) for i, pair in enumerate(network.links) if load[i] > 0}
    return Loads(links, named(network.switch_id), named(network.server_id))


def capacity_of(network: ResidualNetwork, resource: int) -> float:
    """The whole capacity of a resource, including the part that earlier jobs use."""
    fabric = network.fabric
    if resource < len(network.links):
        return fabric.link(*network.links[resource]).rate
    for switch in fabric.switches:
        if network.switch_id[switch.name] == resource:
            return switch.capacity
    return next(
        fabric.ingress_capacity(h.name) for h in fabric.hosts if network.server_id[h.name] == resource
    )
