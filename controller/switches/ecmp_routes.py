# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Equal-cost routes between racks, around what has failed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Network

import networkx as nx

from netfold.controller.switches.fabric_config import FabricConfig, FailedElements
from netfold.topologies.fabric import Fabric

MAX_NEXT_HOPS = 512
"""Members of all ECMP sets of a switch together (p4src/common/sizes.p4)."""


def ecmp_routes(
    config: FabricConfig, failed: FailedElements
) -> Iterator[tuple[str, IPv4Network, tuple[int, ...]]]:
    """For each switch and each other rack: switch, prefix of the rack, ports of all shortest paths there.

    A switch that does not answer its controller may still forward. Paths avoid it unless no other path exists.
    """
    fabric = config.fabric
    working = _switch_graph(fabric, failed)
    with_silent = _switch_graph(fabric, FailedElements(failed.links)) if failed.switches else working
    racks = {s.name: s.prefix for s in config.addresses.switches.values() if s.prefix is not None}
    max_ports = max(1, MAX_NEXT_HOPS // max(1, len(racks)) - 1)
    for rack, prefix in racks.items():
        hops = _hops_to(working, rack)
        hops_with_silent = _hops_to(with_silent, rack) if failed.switches else hops
        for switch, distance in hops_with_silent.items():
            if distance == 0:
                continue
            graph, known = (working, hops) if switch in hops else (with_silent, hops_with_silent)
            closer = known[switch] - 1
            ports = [fabric.ports[switch][n] for n in graph.adj[switch] if known.get(n) == closer]
            yield switch, prefix, tuple(ports[:max_ports])


def _switch_graph(fabric: Fabric, failed: FailedElements) -> nx.Graph[str]:
    """The switches and the working links between them."""
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(s.name for s in fabric.switches)
    graph.add_edges_from(
        (link.a, link.b)
        for link in fabric.links
        if link.a in graph and link.b in graph and not failed.covers(link.a, link.b)
    )
    return graph


def _hops_to(graph: nx.Graph[str], rack: str) -> Mapping[str, int]:
    """Hops to a rack's switch, from each switch that reaches it."""
    return dict(nx.single_source_shortest_path_length(graph, rack))
