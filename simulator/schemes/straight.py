# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Plans trees of jobs too large for the planner: the shortest paths to a root, joined at every switch. On a fabric
that is empty and equal everywhere they have the planner's rate; capacities are not considered."""

from __future__ import annotations

from collections.abc import Sequence

from netfold.controller.planning.plan import Edge, Loads, Plan, Tree
from netfold.simulator.routes import LinkTable
from netfold.simulator.scenario import NetworkSettings, ScenarioError
from netfold.topologies.fabric import Fabric, SwitchRole

TOPS = (SwitchRole.CORE, SwitchRole.SPINE, SwitchRole.AGGREGATION, SwitchRole.LEAF, SwitchRole.PLAIN)


def straight_plan(fabric: Fabric, workers: Sequence[str], name: str, trees: int) -> Plan:
    """Returns this many trees, rooted evenly over the top switches. Their rate is that of the workers' own links."""
    links = LinkTable(fabric, NetworkSettings())
    tops = next(t for t in ([s.name for s in fabric.switches if s.role is r] for r in TOPS) if t)
    count = min(trees, len(tops))
    roots = [tops[i * len(tops) // count] for i in range(count)]
    rate = min(float(links.rates[links.number[w, links.attachment[w]]]) for w in workers)
    rate *= 8 / fabric.unit.bits_per_second
    planned = tuple(_tree(links, workers, r, 1 / count) for r in roots)
    return Plan(name, fabric.name, "straight", fabric.unit.name, planned, rate, Loads())


def _tree(links: LinkTable, workers: Sequence[str], root: str, share: float) -> Tree:
    above: dict[str, str] = {}
    for worker in workers:
        at = above[worker] = links.attachment[worker]
        while at != root and at not in above:
            hops = links.next_hops(at, root)
            if not hops:
                raise ScenarioError(f"no path from {at} to {root}")
            above[at] = at = hops[0][1]
    edges = tuple(Edge(child, parent, (child, parent)) for child, parent in above.items())
    return Tree(root, share, edges, tuple((b, a) for a, b in above.items()))
