# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Records of jobs are values: what was looked up in one changes neither it nor its copies."""

from __future__ import annotations

from netfold.controller.jobs.records import JobRecord, JobState, Member

HOSTS = ("h1", "h2", "h3")


def record() -> JobRecord:
    members = tuple(Member(host=h) for h in HOSTS)
    return JobRecord(name="job", seq=1, spec_yaml="", state=JobState.RUNNING, members=members)


def test_a_lookup_leaves_a_record_as_it_was() -> None:
    looked, fresh = record(), record()
    assert looked.member("h2") == Member(host="h2")
    assert looked.member("h9") is None
    assert looked == fresh
    assert looked.model_dump_json() == fresh.model_dump_json()
    assert JobRecord.model_validate_json(looked.model_dump_json()) == fresh


def test_a_copy_with_other_members_is_looked_up_anew() -> None:
    first = record()
    assert first.member("h2") is not None
    second = first.with_member("h2", joined=True)
    assert second.member("h2") == Member(host="h2", joined=True)
    assert first.member("h2") == Member(host="h2")
    third = second.model_copy(update={"members": (Member(host="h9"), *second.members)})
    assert [m.host for m in third.members] == ["h9", *HOSTS]
    assert third.member("h2") == Member(host="h2", joined=True)
    assert third.member("h9") == Member(host="h9")
