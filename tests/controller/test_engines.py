# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Both engines of a store keep a change as a whole or not at all, whenever the process dies or etcd gives no
answer."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable

import pytest

from netfold.controller.jobs import etcd_client, etcd_engine
from netfold.controller.jobs.engine import NotLeaderError, StoreError, StoreUnavailableError
from netfold.controller.jobs.etcd_client import EtcdAddress, EtcdClient, Keys
from netfold.controller.jobs.etcd_engine import DATA, GROUPS, HEAD, EtcdEngine, engine_of
from netfold.controller.jobs.records import JobRecord, JobState, Member
from netfold.controller.jobs.slot_allocator import Range
from netfold.controller.jobs.store import Store
from netfold.controller.jobs.withdrawal import Intent, Withdrawal
from netfold.controller.service.leadership import Leadership
from tests.controller.conftest import Kept
from tests.controller.etcd_server import EtcdServer

Rows = dict[str, list[tuple[object, ...]]]

SWITCHES = [f"s{n}" for n in range(10)]


class DiedError(Exception):
    """The process has died here, as far as a test goes on."""


def _rows(store: Store) -> Rows:
    return {table: sorted(store._db.execute(f"SELECT * FROM {table}"), key=repr) for table in GROUPS}


def _job(text: str = "x") -> JobRecord:
    hosts = ("h1", "h2", "h13")
    return JobRecord(
        name="j", seq=1, spec_yaml=text, state=JobState.RUNNING, members=tuple(Member(host=h) for h in hosts)
    )


def _submit(store: Store) -> None:
    """More keys than a transaction of the tests' etcd takes, and a value in parts."""
    store.set_number("seq", 1)
    store.put(_job("".join(map(chr, range(0x4E00, 0x5600)))))
    store.use_slots({switch: [Range(0, 64)] for switch in SWITCHES}, 1)


def _join(store: Store) -> None:
    store.put_member("j", Member(host="h13", joined=True))


def _shrink(store: Store) -> None:
    """Fewer parts, and a key without rows."""
    store.put(_job())
    store.use_slots({switch: [Range(64, 64)] for switch in SWITCHES}, 2)
    store.put_withdrawal(Withdrawal(element="h1", intent=Intent.CORDON))


def _give_back(store: Store) -> None:
    store.delete_withdrawal("h1")
    store.registers_empty("s3")


STEPS: list[Callable[[Store], None]] = [_submit, _join, _shrink, _give_back]


@pytest.fixture
def _small_transactions(monkeypatch):
    """Each commit with more than a few keys takes several transactions, and a long value several keys."""
    monkeypatch.setattr(etcd_engine, "MAX_KEYS", 6)
    monkeypatch.setattr(etcd_engine, "PART_BYTES", 1000)


def _change(store: Store, step: Callable[[Store], None]) -> None:
    with store.change():
        step(store)


def _writes(monkeypatch: pytest.MonkeyPatch, at: int, *, is_made: bool, error: type[Exception]) -> list[int]:
    """Have the write of this number fail, before it is made or after. Returns the numbers of the writes that have
    begun."""
    begun: list[int] = []

    def failing(write):
        def fail(*arguments):
            begun.append(len(begun))
            if begun[-1] == at and not is_made:
                raise error("before")
            result = write(*arguments)
            if begun[-1] == at:
                raise error("after")
            return result

        return fail

    monkeypatch.setattr(EtcdClient, "replace", failing(EtcdClient.replace))
    monkeypatch.setattr("netfold.controller.jobs.engine.FileEngine.commit", failing(_file_commit))
    return begun


def _file_commit(engine, database):
    database.execute("COMMIT")


@pytest.mark.usefixtures("_small_transactions")
@pytest.mark.parametrize("is_made", [False, True])
def test_a_process_may_die_at_each_write(kept: Kept, is_made: bool):
    at, has_died = 0, True
    while has_died:
        has_died = _die(kept, at, is_made=is_made)
        at += 1
    assert at > len(STEPS)


def _die(kept: Kept, at: int, *, is_made: bool) -> bool:
    """Die at a write, and let the next process make the other changes. Return whether there was such a write."""
    first = Store(kept(), "f", mark=7)
    standby = Store(kept(), "f")
    with first.change():
        for table in GROUPS.keys() - {"facts"}:
            first._db.execute(f"DELETE FROM {table}")
        for number in ("seq", "term"):
            first.set_number(number, 0)
    wanted, done = [_rows(first)], 0
    for step in STEPS:
        wanted.append(_expected(wanted[-1], step))
    with pytest.MonkeyPatch.context() as patch:
        _writes(patch, at, is_made=is_made, error=DiedError)
        try:
            for step in STEPS:
                _change(first, step)
                done += 1
                assert _followed(standby) == wanted[done]
        except DiedError:
            pass
    first.close()
    assert _followed(standby) in wanted[done : done + 2], (at, done)
    second = standby if at % 2 else Store(kept(), "f")
    assert _rows(second) == _rows(standby)
    for step in STEPS[wanted.index(_rows(second)) :]:
        _change(second, step)
    second.close()
    third = Store(kept(), "f")
    assert _rows(third) == wanted[-1], at
    if isinstance(third.engine, EtcdEngine):
        left = third.engine._client.load()
        assert [n for n in left if not n.startswith((DATA, HEAD))] == []
    third.close()
    return done < len(STEPS)


def _followed(standby: Store) -> Rows:
    """Let a standby follow the store, and return its rows."""
    assert asyncio.run(standby.follow())
    return _rows(standby)


def _expected(before: Rows, step: Callable[[Store], None]) -> Rows:
    """The rows after a change, by a store in memory alone."""
    store = Store(_MemoryEngine(), "f")
    for table, rows in before.items():
        store._db.execute(f"DELETE FROM {table}")
        for row in rows:
            store._db.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
    _change(store, step)
    return _rows(store)


class _MemoryEngine(EtcdEngine):
    """Keeps nothing."""

    def __init__(self) -> None:
        super().__init__(EtcdAddress(("127.0.0.1:1",), "none"))

    def open(self, tables):
        self._client.load_since = lambda revision: Keys({}, revision)
        return super().open(tables)

    def commit(self, database):
        database.execute("COMMIT")


@pytest.mark.usefixtures("_small_transactions")
@pytest.mark.parametrize("is_made", [False, True])
def test_etcd_may_give_no_answer_to_each_write(etcd: EtcdServer, is_made: bool):
    """The change is refused, memory is as before, and the next change brings etcd to what memory has."""
    at = 0
    while True:
        state = etcd.state()
        store = Store(engine_of(state), "f")
        refused = 0
        with pytest.MonkeyPatch.context() as patch:
            begun = _writes(patch, at, is_made=is_made, error=StoreError)
            for step in STEPS:
                before = _rows(store)
                try:
                    _change(store, step)
                except StoreError:
                    refused += 1
                    assert _rows(store) == before
                    _change(store, lambda store: store.set_number("other", 5))
                    other = Store(engine_of(state), "f")
                    assert _rows(other) == _rows(store), (at, step)
                    other.close()
                    _change(store, step)
        again = Store(engine_of(state), "f")
        assert _rows(again) == _rows(store)
        again.close()
        store.close()
        if len(begun) <= at:
            break
        assert refused == 1
        at += 1
    assert at > len(STEPS)


def test_an_older_writer_commits_nothing_in_etcd(etcd: EtcdServer):
    state = etcd.state()
    old, new = Store(engine_of(state), "f"), Store(engine_of(state), "f")
    assert Leadership(new).try_lead() is not None
    for number in (1, 2):
        with pytest.raises(NotLeaderError, match="another one has written to the store"), old.change():
            old.set_number("seq", number)
    assert (old.number("seq"), old.engine.lost.is_set(), new.engine.lost.is_set()) == (0, True, False)
    with new.change():
        new.set_number("seq", 3)
    assert Store(engine_of(state), "f").number("seq") == 3


def test_a_writer_commits_nothing_in_an_etcd_that_was_set_back(etcd: EtcdServer):
    """A snapshot of etcd has an older head of this process, and lacks what memory has."""
    state = etcd.state()
    store, client = Store(engine_of(state), "f"), EtcdClient(EtcdAddress.of(state))
    snapshot = client.load()
    for number in (1, 2):
        _change(store, lambda store, number=number: store.set_number("seq", number))
    found = client.load()
    entries = dict.fromkeys(found) | snapshot
    client.replace(HEAD, found[HEAD], entries.pop(HEAD) or b"", entries)
    for _ in range(2):
        with pytest.raises(NotLeaderError), store.change():
            store.set_number("other", 3)
    assert client.load() == snapshot


def test_a_standby_reads_what_has_changed_and_no_history(etcd: EtcdServer, monkeypatch):
    """etcd has compacted it, and a key that it does not read anew is gone."""
    state = etcd.state()
    leader, standby = Store(engine_of(state), "f"), Store(engine_of(state), "f")
    load, read = EtcdClient.load_since, []

    def counted(client, revision):
        found = load(client, revision)
        read.append(found.values.keys())
        return found

    monkeypatch.setattr(EtcdClient, "load_since", counted)
    for step in (_submit, _join, _shrink, _give_back):
        _change(leader, step)
        version = standby.version()
        assert _followed(standby) == _rows(leader)
        assert standby.version() != version
    assert _followed(standby) == _rows(leader)
    assert standby.version() == version + 1, "nothing has changed"
    assert len(read) == len(STEPS)
    assert {name.split("/")[1] for name in read[1] - {HEAD}} == {"members"}


@pytest.mark.parametrize("is_written", [False, True])
def test_a_standby_reads_all_of_an_etcd_that_was_set_back(etcd: EtcdServer, is_written: bool):
    """Keys of a restored snapshot have no revisions after the last one that the standby has read."""
    state = etcd.state()
    leader, client = Store(engine_of(state), "f"), EtcdClient(EtcdAddress.of(state))
    _change(leader, lambda store: store.set_number("seq", 1))
    snapshot, standby = client.load(), Store(engine_of(state), "f")
    _change(leader, lambda store: store.set_number("seq", 2))
    assert _followed(standby) == _rows(leader)
    client.replace(HEAD, client.load()[HEAD], snapshot.pop(HEAD), snapshot)
    standby.engine._revision = client.load_since(0).revision
    restored = Store(engine_of(state), "f")
    if is_written:
        _change(restored, lambda store: store.set_number("other", 3))
    assert _followed(standby) == _rows(restored)
    assert standby.number("seq") == 1
    assert standby.try_lead(object)
    standby.close()


def test_processes_that_begin_at_once_make_one_store(etcd: EtcdServer, monkeypatch):
    state = etcd.state()
    make, others = EtcdEngine.open, []

    def late(engine, tables):
        database = make(engine, tables)
        if not others:
            others.append(engine)
            others.append(Store(engine_of(state), "other"))
        return database

    monkeypatch.setattr(EtcdEngine, "open", late)
    store = Store(engine_of(state), "f")
    assert _rows(store) == _rows(others[1])
    assert store.fabric == "other"
    assert store.try_lead(object)
    _change(store, lambda store: store.set_number("seq", 1))
    store.close()


def test_a_change_that_arrives_late_is_no_other_process(etcd: EtcdServer, monkeypatch):
    state = etcd.state()
    store, write = Store(engine_of(state), "f"), EtcdClient.replace
    underway: list[tuple[object, ...]] = []

    def delayed(client, *arguments):
        if not underway:
            underway.append(arguments)
            raise StoreUnavailableError("no answer")
        write(client, *underway[0])
        return write(client, *arguments)

    monkeypatch.setattr(EtcdClient, "replace", delayed)
    for number in (1, 2):
        with pytest.raises(StoreUnavailableError), store.change():
            store.set_number("seq", number)
    _change(store, lambda store: store.set_number("seq", 3))
    assert Store(engine_of(state), "f").number("seq") == 3


def test_a_standby_ends_with_a_store_that_is_gone(etcd: EtcdServer):
    state = etcd.state()
    standby, client = Store(engine_of(state), "f"), EtcdClient(EtcdAddress.of(state))
    found = client.load()
    other = client.replace("other", None, b"1", dict.fromkeys(found))
    assert other == b"1"
    with pytest.raises(StoreError, match="the store is gone"):
        _followed(standby)


def test_reading_a_store_takes_it_from_no_one(etcd: EtcdServer):
    state = etcd.state()
    leader = Store(engine_of(state), "f")
    Store(engine_of(state), "f").close()
    with leader.change():
        leader.set_number("seq", 1)


def test_a_key_that_cannot_be_read_is_named(etcd: EtcdServer):
    state = etcd.state()
    Store(engine_of(state), "f").close()
    client = EtcdClient(EtcdAddress.of(state))
    head = client.load()[HEAD]
    client.replace(HEAD, head, b"0:x:1", {f"{DATA}later/a//000": b"of a later schema"})
    store = Store(engine_of(state), "f")
    with store.change():
        store.set_number("seq", 1)
    store.close()
    found = client.load()
    assert found[f"{DATA}later/a//000"] == b"of a later schema", "it stays as it is"
    for damage in (
        b"nonsense",
        *map(zlib.compress, (b'{"facts":[["seq",1' + b"0" * 30 + b"]]}", b"[" * 100_000)),
    ):
        client.replace(HEAD, found[HEAD], b"0:x:%d" % len(damage), {f"{DATA}jobs/a//000": damage})
        with pytest.raises(StoreError, match="the key data/jobs/a/ cannot be read"):
            Store(engine_of(state), "f")
        found = client.load()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("etcd://", "expected etcd://HOST"),
        ("etcd://127.0.0.1", "expected etcd://HOST"),
        ("etcd://127.0.0.1/a/b", "expected etcd://HOST"),
        ("etcd:///a", "'' is no member"),
        ("etcd://a b:2379/a", "'a b:2379' is no member"),
        ("etcd://127.0.0.1:99999/a", "is no member"),
        ("etcd://127.0.0.1:2379,/a", "'' is no member"),
        ("etcd://127.0.0.1/a?ca=x&password=y", "expected etcd://HOST"),
        ("etcd://127.0.0.1/a?ca=x&cert=y", "cert and key together"),
        ("etcd://ctl1,ctl2/a", "because the store holds the key of all tokens"),
        ("etcd://[::1/a", "'[::1' is no member"),
        ("etcd://[127.0.0.1]/a", "is no member"),
        ("etcd://\u2100/a", "is no member"),
        ("etcd://127.0.0.1:\u0661/a", "is no member"),
        ("etcd://127.0.0.1/a\nb", "expected etcd://HOST"),
        ("etcd://127.0.0.1/a?ca=%00", "expected etcd://HOST"),
        ("etcd://127.0.0.1/a?ca=x&ca=y", "each of them once"),
        ("ETCD://127.0.0.1/a", "expected etcd://HOST"),
        ("etcd:/127.0.0.1/a", "expected etcd://HOST"),
        ("https://127.0.0.1:2379/a", "expected etcd://HOST"),
        ("", "expected etcd://HOST"),
        ("etcd://127.0.0.1/a?ca=/nowhere/ca.pem", "/nowhere/ca.pem cannot be read"),
    ],
)
def test_an_address_that_is_none_is_refused(text: str, reason: str):
    with pytest.raises(StoreError) as refused:
        engine_of(text)
    assert reason in str(refused.value)


def test_after_a_call_without_an_answer_none_is_made_for_a_while(monkeypatch):
    """Each change that waits to be tried again would hold up the controller's loop."""
    monkeypatch.setattr(etcd_client, "LOAD_S", 0.1)
    monkeypatch.setattr(etcd_client, "AWAY_S", 1000.0)
    client = EtcdClient(EtcdAddress(("127.0.0.1:1",), "none"))
    for channels in (client._channels, []):
        client._channels = channels
        with pytest.raises(StoreError, match=r"no member of etcd answers: 127\.0\.0\.1:1"):
            client.load()


def test_members_have_the_port_of_etcd():
    address = EtcdAddress.of("etcd://localhost,[::1]:5/netfold")
    assert address.members == (f"localhost:{etcd_client.PORT}", "[::1]:5")
    assert str(address) == f"etcd://localhost:{etcd_client.PORT},[::1]:5/netfold"
