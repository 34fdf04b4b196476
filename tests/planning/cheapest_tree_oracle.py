# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The cost of the cheapest aggregation tree at prices of resources, by integer programs.

It shares no code with the planners. With it a planner's upper bound is checked as a certificate: at any prices,
what all capacities are worth over the cost of the cheapest tree is an upper bound of every plan's rate. Two rules
are left out, which makes the cost lower or leaves it: the children that a node takes, and that resent results join
the result tree. Streams and results of a root are then two Steiner arborescences, each with one flow for every place.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import block_diag, csr_array, eye_array, hstack, lil_array, vstack

from netfold.controller.planning.plan import JobSpec, Loads
from netfold.topologies.fabric import Fabric

NOTHING = 1e-7
"""Less capacity than this is a rounding error."""


@dataclass(frozen=True)
class ResourcePrices:
    """Prices of directed links, of switches' aggregation capacity, of servers' ingress; `access`: of the workers' links
    together."""

    links: Mapping[tuple[str, str], float]
    switches: Mapping[str, float]
    servers: Mapping[str, float]
    access: float


def worth(fabric: Fabric, job: JobSpec, background: Loads, prices: ResourcePrices) -> float:
    """Returns the price of the residual capacities."""
    access = min(
        fabric.link(*hop).rate - background.links.get(hop, 0.0)
        for w in job.workers
        for hop in ((w, fabric.attachment(w)), (fabric.attachment(w), w))
    )
    total = prices.access * access
    total += sum(
        price * max(0.0, fabric.link(*hop).rate - background.links.get(hop, 0.0))
        for hop, price in prices.links.items()
    )
    total += sum(
        price * max(0.0, fabric.switch(v).capacity - background.switches.get(v, 0.0))
        for v, price in prices.switches.items()
    )
    return total + sum(
        price * max(0.0, fabric.ingress_capacity(s) - background.servers.get(s, 0.0))
        for s, price in prices.servers.items()
    )


def cheapest_tree(fabric: Fabric, job: JobSpec, background: Loads, prices: ResourcePrices) -> float:
    """The cost of the cheapest tree over what has capacity left; infinite if there is none."""
    left = {
        hop: link.rate - background.links.get(hop, 0.0)
        for link in fabric.links
        for hop in ((link.a, link.b), (link.b, link.a))
    }
    switches: nx.DiGraph[str] = nx.DiGraph()
    switches.add_nodes_from(s.name for s in fabric.switches)
    for hop, rest in left.items():
        if rest > NOTHING and not any(map(fabric.is_host, hop)):
            switches.add_edge(*hop, cost=prices.links[hop])
    places = Counter(fabric.attachment(w) for w in job.workers)
    able = [s.name for s in fabric.switches if s.capacity - background.switches.get(s.name, 0.0) > NOTHING]
    best = math.inf
    for root in able:
        streams = _streams(switches, places, {v: prices.switches[v] for v in able}, {})
        results = switches.reverse()
        best = min(
            best, _arborescence(streams, places, ("node", root)) + _arborescence(results, places, root)
        )
    for server in job.parameter_servers:
        at = fabric.attachment(server)
        into, out = (at, server), (server, at)
        ingress = fabric.ingress_capacity(server) - background.servers.get(server, 0.0)
        if min(ingress, left[into], left[out]) > NOTHING:
            price = prices.servers[server] + prices.links[into]
            streams = _streams(switches, places, {v: prices.switches[v] for v in able}, {server: (at, price)})
            cost = _arborescence(streams, places, ("node", server))
            best = min(best, cost + _arborescence(switches.reverse(), places, at) + prices.links[out])
    return prices.access + best


def _streams(
    switches: nx.DiGraph[str],
    places: Mapping[str, int],
    nodes: Mapping[str, float],
    servers: Mapping[str, tuple[str, float]],
) -> nx.DiGraph[Hashable]:
    """A place to a node, or a node to a node: the cheapest path, and the price of a child there. All workers of a place
    have the same cheapest parent."""
    distance = dict(nx.all_pairs_dijkstra_path_length(switches, weight="cost"))
    parents = {v: (v, price) for v, price in nodes.items()} | dict(servers)
    graph: nx.DiGraph[Hashable] = nx.DiGraph()
    graph.add_nodes_from(("node", v) for v in parents)
    graph.add_nodes_from(places)
    for parent, (at, price) in parents.items():
        for place, count in places.items():
            if at in distance[place]:
                graph.add_edge(place, ("node", parent), cost=count * (distance[place][at] + price))
        for v in nodes:
            if v != parent and at in distance[v]:
                graph.add_edge(("node", v), ("node", parent), cost=distance[v][at] + price)
    return graph


def _arborescence(graph: nx.DiGraph[Any], places: Iterable[str], root: Hashable) -> float:
    """The least cost of edges that lead from every place to the root; infinite if there are none."""
    edges = list(graph.edges)
    leaves = [p for p in places if p != root]
    if not all(nx.has_path(graph, p, root) for p in leaves):
        return math.inf
    cost = np.array([graph.edges[e]["cost"] for e in edges])
    if not leaves or not edges:
        return 0.0
    m, number = len(edges), {v: i for i, v in enumerate(graph.nodes)}
    incidence = lil_array((len(number), m))
    for i, (a, b) in enumerate(edges):
        incidence[number[a], i], incidence[number[b], i] = 1.0, -1.0
    rows = [np.flatnonzero(np.arange(len(number)) != number[root])] * len(leaves)
    flows = block_diag([incidence.tocsr()[kept] for kept in rows])
    demand = np.concatenate(
        [(np.arange(len(number)) == number[p])[k].astype(float) for p, k in zip(leaves, rows, strict=True)]
    )
    flow_rows = hstack([csr_array((flows.shape[0], m)), flows])
    shared = hstack([vstack([eye_array(m)] * len(leaves)), -eye_array(m * len(leaves))])
    scale = float(cost.max()) or 1.0
    found = milp(
        np.concatenate([cost / scale, np.zeros(m * len(leaves))]),
        constraints=[LinearConstraint(flow_rows, demand, demand), LinearConstraint(shared, 0.0)],
        bounds=Bounds(0.0, 1.0),
        integrality=np.concatenate([np.ones(m), np.zeros(m * len(leaves))]),
        options={"mip_rel_gap": 1e-7},
    )
    assert found.status == 0, found.message
    return float(found.fun) * scale
