# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A membership's life: it joins, gets assignments and new epochs, reports, and ends with its job."""

from __future__ import annotations

import json
import queue
import threading
from dataclasses import asdict

import pytest

from netfold.protocol import netfold_pb2 as pb
from netfold.protocol.congestion import DATA_CENTER, SHARED_PROCESSORS
from netfold.traffic.errors import (
    AllReduceTimeoutError,
    InvalidAssignmentError,
    JobFailedError,
    MembershipLostError,
)
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
from tests.traffic.scripted_controller import assignment, controller


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


def test_a_relay_sends_updates_only_when_its_worker_has_sent_something():
    with controller() as (servicer, target):
        servicer.notices.put(pb.ControllerUpdate(lease_ms=30))
        member = ControllerMembership(target, "j", "h1", is_relay=True)
        servicer.heard.get(timeout=5)
        with pytest.raises(queue.Empty):
            servicer.heard.get(timeout=0.3)
        member.report(Stats(chunks=7))
        assert servicer.heard.get(timeout=5).report.chunks == 7
        member.register(pb.RoceQueuePairs(epoch=3))
        assert servicer.heard.get(timeout=5).queue_pairs.epoch == 3
        member.abandon()
        assert servicer.heard.empty(), "its lease has to expire"


def test_a_member_that_has_left_may_wait_for_the_end_of_the_job():
    with controller() as (servicer, target):
        member = ControllerMembership(target, "j", "h1")
        ended = threading.Event()
        member.on_change(ended.set)
        member.leave()
        while not servicer.heard.get(timeout=5).leave:
            pass
        servicer.notices.put(pb.ControllerUpdate(ended=pb.JobEnded(state=pb.DONE, reason="all left")))
        assert ended.wait(5)
        with pytest.raises(JobFailedError, match="all left"):
            member.current()
        member.close()


def test_a_ring_counts_for_its_own_epoch_only():
    with controller() as (servicer, target):
        member = ControllerMembership(target, "j", "h1", transport="roce")
        changed: queue.Queue[int] = queue.Queue()
        member.on_change(lambda: changed.put(1))
        servicer.notices.put(pb.ControllerUpdate(assignment=assignment(epoch=4, transport="roce")))
        neighbors = pb.RoceNeighbors(tree=1, successor="10.0.0.3", successor_qpn=7)
        for epoch in (3, 4):
            ring = pb.RoceRing(epoch=epoch, max_calls=epoch, trees=[neighbors])
            servicer.notices.put(pb.ControllerUpdate(ring=ring))
        for _ in range(2):
            changed.get(timeout=5)
        ring_now = member.current().ring
        assert ring_now is not None
        assert (ring_now.max_calls, ring_now.trees[0].successor_qpn) == (4, 7)
        member.close()
