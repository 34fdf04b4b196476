# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Fabrics as networkx graphs, whose distances are theirs, and fabrics of networkx's generators."""

from __future__ import annotations

import subprocess
import sys

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netfold.controller.planning.plan import JobSpec
from netfold.controller.planning.planner import make_plan
from netfold.topologies.distances import bfs_edges, distances
from netfold.topologies.fabric import Fabric, FabricError, Unit
from netfold.topologies.spec import load_fabric, spec_names


@pytest.mark.parametrize("name", spec_names())
def test_a_fabric_is_read_back_from_its_graph(name: str) -> None:
    fabric = load_fabric(name)
    again = Fabric.from_graph(fabric.graph)
    assert (again.name, again.unit, set(again.hosts)) == (fabric.name, fabric.unit, set(fabric.hosts))
    assert again.ports == fabric.ports
    for switch in fabric.switches:
        other = again.switch(switch.name)
        assert (other.role, other.capacity, other.slots) == (switch.role, switch.capacity, switch.slots)
        assert (other.chip, other.loopbacks) == (switch.chip, switch.loopbacks)
        assert other.max_children == switch.max_children
    for link in fabric.links:
        other_link = again.link(link.a, link.b)
        assert (other_link.rate, other_link.queue, other_link.delay_ms) == (
            link.rate,
            link.queue,
            link.delay_ms,
        )


@given(degree=st.integers(2, 4), half=st.integers(3, 8), seed=st.integers(0, 1000))
def test_a_generators_graph_is_a_fabric_that_can_be_planned(degree: int, half: int, seed: int) -> None:
    graph = nx.random_regular_graph(degree, 2 * half, seed=seed)
    if not nx.is_connected(graph):
        return
    fabric = Fabric.from_graph(graph, name="regular", hosts_per_switch=1, rate=10, unit=Unit("Gbit/s", 1e9))
    assert len(fabric.hosts) == len(fabric.switches) == 2 * half
    assert fabric.link("s0", "s0-h1").rate == 10
    plan = make_plan(fabric, JobSpec("job", ("s0-h1", "s1-h1", "s2-h1"), scheme="switchml"))
    assert plan.rate > 0


def edge(**values: object) -> nx.Graph[str]:
    graph: nx.Graph[str] = nx.Graph()
    graph.add_node("h1", kind="host")
    graph.add_edge("h1", "s1", **values)
    return graph


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (nx.DiGraph([("s1", "s2")]), "expected a networkx.Graph"),
        (nx.MultiGraph([("s1", "s2")]), "expected a networkx.Graph"),
        (edge(rate="fast"), "edge h1-s1 has rate 'fast'; expected a number above 0"),
        (edge(rate=-1), "rate -1.0; expected a number above 0"),
        (edge(queue=0), "expected at least 1 packet"),
        (edge(ports={"s1": 600}), "expected 1 ... 509"),
        (nx.Graph([("s 1", "s2")]), "a name starts with a letter"),
        (nx.Graph([(0, 1), (2, 3)]), "not connected"),
    ],
)
def test_a_graph_that_is_no_fabric_is_refused_by_name(graph: nx.Graph[str], message: str) -> None:
    with pytest.raises(FabricError) as refused:
        Fabric.from_graph(graph)
    assert message in str(refused.value)


def test_a_node_of_an_unknown_kind_or_role_is_refused() -> None:
    graph: nx.Graph[str] = nx.Graph([("r1", "s1")])
    graph.nodes["r1"]["kind"] = "router"
    with pytest.raises(FabricError, match="node 'r1' is of kind 'router'; expected 'host' or 'switch'"):
        Fabric.from_graph(graph)
    graph.nodes["r1"].update(kind="switch", role="tor")
    with pytest.raises(FabricError, match="role 'tor'; expected one of leaf, "):
        Fabric.from_graph(graph)


def test_networkx_is_loaded_only_for_a_graph() -> None:
    program = (
        "import sys; from netfold.topologies.spec import load_fabric; f = load_fabric('leaf-spine-2x2'); "
        "assert 'networkx' not in sys.modules; f.graph; assert 'networkx' in sys.modules"
    )
    subprocess.run([sys.executable, "-P", "-c", program], check=True, timeout=60)


NODES = st.sampled_from("abcdefgh")


@given(links=st.sets(st.tuples(NODES, NODES)), start=NODES)
def test_distances_are_those_of_the_shortest_paths(links: set[tuple[str, str]], start: str) -> None:
    graph: nx.Graph[str] = nx.Graph(links)
    graph.add_nodes_from("abcdefgh")
    found = distances({node: list(graph.adj[node]) for node in graph}, start)
    assert found == nx.single_source_shortest_path_length(graph, start)
    assert list(found.values()) == sorted(found.values()), "nearest first"
    assert list(bfs_edges(start, graph.neighbors)) == list(nx.bfs_edges(graph, start))
