# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A child that comes in by another pipe than its node's is sent out by a port in loopback mode and comes in there; its
answers take the same way back. Every pass through the switch is compared with the oracle."""

from __future__ import annotations

from random import Random

import pytest

from netfold.controller.jobs.file import resolve_job
from netfold.controller.jobs.records import JobRecord, JobState
from netfold.controller.lifecycle.allocation import AllocationState, allocate
from netfold.controller.lifecycle.packet_model import PacketModel
from netfold.controller.planning.pipes import loops
from netfold.controller.scheduling.job_planner import PlanRequest, plan_job
from netfold.p4src.tools.p4build import Profile
from netfold.protocol.wire import Kind, Packet, Verdict
from netfold.topologies.fabric import Fabric, Host, Link, Loopback, Switch
from netfold.topologies.ports import Chip
from tests.dataplane.bench import Bench
from tests.dataplane.device import Frames, SoftDevice, compiled
from tests.dataplane.fixtures import EPOCH, HOSTS, SETTINGS, SLOTS, TREE, UPLINK, sent
from tests.dataplane.frames import LANES, NETFOLD_AT
from tests.dataplane.node import MANAGED, Child, Management, Pass, TreeAt
from tests.dataplane.planned import PlannedRun

LOOPBACK, CPU_PORT = 6, Management().port
LOOPED = 3
"""The worker whose packets come in by another pipe."""


def node(*, root: bool) -> TreeAt:
    """Workers 1 and 2 enter the node's pipe, worker 3 is looped into it."""
    children = (Child(1, 1), Child(2, 2), Child(LOOPBACK, LOOPED))
    return TreeAt(
        TREE,
        EPOCH,
        SLOTS,
        root=root,
        children=children,
        passes=(Pass(LOOPED, LOOPED, LOOPBACK),),
        answers=(Pass(LOOPBACK, LOOPED, LOOPED),) if root else (),
        results_from=None if root else UPLINK,
        up=None if root else (UPLINK, 40),
        down=(1, 2, 3),
    )


class Looping:
    """A bench whose loopback port is in loopback mode. `passes` are the verdicts of all passes of the last frame."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.passes: list[Verdict] = []

    def send(self, port: int, frame: bytes) -> Frames:
        """Returns the frames that leave the switch for good."""
        self.passes = []
        return self._send(port, frame)

    def _send(self, port: int, frame: bytes) -> Frames:
        before = self.bench.oracle.verdicts.copy()
        sent_out = self.bench.send(port, frame)
        self.passes += [Verdict(verdict) for _, verdict in self.bench.oracle.verdicts - before]
        left = [(out, data) for out, data in sent_out if out != LOOPBACK]
        for out, data in sent_out:
            if out == LOOPBACK:
                left += self._send(LOOPBACK, data)
        return left


@pytest.fixture
def looping(bench: Bench) -> Looping:
    bench.install(*SETTINGS, Management(LOOPBACK))
    return Looping(bench)


def result(frame: bytes) -> Packet:
    return Packet.parse(frame[NETFOLD_AT:])


def test_a_looped_child_completes_a_sum_as_any_other(looping: Looping):
    looping.bench.install(node(root=True))
    looping.send(1, sent(1, 10))
    looping.send(2, sent(2, 20))
    left = looping.send(LOOPED, sent(LOOPED, 3))
    assert looping.passes == [Verdict.FORWARDED, Verdict.RESULT_SENT]
    assert [port for port, _ in left] == [1, 2, 3], "the result reaches all directly"
    assert {lane for _, frame in left for lane in result(frame).lane} == {33}
    looping.bench.check_counters()


def test_an_answer_takes_the_way_back_to_the_looped_child_alone(looping: Looping):
    looping.bench.install(node(root=True))
    for worker in (LOOPED, 1, 2):
        first = looping.send(worker, sent(worker, worker))
    ((port, frame),) = looping.send(LOOPED, sent(LOOPED, 77))
    assert looping.passes == [Verdict.FORWARDED, Verdict.RESULT_RESENT, Verdict.FORWARDED]
    assert port == LOOPED
    assert result(frame).lane == result(first[0][1]).lane
    host = HOSTS[LOOPED - 1]
    assert frame[:6].hex(":") == host.dst, "addressed to the host by the port that leads to it"
    assert ".".join(map(str, frame[30:34])) == host.address
    ((port, _),) = looping.send(1, sent(1, 77))
    assert (port, looping.passes) == (1, [Verdict.RESULT_RESENT])
    looping.bench.check_counters()


def test_stale_and_doubled_packets_over_a_loopback_port_change_nothing(looping: Looping):
    looping.bench.install(node(root=True))
    assert looping.send(LOOPED, sent(LOOPED, 5, round=1)) == []
    assert looping.passes == [Verdict.FORWARDED, Verdict.ACCUMULATED]
    for frame, verdict in (
        (sent(LOOPED, 5, round=1), Verdict.DUPLICATE),
        (sent(LOOPED, 1000, round=0), Verdict.STALE_CHUNK),
    ):
        assert looping.send(LOOPED, frame) == []
        assert looping.passes == [Verdict.FORWARDED, verdict]
    for frame in (sent(LOOPED, epoch=EPOCH + 1), sent(LOOPED, slot=SLOTS), sent(2)):
        assert looping.send(LOOPED, frame) == []
        assert looping.passes == [Verdict.UNADMITTED], "refused before it takes the loopback port's room"
    looping.send(1, sent(1, 1, round=1))
    left = looping.send(2, sent(2, 1, round=1))
    assert {lane for _, frame in left for lane in result(frame).lane} == {7}
    looping.bench.check_counters()


def test_an_inner_node_s_sum_leaves_upwards_also_when_a_looped_child_repeats(looping: Looping):
    looping.bench.install(node(root=False))
    for worker in (1, 2):
        looping.send(worker, sent(worker, worker))
    for verdict in (Verdict.SUM_SENT, Verdict.SUM_RESENT):
        ((port, frame),) = looping.send(LOOPED, sent(LOOPED, 3))
        assert (port, result(frame).child, set(result(frame).lane)) == (UPLINK, 40, {6})
        assert looping.passes == [Verdict.FORWARDED, verdict]
    assert [port for port, _ in looping.send(UPLINK, sent(40, 6, kind=Kind.RESULT))] == [1, 2, 3]
    looping.bench.check_counters()


def test_no_other_sender_comes_in_by_the_loopback_port(looping: Looping):
    looping.bench.install(node(root=True))
    for port in (1, UPLINK):
        assert looping.bench.verdict_of(port, sent(LOOPED)) is Verdict.UNADMITTED
    assert looping.bench.verdict_of(1, sent(LOOPED, kind=Kind.RESULT)) is Verdict.UNADMITTED


@pytest.mark.parametrize(
    ("kind", "verdict"), [(Kind.READ, Verdict.SLOT_READ), (Kind.RESET, Verdict.SLOT_RESET)]
)
def test_the_controller_reaches_slots_of_the_pipe_by_the_loopback_port(
    looping: Looping, kind: Kind, verdict: Verdict
):
    looping.bench.install(node(root=True))
    looping.send(LOOPED, sent(LOOPED, 9, slot=1))
    asked = sent(0, kind=kind, tree=MANAGED, slot=1, epoch=0)
    ((port, answer),) = looping.send(CPU_PORT, (LOOPBACK << 7).to_bytes(2, "big") + asked)
    assert (port, looping.passes) == (CPU_PORT, [verdict])
    assert int.from_bytes(answer[:2], "big") >> 7 == LOOPBACK, "tells by which way it went"
    assert (result(answer[6:]).epoch, set(result(answer[6:]).lane)) == (EPOCH, {9})
    looping.bench.check_counters()


PIPE = 128


def two_pipes() -> Fabric:
    """Two leaves and a spine, all of them chips; hosts enter each leaf by both pipes, a leaf the spine by one."""
    names = [f"h{i}" for i in range(1, 7)]
    leaf1 = (("h1", 4), ("h2", 5), ("h3", PIPE + 4), ("spine", PIPE + 8))
    leaf2 = (("h4", 4), ("h5", PIPE + 5), ("h6", PIPE + 6), ("ps", PIPE + 7), ("spine", 8))
    spine = (("leaf1", 60), ("leaf2", PIPE + 60))
    loopbacks = (Loopback(68, 400), Loopback(PIPE + 68, 400))
    wired = {"leaf1": leaf1, "leaf2": leaf2, "spine": spine}
    switches = tuple(
        Switch(n, capacity=1000.0, ports=p, chip=Chip.TOFINO, loopbacks=loopbacks) for n, p in wired.items()
    )
    links = tuple(Link(n, leaf, 100.0) for leaf in ("leaf1", "leaf2") for n, _ in wired[leaf])
    hosts = (*(Host(n) for n in names), Host("ps", parameter_server=True))
    return Fabric("two-pipes", hosts, switches, links)


@pytest.mark.parametrize("scheme", ["switchml", "panama", "grid", "atp"])
def test_a_plan_with_looped_children_adds_up(scheme: str):
    fabric = two_pipes()
    resolved = resolve_job(f"name: j\nscheme: {scheme}\nslots: 16\n", fabric)
    plan = plan_job(fabric, PlanRequest(resolved))
    assert any(loops(fabric, tree) for tree in plan.trees), "the case has something to loop"
    placement = allocate(
        fabric, PacketModel(LANES), resolved, plan, [], AllocationState(0, {}), after_epoch=0
    )
    state = JobState.RUNNING
    job = JobRecord(name="j", seq=1, spec_yaml="", state=state, placement=placement, udp_port=0xF000)
    devices = {s.name: SoftDevice(compiled(Profile(LANES))[0]) for s in fabric.switches}
    run = PlannedRun(fabric, job, devices, chunks=20)
    run.run(Random(7), events=2000, loss=0.05, repeats=0.1)
    run.finish()
    assert run.refusals() == {}
    assert run.looped > 20
