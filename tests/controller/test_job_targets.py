# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs whose packets have targets: what a job file may say, when an epoch has them, what switches hold, and what
members are told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import grpc
import pytest

from netfold.controller.features.registry import FEATURES
from netfold.controller.features.targets.feature import decide_targets
from netfold.controller.jobs.file import JobError, TargetsOption, resolve_job
from netfold.controller.jobs.records import AllocatedTree, JobRecord, JobState, Member, Placement
from netfold.controller.lifecycle.allocation import AllocationState, allocate
from netfold.controller.lifecycle.capacity import RefusedError
from netfold.controller.lifecycle.member_status import MemberStatus
from netfold.controller.lifecycle.packet_model import PacketModel
from netfold.controller.operator.job_text import job_lines
from netfold.controller.planning.plan import Edge, Plan, Tree
from netfold.controller.scheduling.job_planner import PlanRequest, plan_job
from netfold.controller.service.messages import job_message
from netfold.controller.switches.entries import TableEntry
from netfold.controller.switches.tree_entities import tree_entities
from netfold.controller.switches.tree_feature import InstalledTree
from netfold.p4src.manifest import Form, Program
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol.target import Targets
from netfold.topologies.fabric import Fabric, Switch
from netfold.topologies.generators import leaf_spine, single_switch, with_parameter_servers
from tests.controller.deployment import MemberStream, asked, ready, served

JOB = "name: job\nworkers: [h1, h2, h3, h4]\nscheme: panama\n"
OLD = Program(lanes=64, children=32, form=Form.V1MODEL)
"""A program of an earlier version."""
SERVED = "name: job\nworkers: [h1, h2]\nparameter_servers: [h3]\nscheme: none\n"


@pytest.fixture
def fabric() -> Fabric:
    return leaf_spine(2, 2, 2)


def _plan(fabric: Fabric, job: str = JOB) -> Plan:
    return plan_job(fabric, PlanRequest(resolve_job(job, fabric)))


def _with_old(fabric: Fabric, name: str) -> Fabric:
    def changed(switch: Switch) -> Switch:
        return replace(switch, program=OLD) if switch.name == name else switch

    return replace(fabric, switches=tuple(map(changed, fabric.switches)))


def _placed(fabric: Fabric, job: str = JOB) -> Placement:
    resolved, numbers = resolve_job(job, fabric), AllocationState(0, {})
    return allocate(fabric, PacketModel(32), resolved, _plan(fabric, job), (), numbers, after_epoch=0)


def _record(members: tuple[Member, ...], *, newcomers: bool = False) -> JobRecord:
    return JobRecord(
        name="job", seq=1, spec_yaml=JOB, state=JobState.RUNNING, members=members, newcomers=newcomers
    )


# ---- the file ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "option"),
    [("", "auto"), ("targets: auto", "auto"), ("targets: required", "required"), ("targets: off", "off")],
)
def test_the_file_says_whether_a_job_has_targets(said: str, option: str, fabric: Fabric):
    assert resolve_job(JOB + said, fabric).file.targets is TargetsOption(option)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("targets: on", "targets"),
        ("targets: required\nquorum: 3", "targets are required, and sums with a quorum have none"),
        (
            "targets: required\non_worker_loss: continue",
            "targets are required, and an elastic job's blocks may lose",
        ),
        ("targets: required\ntransport: roce", "targets are required, and RoCE packets have none"),
    ],
)
def test_what_cannot_be_is_refused_with_its_line(said: str, why: str, fabric: Fabric):
    with pytest.raises(JobError, match=why):
        resolve_job(JOB + said + "\n", fabric)


# ---- the decision -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "lanes", "why"),
    [
        ("targets: off", 64, "its file has `targets: off`"),
        ("sandbox: true", 64, "packets of a sandbox are made by hand"),
        ("quorum: 3", 64, "sums with a quorum have no targets"),
        ("transport: roce", 64, "RoCE packets have no targets"),
        ("on_worker_loss: continue", 64, "blocks of an elastic job may lose their owners"),
        ("", 16, "targets need packets of at least 32 lanes, and these have 16"),
    ],
)
def test_some_jobs_have_sums_in_every_epoch(said: str, lanes: int, why: str, fabric: Fabric):
    decision = decide_targets(fabric, lanes, resolve_job(f"{JOB}{said}\n", fabric), _plan(fabric))
    assert (decision.targets, decision.because) == (Targets.OFF, why)


def test_a_worker_that_does_not_know_targets_or_comes_later_ends_them_for_good(fabric: Fabric):
    resolved, plan = resolve_job(JOB, fabric), _plan(fabric)
    hosts = tuple(Member(host=h) for h in ("h1", "h2", "h3", "h4"))
    assert decide_targets(fabric, 64, resolved, plan, _record(hosts)).targets is Targets.ON
    old = (*hosts[:3], hosts[3].model_copy(update={"supports_targets": False}))
    found = decide_targets(fabric, 64, resolved, plan, _record(old))
    assert (found.targets, found.because) == (Targets.OFF, "the worker of h4 does not know targets")
    assert decide_targets(fabric, 64, resolved, plan, _record(hosts, newcomers=True)).targets is Targets.OFF


def test_a_switch_on_any_path_that_does_not_know_targets_pauses_them(fabric: Fabric):
    """A spine only passes packets of the trees at the leaves, and would drop targeted ones."""
    resolved, plan = resolve_job(JOB, fabric), _plan(fabric)
    used = {n for tree in plan.trees for n in tree.touched if not fabric.is_host(n)}
    for switch in used:
        decision = decide_targets(_with_old(fabric, switch), 64, resolved, plan)
        assert decision.targets is Targets.PAUSED
        assert f"switch {switch} runs a program of 64 lanes without targets" in decision.because
    larger = leaf_spine(3, 2, 2)
    unused = _with_old(larger, "leaf3")
    assert decide_targets(unused, 64, resolve_job(JOB, unused), _plan(unused)).targets is Targets.ON


def test_a_switch_that_only_passes_packets_on_pauses_them(fabric: Fabric):
    """All adding is done by a server."""
    served = with_parameter_servers(fabric, ["h3"])
    plan = _plan(served, SERVED)
    passing = {n for tree in plan.trees for n in tree.touched - set(tree.nodes) if not served.is_host(n)}
    assert passing
    for switch in passing:
        decision = decide_targets(_with_old(served, switch), 64, resolve_job(SERVED, served), plan)
        assert decision.targets is Targets.PAUSED


def test_a_job_that_requires_targets_is_refused_where_a_switch_does_not_know_them(fabric: Fabric):
    used = next(n for n in _plan(fabric).trees[0].nodes if not fabric.is_host(n))
    chip = _with_old(fabric, used)
    resolved, numbers = resolve_job(JOB + "targets: required\n", fabric), AllocationState(0, {})
    with pytest.raises(
        RefusedError,
        match=f"job 'job' requires targets: switch {used} runs a program of 64 lanes without targets",
    ):
        allocate(chip, PacketModel(32), resolved, _plan(fabric), (), numbers, after_epoch=0)


# ---- slots ------------------------------------------------------------------------------------------------


def test_a_stream_of_gathers_has_slots_of_its_own(fabric: Fabric):
    with_targets, without = _placed(fabric), _placed(fabric, JOB + "targets: off\n")
    assert (with_targets.targets, without.targets) == (Targets.ON, Targets.OFF)
    for gathers, sums in zip(with_targets.trees, without.trees, strict=True):
        assert (gathers.slots, gathers.window) == (2 * sums.slots, sums.window)


@pytest.mark.parametrize(("slots", "window"), [(64, 16), (32, 8), (16, 8)])
def test_a_file_that_says_the_slots_gets_no_more(slots: int, window: int, fabric: Fabric):
    """With 16 slots there is no stream of gathers."""
    placement = _placed(fabric, f"{JOB}slots: {slots}\n")
    assert {(t.targets, t.slots, t.window) for t in placement.trees} == {(Targets.ON, slots, window)}


def test_where_slots_are_short_targets_give_way_to_the_window_of_sums(fabric: Fabric):
    sums = _placed(fabric, JOB + "targets: off\n").trees
    wanted = max(t.slots for t in sums)
    small = replace(fabric, switches=tuple(replace(s, slots=wanted * len(sums)) for s in fabric.switches))
    placement, required = _placed(small), _placed(small, JOB + "targets: required\n")
    assert placement.targets is Targets.PAUSED
    assert f"would need {2 * wanted} slots" in placement.no_targets_because
    assert max(t.slots for t in placement.trees) == wanted
    assert required.targets is Targets.ON


# ---- switches ---------------------------------------------------------------------------------------------


def test_targets_that_are_optional_leave_room_for_a_move(fabric: Fabric):
    """Else a job over all slots of a leaf cannot leave a drained spine, make before break."""

    def with_slots(slots: int) -> Fabric:
        return replace(fabric, switches=tuple(replace(s, slots=slots) for s in fabric.switches))

    trees = _placed(with_slots(1 << 16)).trees
    needed = max(sum(t.slots for t in trees if s.name in t.bases) for s in fabric.switches)
    tight = _placed(with_slots(needed))
    assert tight.targets is not Targets.ON
    assert "a move of the job needs" in tight.no_targets_because
    assert _placed(with_slots(needed), JOB + "targets: required\n").targets is Targets.ON
    assert _placed(with_slots(2 * needed)).targets is Targets.ON


def test_switches_know_the_port_towards_each_worker_below(fabric: Fabric):
    """leaf1 is the root; results of h3 and h4 pass spine1 and leaf2."""
    edges = (
        Edge("h4", "leaf2", ("h4", "leaf2")),
        Edge("h1", "leaf1", ("h1", "leaf1")),
        Edge("h3", "leaf2", ("h3", "leaf2")),
        Edge("leaf2", "leaf1", ("leaf2", "spine1", "leaf1")),
    )
    down = (("leaf1", "h1"), ("leaf1", "spine1"), ("spine1", "leaf2"), ("leaf2", "h3"), ("leaf2", "h4"))
    tree = Tree("leaf1", 1.0, edges, down)
    numbers = AllocatedTree(tree=1, slots=16, window=8, bases={"leaf1": 0, "leaf2": 0}, targets=Targets.ON)
    job = _record(tuple(Member(host=h) for h in ("h1", "h3", "h4")))

    def held(targets: Targets) -> dict[tuple[str, int], tuple[int, int]]:
        planned = numbers.model_copy(update={"targets": targets})
        found = {}
        for switch, entity in tree_entities(InstalledTree(fabric, planned, tree, 1, 61440, job), FEATURES):
            if isinstance(entity, TableEntry) and entity.table == "owners":
                args = dict(entity.actions[0].args)
                found[switch, dict(entity.match)["owner"]] = args["via"], args["alone"]
        return found  # type: ignore[return-value]

    ports = fabric.ports
    assert held(Targets.ON) == {
        ("leaf1", 0): (ports["leaf1"]["h1"], 1),
        ("leaf1", 1): (ports["leaf1"]["spine1"], 0),
        ("leaf1", 2): (ports["leaf1"]["spine1"], 0),
        ("spine1", 1): (ports["spine1"]["leaf2"], 0),
        ("spine1", 2): (ports["spine1"]["leaf2"], 0),
        ("leaf2", 1): (ports["leaf2"]["h3"], 1),
        ("leaf2", 2): (ports["leaf2"]["h4"], 1),
    }
    assert not held(Targets.PAUSED)


# ---- members ----------------------------------------------------------------------------------------------


async def _assigned(stream: MemberStream, after_epoch: int = 0) -> pb.Assignment:
    while True:
        notice = await stream.hear()
        if notice.HasField("assignment") and notice.assignment.epoch > after_epoch:
            return notice.assignment


async def test_members_that_know_targets_get_them_and_switches_hold_the_owners(tmp_path: Path):
    async with served(single_switch(4), tmp_path) as (deployment, stub):
        await deployment.run(JOB)
        stream = MemberStream(stub, "job", "h1")
        await stream.say()
        assert (await _assigned(stream)).targets == pb.TARGETS_ON
        await deployment.settled_exactly()
        owners = [
            e for e in deployment.held()["s1"].values() if isinstance(e, TableEntry) and e.table == "owners"
        ]
        assert len(owners) == 4
        assert any("Its packets have targets" in line for line in await deployment.explain("job"))


async def test_a_worker_that_does_not_know_targets_gets_sums_and_so_do_the_others(tmp_path: Path):
    async with served(single_switch(4), tmp_path) as (deployment, stub):
        await deployment.run(JOB)
        new, old = MemberStream(stub, "job", "h1"), MemberStream(stub, "job", "h2")
        await new.say()
        first = await _assigned(new)
        assert first.targets == pb.TARGETS_ON
        await old.say(supports_targets=False)
        told = await _assigned(old)
        assert (told.targets, told.epoch > first.epoch) == (pb.TARGETS_OFF, True)
        assert (await _assigned(new, first.epoch)).targets == pb.TARGETS_OFF
        await deployment.settled_exactly()
        assert not any(
            isinstance(e, TableEntry) and e.table == "owners" for e in deployment.held()["s1"].values()
        )
        why = (
            "Its packets have no targets, so all its calls are sums: the worker of h2 does not know targets."
        )
        assert why in await deployment.explain("job")


async def test_a_controller_that_starts_again_knows_which_members_know_targets(tmp_path: Path):
    async with ready(single_switch(4), tmp_path) as deployment:
        await deployment.run(JOB)
        async with asked(deployment) as stub:
            old = MemberStream(stub, "job", "h2")
            await old.say(supports_targets=False)
            epoch = (await _assigned(old)).epoch
        await deployment.restart()
        deployment.assert_exact()
        placement = deployment.job("job").placement
        assert placement is not None
        assert (placement.epoch, placement.targets) == (epoch, Targets.OFF)


async def test_a_parameter_server_that_does_not_know_targets_pauses_them(tmp_path: Path):
    async with served(with_parameter_servers(single_switch(4), ["h3"]), tmp_path) as (deployment, stub):
        await deployment.run(SERVED)
        server, worker = MemberStream(stub, "job", "h3"), MemberStream(stub, "job", "h1")
        await server.say(supports_targets=False)
        assert (await _assigned(server)).targets == pb.TARGETS_PAUSED
        await worker.say()
        assert (await _assigned(worker)).targets == pb.TARGETS_PAUSED


async def test_a_member_that_does_not_know_required_targets_is_refused(tmp_path: Path):
    async with served(single_switch(4), tmp_path) as (deployment, stub):
        await deployment.run(JOB + "targets: required\n")
        old = MemberStream(stub, "job", "h2")
        await old.say(supports_targets=False)
        with pytest.raises(grpc.aio.AioRpcError, match="requires targets, and the member of 'h2'") as caught:
            await old.hear()
        assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED


async def test_no_worker_is_added_to_a_job_that_requires_targets(tmp_path: Path):
    """It would wait for an epoch that no plan allows."""
    async with ready(single_switch(5), tmp_path) as deployment:
        await deployment.run(JOB + "targets: required\n")
        with pytest.raises(RefusedError, match="requires targets, which end when workers come later"):
            deployment.controller.jobs.members.add("job", ("h5",))


def test_a_placement_of_an_earlier_version_has_no_targets_and_says_why(fabric: Fabric):
    stored = _placed(fabric).model_dump(mode="json")
    del stored["no_targets_because"]
    for tree in stored["trees"]:
        del tree["targets"]
    found = Placement.model_validate(stored)
    assert found.targets is Targets.OFF
    job = _record(()).model_copy(update={"placement": found})
    shown = "\n".join(job_lines(job_message(fabric, job, MemberStatus())))
    assert "targets: none, it was placed by an earlier version" in shown
