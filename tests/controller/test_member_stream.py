# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A member is sent what its job and earlier updates ask for; this is decided without a service.
No change that it waits for is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest

from netfold.controller.jobs.file import resolve_job
from netfold.controller.jobs.records import ConnectionRecord, JobRecord, JobState, QueuePairs
from netfold.controller.jobs.store import Store
from netfold.controller.lifecycle.events import ChangeNotifier
from netfold.controller.lifecycle.job_registry import JobRegistry
from netfold.controller.lifecycle.member_status import MemberStatus, OpenStream
from netfold.controller.lifecycle.member_stream import MemberStream, Update
from netfold.controller.lifecycle.packet_model import PacketModel
from netfold.controller.scheduling.job_planner import PlanRequest, plan_job
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.topologies.addressing import addresses
from netfold.topologies.generators import single_switch

JOB = "name: job\nworkers: [h1, h2, h3]\nscheme: switchml\n"


class Stream:
    """A stream of h1 to a registry that no controller changes."""

    def __init__(self, folder, text: str = JOB) -> None:
        fabric = single_switch(4)
        store = Store(folder / "db", "f")
        self.status = MemberStatus()
        self.registry = JobRegistry(
            FabricConfig(fabric, addresses(fabric), store.mark), PacketModel(64), store
        )
        resolved = resolve_job(text, fabric)
        with self.registry.change():
            self.queued = self.registry.new(resolved)
            plan = plan_job(fabric, PlanRequest(resolved))
            self.installing = self.registry.with_placement(self.queued, resolved, plan)
            self.running = self.registry.running(self.installing)
            self.registry.write(self.running)
        self.reopen()
        store.close()

    def reopen(self) -> None:
        self.sent = MemberStream(OpenStream("job", "h1"), self.registry, self.status)

    def updates(self, job: JobRecord) -> list[Update]:
        """The updates until the job changes."""
        found = []
        while (update := self.sent.next_update(job)) is not None:
            found.append(update)
            if update is Update.ENDED:
                break
        return found


@pytest.fixture
def stream(tmp_path):
    return Stream(tmp_path)


def in_epoch(job: JobRecord, epoch: int) -> JobRecord:
    return job.model_copy(update={"placement": job.placement.model_copy(update={"epoch": epoch})})


def without(job: JobRecord, *hosts: str, rejoining: tuple[str, ...] = ()) -> JobRecord:
    return job.model_copy(update={"excluded": hosts, "rejoining": rejoining})


def test_a_member_that_waits_gets_its_lease_at_once_and_its_assignment_when_the_job_runs(stream):
    assert stream.updates(stream.queued) == [Update.LEASE]
    assert stream.updates(stream.installing) == []
    assert not stream.status.is_assigned("job", "h1")
    assert stream.updates(stream.running) == [Update.ASSIGNMENT]
    assert stream.status.is_assigned("job", "h1")


def test_a_member_of_a_running_job_gets_its_assignment_first(stream):
    assert stream.updates(stream.running) == [Update.ASSIGNMENT]


def test_each_epoch_is_assigned_once_a_stream_when_it_runs(stream):
    assert stream.updates(stream.running) == [Update.ASSIGNMENT]
    later = in_epoch(stream.running, 2)
    assert stream.updates(later.model_copy(update={"state": JobState.INSTALLING})) == []
    assert stream.updates(later) == [Update.ASSIGNMENT]
    stream.reopen()
    assert stream.updates(later) == [Update.ASSIGNMENT], "the earlier stream may have lost it"


def test_a_change_of_another_kind_sends_nothing(stream):
    assert stream.updates(stream.running) == [Update.ASSIGNMENT]
    assert stream.updates(stream.running.model_copy(update={"reason": "another"})) == []


def test_an_ended_job_is_the_last_update(stream):
    assert stream.updates(stream.running) == [Update.ASSIGNMENT]
    ended = stream.running.model_copy(update={"state": JobState.DONE})
    assert stream.updates(ended) == [Update.ENDED]
    stream.reopen()
    assert stream.updates(ended) == [Update.ENDED]


def test_a_member_without_which_the_job_continues_is_ended_unless_it_rejoins(stream):
    assert stream.updates(stream.running) == [Update.ASSIGNMENT]
    assert stream.updates(without(stream.running, "h1")) == [Update.ENDED]
    stream.reopen()
    waiting = without(stream.running, "h1", rejoining=("h1",))
    assert stream.updates(waiting) == [Update.LEASE]
    assert stream.updates(in_epoch(without(stream.running), 2)) == [Update.ASSIGNMENT]


def test_a_departure_is_sent_once_for_each_limit_and_again_in_a_new_epoch_only_with_its_assignment(stream):
    running = stream.running
    assert stream.updates(running) == [Update.ASSIGNMENT]
    left = running.with_member("h2", joined=True, left=True, calls=7)
    assert stream.updates(left) == [Update.WORKERS_LEFT]
    assert stream.updates(left) == []
    sooner = left.with_member("h3", joined=True, left=True, calls=5)
    assert stream.updates(sooner) == [Update.WORKERS_LEFT]
    assert stream.updates(in_epoch(sooner, 2)) == [Update.ASSIGNMENT, Update.WORKERS_LEFT]


def test_departures_of_an_epoch_that_the_member_has_not_been_assigned_wait_for_it(stream):
    left = stream.running.with_member("h2", joined=True, left=True, calls=7)
    installing = in_epoch(left, 2).model_copy(update={"state": JobState.INSTALLING})
    assert stream.updates(installing) == [Update.LEASE]
    assert stream.updates(in_epoch(left, 2)) == [Update.ASSIGNMENT, Update.WORKERS_LEFT]


def test_a_member_that_left_is_sent_no_assignment_and_waits_for_the_end(stream):
    left = stream.running.with_member("h1", joined=True, left=True, calls=3)
    assert stream.updates(left) == []
    assert stream.updates(left.model_copy(update={"state": JobState.DONE})) == [Update.ENDED]


def test_a_roce_worker_gets_its_ring_when_the_leaves_have_all_connections_of_the_epoch(tmp_path):
    stream = Stream(tmp_path, f"{JOB}transport: roce\n")
    running = stream.running
    assert stream.updates(running) == [Update.ASSIGNMENT]

    def registered(epoch: int) -> tuple[QueuePairs, ...]:
        ends = tuple(
            ConnectionRecord(tree=t.tree, send_qpn=10, recv_qpn=11, first_psn=0)
            for t in running.placement.trees
        )
        return tuple(QueuePairs(host=h, epoch=epoch, calls=0, connections=ends) for h in running.workers)

    connected = running.model_copy(update={"queue_pairs": registered(running.epoch)})
    assert stream.updates(connected) == [], "the leaves do not have them yet"
    installed = connected.model_copy(update={"roce_installed_epoch": running.epoch})
    assert stream.updates(installed) == [Update.FEATURE]
    assert stream.updates(installed) == []
    renewed = in_epoch(installed, 2)
    assert stream.updates(renewed) == [Update.ASSIGNMENT]
    both = renewed.model_copy(update={"queue_pairs": registered(2), "roce_installed_epoch": 2})
    assert stream.updates(both) == [Update.FEATURE]


DEADLINE_S = 10.0


async def is_awake(*waiting: Awaitable[object]) -> list[bool]:
    """Which of these end without a further change."""
    tasks = [asyncio.ensure_future(w) for w in waiting]
    for _ in range(5):  # steps of the loop
        await asyncio.sleep(0)
    found = [task.done() for task in tasks]
    for task in tasks:
        task.cancel()
    await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), DEADLINE_S)
    return found


@pytest.mark.parametrize("job", ["a", None])
async def test_a_change_before_a_wait_is_awaited_is_not_lost(job: str | None):
    changes = ChangeNotifier()
    waits = [changes.wait(job), changes.wait(job)]
    changes.notify("a")
    assert await is_awake(*waits) == [True, True]


async def test_a_wait_is_for_later_changes_of_its_own_job():
    changes = ChangeNotifier()
    changes.notify("a")
    waits = [changes.wait("a"), changes.wait("b"), changes.wait()]
    changes.notify("b")
    assert await is_awake(*waits) == [False, True, True]
