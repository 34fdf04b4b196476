# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Candidate routes, residual capacities, drafts."""

from __future__ import annotations

import random

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netfold.controller.planning.candidate_paths import Limits
from netfold.controller.planning.draft_editor import DraftEditor
from netfold.controller.planning.layout import Draft, cheapest_links, finish, route_results
from netfold.controller.planning.plan import JobSpec, Loads, PlanningError
from netfold.controller.planning.planner import make_plan
from netfold.controller.planning.residual_network import ResidualNetwork
from netfold.controller.planning.scheme import Task
from netfold.controller.planning.validate import recompute_loads, validate
from netfold.topologies.fabric import Fabric, Host, Link, Switch
from netfold.topologies.generators import fat_tree, leaf_spine
from tests.planning.cases import job_on, random_fabrics, star, switch_graph


@settings(max_examples=40)
@given(fabric=random_fabrics())
def test_small_fabrics_have_every_simple_path_as_a_candidate(fabric: Fabric) -> None:
    network = ResidualNetwork(fabric, limits=Limits(small=7))
    graph = switch_graph(fabric)
    first, last = fabric.switches[0].name, fabric.switches[-1].name
    if first == last:
        assert network.paths.between(first, last) == ((),)
        return
    ours = {network.path(route) for route in network.paths.between(first, last)}
    assert ours == {tuple(p) for p in nx.all_simple_paths(graph, first, last)}


@pytest.mark.parametrize("fabric", [fat_tree(4), leaf_spine(5, 8, 2)])
def test_large_fabrics_have_shortest_paths_up_to_the_limit(fabric: Fabric) -> None:
    network = ResidualNetwork(fabric)
    graph = switch_graph(fabric)
    names = [s.name for s in fabric.switches]
    for last in names[:6]:
        for first in names:
            if first == last:
                continue
            routes = network.paths.between(first, last)
            shortest = list(nx.all_shortest_paths(graph, first, last))
            assert len(routes) == min(network.limits.paths, len(shortest)) or len(routes[-1]) > len(routes[0])
            assert network.path(routes[0]) in {tuple(p) for p in shortest}
            assert len(set(routes)) == len(routes)


def test_pairs_get_different_ones_of_their_equal_paths() -> None:
    network = ResidualNetwork(leaf_spine(8, 8, 1), limits=Limits(paths=1))
    spines = {network.path(network.paths.between("leaf1", f"leaf{i}")[0])[1] for i in range(2, 9)}
    assert len(spines) >= 6


@settings(max_examples=40)
@given(fabric=random_fabrics(), seed=st.integers(0, 1000))
def test_cheapest_links_lead_along_cheapest_paths(fabric: Fabric, seed: int) -> None:
    network, graph, rng = ResidualNetwork(fabric), switch_graph(fabric), random.Random(seed)
    cost = {hop: rng.random() for a, b in graph.edges for hop in ((a, b), (b, a))}
    start = fabric.switches[0].name
    via = cheapest_links(network, start, lambda a, b: cost[a, b])
    least, paths = nx.single_source_dijkstra(graph, start, weight=lambda a, b, _: cost[a, b])
    assert {switch: network.links[i] for switch, i in via.items()} == {
        switch: (path[-2], switch) for switch, path in paths.items() if switch != start
    }
    assert via.keys() | {start} == least.keys()


def test_a_route_runs_from_host_to_host_over_its_links() -> None:
    fabric = leaf_spine(2, 1, 2)
    network = ResidualNetwork(fabric)
    [route] = network.paths.routes("h1", "h3")
    assert network.path(route) == ("h1", "leaf1", "spine1", "leaf2", "h3")


def test_background_is_taken_off_and_never_below_nothing() -> None:
    fabric = star(2, 1, rate=10.0, capacity=10.0)
    busy = Loads(links={("w0", "s"): 4.0}, switches={"s": 12.0}, servers={"ps0": 1.0})
    network = ResidualNetwork(fabric, busy)
    assert network.capacity[network.link_id["w0", "s"]] == 6.0
    assert network.capacity[network.link_id["s", "w0"]] == 10.0
    assert network.capacity[network.switch_id["s"]] == 0.0
    assert network.capacity[network.server_id["ps0"]] == 3.0
    assert network.aggregators() == []


def test_a_node_with_one_child_passes_its_packets_on() -> None:
    hosts = (Host("w0"), Host("w1"), Host("ps", True))
    links = (Link("w0", "a", 1.0), Link("w1", "b", 1.0), Link("ps", "b", 2.0), Link("a", "b", 1.0))
    fabric = Fabric("two", hosts, (Switch("a", capacity=5.0), Switch("b", capacity=5.0)), links)
    network, job = ResidualNetwork(fabric), JobSpec("job", ("w0", "w1"), ("ps",))
    draft = Draft("ps", 1.0)
    draft.connect("w0", "a", network.paths.routes("w0", "a")[0])
    draft.connect("a", "ps", network.paths.routes("a", "ps")[0])
    draft.connect("w1", "ps", network.paths.routes("w1", "ps")[0])
    route_results(network, [draft], job.workers)
    plan = finish(network, job, [draft], Task(network, job).report("test"))
    assert {e.child: e.path for e in plan.trees[0].edges} == {
        "w0": ("w0", "a", "b", "ps"),
        "w1": ("w1", "b", "ps"),
    }
    assert plan.loads.switches == {}
    assert recompute_loads(fabric, plan.trees, plan.rate) == plan.loads
    validate(fabric, job, plan)


def test_results_avoid_a_link_that_is_full_already() -> None:
    fabric = leaf_spine(2, 2, 1, parameter_servers=1, rate=1.0, name="x")
    busy = Loads(links={("leaf1", "spine1"): 1.0})
    network, worker = ResidualNetwork(fabric, busy), "h2"
    draft = Draft("ps1", 1.0)
    draft.connect(worker, "ps1", network.paths.routes(worker, "ps1")[0])
    route_results(network, [draft], [worker])
    assert ("leaf1", "spine2") in {network.links[i] for i in draft.result_links}


def test_a_later_job_goes_around_links_that_earlier_ones_fill() -> None:
    fabric = leaf_spine(3, 3, 2, parameter_servers=1, rate=10.0)
    full = dict.fromkeys((("leaf2", "spine1"), ("leaf2", "spine2"), ("spine3", "leaf3")), 10.0)
    for scheme in ("none", "atp", "grid", "inart", "optimal", "switchml", "panama", "auto"):
        plan = make_plan(fabric, job_on(fabric, scheme), background=Loads(links=full))
        assert plan.rate > 0
        assert not plan.loads.links.keys() & full.keys()


def test_a_worker_cut_off_by_full_links_is_named() -> None:
    fabric = leaf_spine(2, 2, 1, parameter_servers=1, rate=10.0)
    full = {("leaf2", "spine1"): 10.0, ("leaf2", "spine2"): 10.0}
    for scheme in ("none", "atp", "grid", "inart", "optimal", "auto"):
        with pytest.raises(PlanningError, match=r"h2|leaf2"):
            make_plan(fabric, job_on(fabric, scheme), background=Loads(links=full))


@pytest.mark.parametrize(("child", "parent"), [("leaf1", "leaf1"), ("spine1", "leaf1")])
def test_a_planner_that_gives_the_root_or_a_node_itself_as_parent_is_refused_in_words(
    child: str, parent: str
) -> None:
    network = ResidualNetwork(leaf_spine(2, 1, 2))
    editor = DraftEditor(network, [Draft("spine1", 1.0)], ())
    with pytest.raises(PlanningError, match=f"{child} cannot be a child of {parent}"):
        editor.place(0, child, parent)
