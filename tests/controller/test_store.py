# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The store: what was committed is there after a crash, what was not is not; one leader at a time."""

from __future__ import annotations

import contextlib
import signal
import sqlite3
import stat
import subprocess
import sys

import pytest

from netfold.controller.jobs.engine import StoreError
from netfold.controller.jobs.records import AllocatedTree, JobRecord, JobState, Member, Placement, QueuePairs
from netfold.controller.jobs.slot_allocator import Range
from netfold.controller.jobs.store import (
    _TABLES_BEFORE,
    HISTORY,
    SCHEMA,
    SCHEMA_BEFORE,
    NotFinalError,
    Store,
)
from netfold.controller.planning.plan import JobSpec
from netfold.controller.planning.planner import make_plan
from netfold.controller.service.leadership import Leadership
from netfold.topologies.generators import leaf_spine


def _job(name: str, seq: int, state: JobState = JobState.RUNNING) -> JobRecord:
    return JobRecord(name=name, seq=seq, spec_yaml="name: x\n", state=state, members=(Member(host="h1"),))


def test_a_job_with_its_plan_comes_back_as_it_was(kept):
    fabric = leaf_spine(2, 2, 2, parameter_servers=1)
    plan = make_plan(fabric, JobSpec("j", ("h1", "h3"), ("ps1",), scheme="grid"))
    tree = AllocatedTree(tree=3, slots=64, window=32, bases={"leaf1": 64})
    job = _job("j", 1).model_copy(update={"placement": Placement(plan=plan, trees=(tree,), epoch=7)})
    store = Store(kept(), "f")
    with store.change():
        store.put(job)
    store.close()
    assert Store(kept(), "f").jobs() == [job]


@pytest.mark.parametrize("exists", [False, True])
def test_only_its_user_may_read_it(tmp_path, exists):
    folder = tmp_path / "state"
    if exists:
        folder.mkdir(mode=0o700)
        (folder / "db").touch(mode=0o644)
    store = Store(folder / "db", "f")
    with store.change():
        store.put(_job("j", 1))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    files = {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}
    assert files == dict.fromkeys(("db", "db-wal", "db-shm"), 0o600)
    store.close()


def test_a_change_that_fails_leaves_nothing(kept):
    store = Store(kept(), "f")

    def fail():
        with store.change():
            store.put(_job("j", 1))
            store.set_number("tree", 5)
            store.use_slots({"s": [Range(0, 32)]}, 3)
            raise KeyError("on purpose")

    with pytest.raises(KeyError, match="on purpose"):
        fail()
    assert (store.jobs(), store.number("tree"), store.epochs("s")) == ([], 0, {})


def test_a_process_killed_within_a_change_leaves_nothing(tmp_path):
    script = (
        "import os, signal, sys; from pathlib import Path; from netfold.controller.jobs.store import Store\n"
        "store = Store(Path(sys.argv[1]), 'f')\n"
        "with store.change(): store.set_number('kept', 1)\n"
        "with store.change():\n"
        "    store.set_number('lost', 1); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, tmp_path / "db"], check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    store = Store(tmp_path / "db", "f")
    assert (store.number("kept"), store.number("lost")) == (1, 0)


def test_epochs_of_blocks(kept):
    store = Store(kept(), "f")
    with store.change():
        store.use_slots({"s": [Range(32, 32)], "t": [Range(0, 16)]}, 3)
        store.use_slots({"s": [Range(32, 16)]}, 5)
    assert store.epochs("s") == {2: 5, 3: 3}
    with store.change():
        store.registers_empty("s", [2])
    assert store.epochs("s") == {3: 3}
    with store.change():
        store.registers_empty("s")
    assert store.epochs("s") == {}
    assert store.epochs("t") == {0: 3}


def test_a_store_keeps_its_fabric(kept):
    Store(kept(), "f").close()
    store = Store(kept(), "g")
    assert (store.fabric, store.numbers) == ("f", "")
    with store.change():
        store.set_fabric("h", "{}")
    store.close()
    assert Store(kept(), "f").fabric == "h"


def test_fields_of_another_version_are_kept(kept):
    """A job is written by a newer version, changed by this one, and read by the newer one again."""
    store = Store(kept(), "f")
    newer = JobRecord.model_validate({**_job("j", 1).model_dump(), "tenant": "blue"})
    member = Member.model_validate({"host": "h1", "zone": 3})
    with store.change():
        store.put(newer.model_copy(update={"members": (member,)}))
    [job] = store.jobs()
    with store.change():
        store.put(job.with_member("h1", joined=True).model_copy(update={"reason": "changed"}))
    [job] = store.jobs()
    kept = job.model_dump()
    assert (kept["tenant"], kept["members"][0]["zone"], kept["members"][0]["joined"]) == ("blue", 3, True)


def test_another_version_s_store_is_refused_with_what_keeps_its_jobs(kept):
    store = Store(kept(), "f")
    with store.change():
        store.set_number("schema", SCHEMA + 1)
    store.close()
    with pytest.raises(StoreError, match="Run that version until its jobs have ended") as refused:
        Store(kept(), "f")
    assert f"schema {SCHEMA + 1}, here {SCHEMA}" in str(refused.value)
    assert "remove" not in str(refused.value)


def _of_the_version_before(path):
    """A store as a version of SCHEMA_BEFORE makes it."""
    with contextlib.closing(sqlite3.connect(path)) as store:
        store.executescript(_TABLES_BEFORE)
        store.executemany(
            "INSERT INTO facts VALUES (?, ?)",
            [("schema", SCHEMA_BEFORE), ("fabric", "f"), ("mark", 9), ("term", 5), ("key", "00")],
        )
        store.commit()


def test_the_version_before_may_have_its_store_back_until_it_is_final(tmp_path):
    _of_the_version_before(tmp_path / "db")
    store = Store(tmp_path / "db", "g")
    assert (store.fabric, store.mark, store.number("term"), store.is_final) == ("f", 9, 5, False)
    assert store.number("schema") == SCHEMA_BEFORE
    with pytest.raises(NotFinalError, match="a thing needs a store of schema"):
        store.expect_final("a thing")
    with store.change():
        store.finalize()
    store.expect_final("a thing")
    store.close()
    assert Store(tmp_path / "db", "f").is_final


@pytest.mark.parametrize("is_final", [True, False])
def test_a_registration_writes_the_record_only_for_the_version_before(kept, is_final):
    store = Store(kept(), "f")
    job = _job("j", 1).model_copy(
        update={"queue_pairs": (QueuePairs(host="h1", epoch=1, calls=0, connections=()),)}
    )
    newer = QueuePairs(host="h1", epoch=2, calls=3, connections=())
    changed = job.model_copy(update={"queue_pairs": (newer,)})
    with store.change():
        store.put(job)
        if not is_final:
            store.set_number("schema", SCHEMA_BEFORE)
    with store.change():
        store.put_queue_pairs(changed, newer)
    assert store.jobs() == [changed]
    [(body,)] = store._db.execute("SELECT body FROM jobs").fetchall()
    assert JobRecord.model_validate_json(body) == (job if is_final else changed)
    with store.change():
        store.put(changed)
    assert store._db.execute("SELECT count(*) FROM queue_pairs").fetchone() == (0,)
    assert store.jobs() == [changed]


def test_a_new_store_is_final(kept):
    assert Store(kept(), "f").is_final


def test_a_standby_does_not_lead_with_a_store_that_a_newer_version_has_finalized(tmp_path):
    store, newer = Store(tmp_path / "db", "f"), Store(tmp_path / "db", "f")
    with newer.change():
        newer.set_number("schema", SCHEMA + 1)
    with pytest.raises(StoreError, match="was written by another version"):
        Leadership(store).try_lead()


def test_a_record_that_cannot_be_read_is_named(kept):
    store = Store(kept(), "f")
    with store.change():
        store.put(_job("j", 1))
        store._db.execute("UPDATE jobs SET body = json_set(body, '$.state', 'paused')")
    with pytest.raises(StoreError, match="was written by another version"):
        store.jobs()


def test_a_file_that_is_no_database_is_refused(tmp_path):
    (tmp_path / "db").write_text("something else, and long enough to be looked at" * 100)
    with pytest.raises(StoreError, match="not a database"):
        Store(tmp_path / "db", "f")


def test_old_jobs_are_forgotten(kept):
    store = Store(kept(), "f")
    with store.change():
        store.put(_job("live", 1))
        for seq in range(2, HISTORY + 10):
            store.put(_job(f"j{seq}", seq, JobState.DONE))
    names = [j.name for j in store.jobs()]
    assert len(names) == HISTORY + 1
    assert names[0] == "live"
    assert "j2" not in names


def test_the_mark_is_the_stores_own(tmp_path):
    marks = {Store(tmp_path / f"db{i}", "f").mark for i in range(8)}
    assert len(marks) > 1
    assert all(1024 <= m <= 65535 for m in marks)


def test_a_store_parses_the_jobs_that_have_changed(tmp_path, monkeypatch):
    """A standby reads them so at each change."""
    leader, standby = Store(tmp_path / "a.db", "f"), Store(tmp_path / "a.db", "f")
    jobs = [
        JobRecord(name=f"j{n}", seq=n, spec_yaml="", state=JobState.RUNNING, members=(Member(host="h1"),))
        for n in range(3)
    ]
    with leader.change():
        for job in jobs:
            leader.put(job)
    assert standby.jobs() == jobs
    parse, parsed = JobRecord.model_validate_json, []
    monkeypatch.setattr(JobRecord, "model_validate_json", lambda body: (parsed.append(body), parse(body))[1])
    assert standby.jobs() == jobs
    with leader.change():
        leader.put_member("j1", Member(host="h1", joined=True))
    assert [job.members[0].joined for job in standby.jobs()] == [False, True, False]
    with leader.change():
        leader.put(jobs[0].model_copy(update={"seq": 9}))
    assert [(job.name, job.members[0].joined) for job in standby.jobs()] == [
        ("j1", True),
        ("j2", False),
        ("j0", False),
    ]
    assert len(parsed) == 2
