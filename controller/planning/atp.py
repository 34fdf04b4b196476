# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Plans by ATP: aggregate at the first switch with room on the shortest path to the parameter server; the rest goes
direct.

The papers model it differently, and the job's option `atp_variant` chooses. `split` (GRID): the part that exceeds the
room of a switch continues to the next switch on the path; several parameter servers have equal parts. `whole` (InArt):
each (worker, server) fragment is added up at one switch or goes to the server whole. Neither has a relaxation of its
own, so there is no bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from netfold.controller.planning.candidate_paths import Route
from netfold.controller.planning.draft_editor import DraftEditor
from netfold.controller.planning.layout import SLACK, Draft, feasible_rate, finish, route_results, total_load
from netfold.controller.planning.plan import Plan, PlanningError
from netfold.controller.planning.residual_network import ResidualNetwork
from netfold.controller.planning.scheme import Task

LAYERS = 16
ROOMS = 64


def plan_atp(task: Task) -> Plan:
    servers = task.servers()
    planner = _split if task.word("atp_variant", "split", ("split", "whole")) == "split" else _whole
    return finish(task.network, task.job, planner(task, servers), task.report("atp"))


def _shortest(
    network: ResidualNetwork, workers: Sequence[str], servers: Sequence[str]
) -> list[dict[str, Route]]:
    """The path of each worker to each server: of the shortest ones, the one that loads the links least."""
    drafts = [Draft(s, 1.0 / len(servers)) for s in servers]
    editor = DraftEditor(network, drafts, (), shortest=True)
    for t, server in enumerate(servers):
        for worker in workers:
            editor.place(t, worker, server)
    return [d.route for d in drafts]


def _split(task: Task, servers: Sequence[str]) -> list[Draft]:
    """Fill layer by layer: all streams grow together, aggregated at the first switch with room, until a resource is
    full. If that is a switch, a further layer continues without it; if it is a link or a server, nothing more fits."""
    network, workers = task.network, task.workers
    paths = _shortest(network, workers, servers)
    left = network.capacity.copy()
    layers: list[Draft] = []
    for _ in range(LAYERS):
        drafts = [_layer(network, workers, s, paths[t], left) for t, s in enumerate(servers)]
        for draft in drafts:
            draft.share = 1.0 / len(servers)
        load = total_load(network, drafts)
        if (left[load > 0] <= 0).any():
            break
        try:
            route_results(network.left_with(left), drafts, workers)
        except PlanningError:
            break
        load = total_load(network, drafts)
        used = load > 0
        if (left[used] <= 0).any():
            break
        growth = float((left[used] / load[used]).min())
        left = np.where(left - load * growth > 1e-9 * network.capacity, left - load * growth, 0.0)
        for draft in drafts:
            draft.share *= growth
        layers += drafts
    if not layers:
        raise PlanningError(
            f"job '{task.job.name}' by atp: a link or parameter server on its paths has nothing left"
        )
    return layers


def _layer(
    network: ResidualNetwork,
    workers: Sequence[str],
    server: str,
    paths: dict[str, Route],
    left: NDArray[np.float64],
) -> Draft:
    draft = Draft(server, 0.0)
    members: Counter[str] = Counter()
    for worker in workers:

        def has_room(switch: str) -> bool:
            return bool(left[network.switch_id[switch]] > 0) and members[switch] < network.max_children(
                switch
            )

        _attach(network, draft, worker, paths[worker], members, has_room)
    return draft


def _attach(
    network: ResidualNetwork,
    draft: Draft,
    worker: str,
    path: Route,
    members: Counter[str],
    has_room: Callable[[str], bool],
) -> None:
    """Connect a worker to the first switch on its path that has room; else to the root."""
    for hops, link in enumerate(path[:-1], start=1):
        switch = network.links[link][1]
        if has_room(switch):
            members[switch] += 1
            draft.connect(worker, switch, path[:hops])
            if switch not in draft.parent:
                draft.connect(switch, draft.root, path[hops:])
            return
    draft.connect(worker, draft.root, path)


def _whole(task: Task, servers: Sequence[str]) -> list[Draft]:
    """Split into equal parts, each fragment whole, in the order of servers, then workers. The number of fragments that
    fit into a switch depends on the resulting rate, so a range of rates is tried; the best result counts."""
    network, workers = task.network, task.workers
    paths = _shortest(network, workers, servers)
    best: tuple[float, list[Draft]] = (0.0, [])
    for part in _fragment_rates(network, len(workers) * len(servers)):
        drafts = _fragments(network, workers, servers, paths, part)
        route_results(network, drafts, workers)
        rate = feasible_rate(network, drafts)
        if rate > best[0] * (1 + SLACK) or not best[1]:
            best = (rate, drafts)
    return best[1]


def _fragment_rates(network: ResidualNetwork, most: int) -> list[float]:
    """Rates of one fragment at which some switch is just full, at most ROOMS of them, more densely spaced at high
    rates."""
    capacities = {float(network.capacity[network.switch_id[v]]) for v in network.aggregators()}
    rates = sorted({c / m for c in capacities for m in range(1, most + 1)}, reverse=True)
    if not rates:
        return [1.0]
    picks = np.unique(np.geomspace(1, len(rates), ROOMS).astype(int))
    return [rates[i - 1] for i in picks]


def _fragments(
    network: ResidualNetwork,
    workers: Sequence[str],
    servers: Sequence[str],
    paths: Sequence[dict[str, Route]],
    part: float,
) -> list[Draft]:
    used: Counter[str] = Counter()
    drafts = []
    for t, server in enumerate(servers):
        draft = Draft(server, 1.0 / len(servers))
        members: Counter[str] = Counter()

        def has_room(switch: str, members: Counter[str] = members) -> bool:
            room = float(network.capacity[network.switch_id[switch]]) / part
            return members[switch] < network.max_children(switch) and used[switch] + 1 <= room * (1 + SLACK)

        for worker in workers:
            _attach(network, draft, worker, paths[t][worker], members, has_room)
            if draft.parent[worker] != server:
                used[draft.parent[worker]] += 1
        drafts.append(draft)
    return drafts
