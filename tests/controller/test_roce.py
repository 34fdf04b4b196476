# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""RoCE jobs: rings at the leaves, connections that are registered, installed, replaced with each epoch, and closed."""

from __future__ import annotations

import asyncio
import dataclasses

import grpc
import pytest

from netfold.controller.features.registry import FEATURES
from netfold.controller.features.roce.tables import NO_PORT, ROCE_SIDE
from netfold.controller.jobs.file import JobError, resolve_job
from netfold.controller.jobs.records import (
    ConnectionRecord,
    JobRecord,
    JobState,
    Member,
    QueuePairs,
    Transport,
)
from netfold.controller.jobs.withdrawal import Intent
from netfold.controller.lifecycle.allocation import AllocationState, allocate
from netfold.controller.lifecycle.capacity import RefusedError
from netfold.controller.lifecycle.packet_model import PacketModel
from netfold.controller.scheduling.job_planner import PlanRequest, plan_job
from netfold.controller.switches.desired_state import desired_contents
from netfold.controller.switches.entries import TableEntry
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.controller.switches.failed_elements import FailedElements
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol.wire import Flag
from netfold.topologies.addressing import addresses
from netfold.topologies.generators import leaf_spine, single_switch
from netfold.topologies.spec import load_fabric
from tests.controller.deployment import TIMEOUTS, MemberStream, asked, deployed

SPEC = "name: j\nworkers: [h1, h2, h4, h5]\nparameter_servers: {servers}\nscheme: {scheme}\ntransport: roce\n"
FABRIC = leaf_spine(2, 2, 3, parameter_servers=1)
WORKERS = ("h1", "h2", "h4", "h5")
NEXT = {"h1": "h2", "h2": "h1", "h4": "h5", "h5": "h4"}
ROCE_TABLES = ("connections", "reserved_qps", "roce_receivers")


def _job(
    scheme: str = "switchml",
    epoch: int = 1,
    registered: tuple[str, ...] = WORKERS,
    last_tree: int = 0,
    servers: int = 0,
) -> JobRecord:
    spec = SPEC.format(scheme=scheme, servers=servers)
    resolved = resolve_job(spec, FABRIC)
    plan = plan_job(FABRIC, PlanRequest(resolved))
    placement = allocate(
        FABRIC, PacketModel(256), resolved, plan, [], AllocationState(last_tree, {}), after_epoch=0
    )
    ends = tuple(_ends(w, epoch, [t.tree for t in placement.trees]) for w in registered)
    return JobRecord(
        name="j",
        seq=1,
        spec_yaml=spec,
        state=JobState.RUNNING,
        placement=placement,
        udp_port=61440,
        members=tuple(Member(host=w) for w in WORKERS),
        transport=Transport.ROCE,
        queue_pairs=ends,
    )


def _ends(worker: str, epoch: int, trees: list[int]) -> QueuePairs:
    rank = WORKERS.index(worker)
    connections = tuple(
        ConnectionRecord(tree=t, send_qpn=100 * t + rank, recv_qpn=100 * t + 50 + rank, first_psn=1000 * rank)
        for t in trees
    )
    return QueuePairs(host=worker, epoch=epoch, calls=0, connections=connections)


def _held(*jobs: JobRecord) -> dict[tuple[str, str], list[TableEntry]]:
    """By switch and table."""
    switches = desired_contents(
        FabricConfig(FABRIC, addresses(FABRIC), management_tree=2000),
        jobs,
        FailedElements(),
        features=FEATURES,
    )
    found: dict[tuple[str, str], list[TableEntry]] = {}
    for switch, contents in switches.items():
        for entity in contents.values():
            if isinstance(entity, TableEntry):
                found.setdefault((switch, entity.table), []).append(entity)
    return found


@pytest.mark.parametrize(
    ("scheme", "servers"), [("switchml", 0), ("hierarchical", 0), ("none", 1), ("grid", 1), ("atp", 1)]
)
def test_each_worker_contributes_by_its_connection_and_the_next_one_gets_the_sums(scheme, servers):
    job = _job(scheme, servers=servers)
    held, known = _held(job), addresses(FABRIC)
    assert {FABRIC.is_host(t.root) for t in job.placement.plan.trees} == {servers > 0}
    for planned, tree in zip(job.placement.trees, job.placement.plan.trees, strict=True):
        for worker, following in NEXT.items():
            leaf = FABRIC.attachment(worker)
            port, successor_port = FABRIC.ports[leaf][worker], FABRIC.ports[leaf][following]
            own, theirs = (
                next(e for e in job.queue_pairs if e.host == w).of(planned.tree) for w in (worker, following)
            )
            match = {
                "dst": int(known.ip(following)),
                "ingress_port": port,
                "qpn": theirs.recv_qpn,
                "src": int(known.ip(worker)),
            }
            [into] = [e for e in held[leaf, "connections"] if dict(e.match) == match]
            args = dict(into.actions[0].args)
            assert (args["tree"], args["epoch"], args["first_psn"]) == (
                planned.tree,
                job.epoch,
                own.first_psn,
            )
            assert tree.edges[args["child"]].child == worker
            assert (1 << args["log2_slots"], args["successor_port"]) == (planned.slots, successor_port)
            place = {"port": successor_port, "tree": planned.tree, "udp_port": job.udp_port}
            [out] = [e for e in held[leaf, "roce_receivers"] if dict(e.match) == place]
            args = dict(out.actions[0].args)
            assert (args["dst"], args["qpn"], args["first_psn"]) == (
                match["dst"],
                theirs.recv_qpn,
                own.first_psn,
            )
            admitted = [
                e for e in held[leaf, "admission"] if dict(e.match)["ingress_port"] == port + ROCE_SIDE
            ]
            assert admitted, "contributions are admitted as from RoCE"
            udp = [e for e in held[leaf, "admission"] if dict(e.match)["ingress_port"] == port]
            assert not udp, "no process on the worker's host contributes from a socket"


@pytest.mark.parametrize(("queue", "window"), [(64, 32), (100, 32), (4, 8), (4096, 512)])
def test_what_is_under_way_fits_into_half_of_a_queue(queue: int, window: int):
    fabric = leaf_spine(2, 2, 3, queue=queue)
    resolved = resolve_job(SPEC.format(scheme="switchml", servers=0), fabric)
    plan = plan_job(fabric, PlanRequest(resolved))
    placement = allocate(fabric, PacketModel(256), resolved, plan, [], AllocationState(0, {}), after_epoch=0)
    assert {t.window for t in placement.trees} == {window}


@pytest.mark.parametrize("floats", [False, True])
def test_connections_say_whether_their_lanes_are_floats(floats: bool):
    held = _held(_job("switchml").model_copy(update={"floats": floats}))
    said = [
        e.actions[0].args for (_, table), entries in held.items() if table == "connections" for e in entries
    ]
    assert said
    assert {dict(args)["flags"] for args in said} == {int(Flag.FLOATS) if floats else 0}


def test_nothing_but_sums_comes_to_where_a_worker_receives():
    held, known = _held(_job()), addresses(FABRIC)
    closed = {
        tuple(v for _, v in e.match)
        for e in held["leaf1", "reserved_qps"]
        if dict(e.actions[0].args)["port"] == NO_PORT
    }
    assert (int(known.ip("h1")), 0) in closed
    assert (int(known.ip("h1")), _job().queue_pairs[0].connections[0].recv_qpn) in closed
    acknowledged = {e for e in held["leaf1", "reserved_qps"] if dict(e.actions[0].args)["port"] != NO_PORT}
    assert {dict(e.actions[0].args)["src"] for e in acknowledged} == {int(known.ip(w)) for w in ("h1", "h2")}


def test_connections_of_an_older_epoch_are_closed_and_no_worker_sends_before_all_have_registered():
    for job in (_job(epoch=7), _job(registered=WORKERS[:3])):
        held = _held(job)
        assert not [t for _, t in held if t in ("connections", "roce_receivers")]
        ends = [e for (_, table), entries in held.items() if table == "reserved_qps" for e in entries]
        assert ends
        assert all(dict(e.actions[0].args)["port"] == NO_PORT for e in ends)


def test_connections_are_closed_while_a_lost_worker_is_still_in_the_trees():
    """Between the loss and the new plan no ring is closed; other jobs' entries must not fail for that."""
    job = _job("switchml")
    lost = job.model_copy(update={"excluded": (WORKERS[-1],)})
    opened, closed = (sum(len(e) for e in _held(j).values()) for j in (job, lost))
    assert closed < opened


def test_a_job_that_is_over_leaves_nothing():
    held = _held(_job().model_copy(update={"state": JobState.DONE}))
    assert not [table for _, table in held if table in ROCE_TABLES]


def test_a_queue_pair_that_a_device_hands_out_again_belongs_to_the_newer_job():
    new = _job()
    closed = tuple(e.model_copy(update={"epoch": 7}) for e in new.queue_pairs)
    old = _job(last_tree=10).model_copy(
        update={"name": "k", "seq": 2, "udp_port": 61441, "queue_pairs": closed}
    )
    for jobs in ([old, new], [new, old]):
        assert _held(*jobs)["leaf1", "reserved_qps"] == _held(new)["leaf1", "reserved_qps"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ("workers: [h1, h2, h4]\nparameter_servers: 0\n", "'h4' is the job's only worker at leaf2"),
        ("workers: [h1, h2]\nparameter_servers: 0\nnumerics: {mode: half}\n", "'half' is not for RoCE"),
    ],
)
def test_a_file_that_cannot_be_is_refused_with_the_reason(changes, words):
    with pytest.raises(JobError, match=words):
        resolve_job(f"name: j\ntransport: roce\n{changes}", FABRIC)


def test_a_program_without_roce_and_a_worker_left_alone_are_refused():
    resolved = resolve_job(SPEC.format(scheme="switchml", servers=0), FABRIC)
    plan = plan_job(FABRIC, PlanRequest(resolved))
    with pytest.raises(
        RefusedError, match=r"runs a program of 32 lanes; RoCE needs 64 lanes .* or 256 lanes"
    ):
        allocate(FABRIC, PacketModel(32), resolved, plan, [], AllocationState(0, {}), after_epoch=0)
    with pytest.raises(RefusedError, match="only worker at leaf1"):
        plan_job(FABRIC, PlanRequest(resolved, excluded_members=frozenset({"h2"})))
    assert resolve_job("name: j\ntransport: roce\nparameter_servers: 0\n", single_switch(2))


async def test_a_roce_job_from_registration_over_a_new_epoch_to_its_end(tmp_path):
    async def ring(members: list[MemberStream], trees: list[int], epoch: int, base: int) -> list[pb.RoceRing]:
        for rank, member in enumerate(members):
            await member.say(queue_pairs=_told(epoch, trees, base + 10 * rank))
        return [(await m.hear()).ring for m in members]

    fabric = load_fabric("leaf-spine-2x2")
    async with deployed(fabric, tmp_path, lanes=64) as deployment, asked(deployment) as stub:
        hosts = ("h1", "h2", "h5", "h6")
        spec = f"name: j\nworkers: [{', '.join(hosts)}]\nparameter_servers: 0\ntransport: roce\nrate: 20\n"
        await stub.SubmitJob(pb.SubmitJobRequest(spec_yaml=spec))
        members = [MemberStream(stub, "j", h) for h in hosts]
        for member in members:
            await member.say()
        first = [(await m.hear()).assignment for m in members]
        trees = [t.tree for t in first[0].trees]
        assert {a.transport for a in first} == {"roce"}
        steps = (await stub.ExplainJob(pb.JobName(name="j"))).steps
        assert "RoCE ring at leaf1: h1 -> h2 -> h1." in steps
        assert any("No connections of job epoch 1 are registered by h1, h2, h5, h6" in s for s in steps)
        rings = await ring(members, trees, first[0].epoch, 1000)
        deployment.assert_exact()
        n = rings[0].trees[0]
        assert (n.successor, n.successor_qpn, n.predecessor_qpn) == (first[1].address, 1010 + 5, 1010)
        assert n.successor == n.predecessor, "of two, each is before and behind the other"

        await members[1].say(unusable_epoch=first[0].epoch, queue_pairs=_told(first[0].epoch, trees, 1010))
        second = [(await m.hear()).assignment for m in members]
        assert {a.epoch for a in second} == {first[0].epoch + 1}
        rings = await ring(members, trees, second[0].epoch, 2000)
        assert {r.epoch for r in rings} == {second[0].epoch}
        deployment.assert_exact()

        # a worker that began again has other queue pairs: all have to connect anew
        await members[0].say(queue_pairs=_told(second[0].epoch, trees, 3000))
        third = [(await m.hear()).assignment for m in members]
        assert {a.epoch for a in third} == {second[0].epoch + 1}

        stranger = MemberStream(stub, "j", "h1", process_of=members[0])
        await stranger.say(queue_pairs=_told(third[0].epoch, [999], 4000))
        with pytest.raises(grpc.aio.AioRpcError, match="not those of job"):
            await asyncio.wait_for(stranger.hear(), 10)

        # no worker registers a queue pair of another job
        other = "name: k\nworkers: [h1, h2]\nparameter_servers: 0\ntransport: roce\nrate: 20\n"
        await stub.SubmitJob(pb.SubmitJobRequest(spec_yaml=other))
        second_job = MemberStream(stub, "k", "h1")
        await second_job.say()
        told = (await second_job.hear()).assignment
        await members[0].say(queue_pairs=_told(third[0].epoch, trees, 5000))
        await deployment.until(lambda: bool(deployment.job("j").registered), "heard")
        second_job = MemberStream(stub, "k", "h1", process_of=second_job)
        await second_job.say(queue_pairs=_told(told.epoch, [t.tree for t in told.trees], 5000))
        with pytest.raises(grpc.aio.AioRpcError, match="queue pair 5000 of 'h1' is of job 'j'"):
            await asyncio.wait_for(second_job.hear(), 10)
        await stub.CancelJob(pb.CancelJobRequest(name="k"))

        for member in members:
            await member.say(leave=True)
        await deployment.until(lambda: deployment.state("j") is JobState.DONE, "the job is done")
        await deployment.settled_exactly()


async def test_a_cable_that_is_pulled_moves_the_job_and_where_none_is_left_all_hear_why(tmp_path):
    fabric = leaf_spine(2, 2, 2)
    hosts = ("h1", "h2", "h3", "h4")
    async with (
        deployed(fabric, tmp_path, lanes=64, probe_s=0.05) as deployment,
        asked(deployment) as stub,
    ):
        spec = (
            f"name: j\nworkers: [{', '.join(hosts)}]\ntransport: roce\nscheme: switchml\nrate: 20\n"
            "lease_ms: 60000\n"
        )
        await deployment.settled()
        await stub.SubmitJob(pb.SubmitJobRequest(spec_yaml=spec))
        members = [MemberStream(stub, "j", h) for h in hosts]
        epoch = 0
        for _ in range(2):
            for member in members:
                await member.say()
            told = [(await m.hear()).assignment for m in members]
            assert len({a.epoch for a in told}) == 1
            assert told[0].epoch > epoch, "what was sent before the cable was pulled is of no use"
            epoch, trees = told[0].epoch, [t.tree for t in told[0].trees]
            for rank, member in enumerate(members):
                await member.say(queue_pairs=_told(epoch, trees, 1000 * epoch + 10 * rank))
            assert {(await m.hear()).ring.epoch for m in members} == {epoch}
            deployment.assert_exact(deployment.controller.state.failures.failed)
            used = deployment.job("j").placement.links
            [spine] = {n for link in used for n in link if n.startswith("spine")}
            deployment.cut.add(frozenset(("leaf1", spine)))
        overs = [(await m.hear()).ended for m in members]
        assert {o.state for o in overs} == {pb.FAILED}
        assert all("no path without failed or withdrawn elements" in o.reason for o in overs), overs[0].reason


async def test_a_ring_that_closes_while_the_job_moves_is_there_when_the_job_stays(tmp_path):
    """Workers register in the epoch that they know, and not again when the job goes back to it."""
    hosts = ("h1", "h2", "h3", "h4")
    timeouts = dataclasses.replace(TIMEOUTS, install=1.0)
    async with (
        deployed(leaf_spine(2, 2, 2), tmp_path, lanes=64, timeouts=timeouts) as deployment,
        asked(deployment) as stub,
    ):
        registry, maintenance = (
            deployment.controller.state.registry,
            deployment.controller.planning.maintenance,
        )
        await deployment.settled()
        spec = f"name: j\nworkers: [{', '.join(hosts)}]\ntransport: roce\nscheme: switchml\nrate: 20\n"
        await stub.SubmitJob(pb.SubmitJobRequest(spec_yaml=spec))
        members = [MemberStream(stub, "j", h) for h in hosts]
        for member in members:
            await member.say()
        told = [(await m.hear()).assignment for m in members]
        [spine] = {n for n in registry.get("j").nodes if n.startswith("spine")}
        [other] = {"spine1", "spine2"} - {spine}

        def refuse(_: object) -> None:
            raise RuntimeError("no room")

        deployment.switches[other].before_update = refuse
        maintenance.withdraw([spine], Intent.DRAIN)
        await deployment.until(lambda: registry.get("j").previous is not None, "it moves")
        for rank, member in enumerate(members):
            trees = [t.tree for t in told[0].trees]
            await member.say(queue_pairs=_told(told[0].epoch, trees, 1000 + 10 * rank))
        assert {(await m.hear()).ring.epoch for m in members} == {told[0].epoch}
        assert spine in registry.get("j").nodes


def _told(epoch: int, trees: list[int], base: int) -> pb.RoceQueuePairs:
    connections = [pb.RoceConnection(tree=t, send_qpn=base, recv_qpn=base + 5, first_psn=base) for t in trees]
    return pb.RoceQueuePairs(epoch=epoch, connections=connections)
