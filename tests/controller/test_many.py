# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Large jobs: members that join or leave together are one change, and messages and work are bounded. tests/simulation
has what many jobs leave behind."""

from __future__ import annotations

import asyncio
import gc

import pytest

from netfold.controller.health.counters import Counters
from netfold.controller.jobs.engine import StoreError
from netfold.controller.jobs.records import JobState, Member
from netfold.controller.lifecycle.joins import Joins
from netfold.controller.service.daemon import GC_THRESHOLDS, Survivors
from netfold.controller.switches.switch_health import Health
from netfold.protocol.wire import Verdict
from netfold.topologies.generators import leaf_spine
from tests.controller.deployment import full_disk, ready
from tests.controller.members import running


async def test_a_member_that_joins_does_not_rewrite_the_whole_job_and_is_remembered(tmp_path):
    fabric = leaf_spine(2, 2, 8)
    async with ready(fabric, tmp_path) as deployment:
        await deployment.run("name: job\nscheme: switchml\nrate: 9\n")
        written = []
        put = deployment.store.put
        deployment.store.put = lambda job: (written.append(job.name), put(job))
        news = asyncio.ensure_future(deployment.controller.state.changes.wait("job"))
        await asyncio.sleep(0)
        for host in ("h1", "h2", "h3"):
            deployment.controller.jobs.members.heartbeat("job", host)
        await asyncio.sleep(0)
        assert not news.done(), "the other members need no update"
        deployment.controller.jobs.members.leave("job", "h3")
        await asyncio.sleep(0)
        assert not written
        news.cancel()
        await deployment.restart()
        job = deployment.job("job")
        assert job.state is JobState.RUNNING
        assert job.members[:4] == (
            Member(host="h1", joined=True),
            Member(host="h2", joined=True),
            Member(host="h3", joined=True, left=True),
            Member(host="h4"),
        )


async def test_workers_that_end_together_notify_the_others_once(tmp_path):
    """Not once for each that leaves: of a thousand workers that would be a million messages."""
    async with ready(leaf_spine(2, 2, 28), tmp_path) as deployment:
        controller = deployment.controller
        spec = "name: job\nscheme: switchml\nrate: 9\non_worker_loss: continue\n"
        await deployment.run(spec)
        hosts = controller.state.registry.get("job").workers
        for host in hosts:
            controller.jobs.members.heartbeat("job", host)
        notifications = 0
        notify = controller.state.changes.notify

        def count(*jobs):
            nonlocal notifications
            notifications += bool(jobs)
            notify(*jobs)

        controller.state.changes.notify = count
        for host in hosts:
            controller.jobs.members.leave("job", host, calls=10)
        assert controller.state.registry.get("job").state is JobState.DONE
        assert notifications == 2, "that one has left, and that the job is done"


@pytest.mark.timeout(900)
@pytest.mark.parametrize("size", [8, pytest.param(32, marks=pytest.mark.long)])
async def test_each_of_many_members_gets_each_epoch(size, tmp_path):
    """64 members, or 1,024: all have their own part of the first epoch. One is lost, and all others have the next
    epoch without it."""
    fabric = leaf_spine(size, 4, size)
    hosts = tuple(h.name for h in fabric.hosts)
    spec = "name: job\nscheme: panama\nlease_ms: 60000\non_worker_loss: continue\n"
    async with running(tmp_path, spec, fabric=fabric, hosts=hosts, beat_s=15.0) as (deployment, members):
        job = deployment.job("job")
        members.die(hosts[0])
        deployment.controller.jobs.members.handle_loss("job", hosts[0], f"the lease of {hosts[0]} expired")
        told = await members.told(len(hosts) - 1, after_epoch=job.epoch)
        assert sorted(told) == sorted(hosts[1:])
        assert sorted(a.rank for a in told.values()) == list(range(len(hosts) - 1))
        children = [tuple(t.child for t in a.trees) for a in told.values()]
        assert len(set(children)) == len(children), "each has a child number of its own"
        assert deployment.job("job").excluded == (hosts[0],)


class _SlowSession:
    """The first read is answered after the second would be."""

    def __init__(self) -> None:
        self.packets = 100
        self.hold = asyncio.Event()
        self.reads = 0

    async def read_counters(self, cells):
        self.reads += 1
        seen, first = self.packets, self.reads == 1
        self.packets += 7
        if first:
            await self.hold.wait()
        return dict.fromkeys(cells, (seen, 0))


class _Fleet:
    def __init__(self) -> None:
        self.sessions = {"s1": _SlowSession()}

    def health(self, switch: str) -> Health:
        return Health(ready=True)


async def test_two_reads_of_counters_at_once_count_nothing_twice():
    fleet = _Fleet()
    session = fleet.sessions["s1"]
    counters = Counters(fleet, list, asyncio.Event().wait, 1.0)
    both = [asyncio.create_task(counters.refresh()) for _ in range(2)]
    for _ in range(10):
        await asyncio.sleep(0)
    session.hold.set()
    await asyncio.gather(*both)
    await counters.refresh()
    assert counters.totals["s1", "", Verdict.ACCUMULATED] == 14


async def test_members_that_join_together_are_one_change(tmp_path):
    """Before their assignments leave: with etcd, a thousand changes take seconds."""
    fabric = leaf_spine(2, 2, 8)
    hosts = [host.name for host in fabric.hosts]
    async with ready(fabric, tmp_path) as deployment:
        await deployment.run("name: job\nscheme: switchml\nrate: 9\n")
        joins, before = (
            Joins(deployment.controller.state, deployment.controller.jobs.members),
            deployment.store.ended_changes,
        )
        await asyncio.gather(*(joins.store("job", host, 7, supports_targets=True) for host in hosts))
        assert deployment.store.ended_changes == before + 1
        assert deployment.job("job").members == tuple(
            Member(host=host, joined=True, process=7, supports_targets=True) for host in hosts
        )
        for host in hosts:
            deployment.controller.jobs.members.heartbeat("job", host, 7)
            await joins.store("job", host, 7, supports_targets=True)
        assert deployment.store.ended_changes == before + 1


async def test_a_member_is_refused_whose_join_the_store_does_not_take(tmp_path, monkeypatch):
    async with ready(leaf_spine(1, 1, 2), tmp_path) as deployment:
        await deployment.run("name: job\nscheme: switchml\nrate: 9\n")

        joins = Joins(deployment.controller.state, deployment.controller.jobs.members)
        with monkeypatch.context() as patch:
            patch.setattr(deployment.store, "change", full_disk)
            given_up = asyncio.ensure_future(joins.store("job", "h2", 7, supports_targets=True))
            asyncio.get_running_loop().call_soon(given_up.cancel)
            with pytest.raises(StoreError):
                await joins.store("job", "h1", 7, supports_targets=True)
        assert not any(member.joined for member in deployment.job("job").members)
        await joins.store("job", "h1", 7, supports_targets=True)
        assert deployment.job("job").member("h1").joined


async def test_a_member_that_is_gone_while_the_store_takes_it_has_a_lease(tmp_path):
    """Its job would wait for it for ever."""
    async with ready(leaf_spine(1, 1, 2), tmp_path) as deployment:
        await deployment.run("name: job\nscheme: switchml\nrate: 9\n")
        jobs = deployment.controller.jobs
        joins = Joins(deployment.controller.state, jobs.members)
        gone = asyncio.ensure_future(joins.store("job", "h1", 7, supports_targets=True))
        asyncio.get_running_loop().call_soon(gone.cancel)
        await asyncio.wait([gone])
        await joins.store("job", "h2", 7, supports_targets=True)
        assert deployment.job("job").member("h1").joined
        assert jobs.leases.held("job", "h1")


async def test_a_join_that_fails_otherwise_does_not_wait_for_ever(tmp_path, monkeypatch):
    async with ready(leaf_spine(1, 1, 2), tmp_path) as deployment:
        await deployment.run("name: job\nscheme: switchml\nrate: 9\n")

        def out_of_memory(*_: object) -> None:
            raise MemoryError

        joins = Joins(deployment.controller.state, deployment.controller.jobs.members)
        with monkeypatch.context() as patch:
            patch.setattr(deployment.store, "put_member", out_of_memory)
            with pytest.raises(MemoryError):
                async with asyncio.timeout(60):
                    await joins.store("job", "h1", 7, supports_targets=True)
        await joins.store("job", "h1", 7, supports_targets=True)
        assert deployment.job("job").member("h1").joined


async def test_of_two_processes_that_join_together_the_second_replaces_the_first(tmp_path):
    """The first may have an assignment before the second one's heartbeat, so that the store does not have that one
    yet."""
    async with ready(leaf_spine(1, 1, 2), tmp_path) as deployment:
        await deployment.run("name: job\nscheme: switchml\nrate: 9\n")
        joins = Joins(deployment.controller.state, deployment.controller.jobs.members)
        both = (joins.store("job", "h1", process, supports_targets=True) for process in (7, 8))
        assert await asyncio.gather(*both) == [True, True]
        assert deployment.job("job").member("h1").process == 7
        assert not await joins.store("job", "h1", 8, supports_targets=True)
        assert not await joins.store("job", "h2", 0, supports_targets=True), (
            "no process that could be replaced"
        )


def test_no_collection_of_garbage_takes_as_long_as_a_lease():
    """It stops the thread that renews the lease. The objects are counted, a hundredth of them: a time would be of the
    machine."""
    looked_at: list[int] = []

    def count(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            looked_at.append(sum(len(gc.get_objects(g)) for g in range(info["generation"] + 1)))

    before = gc.get_threshold()
    gc.collect()
    gc.set_threshold(GC_THRESHOLDS[0] // 100, *GC_THRESHOLDS[1:])
    gc.callbacks.append(count)
    try:
        made = [[None] for _ in range(100_000)]
    finally:
        gc.callbacks.remove(count)
        gc.set_threshold(*before)
    assert made
    assert 1_000 < max(looked_at) < 10_000


def test_a_full_collection_looks_at_survivors_again_once_they_are_twice_as_many(monkeypatch):
    calls: list[str] = []
    survivors, counts = Survivors(), iter((100, 150, 200, 201, 120, 240, 241))
    for name in ("freeze", "unfreeze"):
        monkeypatch.setattr(gc, name, lambda name=name: calls.append(name))
    monkeypatch.setattr(gc, "get_freeze_count", lambda: next(counts))
    for phase, generation in (("start", 2), ("stop", 1), *[("stop", 2)] * 7):
        survivors.on_collection(phase, {"generation": generation})
    assert calls == ["freeze"] * 4 + ["unfreeze"] + ["freeze"] * 3 + ["unfreeze"]
