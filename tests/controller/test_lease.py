# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The lease of a leader: it is renewed while the process goes on, late by the own clock, and lost when etcd says so.
Without it nothing is written, to etcd or to a switch."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable, Iterator

import pytest

from netfold.controller.jobs import etcd_lease
from netfold.controller.jobs.engine import NotLeaderError, StoreUnavailableError
from netfold.controller.jobs.etcd_client import EtcdAddress, EtcdClient, Leased
from netfold.controller.jobs.etcd_engine import HEAD, LEADER, EtcdEngine, engine_of
from netfold.controller.jobs.etcd_lease import CHECKS, LATE_S, EtcdLease
from netfold.controller.jobs.etcd_runtime import EtcdRuntime, boot_time
from netfold.controller.jobs.store import Store
from netfold.controller.service import leadership
from netfold.controller.service.leadership import Leadership
from netfold.protocol.wire import Kind
from netfold.topologies.generators import single_switch
from tests.controller.deployment import deployed, ready
from tests.controller.etcd_server import DEADLINE_S, EtcdServer

HOUR_S = 3600.0
LEASE_LESS = "has no lease, so no controller can begin to lead"
SPEC = "name: job\nworkers: 2\nscheme: switchml\nrate: 20\n"


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


class Etcd:
    """Grants leases of a minute, whose renewals come often, and renews them by `answers`: the seconds that are left, 0
    or None."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.takes_s = 0.0
        self.answers: int | None = 60
        self.renewals = 0
        self.revoked: list[int] = []

    def grant(self, ttl_s: int) -> tuple[int, int]:
        return 7, 60

    def renew(self, lease: int) -> int | None:
        self._clock.now_s += self.takes_s
        self.renewals += 1
        return self.answers

    def revoke(self, lease: int) -> None:
        self.revoked.append(lease)


class Held:
    """A lease whose thread checks it each millisecond."""

    def __init__(self, progress: Callable[[], object] = object) -> None:
        self.clock, self.lost = Clock(), threading.Event()
        self.etcd = Etcd(self.clock)
        self.lease = EtcdLease(self.etcd, progress, lambda _: self.lost.set(), EtcdRuntime(self.clock))

    def until(self, true: Callable[[], bool]) -> None:
        waiting, done = threading.Event(), False
        for _ in range(int(DEADLINE_S * 1000)):
            if done := true():
                break
            waiting.wait(0.001)
        assert done

    def until_renewed(self, times: int = 2) -> None:
        """Until renewals have begun and ended."""
        more = self.etcd.renewals + times
        self.until(lambda: self.etcd.renewals >= more)


@pytest.fixture
def _often(monkeypatch):
    monkeypatch.setattr(etcd_lease, "RENEWALS", 60_000)
    monkeypatch.setattr(etcd_lease, "RETRY_S", 0.001)


@pytest.fixture
def hold(_often) -> Iterator[Callable[..., Held]]:
    made: list[Held] = []

    def make(*arguments):
        made.append(Held(*arguments))
        return made[-1]

    yield make
    for held in made:
        held.lease.release()


def test_a_lease_is_late_by_the_own_clock_and_held_again_once_it_is_renewed(hold):
    held = hold()
    held.until_renewed()
    held.etcd.answers = None
    held.until_renewed()
    held.clock.now_s += 60.0
    assert not held.lease.is_held
    held.until_renewed()
    assert not held.lost.is_set(), "etcd may have it still"
    held.etcd.answers = 60
    held.until(lambda: held.lease.is_held)


def test_the_clock_counts_from_when_a_renewal_was_sent(hold):
    held = hold()
    held.etcd.takes_s = 61.0
    held.until_renewed()
    assert not held.lease.is_held


def test_a_lease_is_lost_when_etcd_says_so(hold):
    held = hold()
    held.etcd.answers = 0
    assert held.lost.wait(DEADLINE_S)
    assert not held.lease.is_held, "also before its end by the own clock"


def test_a_lease_that_stays_late_is_lost(hold):
    held = hold()
    held.etcd.answers = None
    held.until_renewed()
    held.clock.now_s += 60.0 + LATE_S
    assert held.lost.wait(DEADLINE_S)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_lease_is_lost_when_nothing_can_renew_it_any_more(hold):
    """As when the system gives no thread to gRPC."""
    held = hold()
    held.etcd.renew = None
    assert held.lost.wait(DEADLINE_S)
    assert not held.lease.is_held
    held.lease._thread.join(DEADLINE_S)


@pytest.mark.parametrize("step_s", [HOUR_S, -HOUR_S])
def test_a_clock_that_jumps_makes_no_lease_longer(hold, step_s: float):
    held = hold()
    held.etcd.answers = None
    held.until_renewed()
    held.clock.now_s += step_s
    assert held.lease.is_held is (step_s < 0)


def test_a_process_that_hangs_renews_nothing(hold):
    steps = itertools.count()
    hangs = threading.Event()
    held = hold(lambda: 0 if hangs.is_set() else next(steps))
    held.until_renewed(2 * CHECKS)
    hangs.set()
    held.until(lambda: held.lease._checks.missed >= CHECKS)
    before = held.etcd.renewals
    held.until(lambda: held.lease._checks.missed >= 4 * CHECKS)
    assert held.etcd.renewals <= before + 1, "one may have been on its way"
    hangs.clear()
    held.until_renewed()


def test_a_long_turn_of_the_loop_is_no_hang():
    period_s = etcd_lease.LEASE_S / etcd_lease.RENEWALS
    assert CHECKS * period_s >= 10.0, "one that begins to lead with many jobs takes seconds on a busy machine"


def test_a_lease_that_was_released_is_revoked_and_not_renewed(hold):
    held = hold()
    held.until_renewed()
    held.lease.release()
    assert (held.lease.is_held, held.etcd.revoked) == (False, [7])
    held.lease._thread.join(DEADLINE_S)
    assert not held.lease._thread.is_alive()


# ---- with etcd ---------------------------------------------------------------------------------------


@pytest.fixture
def _long(monkeypatch):
    """Leases do not end by themselves within a test."""
    monkeypatch.setattr(etcd_lease, "LEASE_S", 600)


def _store(state: str, clock: Callable[[], float] = boot_time) -> Store:
    return Store(EtcdEngine(EtcdAddress.of(state), EtcdRuntime(clock)), "f")


def _set(store: Store, value: int) -> None:
    with store.change():
        store.set_number("seq", value)


@pytest.mark.usefixtures("_long")
def test_one_leads_until_it_steps_down_and_terms_grow(etcd: EtcdServer):
    state = etcd.state()
    first, second = _store(state), _store(state)
    leader, standby = (Leadership(store, now=lambda: 1.0) for store in (first, second))
    assert leader.try_lead() == 1
    _set(first, 5)
    assert standby.try_lead() is None
    assert LEADER in EtcdClient(EtcdAddress.of(state)).load()
    leader.release()
    assert LEADER not in EtcdClient(EtcdAddress.of(state)).load(), "it is revoked, and does not run out"
    with pytest.raises(NotLeaderError):
        _set(first, 6)
    assert standby.try_lead() == 2
    standby.publish("b", None)
    assert (second.number("seq"), second.primary, second.leads_since) == (5, "b", 1.0)
    assert leader.try_lead() is None
    standby.release()
    assert leader.try_lead() == 3


@pytest.mark.usefixtures("_long")
def test_a_process_that_does_not_get_the_leadership_keeps_no_lease(etcd: EtcdServer, monkeypatch):
    """Another process has been faster between its look at the store and its attempt."""
    state = etcd.state()
    first, second = _store(state), _store(state)
    made: list[int] = []
    grant = EtcdClient.grant

    def granted(client, ttl_s):
        if not made:
            made.append(0)
            assert first.try_lead(object)
        found = grant(client, ttl_s)
        made.append(found[0])
        return found

    monkeypatch.setattr(EtcdClient, "grant", granted)
    assert not second.try_lead(object)
    own, others = EtcdClient(EtcdAddress.of(state)), made[1:]
    assert [own.renew(lease) > 0 for lease in others] == [True, False]
    _set(first, 1)


@pytest.mark.usefixtures("_long")
def test_a_late_leader_commits_nothing_and_goes_on_once_it_is_renewed(etcd: EtcdServer):
    state, clock = etcd.state(), Clock()
    store = _store(state, clock)
    assert store.try_lead(object)
    _set(store, 1)
    clock.now_s += HOUR_S
    before = EtcdClient(EtcdAddress.of(state)).load()
    with pytest.raises(StoreUnavailableError, match="not renewed in time"):
        _set(store, 2)
    assert EtcdClient(EtcdAddress.of(state)).load() == before
    assert (store.number("seq"), store.engine.is_held) == (1, False)
    clock.now_s -= HOUR_S
    _set(store, 3)
    store.close()


@pytest.mark.usefixtures("_long")
@pytest.mark.parametrize("is_settled", [True, False])
def test_a_leader_commits_nothing_after_another_one_though_its_lease_seems_held(is_settled, etcd: EtcdServer):
    """The clock stands still: `head` is the first fence, also after a commit without an answer."""
    state, clock = etcd.state(), Clock()
    first, second = _store(state, clock), _store(state)
    assert first.try_lead(object)
    EtcdClient(EtcdAddress.of(state)).revoke(first.engine._lease.number)
    first.engine._lease._ended.set()
    first.engine._lease = _AlwaysHeld()
    assert second.try_lead(object)
    first.engine._is_settled = is_settled
    with pytest.raises(NotLeaderError):
        _set(first, 1)
    assert first.engine.lost.is_set()
    assert EtcdClient(EtcdAddress.of(state)).load()[HEAD] == second.engine._head


class _AlwaysHeld:
    is_held = True

    def release(self) -> None: ...


@pytest.mark.usefixtures("_long")
def test_a_standby_is_shown_after_each_fault_and_keeps_one_lease(etcd: EtcdServer, monkeypatch):
    state, clock = etcd.state(), Clock()
    store, client, made = _store(state, clock), EtcdClient(EtcdAddress.of(state)), []
    grant = EtcdClient.grant

    def granted(client, ttl_s):
        found = grant(client, ttl_s)
        made.append(found[0])
        return found

    def failing(client, leased):
        raise StoreUnavailableError("no member of etcd answers")

    monkeypatch.setattr(EtcdClient, "grant", granted)
    with monkeypatch.context() as patch:
        patch.setattr(EtcdClient, "put", failing)
        with pytest.raises(StoreUnavailableError):
            store.stand_by("a", object)
    for _ in range(2):
        clock.now_s += HOUR_S  # the lease is late
        for _ in range(2):
            store.stand_by("a", object)
            assert store.engine.users().standbys == ("a",)
    assert [client.renew(lease) > 0 for lease in made] == [False, False, True]
    store.close()
    assert client.renew(made[-1]) == 0


async def test_the_loop_sees_that_etcd_has_ended_the_lease(etcd: EtcdServer):
    state = etcd.state()
    store = _store(state)
    assert store.try_lead(object)
    EtcdClient(EtcdAddress.of(state)).revoke(store.engine._lease.number)
    async with asyncio.timeout(DEADLINE_S):
        await store.engine.lost.wait()
    assert not store.engine.is_held
    store.close()


@pytest.mark.usefixtures("_long")
async def test_the_end_of_an_older_lease_ends_no_newer_lead(etcd: EtcdServer):
    """A renewal was under way when the process stood by, and is answered once it leads again."""
    store = _store(etcd.state())
    assert store.try_lead(object)
    older = store.engine._lease
    store.engine.release()
    assert store.try_lead(object)
    await asyncio.to_thread(older._renew)
    for _ in range(9):  # turns, in which the loop would see its end
        await asyncio.sleep(0)
    assert not store.engine.lost.is_set()
    _set(store, 1)
    store.close()


@pytest.mark.usefixtures("_long")
async def test_a_standby_leads_once_the_leader_is_gone_and_etcd_may_be_away(etcd: EtcdServer, monkeypatch):
    state = etcd.state()
    first, second = _store(state), _store(state)
    leader, standby = Leadership(first), Leadership(second)
    term, calls = leader.try_lead(), itertools.count()
    changes = EtcdEngine.changes

    def failing(engine):
        if engine is second.engine and next(calls) == 1:
            raise StoreUnavailableError("no member of etcd answers")
        return changes(engine)

    monkeypatch.setattr(EtcdEngine, "changes", failing)
    waiting = asyncio.create_task(standby.wait_until_leader(asyncio.Event()))
    while next(calls) < 4:
        await asyncio.sleep(0.01)
    assert not waiting.done()
    leader.release()
    assert await waiting > term


@pytest.mark.usefixtures("_long")
async def test_a_leader_s_key_without_a_lease_is_shown_and_logged_once(etcd: EtcdServer, caplog):
    """An operator put it by hand. Standbys follow the store all the same."""
    state = etcd.state()
    first, second = _store(state), _store(state)
    client = EtcdClient(EtcdAddress.of(state))
    stop = asyncio.Event()
    assert first.try_lead(object)
    assert first.engine.users().fault == ""
    client.put(Leased(LEADER, b"by hand", 0))
    assert LEASE_LESS in first.engine.users().fault
    waiting = asyncio.create_task(Leadership(second).wait_until_leader(stop))
    async with asyncio.timeout(DEADLINE_S):
        while not second.engine.fault:
            await asyncio.sleep(0.01)
        _set(first, 5)
        first.close()
        while second.number("seq") != 5:
            await asyncio.sleep(0.01)
    assert LEASE_LESS in second.engine.fault
    assert not waiting.done()
    (logged,) = [record.getMessage() for record in caplog.records]
    assert f"`etcdctl del {EtcdAddress.of(state).prefix}/leader`" in logged
    head = client.load()[HEAD]
    assert client.replace(HEAD, head, b"1:x:1", {LEADER: None}) == b"1:x:1"
    async with asyncio.timeout(DEADLINE_S):
        assert await waiting is not None
    assert second.engine.users().fault == ""
    second.close()


async def test_a_standby_logs_once_that_the_store_is_away_and_once_that_it_is_back(
    tmp_path, caplog, monkeypatch
):
    """Members of etcd without a majority have several causes in turn."""
    store = Store(tmp_path / "a.db", "f")
    store.engine.name, calls, stop = "etcd://a/b", itertools.count(), asyncio.Event()

    def changes():
        number = next(calls)
        if number == 12:
            stop.set()
        if 2 <= number < 6 or 8 <= number < 10:
            raise StoreUnavailableError(f"no member of etcd answers: cause {number % 2}")
        return lambda _: False

    monkeypatch.setattr(leadership, "POLL_S", 0.01)
    monkeypatch.setattr(store.engine, "changes", changes)
    assert await Leadership(store).wait_until_leader(stop) is None
    away, back = "no member of etcd answers: cause 0", "a.db: it can be used again"
    logged = [record.getMessage() for record in caplog.records]
    assert [away if line == away else line.rpartition("/")[2] for line in logged] == [away, back, away, back]


# ---- switches ----------------------------------------------------------------------------------------


class Fence:
    """Whether a controller may write. `seen`: how often it has looked."""

    def __init__(self) -> None:
        self.is_open = False
        self.seen = 0

    def __call__(self) -> bool:
        self.seen += not self.is_open
        return self.is_open


async def test_a_switch_gets_no_write_without_the_lease(tmp_path):
    async with ready(single_switch(2, slots=64), tmp_path) as deployment:
        await deployment.run(SPEC)
        switch, fence = deployment.switches["s1"], Fence()
        before, updates = switch.entries(), switch.updates
        deployment.may_write = fence
        deployment.controller.requests.cancel("job")
        await deployment.until(lambda: fence.seen > 1, "it waits for the lease")
        assert (switch.entries(), switch.updates) == (before, updates)
        fence.is_open = True
        await deployment.settled_exactly()
        assert switch.updates > updates


async def test_a_switch_gets_no_program_without_the_lease(tmp_path):
    async with deployed(single_switch(2), tmp_path) as deployment:
        await deployment.settled()
        await deployment.kill()
        switch, fence = deployment.switches["s1"], Fence()
        await switch.restart()
        pushes = switch.pushes
        deployment.may_write = fence
        deployment.start()
        await deployment.until(lambda: fence.seen > 1, "it waits for the lease")
        assert switch.pushes == pushes
        fence.is_open = True
        await deployment.settled()
        assert switch.pushes > pushes


async def test_a_switch_gets_no_reset_without_the_lease_and_answers_reads(tmp_path):
    async with ready(single_switch(2, slots=64), tmp_path) as deployment:
        slots, fence = deployment.controller.switches.slots, Fence()
        resets: list[int] = []
        deployment.slot = lambda switch, slot: (resets.append(slot), (0, 0))[1]
        deployment.may_write = fence
        reset = asyncio.create_task(slots.manage("s1", Kind.RESET, 20))
        await deployment.until(lambda: fence.seen > 1, "it waits for the lease")
        await slots.manage("s1", Kind.READ, 3)
        assert 20 not in resets
        fence.is_open = True
        await reset
        assert 20 in resets


def test_the_engine_of_an_address_has_no_lease_before_it_leads(etcd: EtcdServer):
    assert not engine_of(etcd.state()).is_held
