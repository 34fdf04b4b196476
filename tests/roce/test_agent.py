# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The agent between a RoCE worker's messages and the controller's stream."""

from __future__ import annotations

import ctypes
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as rpc
from netfold.protocol.connection import Connection
from netfold.traffic.agent.messages import (
    CALLS_MAX,
    HOSTS_BYTES,
    VERSION,
    AssignMessage,
    DeparturesMessage,
    Header,
    HelloMessage,
    MessageType,
    NewEpochMessage,
    QueuePair,
    QueuePairsMessage,
    ReportMessage,
    RingMessage,
    listed,
)
from netfold.traffic.agent.worker_calls import WorkerCalls
from netfold.traffic.agent.worker_stream import Message, WorkerEndedError, WorkerMessageError, WorkerStream
from netfold.traffic.engine import call_log
from netfold.traffic.roce import agent
from netfold.traffic.roce.agent import Agent
from tests.traffic.scripted_controller import serve

DEADLINE_S = 20.0
HELLO = bytes(HelloMessage(version=VERSION))


class Controller(rpc.ControllerServicer):  # type: ignore[misc]
    """Answers each stream's first word with `notices`; keeps what it hears."""

    def __init__(self) -> None:
        self.heard: list[pb.MemberUpdate] = []
        self.notices: list[pb.ControllerUpdate] = []
        self.farewell: list[pb.ControllerUpdate] = []
        self.has_notices = threading.Event()
        self.left = threading.Event()

    def JoinJob(  # noqa: N802
        self, words: Iterator[pb.MemberUpdate], context: grpc.ServicerContext
    ) -> Iterator[pb.ControllerUpdate]:
        for number, word in enumerate(words):
            self.heard.append(word)
            if number == 0:
                self.has_notices.wait(DEADLINE_S)
                yield from self.notices
            if word.leave:
                self.left.set()
                yield from self.farewell


def assigned(epoch: int, **more: object) -> pb.Assignment:
    tree = pb.TreeAssignment(tree=9, slots=1024, window=512, share=1.0, destination="10.0.0.9")
    fields = {"rank": 1, "workers": 4, "lanes": 256, "udp_port": 61441, "transport": "roce"} | more
    return pb.Assignment(job="j", epoch=epoch, trees=[tree], address="10.0.0.2", **fields)


@pytest.fixture
def controller(tmp_path: Path) -> Iterator[Controller]:
    one = Controller()
    server = serve(one, f"unix:{tmp_path}/c")
    yield one
    server.stop(0)


class RoceEnd(WorkerStream):
    """The worker's end of the stream, which has said hello."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(sock)
        self.failures: list[Exception] = []
        self.send(MessageType.HELLO, HELLO)

    def send_raw(self, message: bytes) -> None:
        self._sock.sendall(message)

    def expect(self, kind: MessageType) -> Message:
        message = self.receive(DEADLINE_S)
        assert message is not None
        assert message.kind is kind, message
        return message


@pytest.fixture
def worker(controller: Controller, tmp_path: Path) -> Iterator[RoceEnd]:
    ours, agents = socket.socketpair()
    ours.settimeout(DEADLINE_S)
    end = RoceEnd(ours)

    def attend() -> None:
        try:
            Agent(Connection(f"unix:{tmp_path}/c"), "j", "h1", agents).run()
        except WorkerMessageError as error:
            end.failures.append(error)
        agents.close()

    thread = threading.Thread(target=attend)
    thread.start()
    yield end
    ours.close()
    thread.join(DEADLINE_S)
    assert not thread.is_alive()


def report(calls: int, chunks: int = 0) -> bytes:
    message = ReportMessage(chunks=chunks)
    message.totals.next_call = calls
    return bytes(message)


def test_a_worker_is_told_and_heard(controller, worker):
    told = assigned(3, numerics=pb.Numerics(mode="float32"))
    n = pb.RoceNeighbors(
        tree=9,
        successor="10.0.0.3",
        successor_qpn=7,
        predecessor="10.0.0.1",
        predecessor_qpn=8,
        predecessor_psn=6,
    )
    ring = pb.RoceRing(epoch=3, min_calls=2, max_calls=3, source_rank=1, trees=[n])
    controller.notices.extend(
        [pb.ControllerUpdate(assignment=told, lease_ms=900), pb.ControllerUpdate(ring=ring)]
    )
    controller.has_notices.set()
    assign = worker.expect(MessageType.ASSIGN).to(AssignMessage)
    epoch = assign.assignment
    assert (assign.lease_ms, assign.address, assign.scheme) == (900, b"10.0.0.2", 4)
    assert (epoch.epoch, epoch.rank, epoch.workers, epoch.lanes, epoch.tree_count) == (3, 1, 4, 256, 1)
    tree = epoch.trees[0]
    assert (tree.tree, tree.slots, tree.window, tree.share) == (9, 1024, 512, 1.0)
    linked = worker.expect(MessageType.RING).to(RingMessage)
    assert (linked.epoch, linked.min_calls, linked.max_calls, linked.source_rank) == (3, 2, 3, 1)
    near = linked.trees[0]
    assert (near.successor, near.successor_qpn) == (b"10.0.0.3", 7)
    assert (near.predecessor, near.predecessor_qpn, near.predecessor_psn) == (b"10.0.0.1", 8, 6)
    pairs = QueuePairsMessage(epoch=3, calls=2, tree_count=1)
    pairs.trees[0] = QueuePair(tree=9, send_qpn=17, recv_qpn=18, first_psn=42)
    worker.send(MessageType.QUEUE_PAIRS, bytes(pairs))
    worker.send(MessageType.REPORT, report(11))
    worker.send(MessageType.NEW_EPOCH, bytes(NewEpochMessage(epoch=3)))
    worker.send(MessageType.LEAVE, report(12, 77))
    assert controller.left.wait(DEADLINE_S)
    last = controller.heard[-1]
    assert last.leave
    assert last.report.next_call == 12
    assert last.unusable_epoch == 3
    assert last.report.chunks == 77
    assert (last.queue_pairs.epoch, last.queue_pairs.calls) == (3, 2)
    [end] = last.queue_pairs.connections
    assert (end.tree, end.send_qpn, end.recv_qpn, end.first_psn) == (9, 17, 18, 42)


def test_a_worker_that_has_left_hears_when_the_job_is_over(controller, worker):
    controller.farewell = [pb.ControllerUpdate(ended=pb.JobEnded(state=pb.DONE, reason="every worker left"))]
    controller.has_notices.set()
    worker.send(MessageType.LEAVE, report(0))
    worker.send(MessageType.REPORT, report(0))
    assert worker.expect(MessageType.ENDED).text == "job j is done: every worker left"
    assert [word.leave for word in controller.heard][-1:] == [True]


def test_an_agent_does_not_stay_for_a_worker_that_is_silent_when_the_job_is_over(
    controller, tmp_path, monkeypatch
):
    """Killed behind a serial port, which tells of no end."""
    monkeypatch.setattr(agent, "SILENCE_S", 0.2)
    controller.notices.append(
        pb.ControllerUpdate(ended=pb.JobEnded(state=pb.FAILED, reason="the lease of h1 expired"))
    )
    controller.has_notices.set()
    ours, agents = socket.socketpair()
    with ours, agents:
        end = RoceEnd(ours)
        Agent(Connection(f"unix:{tmp_path}/c"), "j", "h1", agents).run()
        assert end.expect(MessageType.ENDED).text == "job j is failed: the lease of h1 expired"


def test_an_agent_tells_the_next_controller_that_its_worker_has_left(tmp_path):
    """The worker ends while no controller is there."""
    address = f"unix:{tmp_path}/c"
    before, after = Controller(), Controller()
    first = serve(before, address)
    before.notices.append(pb.ControllerUpdate(assignment=assigned(1)))
    before.has_notices.set()
    after.has_notices.set()
    ours, agents = socket.socketpair()
    with ours, agents:
        attending = threading.Thread(target=Agent(Connection(address), "j", "h1", agents).run)
        attending.start()
        end = RoceEnd(ours)
        end.expect(MessageType.ASSIGN)
        first.stop(0).wait()
        end.send(MessageType.LEAVE, report(5))
        ours.shutdown(socket.SHUT_WR)
        second = serve(after, address)
        attending.join(60)
        assert not attending.is_alive()
    second.stop(0).wait()
    # A busy machine may start the second controller before the agent has read the message.
    assert (after.heard[-1].leave, after.heard[-1].report.next_call) == (True, 5)


UNSUPPORTED_NUMBER = QueuePairsMessage(epoch=-1)


@pytest.mark.parametrize(
    "bytes_sent",
    [
        b"a line of words of the first version\n",
        bytes(Header(type=MessageType.QUEUE_PAIRS, size=3)) + b"abc",
        bytes(Header(type=MessageType.JOB, size=0)),
        bytes(Header(type=MessageType.REPORT, size=1 << 30)),
        bytes(Header(type=MessageType.QUEUE_PAIRS, size=len(bytes(UNSUPPORTED_NUMBER))))
        + bytes(UNSUPPORTED_NUMBER),
    ],
)
def test_bytes_that_no_worker_sends_end_the_attendance(controller, worker, bytes_sent):
    controller.has_notices.set()
    worker.send_raw(bytes_sent)
    assert worker.expect(MessageType.ENDED).text.startswith("the agent cannot read a message of this worker")
    with pytest.raises(WorkerEndedError):
        worker.receive(DEADLINE_S)
    assert worker.failures


def test_a_worker_of_another_version_hears_so(tmp_path):
    ours, agents = socket.socketpair()
    with ours, agents:
        end = WorkerStream(ours)
        end.send(MessageType.HELLO, bytes(HelloMessage(version=VERSION + 1)))
        with pytest.raises(WorkerMessageError, match="version"):
            Agent(Connection(f"unix:{tmp_path}/c"), "j", "h1", agents).run()
        message = end.receive(DEADLINE_S)
        assert message is not None
        assert f"messages of version {VERSION + 1}; expected version {VERSION}" in message.text


def test_a_job_of_another_transport_is_over_for_a_roce_worker(controller, worker):
    controller.notices.append(pb.ControllerUpdate(assignment=assigned(1, transport="udp"), lease_ms=900))
    controller.has_notices.set()
    assert "is not a RoCE job" in worker.expect(MessageType.ENDED).text


def test_a_worker_hears_which_workers_left_the_epoch(controller, worker):
    many = [f"host-{n}" for n in range(40)]
    fresh = assigned(4, workers=2, workers_left=pb.WorkersLeft(hosts=many, epoch=0, calls=7, final=True))
    stale = pb.WorkersLeft(hosts=["h3"], epoch=3, calls=5, call_limit=5)
    newest = pb.WorkersLeft(hosts=["h3", "h4"], epoch=4, calls=5, call_limit=5)
    controller.notices.extend(
        [
            pb.ControllerUpdate(assignment=fresh, lease_ms=900),
            pb.ControllerUpdate(workers_left=stale),
            pb.ControllerUpdate(workers_left=newest),
        ]
    )
    controller.has_notices.set()
    assert worker.expect(MessageType.ASSIGN).to(AssignMessage).assignment.epoch == 4
    while True:  # of two quick changes the agent may tell the last one only
        left = worker.expect(MessageType.DEPARTURES).to(DeparturesMessage)
        assert left.epoch == 4
        if left.hosts == b"h3,h4":
            break
        assert (left.calls, left.departures.in_epoch, left.departures.is_final) == (7, 0, 1)
    assert (left.calls, left.departures.call_limit) == (5, 5)
    assert (left.departures.in_epoch, left.departures.is_final) == (1, 0)


def test_as_many_hosts_are_listed_as_have_room():
    hosts = listed([f"host-{n}" for n in range(40)])
    assert hosts.startswith("host-0,host-1,")
    assert hosts.endswith(",...")
    assert len(hosts) < HOSTS_BYTES
    assert listed(["h1", "h2"]) == "h1,h2"


def test_calls_without_a_last_part_are_refused() -> None:
    calls = WorkerCalls("h1", 1)
    part = Message(MessageType.CALLS, bytes(CALLS_MAX * ctypes.sizeof(call_log.RawCallRecord)))
    for _ in range(call_log.CALLS_MAX // CALLS_MAX):
        calls.take(part, "j")
    with pytest.raises(WorkerMessageError, match="more than 4096 CALLS"):
        calls.take(part, "j")
