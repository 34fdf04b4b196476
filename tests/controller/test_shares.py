# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Shares of tenants: what greedy tenants get in an hour, and what the order of their jobs is made of."""

from __future__ import annotations

import contextlib
import dataclasses
import heapq
import itertools
import sqlite3
from collections.abc import Iterator

import pytest

from netfold.controller.jobs.engine import StoreError
from netfold.controller.jobs.file import resolve_job
from netfold.controller.jobs.records import JobState
from netfold.controller.jobs.store import Store
from netfold.controller.jobs.stored_fabric import fabric_text
from netfold.controller.jobs.submitter import Submitter, TenantLimits
from netfold.controller.jobs.tenant_usage import HALF_LIFE_S, KEPT_S, Holding, TenantUsage
from netfold.controller.lifecycle.job_registry import JobRegistry
from netfold.controller.lifecycle.packet_model import PacketModel
from netfold.controller.lifecycle.timeouts import ControllerTimeouts
from netfold.controller.planning.planner import make_plan
from netfold.controller.scheduling.job_planner import cap_rate
from netfold.controller.scheduling.job_queue import AGE_S, JobQueue
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.topologies.addressing import addresses
from netfold.topologies.generators import single_switch
from tests.controller.deployment import ready

HOUR_S = 3600.0
START = 1.7e9
WHOLE = Holding(100.0, 1000.0)
ALICE = Submitter("alice", "vision", TenantLimits(weight=2.5))


class VirtualClock:
    def __init__(self) -> None:
        self.now = START

    def wall_s(self) -> float:
        return self.now

    def monotonic_s(self) -> float:
        return self.now


@contextlib.contextmanager
def registry_of(path, fabric, clock) -> Iterator[JobRegistry]:
    with contextlib.closing(Store(path, fabric_text(fabric))) as store:
        config = FabricConfig(fabric, addresses(fabric), store.mark)
        yield JobRegistry(config, PacketModel(32), store, clock)


def spec(name: str, hosts: str, extra: str = "", rate: int = 50) -> str:
    return f"name: {name}\nworkers: [{hosts}]\nscheme: switchml\nrate: {rate}\nlease_ms: 60000\n{extra}"


def weight_of(tenant: int) -> float:
    return (1.0, 2.0, 3.0)[tenant % 3]


class Hour:
    """Thirty tenants, each of which always has jobs waiting, on a switch with room for twelve jobs at once. A job runs
    for 20 to 40 s."""

    def __init__(self) -> None:
        self.fabric = single_switch(24)
        self.clock = VirtualClock()
        self.numbers = itertools.count()
        self.ends: list[tuple[float, str]] = []
        self.plans = {
            pair: cap_rate(make_plan(self.fabric, resolve_job(spec("x", pair), self.fabric).spec()), 50.0)
            for pair in self.pairs()
        }
        self.free = list(self.plans)

    def pairs(self) -> list[str]:
        return [f"h{2 * n + 1}, h{2 * n + 2}" for n in range(12)]

    def run(self, registry: JobRegistry, until: float) -> None:
        queue = JobQueue(registry, self.clock.wall_s)
        while self.clock.now < until:
            for tenant in range(30):
                self.refill(registry, tenant)
            while self.free:
                self.place(registry, queue)
            self.clock.now, name = heapq.heappop(self.ends)
            job = registry.get(name)
            self.free.append(job.reason)
            with registry.change():
                registry.write(registry.with_end_state(job, JobState.DONE, ""))

    def refill(self, registry: JobRegistry, tenant: int) -> None:
        own = [j for j in registry.all() if j.tenant == f"tenant{tenant}" and j.state is JobState.QUEUED]
        for _ in range(2 - len(own)):
            caller = Submitter("a", f"tenant{tenant}", TenantLimits(weight=weight_of(tenant)))
            resolved = resolve_job(spec(f"job{next(self.numbers)}", "h1, h2"), self.fabric)
            with registry.change():
                registry.write(registry.new(resolved, caller, queued=True))

    def place(self, registry: JobRegistry, queue: JobQueue) -> None:
        """Place the first job of the queue at a pair of hosts that is free; `reason` notes which."""
        first, pair = queue.jobs()[0], self.free.pop()
        resolved = registry.resolved_job(first.name)
        with registry.change():
            placed = registry.with_placement(first, resolved, self.plans[pair])
            registry.write(registry.running(placed).model_copy(update={"reason": pair}))
        heapq.heappush(self.ends, (self.clock.now + 20.0 + 7 * first.seq % 21, first.name))


@pytest.mark.slow
def test_shares_of_thirty_greedy_tenants_are_within_a_tenth_of_their_weights(tmp_path):
    """The controller starts again in the middle of the hour."""
    hour = Hour()
    for part in (1, 2):
        with registry_of(tmp_path / "state.db", hour.fabric, hour.clock) as registry:
            hour.run(registry, START + part * HOUR_S / 2)
            usage = registry.usage()
    assert len(usage) == 30
    bits = {tenant: row.promised_bits for tenant, row in usage.items()}
    weights = {f"tenant{t}": weight_of(t) for t in range(30)}
    fair = {t: sum(bits.values()) * w / sum(weights.values()) for t, w in weights.items()}
    off = {t: abs(bits[t] / fair[t] - 1) for t in bits}
    assert max(off.values()) < 0.1, sorted(off.items(), key=lambda row: -row[1])[:5]
    capacity = 12 * 2 * 50e6 * HOUR_S
    assert sum(bits.values()) == pytest.approx(capacity, rel=0.05), "the links were full"


def queued(registry: JobRegistry, name: str, tenant: str, priority: int = 0) -> None:
    resolved = resolve_job(spec(name, "h1, h2", f"priority: {priority}\n"), single_switch(4))
    with registry.change():
        registry.write(registry.new(resolved, Submitter("a", tenant), queued=True))


def test_shares_lend_no_wait_of_one_tenant_to_the_fresh_job_of_another(tmp_path):
    """The fresh job's turn is before that of the old one, and both are behind what has a higher priority."""
    fabric, clock = single_switch(4), VirtualClock()
    with registry_of(tmp_path / "state.db", fabric, clock) as registry:
        place(registry, fabric, "runs", "h3, h4")
        queue = JobQueue(registry, clock.wall_s)
        queued(registry, "old", "vision")
        clock.now += 50 * AGE_S
        queued(registry, "urgent", "sound", priority=10)
        assert [j.name for j in queue.jobs()] == ["old", "urgent"]
        queued(registry, "fresh", "speech")
        assert [j.name for j in queue.jobs()] == ["urgent", "fresh", "old"]
        clock.now += 11 * AGE_S
        queued(registry, "urgent-again", "sound", priority=10)
        assert [j.name for j in queue.jobs()] == ["urgent", "fresh", "old", "urgent-again"]


def test_shares_give_a_turn_to_a_tenant_that_got_nothing_though_new_ones_come(tmp_path):
    """It has used the fabric for long. Each new job is canceled before it has waited, and another one submitted."""
    fabric, clock = single_switch(4), VirtualClock()
    with registry_of(tmp_path / "state.db", fabric, clock) as registry:
        place(registry, fabric, "runs", "h3, h4")
        clock.now += HOUR_S
        with registry.change():
            registry.write(registry.with_end_state(registry.get("runs"), JobState.DONE, ""))
        queued(registry, "old", "vision")
        queue = JobQueue(registry, clock.wall_s)
        firsts = []
        for number in range(25):
            queued(registry, f"new{number}", "speech")
            firsts.append(queue.jobs()[0].name)
            clock.now += HOUR_S
            with registry.change():
                new = registry.get(f"new{number}")
                registry.write(registry.with_end_state(new, JobState.CANCELED, ""))
        assert (firsts[0], firsts[-1]) == ("new0", "old")


def test_shares_halve_with_time_and_totals_stay():
    row = TenantUsage(tenant="a", at=START).until(START + 10, Holding(5.0, 70.0))
    assert (row.slot_seconds, row.promised_bits) == (50.0, 700.0)
    later = row.until(START + 10 + HALF_LIFE_S, Holding())
    assert later.recent.bits == pytest.approx(row.recent.bits / 2)
    assert later.promised_bits == 700.0


def test_shares_do_not_depend_on_when_they_are_settled():
    held = Holding(5.0, 70.0)
    at_once = TenantUsage(tenant="a", at=START).until(START + 5000, held)
    in_parts = TenantUsage(tenant="a", at=START)
    for step in range(50, 5001, 50):
        in_parts = in_parts.until(START + step, held)
    assert in_parts.recent.bits == pytest.approx(at_once.recent.bits)
    assert in_parts.slot_seconds == pytest.approx(at_once.slot_seconds)


def test_shares_do_not_change_with_a_clock_that_goes_back():
    row = TenantUsage(tenant="a", at=START).until(START + 10, Holding(5.0, 70.0))
    back = row.until(START - 1000, Holding(5.0, 70.0))
    assert (back.at, back.promised_bits, back.recent) == (START - 1000, 700.0, row.recent)


def test_shares_are_of_the_resource_that_a_tenant_has_most_of():
    slots = TenantUsage(tenant="a", at=START).until(START + 100, Holding(slots=50.0, bits=10.0))
    bits = TenantUsage(tenant="b", at=START).until(START + 100, Holding(slots=1.0, bits=400.0))
    assert slots.charge(Holding(), WHOLE) > bits.charge(Holding(), WHOLE)
    half = dataclasses.replace(WHOLE, slots=200.0)
    assert slots.charge(Holding(), half) < bits.charge(Holding(), half)


def test_shares_of_a_job_that_moves_and_ends(tmp_path):
    """Usage is counted in full where one registry follows another."""
    fabric, clock = single_switch(4), VirtualClock()
    with registry_of(tmp_path / "state.db", fabric, clock) as registry:
        resolved = resolve_job(spec("a", "h1, h2"), fabric)
        plan = cap_rate(make_plan(fabric, resolved.spec()), 50.0)
        with registry.change():
            placed = registry.with_placement(registry.new(resolved, ALICE), resolved, plan)
            registry.write(placed)
        clock.now += 100
        with registry.change():
            registry.write(registry.running(placed))
    with registry_of(tmp_path / "state.db", fabric, clock) as registry:
        clock.now += 100
        row = registry.usage()["vision"]
        assert row.promised_bits == pytest.approx(200 * 2 * 50e6)
        assert row.weight == 2.5
        slots = sum(t.slots for t in placed.placement.trees)
        assert row.slot_seconds == pytest.approx(200 * slots)
        with registry.change():
            registry.write(registry.with_end_state(registry.get("a"), JobState.DONE, ""))
        clock.now += 100
        assert registry.usage()["vision"].promised_bits == row.promised_bits


def place(registry: JobRegistry, fabric, name: str, hosts: str, extra: str = "") -> None:
    resolved = resolve_job(spec(name, hosts, extra), fabric)
    plan = cap_rate(make_plan(fabric, resolved.spec()), 50.0)
    with registry.change():
        placed = registry.with_placement(registry.new(resolved, ALICE), resolved, plan)
        registry.write(registry.running(placed))


def test_shares_count_jobs_of_a_store_that_has_no_usage(tmp_path):
    """The version before keeps none. Its jobs are charged from when they first ran."""
    fabric, clock = single_switch(4), VirtualClock()
    with registry_of(tmp_path / "state.db", fabric, clock) as registry:
        place(registry, fabric, "a", "h1, h2")
        clock.now += 100
        place(registry, fabric, "b", "h3, h4")
        clock.now += 100
        usage = registry.usage()
    with contextlib.closing(sqlite3.connect(tmp_path / "state.db")) as database, database:
        database.execute("DELETE FROM tenants")
    with registry_of(tmp_path / "state.db", fabric, clock) as registry:
        assert registry.usage() == {"vision": usage["vision"].model_copy(update={"weight": 1.0})}
        clock.now += HOUR_S
        with registry.change():
            registry.write(registry.with_end_state(registry.get("b"), JobState.DONE, ""))
        row = registry.usage()["vision"]
        assert row.promised_bits == pytest.approx(usage["vision"].promised_bits + HOUR_S * 4 * 50e6)


def test_shares_count_a_job_of_an_interlude_of_the_version_before_from_when_it_ran(tmp_path):
    """That version writes no usage."""
    fabric, clock = single_switch(4), VirtualClock()
    with registry_of(tmp_path / "state.db", fabric, clock) as registry:
        place(registry, fabric, "a", "h1, h2")
        clock.now += 100
        noted = registry.usage()["vision"]
        clock.now += 1000
        place(registry, fabric, "b", "h3, h4")
        clock.now += 100
        usage = registry.usage()["vision"]
    with contextlib.closing(sqlite3.connect(tmp_path / "state.db")) as database, database:
        row = noted.model_copy(update={"holders": (1,)}).model_dump_json()
        database.execute("UPDATE tenants SET body = ?", (row,))
    with registry_of(tmp_path / "state.db", fabric, clock) as registry:
        assert registry.usage()["vision"].promised_bits == pytest.approx(usage.promised_bits)
        with registry.change():
            registry.write(registry.with_end_state(registry.get("b"), JobState.DONE, ""))
        clock.now += 50
        more = registry.usage()["vision"].promised_bits - usage.promised_bits
        assert more == pytest.approx(50 * 2 * 50e6)


def test_shares_count_jobs_that_end_in_an_interlude_of_the_version_before_once(tmp_path):
    """One began before it, one in it, and one had ended before it."""
    fabric, clock, store = single_switch(4), VirtualClock(), tmp_path / "state.db"

    def end(registry: JobRegistry, name: str) -> None:
        with registry.change():
            registry.write(registry.with_end_state(registry.get(name), JobState.DONE, ""))

    with registry_of(store, fabric, clock) as registry:
        place(registry, fabric, "old", "h1, h2")
        clock.now += 50
        end(registry, "old")
        clock.now += 50
        place(registry, fabric, "a", "h1, h2")
        noted = registry.ledger.rows["vision"]
        clock.now += 100
        place(registry, fabric, "b", "h3, h4")
        clock.now += 200
        end(registry, "a")
        clock.now += 300
        end(registry, "b")
        clock.now += 400
        usage = registry.usage()["vision"]
    assert usage.promised_bits == pytest.approx((50 + 300 + 500) * 2 * 50e6)
    with contextlib.closing(sqlite3.connect(store)) as database, database:
        database.execute("UPDATE tenants SET body = ?", (noted.model_dump_json(),))
    for _ in range(2):
        with registry_of(store, fabric, clock) as registry:
            found = registry.usage()["vision"]
            assert found.holders == ()
            assert found.model_dump(exclude={"holders"}) == pytest.approx(
                usage.model_dump(exclude={"holders"})
            )
    with registry_of(store, fabric, clock) as registry:
        place(registry, fabric, "next", "h1, h2")
        clock.now += 10
        end(registry, "next")
    with registry_of(store, fabric, clock) as registry:
        more = registry.usage()["vision"].promised_bits - usage.promised_bits
        assert more == pytest.approx(10 * 2 * 50e6)


def test_shares_count_no_time_before_a_job_that_the_version_before_was_installing(tmp_path):
    fabric, clock = single_switch(4), VirtualClock()
    with registry_of(tmp_path / "state.db", fabric, clock) as registry:
        place(registry, fabric, "a", "h1, h2")
        with registry.change():
            registry.write(registry.with_end_state(registry.get("a"), JobState.DONE, ""))
        noted = registry.usage()["vision"]
        clock.now += HOUR_S
        place(registry, fabric, "b", "h3, h4")
        with registry.change():
            changes = {"state": JobState.INSTALLING, "ran_since": 0.0}
            registry.write(registry.get("b").model_copy(update=changes))
    with contextlib.closing(sqlite3.connect(tmp_path / "state.db")) as database, database:
        database.execute("UPDATE tenants SET body = ?", (noted.model_dump_json(),))
    with registry_of(tmp_path / "state.db", fabric, clock) as registry:
        assert registry.usage()["vision"].promised_bits == noted.promised_bits
        clock.now += 50
        assert registry.usage()["vision"].promised_bits == pytest.approx(50 * 2 * 50e6)


def test_shares_of_tenants_without_a_job_for_a_month_are_deleted(tmp_path):
    fabric, clock = single_switch(4), VirtualClock()
    with registry_of(tmp_path / "state.db", fabric, clock) as registry:
        place(registry, fabric, "gone", "h1, h2")
        with registry.change():
            registry.write(registry.with_end_state(registry.get("gone"), JobState.DONE, ""))
        with registry.change():
            resolved = resolve_job(spec("runs", "h3, h4"), fabric)
            plan = cap_rate(make_plan(fabric, resolved.spec()), 50.0)
            new = registry.new(resolved, Submitter("bob", "sound"))
            registry.write(registry.with_placement(new, resolved, plan))
        clock.now += KEPT_S - 1
        queued(registry, "kept", "speech")
        assert {"vision", "sound"} <= set(registry.usage())
        with registry.change():
            registry.ledger.set_weight("speech", 2.0, registry.all(), clock.now)
            assert "vision" in registry.ledger.rows
        clock.now += 2
        with registry.change():
            registry.ledger.set_weight("words", 2.0, registry.all(), clock.now)
    with registry_of(tmp_path / "state.db", fabric, clock) as registry:
        assert set(registry.usage()) == {"sound", "speech", "words"}


def test_shares_of_time_by_max_s_do_not_follow_steps_of_the_wall_clock(tmp_path):
    """Only from one controller to the next the wall clock counts, and then within the job's time."""
    fabric, clock, wall = single_switch(4), VirtualClock(), VirtualClock()
    clock.wall_s = wall.monotonic_s  # type: ignore[method-assign]

    def left(*steps: tuple[float, float]) -> list[float | None]:
        found = []
        with registry_of(tmp_path / "state.db", fabric, clock) as registry:
            if "a" not in registry:
                place(registry, fabric, "a", "h1, h2", "max_s: 600\n")
            found.append(registry.limit_s(registry.get("a")))
            for seconds, step in steps:
                clock.now += seconds
                wall.now += seconds + step
                found.append(registry.limit_s(registry.get("a")))
        return found

    assert left((100, 0), (100, HOUR_S), (100, -5 * HOUR_S)) == [600, 500, 400, 300]
    assert left((100, 0)) == [600, 500], "the clock is behind the job's start"
    wall.now += 10 * HOUR_S
    assert left() == [0]


async def test_shares_of_a_job_whose_switches_never_take_it_end_with_its_max_s(tmp_path, monkeypatch):
    """Others count on its end."""
    timeouts = ControllerTimeouts(reroute=0.1, restart=30.0, start=10.0, install=0.3)
    async with ready(single_switch(2), tmp_path, timeouts=timeouts) as deployment:
        monkeypatch.setattr(deployment.controller.switches.fleet, "holds", lambda *_: False)
        stuck = spec("stuck", "h1, h2", "max_s: 1\n")
        await deployment.controller.requests.submit(stuck, queue=False)
        assert deployment.state("stuck") is JobState.INSTALLING
        failed = lambda: deployment.state("stuck") is JobState.FAILED  # noqa: E731
        await deployment.until(failed, "its end", within_s=10)
        job = deployment.job("stuck")
        assert (job.ran_since, job.reason) == (0.0, "its max_s of 1 s is over")


def test_shares_are_as_before_when_a_store_takes_no_change(tmp_path, monkeypatch):
    """A store that cannot be written may not be readable either."""
    fabric, clock = single_switch(4), VirtualClock()
    with registry_of(tmp_path / "state.db", fabric, clock) as registry:
        place(registry, fabric, "a", "h1, h2")
        clock.now += 100
        usage = registry.usage()

        def fails(*_: object) -> None:
            raise sqlite3.OperationalError("disk I/O error")

        monkeypatch.setattr(Store, "usage", fails)
        monkeypatch.setattr(Store, "use_slots", fails)
        with pytest.raises(StoreError, match="disk I/O error"):
            place(registry, fabric, "b", "h3, h4")
        assert registry.usage() == usage


def test_shares_are_computed_for_tenants_that_wait_alone(tmp_path, monkeypatch):
    """There may be ten thousand tenants that once held something."""
    fabric, clock = single_switch(4), VirtualClock()
    with registry_of(tmp_path / "state.db", fabric, clock) as registry:
        with registry.change():
            for number in range(50):
                registry.ledger.set_weight(f"tenant{number}", 2.0, (), START)
            for number in range(2):
                caller = Submitter("a", f"tenant{number}")
                resolved = resolve_job(spec(f"job{number}", "h1, h2"), fabric)
                registry.write(registry.new(resolved, caller, queued=True))
        rows = []
        until = TenantUsage.until
        monkeypatch.setattr(TenantUsage, "until", lambda row, *a: rows.append(row) or until(row, *a))
        assert len(JobQueue(registry, clock.wall_s).jobs()) == 2
        assert {row.tenant for row in rows} == {"tenant0", "tenant1"}


@pytest.mark.parametrize(
    ("max_s", "is_placed"), [("max_s: 60\n", True), ("max_s: 1000\n", False), ("", False)]
)
async def test_shares_of_links_that_are_reserved_go_to_a_job_that_ends_before(max_s, is_placed, tmp_path):
    """One job runs for at most 600 s, and another one waits for it."""
    async with ready(single_switch(2), tmp_path) as deployment:
        submit = deployment.controller.requests.submit
        await deployment.run(spec("busy", "h1, h2", "min_rate: 60\nmax_s: 600\n", rate=60))
        waits = spec("waits", "h1, h2", "min_rate: 100\n", rate=100)
        assert (await submit(waits, queue=True)).state is JobState.QUEUED
        placed = await submit(spec("short", "h1, h2", max_s, rate=20), queue=True)
        assert (placed.state is not JobState.QUEUED) is is_placed
