# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import contextlib
import json
import queue
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict

import grpc
import pytest

from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as rpc
from netfold.protocol.connection import TOKEN_KEY, ConnectError, Connection, connection
from netfold.traffic.errors import (
    AllReduceTimeoutError,
    ControllerUnreachableError,
    InvalidAssignmentError,
    JobFailedError,
    MembershipLostError,
)
from netfold.traffic.membership.assignment import DATA_CENTER, SHARED_PROCESSORS
from netfold.traffic.membership.base import Stats, TreeStats
from netfold.traffic.membership.membership import ControllerMembership, from_proto
from netfold.traffic.numerics import (
    Automatic,
    BlockFloat,
    Fixed,
    Float32Sum,
    IntegerSum,
    PackedHalf,
    RotatedQuarter,
)
from tests.traffic.tls import Tls, reached


def assignment(epoch: int = 1, **changes: object) -> pb.Assignment:
    part = pb.TreeAssignment(
        tree=1, share=1.0, slots=8, window=4, child=2, destination="10.0.0.9", children=[2, 3]
    )
    message = pb.Assignment(job="j", epoch=epoch, udp_port=61441, lanes=64, rank=0, workers=2, trees=[part])
    for name, value in changes.items():
        setattr(message, name, value)
    return message


class Controller(rpc.ControllerServicer):
    """Answers each stream with what the test puts into `notices`; None breaks the stream."""

    def __init__(self) -> None:
        self.notices: queue.Queue[pb.ControllerUpdate | None] = queue.Queue()
        self.heard: queue.Queue[pb.MemberUpdate] = queue.Queue()
        self.refuse = ""
        self.token = ""
        self.job = pb.Job()

    def GetJob(self, request, context) -> pb.Job:  # noqa: N802
        return self.job

    def JoinJob(self, requests, context) -> Iterator[pb.ControllerUpdate]:  # noqa: N802 (the proto's name)
        if self.token and dict(context.invocation_metadata()).get(TOKEN_KEY) != self.token:
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "a token of this controller is needed")
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
def controller(tls: Tls | None = None) -> Iterator[tuple[Controller, str]]:
    """At a unix socket; with `tls` at TCP, where it wants the token "Bearer a-token"."""
    servicer = Controller()
    server = grpc.server(ThreadPoolExecutor(8))
    rpc.add_ControllerServicer_to_server(servicer, server)
    with tempfile.TemporaryDirectory() as folder:
        if tls is None:
            target = f"unix:{folder}/s"
            server.add_insecure_port(target)
        else:
            credentials = grpc.ssl_server_credentials([(tls.key.read_bytes(), tls.certificate.read_bytes())])
            target = f"127.0.0.1:{server.add_secure_port('127.0.0.1:0', credentials)}"
            servicer.token = "Bearer a-token"
        server.start()
        try:
            yield servicer, target
        finally:
            servicer.notices.put(None)
            server.stop(0).wait()


def test_what_a_worker_waits_for_is_what_the_controller_says():
    message = assignment()
    assert from_proto(message).timing == SHARED_PROCESSORS, "an older controller says nothing"
    message.timing.CopyFrom(pb.Timing(**asdict(DATA_CENTER)))
    assert from_proto(message).timing == DATA_CENTER
    message.timing.delay_threshold = -1
    with pytest.raises(InvalidAssignmentError, match="timing: delay_threshold is -1"):
        from_proto(message)


def test_a_timeout_names_absent_members_and_where_trees_add_up():
    plan = {"trees": [{"root": "spine1", "nodes": {"leaf1": ["h1", "h2"], "spine1": ["leaf1", "h3"]}}]}
    plan["installed"] = [{"tree": 41}]
    members = [
        pb.Member(host="h1", connected=True),
        pb.Member(host="h2"),
        pb.Member(host="h3", left=True),
        pb.Member(host="ps1", parameter_server=True, unused=True),
    ]
    with controller() as (servicer, target):
        servicer.job = pb.Job(name="j", members=members, plan_json=json.dumps(plan))
        member = ControllerMembership(target, "j", "h1")
        assert member.describe_stall() == (
            "not connected to the controller: h2; tree 41 adds up at spine1, leaf1"
        )
        servicer.job.members[1].connected = True
        assert "all members are connected" in member.describe_stall()
        member.close()
    assert member.describe_stall() == "", "no controller"


def test_a_member_joins_sends_heartbeats_with_its_report_and_leaves():
    with controller() as (servicer, target):
        servicer.notices.put(pb.ControllerUpdate(assignment=assignment(), lease_ms=60))
        member = ControllerMembership(target, "j", "h1")
        first = servicer.heard.get(timeout=10)
        assert (first.job, first.host, first.leave) == ("j", "h1", False)
        assert member.wait(10).trees[0].children == (2, 3)
        trees = (TreeStats(3, 70, 7, 2, 1.5, 1.0, 16),)
        member.report(Stats(chunks=7, retransmits=2, trees=lambda: trees, socket_errors=lambda: 5))
        while servicer.heard.get(timeout=10).report.chunks != 7:
            pass
        member.close()
        words = [first]
        while not words[-1].leave:
            words.append(servicer.heard.get(timeout=10))
        assert (words[-1].report.retransmits, words[-1].report.socket_errors) == (2, 5)
        [tree] = words[-1].report.trees
        assert (tree.tree, tree.results, tree.marked, tree.rtt_ms, tree.window) == (3, 70, 7, 1.5, 16)


def test_a_new_epoch_and_the_end_of_the_job_wake_the_worker():
    woken: queue.Queue[int] = queue.Queue()
    with controller() as (servicer, target):
        servicer.notices.put(pb.ControllerUpdate(assignment=assignment(), lease_ms=3000))
        member = ControllerMembership(target, "j", "h1")
        assert member.wait(10).epoch == 1
        member.on_change(lambda: woken.put(1))
        servicer.notices.put(pb.ControllerUpdate(assignment=assignment(epoch=2)))
        woken.get(timeout=10)
        assert member.current().epoch == 2
        servicer.notices.put(
            pb.ControllerUpdate(ended=pb.JobEnded(state=pb.FAILED, reason="the lease of h2 expired"))
        )
        woken.get(timeout=10)
        with pytest.raises(JobFailedError, match="job j is failed: the lease of h2 expired"):
            member.current()
        member.close()


def test_a_worn_epoch_is_told_at_once_and_the_new_one_is_waited_for():
    with controller() as (servicer, target):
        servicer.notices.put(pb.ControllerUpdate(assignment=assignment(), lease_ms=600_000))
        member = ControllerMembership(target, "j", "h1")
        assert member.wait(10).epoch == 1
        assert servicer.heard.get(timeout=10).unusable_epoch == 0

        def raise_epoch() -> None:
            assert servicer.heard.get(timeout=10).unusable_epoch == 1
            servicer.notices.put(pb.ControllerUpdate(assignment=assignment(epoch=2)))

        raising = threading.Thread(target=raise_epoch)
        raising.start()
        assert member.request_new_epoch(1, 10)
        raising.join()
        assert member.current().epoch == 2
        assert member.request_new_epoch(1, 0), "that one is over already"
        assert not member.request_new_epoch(2, 0.1)
        servicer.notices.put(pb.ControllerUpdate(ended=pb.JobEnded(state=pb.CANCELED)))
        assert member.request_new_epoch(2, 10), "there is news: the job is over"
        with pytest.raises(JobFailedError):
            member.current()
        member.close()


def test_a_worn_epoch_is_told_again_when_the_stream_breaks():
    with controller() as (servicer, target):
        servicer.notices.put(pb.ControllerUpdate(assignment=assignment(), lease_ms=600_000))
        member = ControllerMembership(target, "j", "h1")
        member.wait(10)
        assert not member.request_new_epoch(1, 0)
        while servicer.heard.get(timeout=10).unusable_epoch != 1:
            pass
        servicer.notices.put(None)
        assert servicer.heard.get(timeout=10).unusable_epoch == 1
        member.close()


def test_a_member_reaches_a_controller_by_tcp_with_its_certificate_and_token(tls, tmp_path):
    with controller(tls) as (servicer, target):
        servicer.notices.put(pb.ControllerUpdate(assignment=assignment(), lease_ms=3000))
        member = ControllerMembership(reached(target, tls, tmp_path), "j", "h1")
        assert member.wait(10).epoch == 1
        member.close()


def test_certificate_token_and_name_are_found_in_the_environment(tls, tmp_path, monkeypatch):
    (tmp_path / "token").write_text("a-token\n")
    monkeypatch.setenv("NETFOLD_TLS_CA", str(tls.certificate))
    monkeypatch.setenv("NETFOLD_TOKEN_FILE", str(tmp_path / "token"))
    monkeypatch.setenv("NETFOLD_TLS_SERVER_NAME", "controller.test")
    with controller(tls) as (servicer, target):
        servicer.notices.put(pb.ControllerUpdate(assignment=assignment(), lease_ms=3000))
        member = ControllerMembership(target, "j", "h1")
        assert member.wait(10).epoch == 1
        member.close()


def test_a_wrong_token_is_refused_at_once(tls, tmp_path):
    with controller(tls) as (_, target):
        member = ControllerMembership(reached(target, tls, tmp_path, "another"), "j", "h1")
        with pytest.raises(
            JobFailedError, match=f"controller at {target} refused h1: a token of this controller"
        ):
            member.wait(10)
        member.close()


@pytest.mark.parametrize("wrong", ["certificate", "name"])
def test_a_controller_that_cannot_be_trusted_is_not_talked_to(wrong, tls, tmp_path, monkeypatch):
    monkeypatch.setattr(ControllerMembership, "DEFAULT_LEASE_S", 0.5)
    with controller(tls) as (servicer, target):
        good = reached(target, tls, tmp_path)
        where = {
            "certificate": Connection(target, None, good.token, good.server_name),
            "name": Connection(target, good.certificate, good.token, "another.test"),
        }[wrong]
        member = ControllerMembership(where, "j", "h1")
        with pytest.raises(ControllerUnreachableError, match=f"no controller at {target}"):
            member.wait(20)
        member.close()
        assert servicer.heard.empty()


def test_what_cannot_be_read_of_the_way_to_the_controller_is_named(tmp_path):
    with pytest.raises(ConnectError, match=r"No such file.*nowhere"):
        connection("localhost:1", tmp_path / "nowhere")
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(ConnectError, match="empty: it is empty; a token is needed"):
        connection("localhost:1", None, tmp_path / "empty")
    assert "secret" not in repr(Connection("localhost:1", token="secret"))


@pytest.mark.parametrize(
    ("told", "known"),
    [
        (pb.Numerics(), Automatic()),
        (pb.Numerics(mode="auto"), Automatic()),
        (pb.Numerics(mode="half"), PackedHalf()),
        (pb.Numerics(mode="quarter"), RotatedQuarter()),
        (pb.Numerics(mode="float32"), Float32Sum()),
        (pb.Numerics(mode="block"), BlockFloat()),
        (pb.Numerics(mode="fixed", fraction_bits=12), Fixed(12)),
        (pb.Numerics(mode="integer"), IntegerSum()),
    ],
)
def test_the_jobs_numerics_come_with_the_assignment(told, known):
    message = assignment()
    message.numerics.CopyFrom(told)
    assert from_proto(message).numerics == known


@pytest.mark.parametrize(
    ("told", "what"),
    [
        (
            pb.Numerics(mode="decimal"),
            "numerics is 'decimal'; expected fixed, auto, block, half, quarter, float32, integer",
        ),
        (pb.Numerics(mode="fixed", fraction_bits=127), "fixed scale is 127"),
    ],
)
def test_numerics_that_are_unknown_are_refused(told, what):
    message = assignment()
    message.numerics.CopyFrom(told)
    with pytest.raises(InvalidAssignmentError, match=what):
        from_proto(message)


def test_of_a_roce_job_a_parameter_server_serves_and_a_worker_is_sent_elsewhere():
    with controller() as (servicer, target):
        servicer.notices.put(pb.ControllerUpdate(assignment=assignment(transport="roce"), lease_ms=5000))
        member = ControllerMembership(target, "j", "h1")
        assert member.wait(10).trees[0].children == (2, 3)
        member.close()
    worker = assignment(transport="roce")
    del worker.trees[0].children[:]
    with controller() as (servicer, target):
        servicer.notices.put(pb.ControllerUpdate(assignment=worker, lease_ms=5000))
        member = ControllerMembership(target, "j", "h1")
        with pytest.raises(InvalidAssignmentError, match="its workers run netfold-roce"):
            member.wait(10)
        member.close()


def test_a_refused_member_is_told_why():
    with controller() as (servicer, target):
        servicer.refuse = "no job 'j'"
        member = ControllerMembership(target, "j", "h1")
        with pytest.raises(JobFailedError, match=r"refused h1: no job 'j'"):
            member.wait(10)
        member.close()


def test_an_unforeseen_error_ends_the_membership_by_type_and_cause(monkeypatch):
    def spoiled(message):
        raise KeyError("of a library's own")

    monkeypatch.setattr("netfold.traffic.membership.membership.from_proto", spoiled)
    with controller() as (servicer, target):
        servicer.notices.put(pb.ControllerUpdate(assignment=assignment(), lease_ms=5000))
        member = ControllerMembership(target, "j", "h1")
        with pytest.raises(MembershipLostError, match=r"job j.*KeyError") as caught:
            member.wait(10)
        assert isinstance(caught.value.__cause__, KeyError)
        member.close()


def test_a_proxy_for_the_web_is_not_asked_for_the_controller(tls, tmp_path, monkeypatch):
    for name in ("http_proxy", "https_proxy", "grpc_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "no_grpc_proxy"):
        monkeypatch.delenv(name, raising=False)
    with controller(tls) as (servicer, target):
        servicer.notices.put(pb.ControllerUpdate(assignment=assignment(), lease_ms=3000))
        member = ControllerMembership(reached(target, tls, tmp_path), "j", "h1")
        assert member.wait(10).epoch == 1
        member.close()


def test_a_broken_stream_is_opened_again():
    with controller() as (servicer, target):
        servicer.notices.put(pb.ControllerUpdate(assignment=assignment(), lease_ms=5000))
        servicer.notices.put(None)
        member = ControllerMembership(target, "j", "h1")
        assert member.wait(10).epoch == 1
        woken = threading.Event()
        member.on_change(woken.set)
        servicer.notices.put(pb.ControllerUpdate(assignment=assignment(epoch=3)))
        assert woken.wait(10)
        assert member.current().epoch == 3
        member.close()


def test_no_controller_for_too_long_is_an_error_that_names_its_address():
    with controller() as (servicer, target):
        servicer.notices.put(pb.ControllerUpdate(assignment=assignment(), lease_ms=300))
        member = ControllerMembership(target, "j", "h1", reconnect_timeout_s=0.3)
        member.wait(10)
        woken = threading.Event()
        member.on_change(woken.set)
    assert woken.wait(20)
    with pytest.raises(ControllerUnreachableError, match=f"no controller at {target} for 0.3 s"):
        member.current()
    member.close()


def test_a_waiting_member_outlives_a_controller_that_is_away_for_longer_than_a_lease(tmp_path):
    target = f"unix:{tmp_path}/s"
    first = grpc.server(ThreadPoolExecutor(2))
    queued, running = Controller(), Controller()
    rpc.add_ControllerServicer_to_server(queued, first)
    first.add_insecure_port(target)
    first.start()
    queued.notices.put(pb.ControllerUpdate(lease_ms=300))
    member = ControllerMembership(target, "j", "h1")
    queued.heard.get(timeout=10)
    time.sleep(0.2)  # the update with the lease arrives
    queued.notices.put(None)
    first.stop(0).wait()
    time.sleep(1)
    second = grpc.server(ThreadPoolExecutor(2))
    rpc.add_ControllerServicer_to_server(running, second)
    second.add_insecure_port(target)
    second.start()
    running.notices.put(pb.ControllerUpdate(assignment=assignment(), lease_ms=300))
    assert member.wait(20).epoch == 1
    running.notices.put(None)
    member.close()
    second.stop(0).wait()


def test_a_member_that_ends_while_the_controller_is_away_leaves_when_it_is_back(tmp_path, caplog):
    target = f"unix:{tmp_path}/s"
    before, after = Controller(), Controller()
    first, second = grpc.server(ThreadPoolExecutor(2)), grpc.server(ThreadPoolExecutor(2))
    rpc.add_ControllerServicer_to_server(before, first)
    first.add_insecure_port(target)
    first.start()
    before.notices.put(pb.ControllerUpdate(assignment=assignment(epoch=4), lease_ms=300))
    member = ControllerMembership(target, "j", "h1")
    member.wait(10)
    before.notices.put(None)
    first.stop(0).wait()
    member.report(Stats(next_call=9))
    closing = threading.Thread(target=member.close)
    closing.start()
    closing.join(member.CLOSE_TIMEOUT_S + 0.5)
    assert closing.is_alive(), "it did not wait for the controller"
    assert f"waits up to 600 s for the controller at {target}" in caplog.text
    rpc.add_ControllerServicer_to_server(after, second)
    second.add_insecure_port(target)
    second.start()
    last = after.heard.get(timeout=20)
    assert (last.leave, last.epoch, last.report.next_call) == (True, 4, 9)
    closing.join(20)
    assert not closing.is_alive()
    second.stop(0).wait()


def test_a_member_that_never_took_part_does_not_wait_for_a_controller_to_leave(tmp_path):
    member = ControllerMembership(f"unix:{tmp_path}/none", "j", "h1")
    started = time.monotonic()
    member.close()
    assert time.monotonic() - started < member.LEAVE_TIMEOUT_S / 10


def test_a_member_that_waits_in_vain_for_a_controller_names_its_address():
    with controller() as (servicer, target):
        servicer.notices.put(pb.ControllerUpdate(lease_ms=300))
        member = ControllerMembership(target, "j", "h1")
        servicer.heard.get(timeout=10)
        time.sleep(0.2)  # the update with the lease arrives
    with pytest.raises(ControllerUnreachableError, match=f"no controller at {target}"):
        member.wait(1)
    member.close()


def test_a_controller_that_is_not_there_is_told_at_once(tmp_path, caplog):
    member = ControllerMembership(f"unix:{tmp_path}/none", "j", "h1")
    with pytest.raises(ControllerUnreachableError):
        member.wait(60)
    member.close()
    first = caplog.messages[0]
    assert first.startswith(f"job j: no controller at unix:{tmp_path}/none (")
    assert first.endswith("; h1 retries for 5 s")
    assert len(caplog.messages) == 1


def test_a_job_that_waits_for_others_is_a_timeout():
    with controller() as (_, target):
        member = ControllerMembership(target, "j", "h1")
        with pytest.raises(AllReduceTimeoutError, match="no assignment for h1"):
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
        servicer.notices.put(pb.ControllerUpdate(assignment=assignment(**changes), lease_ms=3000))
        member = ControllerMembership(target, "j", "h1")
        with pytest.raises(InvalidAssignmentError, match=what):
            member.wait(10)
        member.close()
