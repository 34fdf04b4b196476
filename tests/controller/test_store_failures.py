# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A store that cannot be written for a while, and processes whose controller has died."""

from __future__ import annotations

import asyncio
import itertools
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from netfold.controller.jobs.engine import StoreError
from netfold.controller.jobs.file import resolve_job
from netfold.controller.jobs.records import JobState
from netfold.controller.jobs.store import Store
from netfold.controller.jobs.withdrawal import Intent, Withdrawal
from netfold.controller.lifecycle import epochs
from netfold.controller.scheduling import plan_worker
from netfold.controller.scheduling.job_planner import PlanRequest
from netfold.controller.scheduling.plan_worker import frame
from netfold.topologies.generators import leaf_spine, single_switch
from tests.controller.deployment import full_disk, ready

JOB = "name: job\nworkers: [h1, h2]\nscheme: switchml\n"


def test_a_full_disk_is_an_error_of_the_store_and_changes_nothing(tmp_path):
    store = Store(tmp_path / "db", "f")
    pages = store._db.execute("PRAGMA page_count").fetchone()[0]
    store._db.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreError, match="full"), store.change():
        store.put_withdrawal(Withdrawal(element="h1", intent=Intent.CORDON, reason="a" * 1_000_000))
    assert not store.withdrawals()
    store._db.execute("PRAGMA max_page_count = 100000")
    with store.change():
        store.put_withdrawal(kept := Withdrawal(element="h1", intent=Intent.CORDON))
    assert store.withdrawals() == [kept]


READS: dict[str, Callable[[Store], object]] = {
    "fact": lambda store: store.primary,
    "version": Store.version,
    "jobs": Store.jobs,
    "withdrawals": Store.withdrawals,
    "programs": Store.switch_programs,
    "program": lambda store: store.program("none"),
    "live jobs": lambda store: store.has_live_jobs,
    "rollout": lambda store: store.rollout,
    "usage": Store.usage,
    "epochs": lambda store: store.epochs("s1"),
    "revisions": lambda store: store.revisions("s1"),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_a_read_that_fails_is_an_error_of_the_store(read, tmp_path):
    """Timers repeat what raises one, and callers get its reason."""
    store = Store(tmp_path / "db", "f")
    store.close()
    with pytest.raises(StoreError, match=f"{tmp_path}/db: "):
        read(store)


def test_a_store_opens_during_a_change_of_its_leader(tmp_path):
    """A standby that starts while the leader's disk is slow waits for it, and does not end."""
    path = tmp_path / "state.db"
    leader = Store(path, "fabric")
    with leader.change():
        leader.set_primary("127.0.0.1:1", "")
        standby = Store(path, "fabric")
        assert not standby.primary
    assert standby.primary == "127.0.0.1:1"
    standby.close()
    leader.close()


@pytest.mark.parametrize(
    "refused", [0, 1, 2], ids=["", "and the first is refused", "and the second is refused"]
)
async def test_a_lost_switch_is_commits_of_some_jobs_each(refused, tmp_path, monkeypatch):
    """Whatever the number of jobs is: etcd takes no commit of all. Those that it has taken are not made again, which
    would use up epochs, and may never end while etcd refuses one of many."""
    monkeypatch.setattr(epochs, "JOBS_A_CHANGE", 2)
    async with ready(leaf_spine(1, 1, 6), tmp_path) as deployment:
        for n in range(3):
            text = f"name: j{n}\nworkers: [h{2 * n + 1}, h{2 * n + 2}]\nscheme: switchml\n"
            await deployment.controller.requests.submit(text, queue=False)
            await deployment.runs(f"j{n}")
        registry, store = deployment.controller.state.registry, deployment.store
        known = {j.name: j.epoch for j in registry.all()}
        before, change, calls = store.ended_changes, store.change, itertools.count()

        @contextmanager
        def refusing() -> Iterator[None]:
            if next(calls) == refused:
                raise StoreError("no member of etcd answers")
            with change():
                yield

        done = set[str]()
        if refused:
            monkeypatch.setattr(store, "change", refusing)
            with pytest.raises(StoreError):
                await deployment.controller.jobs.epochs.on_registers_lost("leaf1", done)
            monkeypatch.setattr(store, "change", change)
        await deployment.controller.jobs.epochs.on_registers_lost("leaf1", done)
        assert done == {"j0", "j1", "j2"}
        assert {j.name: j.epoch for j in registry.all()} == {name: e + 1 for name, e in known.items()}
        for job in registry.all():
            assert registry.last_epoch(job.placement) == job.epoch
        assert store.ended_changes - before == 1 + 2 + (refused == 1)


async def test_the_loop_goes_on_between_the_commits_of_a_lost_switch(tmp_path, monkeypatch):
    """Heartbeats are read meanwhile. A job may end, and one that is being installed does not run before its switches
    have the new epoch."""
    monkeypatch.setattr(epochs, "JOBS_A_CHANGE", 1)
    async with ready(leaf_spine(1, 1, 6), tmp_path) as deployment:
        for n in range(3):
            text = f"name: j{n}\nworkers: [h{2 * n + 1}, h{2 * n + 2}]\nscheme: switchml\n"
            await deployment.controller.requests.submit(text, queue=False)
            await deployment.runs(f"j{n}")
        lifecycle, epoch = deployment.controller.jobs.lifecycle, deployment.job("j0").epoch
        lifecycle.commit(deployment.job("j0").model_copy(update={"state": JobState.INSTALLING}))
        lifecycle._awaited["j0"] = lifecycle._fleet.version
        losing = asyncio.create_task(deployment.controller.registers_lost("leaf1"))
        await asyncio.sleep(0)
        lifecycle.settle()
        assert (deployment.state("j0"), deployment.job("j0").epoch) == (JobState.INSTALLING, epoch + 1)
        lifecycle.end("j1", JobState.CANCELED, "an operator canceled it")
        assert not losing.done()
        await losing
        for name in ("j0", "j2"):
            await deployment.runs(name)
            assert deployment.job(name).epoch == epoch + 1
        assert deployment.state("j1") is JobState.CANCELED


async def test_the_controller_outlives_a_full_disk(tmp_path, monkeypatch):
    async with ready(leaf_spine(2, 2, 2), tmp_path, probe_s=0.05) as deployment:
        await deployment.run(JOB)
        epoch, change = deployment.job("job").epoch, deployment.store.change
        monkeypatch.setattr(deployment.store, "change", full_disk)
        leaf = next(iter(deployment.job("job").placement.trees[0].bases))
        losing = asyncio.create_task(deployment.controller.registers_lost(leaf))
        await asyncio.sleep(0.5)
        assert not losing.done()
        assert not deployment._running.done()
        monkeypatch.setattr(deployment.store, "change", change)
        await losing
        await deployment.runs("job")
        assert deployment.job("job").epoch > epoch
        assert deployment.state("job") is JobState.RUNNING


async def test_a_job_without_epochs_moves_to_other_slots_when_the_disk_has_room_again(tmp_path, monkeypatch):
    async with ready(leaf_spine(2, 2, 2), tmp_path) as deployment:
        controller, change = deployment.controller, deployment.store.change
        await deployment.run(JOB)
        before = controller.state.registry.get("job")
        tried: list[int] = []

        @contextmanager
        def full() -> Iterator[None]:
            tried.append(1)
            raise StoreError("database or disk is full")
            yield

        monkeypatch.setattr(deployment.store, "change", full)
        controller.planning.migrations.renew("job", before.epoch, "all epochs are used up")
        await deployment.until(lambda: len(tried) >= 2, "tried again")
        assert deployment.state("job") is JobState.RUNNING
        monkeypatch.setattr(deployment.store, "change", change)
        await deployment.until(lambda: controller.state.registry.get("job").epoch > before.epoch, "moved")
        await deployment.runs("job")


def test_a_plan_worker_whose_controller_died_ends_without_a_trace():
    fabric = single_switch(2)
    program = f"from {plan_worker.__name__} import main; main()"
    worker = subprocess.Popen(
        [sys.executable, "-P", "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert worker.stdin is not None
    assert worker.stdout is not None
    assert worker.stderr is not None
    worker.stdout.close()
    worker.stdin.write(frame(fabric) + frame(PlanRequest(resolve_job(JOB, fabric))))
    worker.stdin.flush()
    assert worker.wait(240) == 0
    assert worker.stderr.read() == b""
    worker.stdin.close()
    worker.stderr.close()
