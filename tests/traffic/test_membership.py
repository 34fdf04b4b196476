# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import grpc
import pytest

from api import netfold_pb2 as pb
from api import netfold_pb2_grpc as rpc
from traffic.errors import AllReduceTimeout, BadAssignment, ControllerUnreachable, JobFailed
from traffic.membership import Attending
from traffic.worker import Stats


def assignment(epoch: int = 1, **changes: object) -> pb.Assignment:
    part = pb.TreePart(tree=1, share=1.0, slots=8, window=4, child=2, destination="10.0.0.9", children=[2, 3])
    message = pb.Assignment(job="j", epoch=epoch, udp_port=61441, lanes=64, rank=0, workers=2, trees=[part])
    for name, value in changes.items():
        setattr(message, name, value)
    return message


class Controller(rpc.ControllerServicer):
    """Answers each stream with what the test puts into `notices`; None breaks the stream."""

    def __init__(self) -> None:
        self.notices: queue.Queue[pb.Notice | None] = queue.Queue()
        self.heard: queue.Queue[pb.Attendance] = queue.Queue()
        self.refuse = ""

    def Attend(self, requests, context) -> Iterator[pb.Notice]:  # noqa: N802 (the proto's name)
        if self.refuse:
            context.abort(grpc.StatusCode.NOT_FOUND, self.refuse)

        def listen() -> None:
            with contextlib.suppress(grpc.RpcError):  # the member broke the stream
                for request in requests:
                    self.heard.put(request)
            self.notices.put(None)

        threading.Thread(target=listen, daemon=True).start()
        while (notice := self.notices.get()) is not None:
            yield notice


@contextmanager
def controller(port: int = 0) -> Iterator[tuple[Controller, str]]:
    servicer = Controller()
    server = grpc.server(ThreadPoolExecutor(8))
    rpc.add_ControllerServicer_to_server(servicer, server)
    bound = server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    try:
        yield servicer, f"127.0.0.1:{bound}"
    finally:
        servicer.notices.put(None)
        server.stop(0).wait()


def test_a_member_joins_sends_heartbeats_with_its_report_and_leaves():
    with controller() as (servicer, target):
        servicer.notices.put(pb.Notice(assignment=assignment(), lease_ms=60))
        member = Attending(target, "j", "h1")
        first = servicer.heard.get(timeout=10)
        assert (first.job, first.host, first.leave) == ("j", "h1", False)
        assert member.wait(10).trees[0].children == (2, 3)
        member.report(Stats(chunks=7, retransmits=2))
        while servicer.heard.get(timeout=10).report.chunks != 7:
            pass
        member.close()
        words = [first]
        while not words[-1].leave:
            words.append(servicer.heard.get(timeout=10))
        assert words[-1].report.retransmits == 2


def test_a_new_epoch_and_the_end_of_the_job_wake_the_worker():
    woken: queue.Queue[int] = queue.Queue()
    with controller() as (servicer, target):
        servicer.notices.put(pb.Notice(assignment=assignment(), lease_ms=3000))
        member = Attending(target, "j", "h1")
        assert member.wait(10).epoch == 1
        member.on_change(lambda: woken.put(1))
        servicer.notices.put(pb.Notice(assignment=assignment(epoch=2)))
        woken.get(timeout=10)
        assert member.current().epoch == 2
        servicer.notices.put(pb.Notice(over=pb.JobOver(state=pb.FAILED, reason="the lease of h2 expired")))
        woken.get(timeout=10)
        with pytest.raises(JobFailed, match="job j is failed: the lease of h2 expired"):
            member.current()
        member.close()


def test_a_refused_member_is_told_why():
    with controller() as (servicer, target):
        servicer.refuse = "no job 'j'"
        member = Attending(target, "j", "h1")
        with pytest.raises(JobFailed, match=r"refused h1: no job 'j'"):
            member.wait(10)
        member.close()


def test_a_broken_stream_is_opened_again():
    with controller() as (servicer, target):
        servicer.notices.put(pb.Notice(assignment=assignment(), lease_ms=5000))
        servicer.notices.put(None)
        member = Attending(target, "j", "h1")
        assert member.wait(10).epoch == 1
        woken = threading.Event()
        member.on_change(woken.set)
        servicer.notices.put(pb.Notice(assignment=assignment(epoch=3)))
        assert woken.wait(10)
        assert member.current().epoch == 3
        member.close()


def test_no_controller_for_too_long_is_an_error_that_names_its_address():
    with controller() as (servicer, target):
        servicer.notices.put(pb.Notice(assignment=assignment(), lease_ms=300))
        member = Attending(target, "j", "h1", patience=0.3)
        member.wait(10)
        woken = threading.Event()
        member.on_change(woken.set)
    assert woken.wait(20)
    with pytest.raises(ControllerUnreachable, match=f"no controller at {target} for 0.3 s"):
        member.current()
    member.close()


def test_a_job_that_waits_for_others_is_a_timeout():
    with controller() as (_, target):
        member = Attending(target, "j", "h1")
        with pytest.raises(AllReduceTimeout, match="no assignment for h1"):
            member.wait(0.2)
        member.close()


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"epoch": 0}, "epoch is 0"),
        ({"epoch": 4096}, "epoch is 4096"),
        ({"udp_port": 53}, "udp_port is 53"),
        ({"lanes": 0}, "lanes is 0"),
        ({"workers": 0}, "workers is 0"),
        ({"rate_mbps": -1.0}, "rate_mbps is -1.0"),
    ],
)
def test_an_assignment_that_breaks_the_protocol_is_refused_by_field(changes, what):
    with controller() as (servicer, target):
        servicer.notices.put(pb.Notice(assignment=assignment(**changes), lease_ms=3000))
        member = Attending(target, "j", "h1")
        with pytest.raises(BadAssignment, match=what):
            member.wait(10)
        member.close()
