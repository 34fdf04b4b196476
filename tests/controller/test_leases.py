# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""When leases end, on an event loop of virtual time, and how long they are: as the job's file says, else longer for
large jobs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

import pytest

from netfold.controller.jobs.file import resolve_job
from netfold.controller.lifecycle.events import EventBus, LeaseExpired
from netfold.controller.lifecycle.leases import GRACE_S, Leases
from netfold.controller.switches.deadline import STEPS
from netfold.topologies.generators import leaf_spine
from tests.simulation.loop import VirtualLoop

LEASE_S = 3.0


class Ended:
    """Leases, and when each of them ended (s)."""

    def __init__(self) -> None:
        self.at: list[tuple[str, float]] = []
        events = EventBus()
        events.subscribe(LeaseExpired, lambda e: self.at.append((e.host, asyncio.get_running_loop().time())))
        self.leases = Leases(events)

    def renew(self, host: str = "h1", seconds: float = LEASE_S) -> None:
        self.leases.renew("job", host, seconds)


def ended_by(scenario: Callable[[Ended], object]) -> list[tuple[str, float]]:
    """The hosts whose leases ended within 100 s, and when. `scenario` is a coroutine function."""

    async def work() -> list[tuple[str, float]]:
        ended = Ended()
        await scenario(ended)
        await asyncio.sleep(100)
        assert not ended.leases.holders
        return ended.at

    with contextlib.closing(VirtualLoop(1, 0.0)) as loop:
        found = loop.run_until_complete(work())
        assert not loop.errors
        return found


def test_a_lease_ends_once_after_its_last_heartbeat_and_the_grace():
    async def scenario(ended: Ended) -> None:
        for _ in range(10):
            ended.renew()
            await asyncio.sleep(LEASE_S / 3)

    assert ended_by(scenario) == [("h1", pytest.approx(9 * LEASE_S / 3 + LEASE_S + GRACE_S))]


def test_each_member_has_a_lease_of_its_own():
    async def scenario(ended: Ended) -> None:
        for second in range(10):
            for host in ("h1", "h2", "h3")[: 3 - second // 4]:
                ended.renew(host)
            await asyncio.sleep(1)

    ends = {"h3": 3.0, "h2": 7.0, "h1": 9.0}
    assert ended_by(scenario) == [(h, pytest.approx(s + LEASE_S + GRACE_S)) for h, s in ends.items()]


@pytest.mark.parametrize("missed", [1, 2])
def test_two_heartbeats_of_a_lease_may_be_lost(missed):
    async def scenario(ended: Ended) -> None:
        for second in range(12):
            if second not in range(5, 5 + missed):
                ended.renew()
            await asyncio.sleep(LEASE_S / 3)
        assert not ended.at

    assert len(ended_by(scenario)) == 1


def test_a_heartbeat_within_the_grace_is_in_time():
    async def scenario(ended: Ended) -> None:
        ended.renew()
        await asyncio.sleep(LEASE_S + GRACE_S / 2)
        ended.renew()

    assert ended_by(scenario) == [("h1", pytest.approx(2 * LEASE_S + 1.5 * GRACE_S))]


def test_the_longer_lease_after_a_start_ends_with_the_first_heartbeat():
    """A member that dies right after it has reconnected is lost within the job's lease."""

    async def scenario(ended: Ended) -> None:
        ended.renew(seconds=15.0)
        await asyncio.sleep(1)
        ended.renew(seconds=0.3)

    assert ended_by(scenario) == [("h1", pytest.approx(1.3 + GRACE_S))]


def test_a_member_that_left_or_whose_job_ended_loses_no_lease():
    async def scenario(ended: Ended) -> None:
        for host in ("h1", "h2", "h3"):
            ended.renew(host)
        await asyncio.sleep(1)
        ended.renew("h1")
        ended.leases.end("job", "h1")
        ended.leases.end("job", "h1")
        await asyncio.sleep(LEASE_S - 1 + GRACE_S / 2)
        ended.leases.end_job("job")
        await asyncio.sleep(10)
        ended.renew("h1")

    assert ended_by(scenario) == [("h1", pytest.approx(LEASE_S + GRACE_S / 2 + 10 + LEASE_S + GRACE_S))]


def suspend(seconds: float) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    loop.suspend(seconds)


def test_a_process_that_was_suspended_reads_the_heartbeats_that_arrived_meanwhile():
    async def scenario(ended: Ended) -> None:
        ended.renew()
        await asyncio.sleep(1)
        ended.renew()
        suspend(50)
        await asyncio.sleep(GRACE_S / 2)
        assert not ended.at
        ended.renew()

    assert ended_by(scenario) == [("h1", pytest.approx(51 + GRACE_S / 2 + LEASE_S + GRACE_S))]


def test_a_process_that_was_suspended_has_as_long_to_read_the_heartbeats_of_a_thousand_members():
    """Those of all members wait, and a busy machine reads some hundreds a second."""

    async def scenario(ended: Ended) -> None:
        members = [f"h{number}" for number in range(1024)]
        for member in members:
            ended.renew(member)
        suspend(LEASE_S + 2)
        for number, member in enumerate(members[1:]):
            if number % 8 == 0:
                await asyncio.sleep(0.015)
            ended.renew(member)
        await asyncio.sleep(LEASE_S / 3)
        assert [host for host, _ in ended.at] == ["h0"]

    assert len(ended_by(scenario)) == 1024


@pytest.mark.parametrize("suspended", [1.0, 50.0])
def test_a_member_that_is_lost_during_a_suspension_is_noticed_within_another_lease(suspended):
    async def scenario(ended: Ended) -> None:
        ended.renew()
        suspend(LEASE_S + suspended)

    ((_, at),) = ended_by(scenario)
    assert LEASE_S + suspended < at < LEASE_S + suspended + LEASE_S + GRACE_S


@pytest.mark.parametrize("held_s", [(1.99, 0.4), (1.99, 0.4, 0.4), (0.7,) * 4])
def test_a_heartbeat_is_read_in_time_although_commits_hold_up_the_loop(held_s):
    """It has arrived, and is read once the commits are made, one after the other: until the lease is due, and then."""

    async def scenario(ended: Ended) -> None:
        ended.renew()
        await asyncio.sleep(LEASE_S / 3)
        for seconds in held_s:
            suspend(seconds)
            await asyncio.sleep(0.02)
        assert not ended.at
        ended.renew()

    assert len(ended_by(scenario)) == 1


def test_a_loop_that_is_always_late_ends_leases():
    async def scenario(ended: Ended) -> None:
        ended.renew()
        for _ in range(2 * STEPS):
            suspend(LEASE_S)
            await asyncio.sleep(0)
        assert ended.at

    assert len(ended_by(scenario)) == 1


def test_no_lease_ends_once_the_controller_has_ended():
    """Its process may lead again, with another controller and the same store."""

    async def scenario(ended: Ended) -> None:
        ended.renew()
        ended.leases.stop()

    assert ended_by(scenario) == []


FABRIC = leaf_spine(65, 16, 16)
HEARTBEATS_A_LEASE = 3


@pytest.mark.parametrize("workers", [2, 300, 301, 1024, 1040])
def test_members_send_at_most_300_heartbeats_a_second_together(workers: int) -> None:
    lease_ms = resolve_job(f"name: j\nworkers: {workers}\n", FABRIC).lease_ms
    assert HEARTBEATS_A_LEASE * workers / (lease_ms / 1e3) <= 300
    assert lease_ms >= 3000


def test_the_lease_of_a_job_file_is_its_lease() -> None:
    assert resolve_job("name: j\nworkers: 1024\nlease_ms: 3000\n", FABRIC).lease_ms == 3000
