# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Hops between nodes are those of networkx, in graphs in one part and in several."""

from __future__ import annotations

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from netfold.topologies.distances import bfs_edges, distances

NODES = st.sampled_from("abcdefgh")


@given(links=st.sets(st.tuples(NODES, NODES)), start=NODES)
def test_distances_are_those_of_the_shortest_paths(links: set[tuple[str, str]], start: str) -> None:
    graph: nx.Graph[str] = nx.Graph(links)
    graph.add_nodes_from("abcdefgh")
    found = distances({node: list(graph.adj[node]) for node in graph}, start)
    assert found == nx.single_source_shortest_path_length(graph, start)
    assert list(found.values()) == sorted(found.values()), "nearest first"
    assert list(bfs_edges(start, graph.neighbors)) == list(nx.bfs_edges(graph, start))
