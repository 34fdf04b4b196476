# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The checker of histories: it takes what a right store writes, and refuses each kind of wrong one."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from netfold.controller.jobs.etcd_engine import DATA, DECIDED, HEAD, LEADER, NEW
from netfold.controller.jobs.records import AllocatedTree, JobRecord, JobState, Member, Placement
from netfold.controller.planning.plan import Loads, Plan
from tests.controller.test_tree_numbers import rack_tree
from tests.ha.checker import Checker, Kind, Request
from tests.ha.history import Revision
from tests.simulation.world import ViolationError


class Writer:
    """Writes a history as one controller after the other would."""

    def __init__(self) -> None:
        self.checker = Checker()
        self.number = 0
        self._heads = 0

    def write(self, changes: Mapping[str, bytes | None], head: str = "") -> None:
        """One revision, with a head if there is one."""
        self.number += 1
        written = {name: value for name, value in changes.items() if value is not None}
        written |= {HEAD: head.encode()} if head else {}
        deleted = frozenset(name for name, value in changes.items() if value is None)
        self.checker.take(Revision(self.number, written, deleted))

    def lead(self, process: str, term: int, before: int) -> None:
        self.commit(process, before, {LEADER: f"machine:{process}".encode()})
        self.commit(process, term, rows("facts/term/", facts=[["term", term]]))

    def commit(self, process: str, term: int, changes: Mapping[str, bytes | None]) -> None:
        self._heads += 1
        self.write(changes, f"{term}:{process}:{self._heads}")


def rows(key: str, **tables: list[list[Any]]) -> dict[str, bytes | None]:
    """The change of a key to these rows, or to none."""
    return {f"{DATA}{key}/000": zlib.compress(json.dumps(tables).encode()) if tables else None}


def job_rows(job: JobRecord) -> dict[str, bytes | None]:
    row = [job.name, job.seq, job.state.is_terminal, job.model_dump_json()]
    return rows(f"jobs/{job.name}/", jobs=[row])


def placed(
    name: str, epoch: int = 1, base: int = 0, tree: int = 1, port: int = 5000, seq: int = 1
) -> JobRecord:
    """A job that runs at h1 and h2."""
    plan = Plan("job", "fabric", "test", "Gbit/s", (rack_tree("s1", ("h1", "h2")),), 1.0, Loads())
    trees = (AllocatedTree(tree=tree, slots=16, window=8, bases={"s1": base}),)
    return JobRecord(
        name=name,
        seq=seq,
        spec_yaml="",
        state=JobState.RUNNING,
        udp_port=port,
        placement=Placement(plan=plan, trees=trees, epoch=epoch),
        members=(Member(host="h1"), Member(host="h2")),
    )


def ended(job: JobRecord, state: JobState = JobState.CANCELED) -> JobRecord:
    return job.model_copy(update={"state": state})


def switch_rows(number: int, epoch: int, term: int = 5) -> dict[str, bytes | None]:
    return rows("switches/s1/", revisions=[["s1", term, number]], epochs=[["s1", 0, epoch]])


@pytest.fixture
def writer() -> Writer:
    """A history in which process a has led in term 5, and process b leads in term 6."""
    made = Writer()
    made.commit("a", 0, rows("facts/mark/", facts=[["mark", 9]]))
    made.lead("a", 5, before=0)
    made.commit("a", 5, job_rows(placed("one")) | switch_rows(1, epoch=1))
    made.write({"standby/b": b"ctl2:9600"})
    made.write({LEADER: None})
    made.lead("b", 6, before=5)
    return made


def test_a_right_history_is_taken(writer):
    one, two = placed("one"), placed("two", epoch=2, tree=2, port=5001, seq=2)
    writer.commit("b", 6, job_rows(ended(one)))
    writer.commit("b", 6, job_rows(two) | switch_rows(1, epoch=2, term=6) | rows("jobs/one/"))
    writer.checker.add(Request(Kind.SUBMIT, "one", True))
    writer.checker.add(Request(Kind.CANCEL, "one", False))
    writer.checker.add(Request(Kind.SUBMIT, "two", False))
    writer.checker.check_requests()
    writer.checker.check_writers("s1", [5, 5, 6])
    assert writer.checker.terms == {5, 6}


def _late(writer: Writer) -> None:
    writer.commit("a", 5, {})


def _same_term(writer: Writer) -> None:
    writer.commit("a", 6, {})


def _twice(writer: Writer) -> None:
    writer.write({}, "6:b:3")


def _without_head(writer: Writer) -> None:
    writer.write(job_rows(placed("one", epoch=2)))


def _second_leader(writer: Writer) -> None:
    writer.commit("c", 6, {LEADER: b"machine:c"})


def _no_lease(writer: Writer) -> None:
    writer.write({LEADER: None})
    writer.commit("c", 6, {LEADER: b"machine:c"})
    writer.commit("b", 6, {})


def _second_writer(writer: Writer) -> None:
    writer.write({LEADER: None})
    writer.commit("c", 6, {LEADER: b"machine:c"})
    writer.commit("c", 6, {})


def _no_leader(writer: Writer) -> None:
    """It has the next term."""
    writer.write({LEADER: None})
    writer.commit("c", 7, rows("facts/term/", facts=[["term", 7]]))


def _term_not_stored(writer: Writer) -> None:
    writer.commit("b", 6, rows("facts/term/", facts=[["term", 5]]))


def _part_lost(writer: Writer) -> None:
    writer.commit("b", 6, {f"{NEW}jobs/one//000": b"-", f"{NEW}jobs/two//000": b"=..."})
    writer.commit("b", 6, {DECIDED: b"1"})
    writer.commit("b", 6, {f"{DATA}jobs/one//000": None, f"{NEW}jobs/one//000": None})
    writer.commit("b", 6, {DECIDED: None})


def _job_lost(writer: Writer) -> None:
    writer.commit("b", 6, rows("jobs/one/"))


def _job_back(writer: Writer) -> None:
    writer.commit("b", 6, job_rows(ended(placed("one"))))
    writer.write({LEADER: None})
    writer.lead("c", 7, before=6)
    writer.commit("c", 7, job_rows(placed("one")))


def _job_failed(writer: Writer) -> None:
    writer.commit("b", 6, job_rows(ended(placed("one"), JobState.FAILED)))


def _same_tree(writer: Writer) -> None:
    writer.commit("b", 6, job_rows(placed("two", base=16, port=5001)))


def _same_slots(writer: Writer) -> None:
    writer.commit("b", 6, job_rows(placed("two", epoch=2, tree=2, port=5001)))


def _same_port(writer: Writer) -> None:
    writer.commit("b", 6, job_rows(placed("two", base=16, tree=2)))


def _same_epoch(writer: Writer) -> None:
    writer.commit("b", 6, job_rows(ended(placed("one"))))
    writer.commit("b", 6, job_rows(placed("two", tree=2, port=5001, seq=2)))


def _old_job(writer: Writer) -> None:
    """An earlier controller writes it so, which has not seen that the job has moved."""
    moved = placed("one", epoch=2, base=16, tree=2).model_copy(update={"previous": placed("one").placement})
    writer.commit("b", 6, job_rows(moved))
    writer.commit("b", 6, job_rows(placed("one")))  # it may return
    writer.commit("b", 6, job_rows(moved))
    writer.commit("b", 6, job_rows(moved.model_copy(update={"previous": None})))
    writer.write({LEADER: None})
    writer.lead("c", 7, before=6)
    writer.commit("c", 7, job_rows(placed("one")))


def _epoch_fell(writer: Writer) -> None:
    writer.commit("b", 6, switch_rows(1, epoch=0))


def _revision_fell(writer: Writer) -> None:
    writer.commit("b", 6, switch_rows(0, epoch=1, term=6))


WRONG: Mapping[str, Callable[[Writer], None]] = {
    "the term fell": _late,
    "a wrote, and b had the lease last": _same_term,
    "wrote head 3 after": _twice,
    "changed without the head": _without_head,
    "took the lead from a leader with a lease": _second_leader,
    "b wrote, and c had the lease last": _no_lease,
    "c wrote, and b had the lease last": _no_leader,
    "c wrote in term 6 of b": _second_writer,
    "a commit of term 6 leaves term 5": _term_not_stored,
    "decided, and not written: data/jobs/two//000": _part_lost,
    "job one is gone": _job_lost,
    "job one had ended, and changes state from canceled to running": _job_back,
    "job one failed": _job_failed,
    "share tree 1 of": _same_tree,
    "share block 0 of s1": _same_slots,
    "share port 5000 of h1": _same_port,
    "uses block 0 of s1 in epoch 1, and": _same_epoch,
    "the epoch of job one fell from 2 to 1": _old_job,
    "the epoch of block 0 of s1 fell": _epoch_fell,
    "of the slots of s1 comes after": _revision_fell,
}


@pytest.mark.parametrize("fault", WRONG)
def test_a_wrong_history_is_refused(fault, writer):
    with pytest.raises(ViolationError, match=fault):
        WRONG[fault](writer)


def test_rows_are_checked_once_a_large_commit_is_whole(writer):
    one, two = placed("one"), placed("two", epoch=2, tree=2, port=5001, seq=2)
    writer.commit("b", 6, {DECIDED: b"1"})
    writer.commit("b", 6, job_rows(two))
    writer.commit("b", 6, job_rows(ended(one)) | {DECIDED: None})
    writer.commit("b", 6, {DECIDED: b"1"})
    writer.commit("b", 6, job_rows(placed("three", epoch=3, tree=3, port=5002, seq=3)))
    with pytest.raises(ViolationError, match="share block 0 of s1"):
        writer.commit("b", 6, {DECIDED: None})


def test_a_commit_without_an_answer_may_be_undone(writer):
    """The next commit of the process writes its keys again, as they were before."""
    one, two = placed("one"), placed("two", epoch=2, tree=2, port=5001, seq=2)
    writer.commit("b", 6, job_rows(ended(one)))
    writer.commit("b", 6, job_rows(two) | switch_rows(1, epoch=2, term=6))
    writer.commit("b", 6, job_rows(one) | rows("jobs/two/") | switch_rows(1, epoch=1))
    writer.checker.check_requests()
    writer.checker.add(Request(Kind.SUBMIT, "two", True))
    with pytest.raises(ViolationError, match="acknowledged, and never stored: two"):
        writer.checker.check_requests()


def test_a_commit_is_undone_as_a_whole(writer):
    """Another process does not undo it at all (_job_back)."""
    two = placed("two", epoch=2, tree=2, port=5001, seq=2)
    writer.commit("b", 6, job_rows(ended(placed("one"))) | job_rows(two))
    with pytest.raises(ViolationError, match="job two is gone"):
        writer.commit("b", 6, rows("jobs/two/"))


@pytest.mark.parametrize(
    ("requests", "fault"),
    [
        ([Request(Kind.SUBMIT, "two", True)], "acknowledged, and never stored: two"),
        ([Request(Kind.CANCEL, "one", True)], "job one was canceled, and is running"),
        ([Request(Kind.WITHDRAW, "h3", True)], "h3 is not withdrawn"),
        ([Request(Kind.GIVE_BACK, "h1", True)], "h1 is withdrawn"),
    ],
)
def test_an_acknowledged_request_that_is_lost_is_found(requests, fault, writer):
    writer.commit("b", 6, rows("withdrawals/h1/", withdrawals=[["h1", "{}"]]))
    writer.checker.add(Request(Kind.WITHDRAW, "h1", True))
    writer.checker.check_requests()
    for request in requests:
        writer.checker.add(request)
    with pytest.raises(ViolationError, match=fault):
        writer.checker.check_requests()


def test_a_job_that_ended_by_itself_is_found(writer):
    writer.commit("b", 6, job_rows(ended(placed("one"))))
    with pytest.raises(ViolationError, match="job one is canceled, and no client canceled it"):
        writer.checker.check_requests()


def test_a_request_in_doubt_may_be_granted_until_rest(writer):
    for kind in (Kind.WITHDRAW, Kind.GIVE_BACK):
        writer.checker.add(Request(kind, "h3", kind is Kind.GIVE_BACK))
    writer.commit("b", 6, rows("withdrawals/h3/", withdrawals=[["h3", "{}"]]))
    writer.checker.check_requests()
    writer.commit("b", 6, rows("withdrawals/h3/"))
    with pytest.raises(ViolationError, match="h3 is not withdrawn"):
        writer.checker.check_requests()


@pytest.mark.parametrize(
    ("terms", "fault"), [([5, 6, 5], "in term 5 after 6"), ([5, 7], "term 7, in which no process led")]
)
def test_writes_of_another_leader_are_found(terms, fault, writer):
    with pytest.raises(ViolationError, match=fault):
        writer.checker.check_writers("s1", terms)
