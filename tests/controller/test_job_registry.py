# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The controller remembers jobs in records that are values."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest

from netfold.controller.jobs.engine import StoreError
from netfold.controller.jobs.file import resolve_job
from netfold.controller.jobs.records import JobRecord, JobState, Member
from netfold.controller.jobs.store import HISTORY, Store
from netfold.controller.lifecycle.job_registry import JobRegistry, ReplacedError
from netfold.controller.lifecycle.packet_model import PacketModel
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.topologies.addressing import addresses
from netfold.topologies.fabric import Host, Link
from netfold.topologies.generators import single_switch

TEXT = "name: a\nworkers: [h1, h2]\nscheme: switchml\n"


def test_the_file_of_a_job_is_read_once_and_leaves_with_its_record(tmp_path: Path) -> None:
    fabric = single_switch(2)
    store = Store(tmp_path / "state.db", "fabric")
    registry = JobRegistry(FabricConfig(fabric, addresses(fabric), store.mark), PacketModel(32), store)
    with registry.change():
        registry.write(registry.new(resolve_job(TEXT, fabric, "a")))
    assert registry.resolved_job("a") is registry.resolved_job("a"), "a live job's is kept"
    resolved = weakref.ref(registry.resolved_job("a"))
    with registry.change():
        registry.write(registry.with_end_state(registry.get("a"), JobState.DONE, "every worker left"))
    assert registry.resolved_job("a") is resolved(), (
        "an ended job's is kept, too: a loss of each of its members reads it"
    )
    with registry.change():
        for n in range(HISTORY):
            registry.write(registry.new(resolve_job(TEXT.replace("name: a", f"name: b{n}"), fabric, f"b{n}")))
            registry.write(registry.with_end_state(registry.get(f"b{n}"), JobState.DONE, "every worker left"))
    gc.collect()
    assert resolved() is None


def test_a_change_that_fails_reads_no_job_again(tmp_path: Path) -> None:
    fabric = single_switch(2)
    store = Store(tmp_path / "state.db", "fabric")
    registry = JobRegistry(FabricConfig(fabric, addresses(fabric), store.mark), PacketModel(32), store)
    with registry.change():
        registry.write(registry.new(resolve_job(TEXT, fabric, "a")))
    job = registry.get("a")

    def fail() -> None:
        with registry.change():
            registry.write(registry.with_end_state(job, JobState.DONE, ""))
            registry.write(registry.new(resolve_job(TEXT.replace("name: a", "name: b"), fabric, "b")))
            raise StoreError("database or disk is full")

    with mock.patch.object(store, "jobs", side_effect=AssertionError("the store is read")):
        with pytest.raises(StoreError, match="full"):
            fail()
        assert registry.all() == [job]
        assert "b" not in registry
    assert JobRegistry(registry._config, PacketModel(32), store).all() == [job]


def test_a_job_named_by_count_keeps_its_hosts_in_another_fabric(tmp_path: Path) -> None:
    """Another host comes first in the fabric, and the job's file asks for the first two."""
    store = Store(tmp_path / "state.db", "fabric")
    before = single_switch(3)
    first = JobRegistry(FabricConfig(before, addresses(before), store.mark), PacketModel(32), store)
    text = "name: a\nworkers: 2\nscheme: switchml\nmin_rate: 100\n"
    with first.change():
        first.write(first.new(resolve_job(text, before, "a")))
    after = replace(before, hosts=(Host("h0"), *before.hosts), links=(Link("h0", "s1", 1.0), *before.links))
    then = JobRegistry(FabricConfig(after, addresses(after), store.mark), PacketModel(32), store)
    assert then.resolved_job("a").workers == ("h1", "h2")
    assert then.resolved_job("a").spec().workers == tuple(m.host for m in then.get("a").members)


def test_nothing_is_changed_after_the_end_of_a_controller(tmp_path: Path) -> None:
    """Its process may lead again, with another controller and the same store."""
    fabric = single_switch(2)
    store = Store(tmp_path / "state.db", "fabric")
    config = FabricConfig(fabric, addresses(fabric), store.mark)
    before, after = (JobRegistry(config, PacketModel(32), store) for _ in range(2))
    before.retire()
    with pytest.raises(ReplacedError), before.change():
        pass
    with after.change():
        after.write(after.new(resolve_job(TEXT, fabric, "a")))


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
