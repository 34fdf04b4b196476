# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The agent between a RoCE worker's lines and the controller's stream."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path

import grpc
import pytest

from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as rpc
from netfold.protocol.connection import Connection
from netfold.traffic.roce import agent
from netfold.traffic.roce.agent import Agent, WorkerLineError


class Controller(rpc.ControllerServicer):  # type: ignore[misc]
    """Answers each stream's first word with `notices`; keeps what it hears."""

    def __init__(self) -> None:
        self.heard: list[pb.MemberUpdate] = []
        self.notices: list[pb.ControllerUpdate] = []
        self.farewell: list[pb.ControllerUpdate] = []
        self.left = threading.Event()

    def JoinJob(  # noqa: N802
        self, words: Iterator[pb.MemberUpdate], context: grpc.ServicerContext
    ) -> Iterator[pb.ControllerUpdate]:
        for number, word in enumerate(words):
            self.heard.append(word)
            if number == 0:
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
    server = grpc.server(futures.ThreadPoolExecutor(4))
    one = Controller()
    rpc.add_ControllerServicer_to_server(one, server)
    server.add_insecure_port(f"unix:{tmp_path}/c")
    server.start()
    yield one
    server.stop(0)


@pytest.fixture
def worker(controller: Controller, tmp_path: Path) -> Iterator[tuple[socket.socket, list[Exception]]]:
    ours, agents = socket.socketpair()
    ours.settimeout(20)
    failures: list[Exception] = []

    def attend() -> None:
        try:
            Agent(Connection(f"unix:{tmp_path}/c"), "j", "h1", agents).run()
        except WorkerLineError as error:
            failures.append(error)
        agents.close()

    thread = threading.Thread(target=attend)
    thread.start()
    yield ours, failures
    ours.close()
    thread.join(20)
    assert not thread.is_alive()


def test_a_worker_is_told_in_lines_and_heard(controller, worker):
    ours, _ = worker
    told = assigned(3, numerics=pb.Numerics(mode="auto"))
    n = pb.RoceNeighbors(
        tree=9,
        successor="10.0.0.3",
        successor_qpn=7,
        predecessor="10.0.0.1",
        predecessor_qpn=8,
        predecessor_psn=6,
    )
    ring = pb.RoceRing(epoch=3, min_calls=2, max_calls=3, source_rank=1, trees=[n])
    controller.notices = [pb.ControllerUpdate(assignment=told, lease_ms=900), pb.ControllerUpdate(ring=ring)]
    ours.sendall(b"hello 2\n")
    with ours.makefile("r") as lines:
        assert lines.readline() == "assign 3 10.0.0.2 1 4 256 block 900 1 9 1024 512 1000000000\n"
        assert lines.readline() == "ring 3 2 3 1 1 9 10.0.0.3 7 10.0.0.1 8 6\n"
        ours.sendall(b"qps 3 2 1 9 17 18 42\nalive\nnew-epoch 3\nreport 77\nleave 12\n")
        assert controller.left.wait(20)
    last = controller.heard[-1]
    assert last.leave
    assert last.report.next_call == 12
    assert last.unusable_epoch == 3
    assert last.report.chunks == 77
    assert (last.queue_pairs.epoch, last.queue_pairs.calls) == (3, 2)
    [end] = last.queue_pairs.connections
    assert (end.tree, end.send_qpn, end.recv_qpn, end.first_psn) == (9, 17, 18, 42)


def test_a_worker_that_has_left_hears_when_the_job_is_over(controller, worker):
    ours, _ = worker
    controller.farewell = [pb.ControllerUpdate(ended=pb.JobEnded(state=pb.DONE, reason="every worker left"))]
    ours.sendall(b"hello 2\nleave 0\nalive\n")
    with ours.makefile("r") as lines:
        assert lines.readline() == "ended job j is done: every worker left\n"
    assert [word.leave for word in controller.heard][-1:] == [True]


def test_an_agent_does_not_stay_for_a_worker_that_is_silent_when_the_job_is_over(
    controller, tmp_path, monkeypatch
):
    """Killed behind a serial port, which tells of no end."""
    monkeypatch.setattr(agent, "SILENCE_S", 0.2)
    controller.notices = [
        pb.ControllerUpdate(ended=pb.JobEnded(state=pb.FAILED, reason="the lease of h1 expired"))
    ]
    ours, agents = socket.socketpair()
    with ours, agents:
        ours.sendall(b"hello 2\n")
        Agent(Connection(f"unix:{tmp_path}/c"), "j", "h1", agents).run()
        assert ours.recv(100) == b"ended job j is failed: the lease of h1 expired\n"


def test_an_agent_tells_the_next_controller_that_its_worker_has_left(tmp_path):
    """The worker ends while no controller is there."""
    address = f"unix:{tmp_path}/c"
    before, after = Controller(), Controller()
    first, second = grpc.server(futures.ThreadPoolExecutor(4)), grpc.server(futures.ThreadPoolExecutor(4))
    rpc.add_ControllerServicer_to_server(before, first)
    first.add_insecure_port(address)
    first.start()
    before.notices = [pb.ControllerUpdate(assignment=assigned(1))]
    ours, agents = socket.socketpair()
    with ours, agents:
        attending = threading.Thread(target=Agent(Connection(address), "j", "h1", agents).run)
        attending.start()
        ours.sendall(b"hello 2\n")
        assert ours.recv(100).startswith(b"assign 1")
        first.stop(0).wait()
        ours.sendall(b"leave 5\n")
        ours.shutdown(socket.SHUT_WR)
        rpc.add_ControllerServicer_to_server(after, second)
        second.add_insecure_port(address)
        second.start()
        attending.join(60)
        assert not attending.is_alive()
    second.stop(0).wait()
    # A busy machine may start the second controller before the agent has read the line.
    assert (after.heard[-1].leave, after.heard[-1].report.next_call) == (True, 5)


@pytest.mark.parametrize(
    "line", [b"nonsense\n", b"qps 1 0 2 9 17 18 42\n", b"new-epoch x\n", b"qps -1 0 0\n"]
)
def test_what_no_worker_says_ends_the_attendance_with_its_words(controller, worker, line):
    ours, failures = worker
    ours.sendall(b"hello 2\n" + line)
    with ours.makefile("r") as lines:
        heard = lines.readlines()
    assert heard[-1].startswith("ended the agent cannot read a line of this worker")
    assert failures


def test_a_job_of_another_transport_is_over_for_a_roce_worker(controller, worker):
    ours, _ = worker
    controller.notices = [pb.ControllerUpdate(assignment=assigned(1, transport="udp"), lease_ms=900)]
    ours.sendall(b"hello 2\n")
    with ours.makefile("r") as lines:
        assert "is not a RoCE job" in lines.readline()


def test_a_worker_hears_which_workers_left_the_epoch(controller, worker):
    ours, _ = worker
    many = [f"host-{n}" for n in range(40)]
    fresh = assigned(4, workers=2, workers_left=pb.WorkersLeft(hosts=many, epoch=0, calls=7, final=True))
    stale = pb.WorkersLeft(hosts=["h3"], epoch=3, calls=5, call_limit=5)
    newest = pb.WorkersLeft(hosts=["h3", "h4"], epoch=4, calls=5, call_limit=5)
    controller.notices = [
        pb.ControllerUpdate(assignment=fresh, lease_ms=900),
        pb.ControllerUpdate(workers_left=stale),
        pb.ControllerUpdate(workers_left=newest),
    ]
    ours.sendall(b"hello 2\n")
    with ours.makefile("r") as lines:
        assert lines.readline().startswith("assign 4 ")
        *words, hosts = lines.readline().split()
        assert words == ["left", "4", "0", "1", "0", "7"]
        assert hosts.startswith("host-0,host-1,")
        assert hosts.endswith(",...")
        assert len(hosts) < agent.LEFT_BYTES
        assert lines.readline() == "left 4 5 0 1 5 h3,h4\n"
