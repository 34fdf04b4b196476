# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Fabrics as networkx sees them: its algorithms are the oracle of ours."""

from __future__ import annotations

import networkx as nx

from netfold.topologies.fabric import Fabric


def graph_of(fabric: Fabric) -> nx.Graph[str]:
    """Hosts, switches and their links."""
    graph: nx.Graph[str] = nx.Graph((link.a, link.b) for link in fabric.links)
    graph.add_nodes_from(e.name for e in fabric.elements)
    return graph


def switch_graph(fabric: Fabric) -> nx.Graph[str]:
    """Switches and the links between them."""
    return graph_of(fabric).subgraph([s.name for s in fabric.switches])
