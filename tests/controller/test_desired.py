# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What the switches should hold does what the plan says: packets walked through the entries add up once, and every
worker gets its result, also when it asks again."""

from __future__ import annotations

import pytest

from controller.admission import Numbers, Wire, place, plan_order
from controller.desired import Broken, Setting, UnroutableError, desired, tree_entities
from controller.jobs import read_order
from controller.planning.plan import Edge, Tree
from controller.records import JobRecord, JobState, PlannedTree
from tests.controller.walk import Walk
from topologies.addressing import addresses
from topologies.fabric import Fabric
from topologies.generators import fat_tree, leaf_spine, single_switch

FABRICS = {
    "single": single_switch(6, parameter_servers=2),
    "leaf-spine": leaf_spine(3, 2, 3, parameter_servers=2),
    "oversubscribed": leaf_spine(4, 2, 4, parameter_servers=2, oversubscription=4),
    "fat-tree": fat_tree(4, parameter_servers=2),
}
SCHEMES = ("none", "lbmm", "atp", "switchml", "grid", "inart", "panama")


def _placed(fabric: Fabric, spec: str) -> JobRecord:
    order = read_order(spec, fabric)
    plan = plan_order(fabric, order, [], Broken(), frozenset())
    placement = place(fabric, Wire(32), order, plan, [], Numbers(0, {}), after_epoch=0)
    return JobRecord(
        name="j", seq=1, spec_yaml=spec, state=JobState.RUNNING, placement=placement, udp_port=61440
    )


def _setting(fabric: Fabric) -> Setting:
    return Setting(fabric, addresses(fabric), mark=2000)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("fabric", FABRICS.values(), ids=FABRICS)
def test_every_worker_gets_one_result_and_an_answer_when_it_asks_again(fabric, scheme):
    job = _placed(fabric, f"name: j\nscheme: {scheme}\n")
    switches = desired(_setting(fabric), [job], Broken())
    workers = [h.name for h in fabric.hosts if not h.parameter_server]
    for planned, tree in zip(job.placement.trees, job.placement.plan.trees, strict=True):
        walk = Walk(fabric, switches, planned, tree, job.epoch)
        for worker in workers:
            assert not walk.results
            walk.send(worker)
        assert walk.results == dict.fromkeys(workers, 1)
        for worker in workers:
            before = walk.results[worker]
            walk.send(worker)
            assert walk.results[worker] > before, f"{worker} asked again and got no answer"
        assert not walk.dropped


def test_forged_packets_are_refused_with_their_reason():
    fabric = FABRICS["leaf-spine"]
    job = _placed(fabric, "name: j\nscheme: switchml\n")
    switches = desired(_setting(fabric), [job], Broken())
    planned, tree = job.placement.trees[0], job.placement.plan.trees[0]
    leaf = fabric.attachment("h1")
    cases = {
        "another epoch": ({"epoch": job.epoch + 1}, 17),
        "outside the range": ({"slot": planned.slots}, 18),
        "another child": ({"child": 99}, 16),
        "another tree": ({"tree": planned.tree + 1}, 16),
        "a result": ({"kind": 1}, 16),
        "a read": ({"kind": 2, "tree": 2000}, 16),
    }
    for what, (changes, reason) in cases.items():
        walk = Walk(fabric, switches, planned, tree, job.epoch)
        walk.send("h1", **changes)
        assert walk.dropped == [(leaf, reason)], what


def _triangle() -> Fabric:
    """Two leaves and two spines, without choices made by a planner."""
    return leaf_spine(2, 2, 1)


def test_answers_go_back_along_the_way_up_where_no_result_flows():
    fabric = _triangle()
    edges = (Edge("h1", "leaf1", ("h1", "leaf1")), Edge("h2", "leaf1", ("h2", "leaf2", "spine1", "leaf1")))
    tree = Tree(
        "leaf1", 1.0, edges, (("leaf1", "h1"), ("leaf1", "spine2"), ("spine2", "leaf2"), ("leaf2", "h2"))
    )
    walk = _walk_of(fabric, tree, bases={"leaf1": 0})
    walk.send("h1")
    walk.send("h2")
    assert walk.results == {"h1": 1, "h2": 1}
    walk.send("h2")
    assert walk.results == {"h1": 1, "h2": 2}


def test_answers_for_an_inner_node_reach_its_workers_off_the_way_down():
    fabric = leaf_spine(2, 2, 2)
    edges = (
        Edge("h1", "leaf1", ("h1", "leaf1")),
        Edge("h3", "leaf2", ("h3", "leaf2")),
        Edge("h4", "leaf2", ("h4", "leaf2")),
        Edge("leaf2", "leaf1", ("leaf2", "spine1", "leaf1")),
    )
    down = (("leaf1", "h1"), ("leaf1", "spine2"), ("spine2", "leaf2"), ("leaf2", "h3"), ("leaf2", "h4"))
    walk = _walk_of(fabric, Tree("leaf1", 1.0, edges, down), bases={"leaf1": 0, "leaf2": 0})
    for worker in ("h1", "h3", "h4"):
        walk.send(worker)
    walk.send("h4")
    assert walk.results["h4"] == 2


def test_an_answer_that_cannot_reach_its_child_is_an_error():
    fabric = leaf_spine(3, 2, 1)
    edges = (
        Edge("h1", "leaf1", ("h1", "leaf1")),
        Edge("h2", "leaf1", ("h2", "leaf2", "spine1", "leaf1")),
        Edge("h3", "leaf1", ("h3", "leaf3", "spine1", "leaf1")),
    )
    down = (
        ("leaf1", "h1"), ("leaf1", "spine1"), ("spine1", "leaf2"), ("leaf2", "h2"),
        ("leaf1", "spine2"), ("spine2", "leaf3"), ("leaf3", "h3"),
    )  # fmt: skip
    planned = PlannedTree(tree=1, slots=16, window=8, bases={"leaf1": 0})
    with pytest.raises(UnroutableError, match="does not lead to h3"):
        list(tree_entities(fabric, planned, Tree("leaf1", 1.0, edges, down), 1))


def _walk_of(fabric: Fabric, tree: Tree, bases: dict[str, int]) -> Walk:
    planned = PlannedTree(tree=1, slots=16, window=8, bases=bases)
    switches = desired(_setting(fabric), [], Broken())
    for switch, entity in tree_entities(fabric, planned, tree, 1):
        switches[switch][entity.key] = entity
    return Walk(fabric, switches, planned, tree, 1)


def _next_hops(contents, prefix: int) -> set[int]:
    found = [
        e
        for e in contents.values()
        if e.key[0] == "ipv4_routes" and dict(e.match)["destination"] == (prefix, 16)
    ]
    return {dict(a.args)["port"] for e in found for a in e.actions}


def test_routes_use_every_shortest_way_that_works():
    fabric = leaf_spine(2, 2, 1)
    setting = _setting(fabric)
    rack2 = int(setting.addresses.switches["leaf2"].prefix.network_address)
    up = {s: fabric.ports["leaf1"][s] for s in ("spine1", "spine2")}
    assert _next_hops(desired(setting, [], Broken())["leaf1"], rack2) == set(up.values())
    cut = Broken(frozenset({frozenset(("leaf2", "spine1"))}))
    assert _next_hops(desired(setting, [], cut)["leaf1"], rack2) == {up["spine2"]}
    away = Broken(frozenset(), frozenset({"spine1"}))
    assert _next_hops(desired(setting, [], away)["leaf1"], rack2) == {up["spine2"]}


def test_a_switch_that_does_not_answer_is_still_routed_over_when_nothing_else_is_there():
    fabric = leaf_spine(2, 1, 1)
    setting = _setting(fabric)
    rack2 = int(setting.addresses.switches["leaf2"].prefix.network_address)
    whole = desired(setting, [], Broken())
    for away in ("spine1", "leaf1", "leaf2"):
        assert desired(setting, [], Broken(frozenset(), frozenset({away}))) == whole
    assert _next_hops(whole["leaf1"], rack2) == {fabric.ports["leaf1"]["spine1"]}
