# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Members in a recording of many: all in turn, and none that is gone."""

from __future__ import annotations

from types import SimpleNamespace

from netfold.controller.jobs.records import JobState, Member
from netfold.controller.lifecycle.member_status import MemberStatus, OpenStream, Progress
from netfold.controller.observation.member_rows import MEMBERS_PER_LOOK, MemberRows

LOOKS = 4
HOSTS = [f"h{n}" for n in range((LOOKS - 1) * MEMBERS_PER_LOOK + 1)]


def job(hosts, state=JobState.RUNNING):
    return SimpleNamespace(members=tuple(Member(host=h) for h in hosts), state=state)


def looked(rows: MemberRows, jobs, looks: int, at: float = 0.0):
    """What `looks` looks see; all but the last are part of a round."""
    found = {}
    for n in range(looks):
        seen = rows.look(jobs, at + n)
        assert len([row for row in seen.values() if row is not None]) <= MEMBERS_PER_LOOK
        assert rows.is_round_complete == (n == looks - 1)
        found |= seen
    return found


def test_every_member_has_its_turn_and_its_row_only_if_it_changed():
    status = MemberStatus()
    rows, jobs = MemberRows(status, lanes=64), {"job": job(HOSTS)}
    assert looked(rows, jobs, LOOKS).keys() == {f"job {h}" for h in HOSTS}
    assert looked(rows, jobs, LOOKS) == {}
    status.set_report("job", HOSTS[0], Progress(chunks=7))
    with status.connected(OpenStream("job", HOSTS[-1])):
        changed = looked(rows, jobs, LOOKS)
    assert changed.keys() == {f"job {HOSTS[0]}", f"job {HOSTS[-1]}"}
    assert changed[f"job {HOSTS[0]}"]["chunks"] == 7
    assert changed[f"job {HOSTS[-1]}"]["connected"]


def test_members_of_a_job_that_ended_go_at_once():
    rows = MemberRows(MemberStatus(), lanes=64)
    looked(rows, {"job": job(HOSTS), "other": job(HOSTS[:1])}, LOOKS)
    ended = rows.look({"job": job(HOSTS, JobState.DONE), "other": job(HOSTS[:1])}, 9.0)
    assert ended == {f"job {h}": None for h in HOSTS}
    assert rows.is_round_complete


def test_goodput_is_right_although_looks_at_a_member_are_seconds_apart():
    """A member of 1,024 reports 100 chunks a second; it is looked at every 4 s."""
    status = MemberStatus()
    rows, jobs = MemberRows(status, lanes=100), {"job": job(HOSTS)}
    for second in range(0, 16, LOOKS):
        status.set_report("job", HOSTS[0], Progress(chunks=100 * second))
        seen = looked(rows, jobs, LOOKS, at=second)
    assert seen[f"job {HOSTS[0]}"]["goodput_mbps"] == 0.32
