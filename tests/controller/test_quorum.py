# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs with a quorum: what a job file may say, what is refused, and what switches hold of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from netfold.controller.features.registry import FEATURES
from netfold.controller.jobs.file import JobError, resolve_job
from netfold.controller.jobs.records import AllocatedTree
from netfold.controller.lifecycle.allocation import min_contributions
from netfold.controller.lifecycle.capacity import RefusedError
from netfold.controller.lifecycle.packet_model import PacketModel
from netfold.controller.lifecycle.switch_requirements import check_requirements
from netfold.controller.planning.plan import Edge, Tree
from netfold.controller.scheduling.job_planner import PlanRequest, plan_job
from netfold.controller.switches.programs import with_programs
from netfold.controller.switches.tree_entities import tree_entities
from netfold.controller.switches.tree_feature import InstalledTree
from netfold.p4src.manifest import own_programs
from netfold.p4src.tools.p4build import Profile
from netfold.topologies.fabric import Fabric
from netfold.topologies.generators import leaf_spine, single_switch
from netfold.topologies.ports import Chip

JOB = "name: q\nworkers: [h1, h2, h3, h4]\nscheme: panama\n"


@pytest.fixture
def fabric() -> Fabric:
    return leaf_spine(2, 2, 2)


def test_the_file_names_a_quorum_and_its_deadline(fabric: Fabric):
    file = resolve_job(JOB + "quorum: 3\nquorum_deadline: 20ms\n", fabric).file
    assert (file.quorum, file.quorum_deadline_s) == (3, 0.02)
    assert resolve_job(JOB + "quorum: 3\nquorum_deadline: 1.5s\n", fabric).file.quorum_deadline_s == 1.5
    plain = resolve_job(JOB, fabric).file
    assert (plain.quorum, plain.quorum_deadline_s) == (None, 0.05)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("quorum: 5", "the job has 4 workers"),
        ("quorum: 0", "quorum is 0"),
        ("quorum: true", "truth value"),
        ("quorum: 2\nquorum_deadline: soon", "quorum_deadline is 'soon'; expected a number"),
        ("quorum: 2\nquorum_deadline: 50", r"quorum_deadline is 50; .*as in 50ms or 0\.5s \(50ms if milli"),
        ("quorum: 2\nquorum_deadline: true", "expected a duration"),
        ("quorum: 2\nquorum_deadline: 0ms", "must be above"),
        ("quorum: 2\nnumerics: {mode: integer}", "adds up floats"),
        ("quorum: 2\nnumerics: {mode: quarter}", "predict sums of all workers"),
    ],
)
def test_what_cannot_be_is_refused_with_its_line(said: str, why: str, fabric: Fabric):
    with pytest.raises(JobError, match=why):
        resolve_job(JOB + said + "\n", fabric)


def test_a_node_on_a_chip_has_no_room_for_it(fabric: Fabric):
    resolved = resolve_job(JOB + "quorum: 3\n", fabric)
    plan = plan_job(fabric, PlanRequest(resolved))
    packet_model = PacketModel(32)
    check_requirements(fabric, packet_model, resolved, plan)
    assert min_contributions(fabric, resolved, plan) == 3
    node = next(n for tree in plan.trees for n in tree.nodes if not fabric.is_host(n))
    chips = tuple(replace(s, chip=Chip.TOFINO) if s.name == node else s for s in fabric.switches)
    with pytest.raises(RefusedError, match=f"switch {node} is a tofino, whose program has no room"):
        check_requirements(_with(fabric, chips), packet_model, resolved, plan)
    check_requirements(_with(fabric, chips), packet_model, resolve_job(JOB, fabric), plan)
    assert min_contributions(fabric, resolve_job(JOB, fabric), plan) == 0


def _with(fabric: Fabric, switches: Any) -> Any:
    """The fabric as far as the check looks at it."""

    class Seen:
        is_host = staticmethod(fabric.is_host)

        def switch(self, name: str) -> Any:
            return next(s for s in switches if s.name == name)

    return Seen()


@pytest.mark.parametrize(("workers", "bits"), [(33, 64), (64, 64), (127, 256)])
def test_a_quorum_takes_the_bits_of_a_wide_program(workers: int, bits: int):
    fabric = single_switch(workers)
    resolved = resolve_job(
        f"name: q\nworkers: {workers}\nparameter_servers: 0\nquorum: {workers - 1}\n", fabric
    )
    fabric = with_programs(fabric, {"s1": own_programs()[Profile(64, bits).key]})
    plan = plan_job(fabric, PlanRequest(resolved))
    check_requirements(fabric, PacketModel(64), resolved, plan)
    narrow = with_programs(unlimited(fabric), {"s1": own_programs()[Profile(64).key]})
    expected = f"a tree of {workers} senders to switch s1; a root with a bitmap of 32 bits takes 32"
    with pytest.raises(RefusedError, match=expected):
        check_requirements(narrow, PacketModel(64), resolved, plan)


def unlimited(fabric: Fabric) -> Fabric:
    return replace(fabric, switches=tuple(replace(s, children=None) for s in fabric.switches))


def test_a_quorum_of_more_workers_than_a_sum_counts_is_refused():
    with pytest.raises(JobError, match=r"the job has 128 workers; .* at most 127 workers"):
        resolve_job("name: q\nworkers: 128\nparameter_servers: 0\nquorum: 100\n", single_switch(128))


def test_late_packets_have_a_way_to_the_root_and_a_bit_there(fabric: Fabric):
    """h3 and h4 are added up at leaf2, behind spine1; leaf1 is the root."""
    edges = (
        Edge("h1", "leaf1", ("h1", "leaf1")),
        Edge("h3", "leaf2", ("h3", "leaf2")),
        Edge("h4", "leaf2", ("h4", "leaf2")),
        Edge("leaf2", "leaf1", ("leaf2", "spine1", "leaf1")),
    )
    down = (("leaf1", "h1"), ("leaf1", "spine1"), ("spine1", "leaf2"), ("leaf2", "h3"), ("leaf2", "h4"))
    planned = AllocatedTree(tree=1, slots=16, window=8, bases={"leaf1": 0, "leaf2": 0}, quorum=2)
    tree = Tree("leaf1", 1.0, edges, down)
    held = list(tree_entities(InstalledTree(fabric, planned, tree, 1, 61440), FEATURES))
    least = {s: dict(e.actions[0].args) for s, e in held if e.key[0] == "quorums"}
    assert least == {"leaf1": {"min_contributions": 2}, "leaf2": {"min_contributions": 0}}
    bits = {}
    for switch, entity in held:
        if entity.key[0] == "admission" and entity.actions[0].name == "add_at_root":
            bits[dict(entity.match)["child"][0]] = dict(entity.actions[0].args)["child_mask"]
            assert (switch, dict(entity.actions[0].args)["full_mask"]) == ("leaf1", 0b11)
    assert bits == {0: 1, 3: 2, 1: 4, 2: 8}
    passed = {
        dict(e.match)["child"][0]
        for s, e in held
        if s == "spine1" and e.key[0] == "admission" and e.actions[0].name == "forward"
    }
    assert passed == {1, 2, 3}
    without = planned.model_copy(update={"quorum": 0})
    plain = tree_entities(InstalledTree(fabric, without, tree, 1, 61440), FEATURES)
    assert not any(e.key[0] == "quorums" for _, e in plain)
