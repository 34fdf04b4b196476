# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A job's view, made by hand, leads to what holds the job up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from netfold.controller.lifecycle.capacity import failed_in
from netfold.controller.lifecycle.member_status import CallStatus, MemberStatus, OpenStream
from netfold.controller.planning.plan import Edge, Loads, Plan, Tree
from netfold.controller.service.hang import diagnose
from netfold.controller.service.hang_view import Cause, Diagnosis, JobView, MemberView, Refusal
from netfold.controller.service.slot_reading import OpenSlots
from netfold.controller.switches.failed_elements import FailedElements
from netfold.protocol import netfold_pb2 as pb

IN_CALL = CallStatus(True, "all_reduce", 25_000_000, 41.0)
IDLE = CallStatus(False)
HOSTS = ("h1", "h2", "h3", "h4")
LEAVES = {"h1": "leaf1", "h2": "leaf1", "h3": "leaf2", "h4": "leaf2"}
ALL_WAIT = {h: MemberView(h, call=IN_CALL, next_call=7) for h in HOSTS}


def view(members: dict[str, MemberView], **more: object) -> JobView:
    job = JobView("j", "running", "", 20.0, tuple(members.values()), attachments=LEAVES)
    return replace(job, **more)  # type: ignore[arg-type]


def found(members: dict[str, MemberView], **more: object) -> Diagnosis:
    return diagnose(view(members, **more))


def but(host: str, **change: object) -> dict[str, MemberView]:
    """All wait in call 7, but one host is otherwise."""
    return {**ALL_WAIT, host: replace(ALL_WAIT[host], **change)}  # type: ignore[arg-type]


def waits_for(switch: str, child: str) -> OpenSlots:
    return OpenSlots(switch, 1, 32, 4, 4, {child: 4}, {child: 4}, (), {child: (child, switch)})


def done(number: int, waited_s: float, kind: str = "all_reduce", status: str = "done") -> pb.CallRecord:
    return pb.CallRecord(
        number=number, kind=kind, bytes=8, status=status, submitted_ago_s=100 + waited_s, ended_ago_s=100.0
    )


def test_a_rank_that_never_called_is_named_with_its_place() -> None:
    diagnosis = found(but("h3", call=IDLE, location="train.py:41 in evaluate"))
    assert (diagnosis.cause, diagnosis.elements) == (Cause.NOT_CALLED, ("h3",))
    assert diagnosis.finding == (
        "h3 has not made call 7 (all_reduce, 25 MB), which 3 of 4 workers have waited for during 41 s"
    )
    assert "h3 has finished 7 calls and is not in a call; its program is at train.py:41 in evaluate." in (
        diagnosis.evidence
    )


def test_one_that_calls_alone_is_not_judged() -> None:
    idle = {h: replace(m, call=IDLE) for h, m in ALL_WAIT.items()}
    diagnosis = found({**idle, "h2": ALL_WAIT["h2"]})
    assert (diagnosis.cause, diagnosis.elements) == (Cause.UNCLEAR, ("h2",))


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"joined": False, "connected": False, "call": None}, Cause.ABSENT),
        ({"connected": False, "update_age_s": 3.0}, Cause.PROCESS),
        ({"answered": False, "update_age_s": 9.0}, Cause.STOPPED),
        ({"silent_s": 5.0}, Cause.STOPPED),
    ],
)
def test_a_process_that_is_away_is_the_cause_of_what_follows(change: dict[str, object], cause: Cause) -> None:
    slots = [waits_for("leaf1", "h2")]
    diagnosis = found(but("h2", **change), slots=slots)
    assert (diagnosis.cause, diagnosis.elements) == (cause, ("h2",))


def test_calls_that_differ_by_a_few_bytes_differ() -> None:
    diagnosis = found(but("h4", call=CallStatus(True, "all_reduce", 25_000_004, 41.0)))
    assert (diagnosis.cause, diagnosis.elements) == (Cause.OTHER_CALL, ("h4",))
    assert "25,000,004 bytes in place of all_reduce of 25,000,000 bytes" in diagnosis.finding


def test_another_call_of_the_same_number_is_named() -> None:
    diagnosis = found(but("h4", call=CallStatus(True, "all_gather", 400, 41.0)))
    assert (diagnosis.cause, diagnosis.elements) == (Cause.OTHER_CALL, ("h4",))
    assert "all_gather of 400 bytes in place of all_reduce of 25,000,000 bytes" in diagnosis.finding


def test_calls_that_failed_as_they_differ_name_the_odd_one() -> None:
    members = {
        h: MemberView(h, call=IDLE, calls=[done(7, 1, "reduce" if h == "h1" else "all_reduce", "mismatch")])
        for h in HOSTS
    }
    diagnosis = found(members)
    assert (diagnosis.cause, diagnosis.elements) == (Cause.OTHER_CALL, ("h1",))


def test_a_result_that_others_have_is_lost_on_the_way_to_its_worker() -> None:
    members = {h: MemberView(h, call=IDLE, next_call=8) for h in HOSTS}
    diagnosis = found({**members, "h2": replace(ALL_WAIT["h2"], retransmitted=3)})
    assert diagnosis.cause is Cause.LINK
    assert diagnosis.elements == ("h2-leaf1", "h2")


def test_a_child_whose_contributions_are_lost_names_the_link() -> None:
    slots = [waits_for("leaf2", "h3"), replace(waits_for("spine1", "leaf2"), lost={})]
    diagnosis = found(ALL_WAIT, slots=slots)
    assert (diagnosis.cause, diagnosis.elements) == (Cause.LINK, ("h3-leaf2",))
    assert found(ALL_WAIT, slots=[waits_for("spine1", "leaf2")]).elements == ("leaf2-spine1",)


def test_a_sum_that_does_not_reach_its_worker_names_the_link() -> None:
    slots = [OpenSlots("spine1", 1, 32, 4, undelivered=("h3",)), replace(waits_for("leaf2", "h3"), lost={})]
    diagnosis = found(ALL_WAIT, slots=slots)
    assert (diagnosis.cause, diagnosis.elements) == (Cause.LINK, ("h3-leaf2", "h3"))
    assert found(ALL_WAIT, slots=[replace(slots[0], undelivered=HOSTS)]).cause is Cause.UNCLEAR


def test_a_child_that_may_not_have_sent_yet_is_not_accused() -> None:
    slots = [waits_for("leaf1", "h2"), waits_for("leaf2", "h3")]
    assert found(ALL_WAIT, slots=[replace(slots[0], lost={}), slots[1]]).elements == ("h3-leaf2",)
    assert found(ALL_WAIT, slots=[replace(slots[0], lost={})]).cause is Cause.UNCLEAR


def test_a_switch_that_refuses_comes_before_slots_that_lack_a_worker() -> None:
    refusal = Refusal("leaf1", "unadmitted", 9.0, "are of no job")
    slots = [waits_for("leaf1", "h1")]
    diagnosis = found(ALL_WAIT, refusals=[refusal], slots=slots)
    assert (diagnosis.cause, diagnosis.elements) == (Cause.REFUSED, ("leaf1",))


def test_a_switch_that_is_not_ready_is_named_unless_results_arrive() -> None:
    unready = {"leaf2": "no answer"}
    assert found(ALL_WAIT, unready=unready).elements == ("leaf2",)
    moving = {h: replace(m, moved=True) for h, m in ALL_WAIT.items()}
    assert found(moving, unready=unready).cause is Cause.NONE


def test_of_failed_links_only_those_of_the_trees_are_named() -> None:
    tree = Tree("leaf-1", 1.0, (Edge("h1", "leaf-1", ("h1", "leaf-1")),), ())
    plan = Plan("j", "fabric", "scheme", "Gbit/s", (tree,), 1.0, Loads())
    links = frozenset(map(frozenset, (("h1", "leaf-1"), ("leaf-1", "spine1"))))
    failed = FailedElements(links, frozenset(("leaf-1", "spine1")))
    assert failed_in(plan, failed).names == ["h1-leaf-1", "leaf-1"]


def test_the_last_caller_of_a_job_that_moves_is_named() -> None:
    members = {
        h: MemberView(
            h, call=IDLE, moved=True, calls=[done(n, 0.01 if h == "h4" else 0.2) for n in range(10)]
        )
        for h in HOSTS
    }
    diagnosis = found(members)
    assert (diagnosis.cause, diagnosis.elements) == (Cause.SLOW, ("h4",))
    assert "190 ms" in diagnosis.finding


def test_a_worker_that_is_late_since_some_calls_is_named() -> None:
    members = {
        h: MemberView(
            h,
            call=IDLE,
            moved=True,
            calls=[done(n, 0.2 if n > 200 and h != "h4" else 0.01) for n in range(230)],
        )
        for h in HOSTS
    }
    assert found(members).elements == ("h4",)


def test_a_worker_that_has_left_is_named_where_calls_fail_for_it() -> None:
    failed = {h: MemberView(h, call=IDLE, calls=[done(7, 1, status="workers_left")]) for h in HOSTS}
    diagnosis = found({**failed, "h3": MemberView("h3", left=True, connected=False)})
    assert (diagnosis.cause, diagnosis.elements) == (Cause.LEFT, ("h3",))
    assert diagnosis.finding == "h3 has left the job, and calls of h1, h2, h4 failed for it"


def test_a_worker_whose_link_loses_is_named_where_it_stands_out() -> None:
    def losing(**losses: float) -> dict[str, MemberView]:
        return {
            h: replace(m, moved=True, losses=losses.get(h, 0.01), retransmitted=9)
            for h, m in ALL_WAIT.items()
        }

    assert found(losing(h1=0.3)).elements == ("h1-leaf1", "h1")
    assert "unclear" in found(losing(h1=0.3, h3=0.2)).finding
    behind = OpenSlots("spine1", 1, paths={leaf: (leaf, "spine1") for leaf in ("leaf1", "leaf2")})
    assert found(losing(h3=0.3, h4=0.2), glimpses=[behind]).elements == ("leaf2-spine1", "h3", "h4")
    few = {h: replace(m, retransmitted=1) for h, m in losing(h1=0.5).items()}
    assert found(few).cause is Cause.NONE


def test_slots_that_lack_what_was_sent_come_before_counts_of_retransmissions() -> None:
    members = {
        h: replace(m, moved=True, losses=0.5 if h == "h1" else 0.02, retransmitted=9)
        for h, m in ALL_WAIT.items()
    }
    lost = [replace(waits_for("leaf2", "h3"), lost={"h3": 1})]
    assert found(members, glimpses=lost * 3).elements == ("h3-leaf2",)
    assert found(members, glimpses=lost).elements == ("h1-leaf1", "h1")


def test_workers_in_no_call_and_complete_slots_accuse_nothing() -> None:
    idle = {h: replace(m, call=IDLE) for h, m in ALL_WAIT.items()}
    assert found(idle).cause is Cause.NO_CALL
    diagnosis = found(ALL_WAIT, slots=[OpenSlots("leaf1", 1, 32, 4)])
    assert (diagnosis.cause, diagnosis.elements) == (Cause.UNCLEAR, ())


def test_calls_that_are_not_reported_are_unknown() -> None:
    diagnosis = found({"h1": MemberView("h1")})
    assert diagnosis.cause is Cause.UNCLEAR
    assert diagnosis.evidence == ("Not known: the calls of h1, which does not report them.",)


def test_a_job_that_has_ended_has_its_reason() -> None:
    job = JobView("j", "failed", "the lease of h3 expired", 0.0)
    assert diagnose(job).finding == "the job has ended (failed): the lease of h3 expired"


def test_the_evidence_of_many_members_is_bounded() -> None:
    members = {f"h{n}": MemberView(f"h{n}", call=IDLE) for n in range(1024)}
    evidence = found(members).evidence
    assert len(evidence) == 33
    assert evidence[-1] == "And 992 more."


def test_a_member_that_answers_with_more_calls_than_requested_has_the_last_ones() -> None:
    status = MemberStatus()
    with status.connected(OpenStream("j", "h1")):
        request = status.request_calls("j", ["h1"], 2)
        status.set_calls("j", "h1", pb.CallDump(number=request.number, calls=[done(n, 1) for n in range(9)]))
    assert [r.number for r in request.answers["h1"].calls] == [7, 8]
