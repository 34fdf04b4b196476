# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Desired contents of switches carry out the plan: packets walked through the entries add up once, and every worker
gets its result, also when it asks again."""

from __future__ import annotations

import functools
import operator
from dataclasses import replace

import pytest

from netfold.controller.jobs.file import resolve_job
from netfold.controller.jobs.records import AllocatedTree, JobRecord, JobState
from netfold.controller.lifecycle.allocation import AllocationState, allocate
from netfold.controller.lifecycle.packet_model import PacketModel
from netfold.controller.planning.plan import Edge, Tree
from netfold.controller.scheduling.job_planner import PlanRequest, plan_job
from netfold.controller.switches.base_entries import MAX_QUEUE_US, management_entries
from netfold.controller.switches.desired_state import desired_contents
from netfold.controller.switches.devices import Device, SwitchTarget, packet_cells
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.controller.switches.failed_elements import FailedElements, element_named
from netfold.controller.switches.tree_entities import UnroutableError, tree_entities
from netfold.controller.switches.tree_feature import InstalledTree
from netfold.p4src.manifest import Form, Program
from netfold.topologies.addressing import addresses
from netfold.topologies.fabric import Fabric, Host, Link, Loopback, Switch, SwitchRole
from netfold.topologies.generators import fat_tree, leaf_spine, single_switch
from netfold.topologies.ports import Chip
from tests.controller.walk import Walk

FABRICS = {
    "single": single_switch(6, parameter_servers=2),
    "leaf-spine": leaf_spine(3, 2, 3, parameter_servers=2),
    "oversubscribed": leaf_spine(4, 2, 4, parameter_servers=2, oversubscription=4),
    "fat-tree": fat_tree(4, parameter_servers=2),
}
SCHEMES = ("none", "lbmm", "atp", "switchml", "grid", "inart", "panama")


def placed(fabric: Fabric, spec: str) -> JobRecord:
    resolved = resolve_job(spec, fabric)
    plan = plan_job(fabric, PlanRequest(resolved))
    placement = allocate(fabric, PacketModel(32), resolved, plan, [], AllocationState(0, {}), after_epoch=0)
    return JobRecord(
        name="j", seq=1, spec_yaml=spec, state=JobState.RUNNING, placement=placement, udp_port=61440
    )


def _config(fabric: Fabric) -> FabricConfig:
    return FabricConfig(fabric, addresses(fabric), management_tree=2000)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("fabric", FABRICS.values(), ids=FABRICS)
def test_every_worker_gets_one_result_and_an_answer_when_it_asks_again(fabric, scheme):
    job = placed(fabric, f"name: j\nscheme: {scheme}\n")
    switches = desired_contents(_config(fabric), [job], FailedElements())
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
    job = placed(fabric, "name: j\nscheme: switchml\n")
    switches = desired_contents(_config(fabric), [job], FailedElements())
    planned, tree = job.placement.trees[0], job.placement.plan.trees[0]
    leaf = fabric.attachment("h1")
    cases = {
        "another epoch": ({"epoch": job.epoch + 1}, 17),
        "outside the range": ({"slot": planned.slots}, 18),
        "another child": ({"child": 99}, 16),
        "another tree": ({"tree": planned.tree + 1}, 16),
        "a result": ({"kind": 1}, 16),
        "another job's UDP port": ({"udp_port": 61441}, 16),
        "a read": ({"kind": 2, "tree": 2000}, 16),
    }
    for what, (changes, reason) in cases.items():
        walk = Walk(fabric, switches, planned, tree, job.epoch)
        walk.send("h1", **changes)
        assert walk.dropped == [(leaf, reason)], what


PIPE = 128
LEAF = (("h1", 4), ("h2", 8), ("h3", PIPE + 4), ("up", PIPE + 8))


def _on_chips(root: str) -> tuple[Fabric, Tree]:
    """Two leaves of a spine, all of them chips; `root` is the spine, a leaf or a parameter server. On each leaf a
    child enters by the other pipe, and on the spine too."""
    hosts = (*(Host(f"h{i}") for i in range(1, 7)), Host("ps", parameter_server=True))
    loopbacks = (Loopback(68, 100), Loopback(PIPE + 68, 100))
    others = (("h4", 4), ("h5", 8), ("h6", PIPE + 4), ("up", PIPE + 8), ("ps", 12))
    wired = {"leaf": LEAF, "other": others, "up": (("leaf", 4), ("other", PIPE + 4))}
    switches = tuple(
        Switch(n, SwitchRole.LEAF, 1000.0, 4096, p, Chip.TOFINO, loopbacks) for n, p in wired.items()
    )
    pairs = [(n, leaf) for leaf in ("leaf", "other") for n, _ in wired[leaf]]
    fabric = Fabric("chips", hosts, switches, tuple(Link(a, b, 100.0) for a, b in pairs))
    edges = [Edge(f"h{i}", leaf, (f"h{i}", leaf)) for i, leaf in enumerate(["leaf"] * 3 + ["other"] * 3, 1)]
    ways = {
        "up": [("leaf", "up"), ("other", "up")],
        "leaf": [("other", "up", "leaf")],
        "ps": [("leaf", "up", "other"), ("other", "ps")],
    }
    edges += [Edge(way[0], way[-1], way) for way in ways[root]]
    top = {"up": [("up", "leaf"), ("up", "other")], "leaf": [("leaf", "up"), ("up", "other")]}
    above = top.get(root, [("ps", "other"), ("other", "up"), ("up", "leaf")])
    down = (*above, *((leaf, h) for h, leaf in pairs if h.startswith("h")))
    return fabric, Tree(root, 1.0, tuple(edges), down)


@pytest.mark.parametrize("root", ["up", "leaf", "ps"])
def test_children_of_another_pipe_are_looped_into_the_node_s(root):
    fabric, tree = _on_chips(root)
    bases = {n: 0 for n in tree.nodes if not fabric.is_host(n)}
    walk = _walk_of(fabric, tree, bases)
    workers = [f"h{i}" for i in range(1, 7)]
    for worker in workers:
        walk.send(worker)
    assert walk.results == dict.fromkeys(workers, 1)
    assert set(walk.looped["leaf"]) == {68}
    assert walk.added["leaf"] == {0}, "all sums in one pipe"
    for worker in workers:
        before = walk.results[worker]
        walk.send(worker)
        assert walk.results[worker] > before, f"{worker} asked again and got no answer"
    assert not walk.dropped
    walk.send("h3", epoch=7)
    assert walk.dropped == [("leaf", 16)], "refused where it enters"


def test_a_loopback_port_takes_nothing_but_looped_packets_and_the_controller_s():
    fabric, tree = _on_chips("up")
    planned = AllocatedTree(tree=1, slots=16, window=8, bases={})
    switches = desired_contents(_config(fabric), [], FailedElements())
    for switch, entity in tree_entities(
        InstalledTree(
            fabric, planned.model_copy(update={"bases": {"leaf": 0, "other": 0, "up": 0}}), tree, 1, 61440
        )
    ):
        switches[switch][entity.key] = entity
    at_68 = [dict(e.match) for e in switches["leaf"].values() if dict(e.key[1]).get("ingress_port") == 68]
    assert {m["tree"] for m in at_68} == {1, 2000}
    assert {m["child"][0] for m in at_68 if m["tree"] == 1} == {2}, "h3's number"
    assert {m["kind"] for m in at_68 if m["tree"] == 2000} == {2, 3}, "READ and RESET of the pipe's slots"


def test_thresholds_are_in_the_unit_of_the_target_s_queues():
    fabric, _ = _on_chips("up")
    cells = packet_cells(Chip.TOFINO, 32)
    assert (cells, packet_cells(Chip.TOFINO2, 64)) == (3, 2)
    chip = Device(SwitchTarget.TOFINO, packet_cells=cells)
    config = replace(_config(fabric), devices={"leaf": chip}, mark_fraction=0.25, packet_bits=8000.0)
    thresholds = {
        switch: {
            dict(e.match)["port"]: dict(e.actions[0].args)["depth"]
            for e in desired_contents(config, [], FailedElements())[switch].values()
            if e.key[0] == "ecn_thresholds"
        }
        for switch in ("leaf", "other")
    }
    assert thresholds["leaf"] == dict.fromkeys([4, 8, PIPE + 4, PIPE + 8, 68, PIPE + 68], 48)
    rate = fabric.link("other", "up").rate * fabric.unit.bits_per_second
    full_us = 8000 * 1e6 / rate
    assert thresholds["other"][fabric.ports["other"]["up"]] == round(16 * full_us)


def _thresholds(config: FabricConfig) -> set[object]:
    entries = desired_contents(config, [], FailedElements())["leaf1"].values()
    return {dict(e.actions[0].args)["depth"] for e in entries if e.key[0] == "ecn_thresholds"}


@pytest.mark.parametrize(
    ("rate", "microseconds"),
    [(1e-320, MAX_QUEUE_US), (1e-3, MAX_QUEUE_US), (1, 128_000), (100, 1280), (1e4, 13), (1e5, 1), (1e9, 1)],
)
def test_thresholds_are_times_that_the_program_knows_at_any_rate(rate: float, microseconds: int):
    fabric = leaf_spine(2, 2, 1, rate=rate, fabric_rate=rate, queue=64)
    assert _thresholds(replace(_config(fabric), mark_fraction=0.25, packet_bits=8000.0)) == {microseconds}


@pytest.mark.parametrize(("is_timed", "threshold"), [(True, 1280), (False, 16)])
def test_thresholds_are_packets_where_a_program_s_queues_are(is_timed: bool, threshold: int):
    """A program of the operator's own may be older than the controller."""
    fabric = leaf_spine(2, 2, 1, queue=64)
    program = Program(lanes=64, children=32, form=Form.V1MODEL, timed=is_timed)
    own = replace(fabric, switches=tuple(replace(s, program=program) for s in fabric.switches))
    assert _thresholds(replace(_config(own), mark_fraction=0.25, packet_bits=8000.0)) == {threshold}


def test_the_controller_s_port_is_the_target_s():
    fabric, _ = _on_chips("up")
    config = replace(_config(fabric), devices={"leaf": Device(cpu_port=192)})
    ports = {
        dict(e.match)["ingress_port"]
        for e in management_entries(config, "leaf")
        if dict(e.match)["kind"] == 3
    }
    assert ports == {192, 68, PIPE + 68}


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
    planned = AllocatedTree(tree=1, slots=16, window=8, bases={"leaf1": 0})
    with pytest.raises(UnroutableError, match="does not lead to h3"):
        list(tree_entities(InstalledTree(fabric, planned, Tree("leaf1", 1.0, edges, down), 1, 61440)))


def _walk_of(fabric: Fabric, tree: Tree, bases: dict[str, int]) -> Walk:
    planned = AllocatedTree(tree=1, slots=16, window=8, bases=bases)
    switches = desired_contents(_config(fabric), [], FailedElements())
    for switch, entity in tree_entities(InstalledTree(fabric, planned, tree, 1, 61440)):
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
    config = _config(fabric)
    rack2 = int(config.addresses.switches["leaf2"].prefix.network_address)
    up = {s: fabric.ports["leaf1"][s] for s in ("spine1", "spine2")}
    assert _next_hops(desired_contents(config, [], FailedElements())["leaf1"], rack2) == set(up.values())
    cut = FailedElements(frozenset({frozenset(("leaf2", "spine1"))}))
    assert _next_hops(desired_contents(config, [], cut)["leaf1"], rack2) == {up["spine2"]}
    away = FailedElements(frozenset(), frozenset({"spine1"}))
    assert _next_hops(desired_contents(config, [], away)["leaf1"], rack2) == {up["spine2"]}


def test_a_switch_that_does_not_answer_is_still_routed_over_when_nothing_else_is_there():
    fabric = leaf_spine(2, 1, 1)
    config = _config(fabric)
    rack2 = int(config.addresses.switches["leaf2"].prefix.network_address)
    whole = desired_contents(config, [], FailedElements())
    for away in ("spine1", "leaf1", "leaf2"):
        assert desired_contents(config, [], FailedElements(frozenset(), frozenset({away}))) == whole
    assert _next_hops(whole["leaf1"], rack2) == {fabric.ports["leaf1"]["spine1"]}


@pytest.mark.parametrize(
    ("drained", "spines"),
    [
        (("spine1",), {"spine2"}),
        (("leaf1-spine1",), {"spine2"}),
        (("leaf2-spine1",), {"spine2"}),
        (("spine1", "leaf2"), {"spine2"}),
        (("spine1", "leaf1"), {"spine2"}),
        (("spine1", "leaf1-spine2"), {"spine1", "spine2"}),
        (("spine1", "spine2"), {"spine1", "spine2"}),
    ],
    ids=lambda names: " ".join(sorted(names)),  # sets have another order in each process
)
def test_routes_leave_drained_elements_where_there_is_another_path(drained, spines):
    fabric = leaf_spine(2, 2, 1)
    config = _config(fabric)
    rack2 = int(config.addresses.switches["leaf2"].prefix.network_address)
    elements = functools.reduce(operator.or_, (element_named(fabric, name) for name in drained))
    contents = desired_contents(config, [], FailedElements(), drained=elements)
    assert _next_hops(contents["leaf1"], rack2) == {fabric.ports["leaf1"][s] for s in spines}


def test_routes_take_drained_switches_rather_than_silent_ones():
    fabric = leaf_spine(2, 2, 1)
    config = _config(fabric)
    rack2 = int(config.addresses.switches["leaf2"].prefix.network_address)
    silent, drained = element_named(fabric, "spine1"), element_named(fabric, "spine2")
    contents = desired_contents(config, [], silent, drained=drained)
    assert _next_hops(contents["leaf1"], rack2) == {fabric.ports["leaf1"]["spine2"]}
