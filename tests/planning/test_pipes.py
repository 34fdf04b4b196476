# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Nodes on chips with several pipes: which pipe adds up, which children are looped, what that costs, and what cannot
be."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from netfold.controller.jobs.file import resolve_job
from netfold.controller.jobs.records import JobRecord, JobState, Placement
from netfold.controller.lifecycle.capacity import RefusedError, background_of
from netfold.controller.planning.document import plan_document, plan_from_document
from netfold.controller.planning.pipes import Loop, loops, pipe_of_node
from netfold.controller.planning.plan import InvalidPlanError, Loads, Plan, PlanningError
from netfold.controller.planning.planner import make_plan
from netfold.controller.planning.validate import recompute_loads, validate
from netfold.controller.scheduling.job_planner import PlanRequest, plan_job
from netfold.controller.switches.failed_elements import FailedElements
from netfold.topologies.fabric import Fabric, Host, Link, Loopback, Switch
from netfold.topologies.ports import Chip
from tests.planning.cases import job_on

PIPE = 128


def chips(
    ports: dict[str, int], *loopbacks: Loopback, chip: Chip | None = Chip.TOFINO, capacity: float = 1000.0
) -> Fabric:
    """Hosts at these ports of one switch; those whose names begin with ps are parameter servers. Links carry 100."""
    hosts = tuple(Host(n, parameter_server=n.startswith("ps")) for n in ports)
    switch = Switch("s", capacity=capacity, ports=tuple(ports.items()), chip=chip, loopbacks=loopbacks)
    return Fabric("chips", hosts, (switch,), tuple(Link(n, "s", 100.0) for n in ports))


def planned(fabric: Fabric, scheme: str = "switchml") -> Plan:
    return make_plan(fabric, job_on(fabric, scheme))


SPREAD = {"w0": 4, "w1": 5, "w2": 6, "w3": PIPE + 4}


def test_children_of_one_pipe_need_no_loopback() -> None:
    fabric = chips({"w0": PIPE + 1, "w1": PIPE + 2})
    tree = planned(fabric).trees[0]
    assert (pipe_of_node(fabric, tree, "s"), loops(fabric, tree)) == (1, {})


def test_a_node_adds_up_where_most_of_its_children_enter() -> None:
    fabric = chips(SPREAD, Loopback(68, 100), Loopback(PIPE + 68, 100))
    plan = planned(fabric)
    tree = plan.trees[0]
    number = [e.child for e in tree.edges].index("w3")
    assert pipe_of_node(fabric, tree, "s") == 0
    assert loops(fabric, tree) == {number: Loop("s", PIPE + 4, 68)}
    assert plan.loads.loopbacks == {("s", 68): pytest.approx(plan.rate)}


def test_a_node_adds_up_in_a_pipe_that_can_be_reached() -> None:
    fabric = chips(SPREAD, Loopback(PIPE + 68, 1000))
    tree = planned(fabric).trees[0]
    assert pipe_of_node(fabric, tree, "s") == 1
    assert {x.entry for x in loops(fabric, tree).values()} == {4, 5, 6}


def test_of_pipes_with_equally_many_children_the_one_with_more_room_is_taken() -> None:
    ports = {"w0": 4, "w1": PIPE + 4}
    for rates, pipe in (((50, 60), 1), ((60, 50), 0), ((50, 50), 0)):
        fabric = chips(ports, Loopback(68, rates[0]), Loopback(PIPE + 68, rates[1]))
        assert pipe_of_node(fabric, planned(fabric).trees[0], "s") == pipe


def test_the_same_ports_without_a_chip_lie_in_one_pipe() -> None:
    plan = planned(chips(SPREAD, chip=None))
    assert plan.loads.loopbacks == {}


@pytest.mark.parametrize("scheme", ["switchml", "panama", "auto"])
def test_without_a_loopback_port_the_tree_is_refused_by_name(scheme: str) -> None:
    with pytest.raises(PlanningError) as caught:
        planned(chips(SPREAD), scheme)
    assert not isinstance(caught.value, InvalidPlanError), "the wiring is at fault, not the scheme"
    for part in ("switch 's'", "by pipe 0 w0, w1, w2", "by pipe 1 w3", "one in pipe 0 would do", "tree"):
        assert part in str(caught.value)


def test_auto_takes_a_scheme_whose_trees_can_be() -> None:
    fabric = chips({**SPREAD, "ps0": 7})
    assert planned(fabric, "auto").algorithm == "none"


def test_the_validator_refuses_what_no_scheme_should_have_made() -> None:
    fabric = chips(SPREAD, Loopback(68, 100))
    plan, job = planned(fabric), job_on(fabric, "switchml")
    validate(fabric, job, plan)
    unlooped = chips(SPREAD)
    with pytest.raises(
        InvalidPlanError, match=r"tree 0 \(root s\): the children of switch 's' enter by several pipes"
    ):
        validate(unlooped, job, replace(plan, loads=recompute_loads(unlooped, plan.trees, plan.rate)))
    slower = chips(SPREAD, Loopback(68, 30))
    with pytest.raises(InvalidPlanError, match="loopback port 68 of switch s carries 100 of 30"):
        validate(slower, job, plan)
    with pytest.raises(InvalidPlanError, match="loopback port 68 of switch s carries 110 of 100"):
        validate(fabric, job, plan, Loads(loopbacks={("s", 68): 10.0}))
    with pytest.raises(InvalidPlanError, match="the plan has 0"):
        validate(fabric, job, replace(plan, loads=replace(plan.loads, loopbacks={})))


def test_the_rate_of_loopback_ports_bounds_the_plan() -> None:
    assert planned(chips(SPREAD, Loopback(68, 30))).rate == pytest.approx(30)


def test_several_loopback_ports_of_a_pipe_share_what_is_looped() -> None:
    ports = {"w0": 1, "w1": 2, "w2": 3, "w3": PIPE + 1, "w4": PIPE + 2}
    fabric = chips(ports, Loopback(68, 40), Loopback(69, 40), Loopback(PIPE + 68, 1))
    plan = planned(fabric)
    assert plan.loads.loopbacks == {("s", 68): pytest.approx(40), ("s", 69): pytest.approx(40)}


def test_jobs_share_a_loopback_port() -> None:
    fabric = chips(SPREAD, Loopback(68, 30))

    def order(rate: float):
        return resolve_job(f"name: j\nscheme: switchml\nrate: {rate}\n", fabric)

    first = plan_job(fabric, PlanRequest(order(20.0)))
    placement = Placement(plan=first, trees=(), epoch=1)
    job = JobRecord(name="a", seq=1, spec_yaml="", state=JobState.RUNNING, placement=placement)
    kept = JobRecord.model_validate_json(job.model_dump_json())
    assert background_of([kept]).loopbacks == {("s", 68): pytest.approx(20)}, "the store keeps it"
    second = plan_job(fabric, PlanRequest(order(50.0), background_of([kept])))
    assert second.rate == pytest.approx(10)
    full = job.model_copy(update={"placement": placement.model_copy(update={"plan": second})})
    with pytest.raises(RefusedError, match="loopback port 68 of switch s has nothing left"):
        plan_job(fabric, PlanRequest(order(50.0), background_of([kept, full])))


def test_a_plan_s_document_tells_what_is_looped() -> None:
    fabric = chips(SPREAD, Loopback(68, 30))
    plan = planned(fabric)
    document = json.loads(json.dumps(plan_document(fabric, plan)))
    assert document["loads"]["loopbacks"] == {"s:68": {"load": pytest.approx(30), "capacity": 30}}
    assert plan_from_document(document).loads == plan.loads


def test_pipes_are_kept_when_a_part_of_the_fabric_fails() -> None:
    ports = (("h1", 4), ("h2", PIPE + 4), ("up1", 8), ("up2", PIPE + 8))
    chip = Switch("leaf", capacity=1000.0, ports=ports, chip=Chip.TOFINO2, loopbacks=(Loopback(6, 50),))
    others = (Switch("up1", capacity=100.0), Switch("up2", capacity=100.0))
    links = tuple(Link(n, "leaf", 100.0) for n, _ in ports)
    fabric = Fabric("f", (Host("h1"), Host("h2")), (chip, *others), links)
    resolved = resolve_job("name: j\nscheme: switchml\n", fabric)
    broken = FailedElements(frozenset({frozenset(("leaf", "up1"))}))
    plan = plan_job(fabric, PlanRequest(resolved, failed=broken))
    assert (plan.rate, plan.loads.loopbacks) == (pytest.approx(50), {("leaf", 6): pytest.approx(50)})
