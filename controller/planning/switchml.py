# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Plans by SwitchML (NSDI 2021; NetReduce shares the shape): one tree, rooted at a rack's switch.

The job's option `switchml_variant`: with `root` the switch turns the sum around, and racks are added up in their own
switches first; `server` is the baseline of GRID's evaluation, in which every rack's switch sends its sum to the
parameter server.
"""

from __future__ import annotations

from collections import Counter

from netfold.controller.planning.draft_editor import DraftEditor
from netfold.controller.planning.layout import Draft, finish, route_results
from netfold.controller.planning.plan import Plan, PlanningError
from netfold.controller.planning.reduction import plan_rooted
from netfold.controller.planning.residual_network import ResidualNetwork
from netfold.controller.planning.scheme import Task

ROOTS = 4
"""Number of racks that are tried as the root."""


def plan_switchml(task: Task) -> Plan:
    if task.word("switchml_variant", "root", ("root", "server")) == "server":
        return _to_server(task)
    racks = Counter(task.network.attachment(w) for w in task.workers)
    able = set(task.network.aggregators())
    room = {v: _room(task.network, v, racks) for v in racks}
    roots = sorted(able & racks.keys(), key=lambda v: (-room[v], -racks[v], task.network.order[v]))
    if not roots:
        raise PlanningError(
            f"job '{task.job.name}' by switchml: none of its racks' switches ({', '.join(sorted(racks))}) "
            "has aggregation capacity left"
        )
    attempts = (
        (roots, able & racks.keys()),
        (roots, able),  # more racks than a switch has children: add up between them too
        (
            sorted(roots, key=lambda v: racks[v]),
            able,
        ),  # or turn around where the fewest of its own come on top
    )
    first: PlanningError | None = None
    for candidates, nodes in attempts:
        plans = []
        for root in candidates[:ROOTS]:
            try:
                plans.append(plan_rooted(task, "switchml", [root], able=nodes))
            except PlanningError as error:
                first = first or error
        if plans:
            return max(plans, key=lambda p: p.rate)
    assert first is not None
    raise first


def _room(network: ResidualNetwork, root: str, racks: Counter[str]) -> float:
    """The maximum rate of a tree with this root: the streams of its workers and of the other racks share its capacity,
    and the other racks come over its links."""
    others = len(racks) - 1
    links = sum(
        min(float(network.capacity[network.link_id[a, b]]) for a, b in ((root, v), (v, root)))
        for v in network.neighbors[root]
    )
    room = float(network.capacity[network.switch_id[root]]) / (racks[root] + others)
    return min(room, links / others) if others else room


def _to_server(task: Task) -> Plan:
    """Plan a tree to the parameter server. Racks without capacity, and workers beyond the fan-in of a switch, send
    straight to the server."""
    network, server = task.network, task.servers()[0]
    draft = Draft(server, 1.0)
    editor = DraftEditor(network, [draft], ())
    able, members = set(network.aggregators()), Counter[str]()
    for worker in task.workers:
        switch = network.attachment(worker)
        inside = switch in able and members[switch] < network.max_children(switch)
        members[switch] += inside
        editor.place(0, worker, switch if inside else server)
    for switch in [v for v, count in members.items() if count]:
        editor.place(0, switch, server)
    route_results(network, [draft], task.workers)
    return finish(network, task.job, [draft], task.report("switchml"))
