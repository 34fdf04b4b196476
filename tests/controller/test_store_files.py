# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Commands for the file of a store: a copy is whole, a restore stays away from a leader, faults are named."""

from __future__ import annotations

import resource
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from netfold.cli import build
from netfold.controller.jobs.program_records import SwitchProgram
from netfold.controller.jobs.records import AllocatedTree, JobRecord, JobState, Member, Placement
from netfold.controller.jobs.store import SCHEMA, SCHEMA_BEFORE, Store
from netfold.controller.jobs.stored_fabric import fabric_text
from netfold.controller.jobs.withdrawal import Intent, Withdrawal
from netfold.controller.planning.plan import JobSpec
from netfold.controller.planning.planner import make_plan
from netfold.controller.service.leadership import Leadership
from netfold.topologies.generators import leaf_spine

FABRIC = leaf_spine(2, 2, 2)


def _job(name: str, *, tree: int, base: int, rate: float = 20.0) -> JobRecord:
    whole = make_plan(FABRIC, JobSpec(name, ("h1", "h3"), (), scheme="switchml"))
    plan = replace(whole, rate=rate, loads=whole.loads.times(rate / whole.rate))
    allocated = tuple(
        AllocatedTree(tree=tree, slots=64, window=32, bases=dict.fromkeys(t.nodes, base)) for t in plan.trees
    )
    return JobRecord(
        name=name,
        seq=tree,
        spec_yaml=f"name: {name}\nworkers: [h1, h3]\nparameter_servers: 0\n",
        state=JobState.RUNNING,
        members=(Member(host="h1"), Member(host="h3")),
        placement=Placement(plan=plan, trees=allocated, epoch=1),
    )


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "state.db", fabric_text(FABRIC))
    with store.change():
        store.put(_job("a", tree=1, base=0))
        store.put(_job("b", tree=2, base=64))
    yield store
    store.close()


def _run(*arguments: object) -> tuple[int, str]:
    called = f"controller {arguments[0]}"
    done = CliRunner().invoke(build(called), ["controller", *map(str, arguments)])
    return done.exit_code, done.output


def test_a_copy_has_all_that_the_store_had(store, tmp_path):
    code, output = _run("backup", store.name, tmp_path / "copy")
    assert code == 0, output
    assert "2 jobs, 2 of them live" in output
    assert (tmp_path / "copy").stat().st_mode & 0o777 == 0o600
    with store.change():
        store.put(_job("c", tree=3, base=128))
    assert [j.name for j in Store(tmp_path / "copy", "").jobs()] == ["a", "b"]
    code, output = _run("backup", store.name, tmp_path / "copy")
    assert (code, "exists; name a new file" in output) == (4, True)
    assert _run("backup", tmp_path / "none", tmp_path / "other")[0] == 4


def test_a_store_is_not_restored_from_itself(store, tmp_path):
    _run("backup", store.name, tmp_path / "copy")
    (tmp_path / "link").symlink_to(tmp_path / "copy")
    code, output = _run("restore", tmp_path / "link", tmp_path / "copy")
    assert (code, "is the store itself" in " ".join(output.split())) == (4, True)


def test_a_restore_stays_away_from_a_leader(store, tmp_path):
    _run("backup", store.name, tmp_path / "copy")
    with store.change():
        store.put(_job("c", tree=3, base=128))
    leadership = Leadership(store)
    assert leadership.try_lead()
    code, output = _run("restore", tmp_path / "copy", store.name)
    assert (code, len(store.jobs())) == (3, 3)
    assert "a controller leads with" in output
    leadership.release()
    assert _run("restore", tmp_path / "copy", store.name)[0] == 0
    assert [j.name for j in store.jobs()] == ["a", "b"], "a standby sees the restored store"


@pytest.mark.parametrize("contents", [None, b"", b"no database" * 1000])
def test_a_store_that_is_missing_or_damaged_is_restored(store, tmp_path, contents):
    _run("backup", store.name, tmp_path / "copy")
    other = tmp_path / "new" / "state.db"
    if contents is not None:
        other.parent.mkdir()
        other.write_bytes(contents)
    assert _run("restore", tmp_path / "copy", other)[0] == 0
    assert [j.name for j in Store(other, "").jobs()] == ["a", "b"]


def test_a_copy_with_faults_is_not_restored(store, tmp_path):
    (tmp_path / "copy").write_bytes(b"something else")
    assert _run("restore", tmp_path / "copy", store.name)[0] == 4
    with store.change():
        store.put_withdrawal(Withdrawal(element="spine9", intent=Intent.DRAIN))
    assert _run("backup", store.name, tmp_path / "faulty")[0] == 3
    code, output = _run("restore", tmp_path / "faulty", tmp_path / "new.db")
    assert (code, (tmp_path / "new.db").exists()) == (4, False)
    assert "spine9" in output


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda s: s.put(_job("c", tree=2, base=128)), "tree number 2 is given 2 times"),
        (lambda s: s.put(_job("c", tree=3, base=64)), "block of slots 4 is given 2 times"),
        (lambda s: s.put(_job("c", tree=3, base=128, rate=90)), "do not fit beside those of others"),
        (lambda s: s.set_fabric(fabric_text(leaf_spine(2, 2, 1)), ""), "job a: the fabric has no h3"),
        (
            lambda s: s.put(_job("c", tree=3, base=128).model_copy(update={"spec_yaml": "nonsense: 1"})),
            "job c: ",
        ),
    ],
)
def test_verify_names_what_does_not_fit(store, change, fault):
    assert _run("verify", store.name)[0] == 0
    with store.change():
        change(store)
    code, output = _run("verify", store.name)
    assert code == 3, output
    assert fault in output


def test_verify_refuses_what_is_no_store(store, tmp_path):
    with store.change():
        store._db.execute("UPDATE jobs SET body = json_set(body, '$.state', 'paused') WHERE name = 'a'")
    assert _run("verify", store.name)[0] == 4
    (tmp_path / "empty").touch()
    code, output = _run("verify", tmp_path / "empty")
    assert (code, "is not a store of netfold" in output) == (4, True)


@pytest.mark.parametrize("name", ["a#1.db", "a?b=c.db", "a%41.db"])
def test_a_file_may_have_any_name(store, tmp_path, name):
    assert _run("backup", store.name, tmp_path / name)[0] == 0
    assert _run("verify", tmp_path / name)[0] == 0
    assert _run("finalize", tmp_path / name)[0] == 0


@pytest.mark.parametrize(
    ("text", "other"),
    [
        (b"SQLite format 3", b"SQLite format 9"),
        (b"CREATE TABLE facts", b"CREATE!"),
        (b"workers: [h1", b"\xff"),
    ],
)
def test_verify_names_the_damaged_file(store, tmp_path, text, other):
    copy = tmp_path / "copy"
    _run("backup", store.name, copy)
    damaged = copy.read_bytes()
    assert text in damaged
    copy.write_bytes(damaged.replace(text, other + text[len(other) :]))
    for command in (("verify", copy), ("restore", copy, tmp_path / "new.db")):
        code, output = _run(*command)
        assert (code, str(copy) in output) == (4, True), output


def test_verify_names_the_file_of_another_version(store, tmp_path):
    with store.change():
        store.set_number("schema", SCHEMA + 1)
    code, output = _run("verify", store.name)
    assert (code, f"{store.name} was written by another version" in output) == (4, True), output


@pytest.mark.parametrize("abilities", [None, "{}"])
def test_verify_reads_the_programs_of_switches(store, abilities):
    with store.change():
        store.put_switch_program("leaf1", SwitchProgram("abcd", was_rolled_out=True))
        if abilities is not None:
            store._db.execute("INSERT INTO programs VALUES ('abcd', 'p', x'00', x'00', ?)", (abilities,))
    code, output = _run("verify", store.name)
    assert (code, f"{store.name}: program abcd cannot be read" in output) == (4, True), output


def test_verify_reads_the_rollout(store):
    with store.change():
        store._db.execute("INSERT INTO facts VALUES ('rollout', '{}')")
    assert _run("verify", store.name)[0] == 4


def test_a_copy_that_does_not_fit_on_the_disk_leaves_no_file(store, tmp_path):
    copy, before = tmp_path / "copy", resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, before[1]))
    try:
        code, output = _run("backup", store.name, copy)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (code, copy.exists()) == (4, False)
    assert f"{copy} is not written" in output


def test_a_copy_is_one_file(store, tmp_path):
    """It can be verified and restored where nothing can be written."""
    folder = tmp_path / "backups"
    folder.mkdir()
    _run("backup", store.name, folder / "copy")
    assert _run("verify", folder / "copy")[0] == 0
    assert _run("restore", folder / "copy", tmp_path / "new.db")[0] == 0
    assert [file.name for file in folder.iterdir()] == ["copy"]


def test_a_copy_replaces_no_link(store, tmp_path):
    (tmp_path / "copy").symlink_to(tmp_path / "target")
    assert _run("backup", store.name, tmp_path / "copy")[0] == 4
    assert not (tmp_path / "target").exists()


def test_a_link_to_a_store_has_its_leader(store, tmp_path):
    _run("backup", store.name, tmp_path / "copy")
    link = tmp_path / "link.db"
    link.symlink_to(store.name)
    leadership = Leadership(store)
    assert leadership.try_lead()
    assert _run("restore", tmp_path / "copy", link)[0] == 3
    assert Leadership(Store(link, "")).try_lead() is None
    leadership.release()


def test_finalize_ends_the_use_by_the_version_before(store, tmp_path):
    with store.change():
        store.set_number("schema", SCHEMA_BEFORE)
    assert "which the version before can use" in _run("verify", store.name)[1]
    assert _run("finalize", store.name)[0] == 0
    assert store.number("schema") == SCHEMA
    assert _run("finalize", tmp_path / "none")[0] == 4
    assert not (tmp_path / "none").exists()
