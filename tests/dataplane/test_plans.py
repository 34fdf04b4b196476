# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""From a plan to the sums, without a testbed: the plan of every scheme, as the controller's entries, in switches that
run the compiled program. Workers get exact sums under loss, duplication and reordering; no honest packet is refused."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st

from netfold.controller.jobs.file import resolve_job
from netfold.controller.jobs.records import JobRecord, JobState, Member
from netfold.controller.lifecycle.allocation import AllocationState, allocate
from netfold.controller.lifecycle.capacity import RefusedError
from netfold.controller.lifecycle.packet_model import PacketModel
from netfold.controller.planning.plan import PlanningError
from netfold.controller.planning.scheme_registry import SCHEMES
from netfold.controller.scheduling.job_planner import PlanRequest, plan_job
from netfold.controller.switches.programs import program_for
from netfold.p4src.tools.p4build import Profile
from netfold.topologies.fabric import Fabric
from netfold.topologies.generators import fat_tree, leaf_spine, single_switch
from netfold.topologies.spec import load_fabric
from tests.dataplane.device import SoftDevice, compiled
from tests.dataplane.frames import LANES
from tests.dataplane.planned import PlannedRun
from tests.planning.cases import random_fabrics

FABRICS = {
    "single switch": single_switch(6, parameter_servers=2),
    "leaf-spine": leaf_spine(3, 2, 3, parameter_servers=2),
    "fat-tree": fat_tree(4, parameter_servers=2),
    "GRID's example": load_fabric("grid-fig1"),
    "InArt's example": load_fabric("inart-fig1"),
}
CHUNKS, EVENTS = 20, 2000  # more chunks than slots
LOSS, REPEATS = 0.05, 0.1


@pytest.fixture(scope="module")
def spare() -> list[SoftDevice]:
    """Switches that any fabric may use."""
    return []


def placed(fabric: Fabric, scheme: str, lanes: int = LANES) -> JobRecord:
    """A running job over all hosts. Raises RefusedError where the fabric has no room for it."""
    text = f"name: j\nscheme: {scheme}\nslots: 16\n"
    resolved = resolve_job(text, fabric)
    plan = plan_job(fabric, PlanRequest(resolved))
    placement = allocate(
        fabric, PacketModel(lanes), resolved, plan, [], AllocationState(0, {}), after_epoch=0
    )
    return JobRecord(
        name="j",
        seq=1,
        spec_yaml=text,
        state=JobState.RUNNING,
        members=tuple(Member(host=host) for host in resolved.workers),
        placement=placement,
        udp_port=0xF000,
    )


def devices(fabric: Fabric, spare: list[SoftDevice]) -> dict[str, SoftDevice]:
    while len(spare) < len(fabric.switches):
        spare.append(SoftDevice(compiled(Profile(LANES))[0]))
    used = {switch.name: device for switch, device in zip(fabric.switches, spare, strict=False)}
    for device in used.values():
        device.clear()
    return used


def prove(fabric: Fabric, job: JobRecord, spare: list[SoftDevice], seed: int) -> None:
    run = PlannedRun(fabric, job, devices(fabric, spare), CHUNKS)
    run.run(Random(seed), EVENTS, LOSS, REPEATS)
    run.finish()
    assert run.refusals() == {}


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.slow] if n in ("leaf-spine", "fat-tree") else []) for n in FABRICS],
)
def test_every_scheme_s_plan_adds_up(name: str, scheme: str, spare: list[SoftDevice]):
    prove(FABRICS[name], placed(FABRICS[name], scheme), spare, seed=1)


@pytest.mark.parametrize("scheme", ["packing", "auto"])
def test_trees_with_more_levels_than_the_fabric_has_tiers_add_up(scheme: str, spare: list[SoftDevice]):
    """Nodes of at most four children over eleven leaves: the shape of 66 racks on nodes of 32."""
    wide = leaf_spine(11, 4, 2)
    fabric = replace(wide, switches=tuple(replace(s, children=4) for s in wide.switches))
    job = placed(fabric, scheme)
    assert job.placement is not None
    assert max(len(tree.nodes) for tree in job.placement.plan.trees) > 11
    prove(fabric, job, spare, seed=1)


@pytest.mark.parametrize(("hosts", "bits"), [(40, 64), (64, 64), (65, 256), (256, 256)])
def test_more_hosts_under_a_leaf_than_32_are_one_node_with_a_wider_program(hosts: int, bits: int):
    """From the fabric's file to every sum: plan, program, entries and registers."""
    flat = single_switch(hosts)
    fabric = replace(flat, switches=tuple(replace(s, children=hosts) for s in flat.switches))
    profile = Profile(64, bits)
    assert program_for(fabric.switches, profile.lanes).blob.name == profile.program
    job = placed(fabric, "panama", profile.lanes)
    assert job.placement is not None
    (root,) = {tree.root for tree in job.placement.plan.trees}
    assert [len(tree.children(root)) for tree in job.placement.plan.trees] == [hosts]
    with SoftDevice(compiled(profile)[0], children=bits) as device:
        run = PlannedRun(fabric, job, {root: device}, chunks=1, lanes=profile.lanes)
        run.run(Random(hosts), 4 * hosts, LOSS, REPEATS)
        run.finish()
        assert run.refusals() == {}


@pytest.mark.slow
@settings(
    max_examples=40,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],
    print_blob=True,
)
@given(fabric=random_fabrics(), scheme=st.sampled_from(sorted(SCHEMES)), seed=st.integers(0, 2**32 - 1))
def test_plans_on_random_fabrics_add_up(spare: list[SoftDevice], fabric: Fabric, scheme: str, seed: int):
    try:
        job = placed(fabric, scheme)
    except (PlanningError, RefusedError):
        event("refused")  # no room for such a job there
        return
    event("planned")
    prove(fabric, job, spare, seed)
