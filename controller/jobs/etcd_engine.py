# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The engine that keeps a store in etcd. The store reads and changes a database in memory; a commit writes the keys of
the rows that the transaction has changed.

    head                 TERM:PROCESS:NUMBER, another one with each write; each compares it with the one before
    leader               MACHINE:PROCESS, with the lease of the process that leads
    standby/PROCESS      the address of a process that stands by, with its lease
    data/KEY/PART        the rows of a key, compressed, in parts
    new/KEY/PART         what a commit that does not fit one transaction of etcd is going to write
    decided              exists while what is under new/ has been committed, and is moved to data/
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
import secrets
import socket
import sqlite3
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from netfold.controller.jobs.engine import (
    FileEngine,
    NotLeaderError,
    Progress,
    StoreError,
    StoreUnavailableError,
    StoreUsers,
)
from netfold.controller.jobs.etcd_client import EtcdAddress, EtcdClient, Keys, Leased
from netfold.controller.jobs.etcd_lease import EtcdLease
from netfold.controller.jobs.etcd_runtime import RUNTIME, EtcdRuntime

MAX_KEYS = 120
"""Keys that a transaction writes beside `head`; etcd takes 128 operations."""
MAX_BYTES = 1_000_000
"""Values in a transaction; etcd takes 1.5 MiB."""
PART_BYTES = 400_000

HEAD, LEADER, STANDBY, DECIDED, DATA, NEW = "head", "leader", "standby/", "decided", "data/", "new/"
_WRITTEN, _DELETED = b"=", b"-"
"""First bytes of values under new/."""


@dataclass(frozen=True)
class _Group:
    """Where a table's rows are kept: below `prefix`, those of one value of `column` under a key, or under several keys
    that differ by the value of an expression, `part`."""

    prefix: str
    column: str
    part: str = "''"


_HOSTS = "substr({row}host, -1)"
"""Hosts by their last character: one that joins writes the key of few."""
GROUPS = {
    "facts": _Group("facts", "name"),
    "jobs": _Group("jobs", "name"),
    "members": _Group("members", "job", _HOSTS),
    "queue_pairs": _Group("queue_pairs", "job", _HOSTS),
    "withdrawals": _Group("withdrawals", "element"),
    "epochs": _Group("switches", "switch"),
    "revisions": _Group("switches", "switch"),
    "switch_programs": _Group("switches", "switch"),
    "tenants": _Group("tenants", "tenant"),
    "programs": _Group("programs", "digest"),
}
"""By table. A table of a later schema gets a prefix of its own: this version leaves the keys of others as they are."""

_PREFIXES = {group.prefix for group in GROUPS.values()}

_UNREADABLE = (
    zlib.error,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    OverflowError,
    RecursionError,
    sqlite3.Error,
)

_ADDRESS = re.compile(r"\s*($|etcd:|[a-z0-9+.-]+://)", re.IGNORECASE)

Key = tuple[str, str, str]
"""A prefix, the value of the column, and of the part."""


def engine_of(state: str | Path) -> FileEngine | EtcdEngine:
    """The engine that a text or a path names. What looks like an address is no file: a controller with a new store
    empties the switches. Raises StoreError."""
    if isinstance(state, str) and _ADDRESS.match(state):
        return EtcdEngine(EtcdAddress.of(state))
    return FileEngine(Path(state))


class EtcdEngine:
    """Keeps a store under the prefix of an address. Each write compares what was there before: of two processes,
    the one that wrote last commits, and the other one has lost the store. One process leads, by a lease."""

    def __init__(self, address: EtcdAddress, runtime: EtcdRuntime = RUNTIME) -> None:
        self.name, self._prefix = str(address), address.prefix
        self._runtime = runtime
        self.lost = asyncio.Event()
        self._client = EtcdClient(address, runtime)
        self._lease_client = EtcdClient(address, runtime)
        self._lease: EtcdLease | None = None
        self._standby: EtcdLease | None = None
        self._process = secrets.token_hex(4)
        self.max_keys = MAX_KEYS
        self._number = 0
        self._head: bytes | None = None
        self._parts: dict[str, int] = {}
        """Greatest number of parts that a key may have in etcd."""
        self._in_doubt: set[Key] = set()
        """Keys of commits that failed: etcd may have them. The next commit writes them as they are in memory, even an
        empty one."""
        self._is_settled = True
        """Whether `head` is known, and nothing is left under new/."""
        self.fault = ""
        self._revision = 0
        """The revision of etcd at which all keys were read; 0: memory may differ from them."""
        self._version = 0

    # ---- reading ---------------------------------------------------------------------------------

    def open(self, tables: str, *, is_replaced: bool = False) -> sqlite3.Connection:
        """`is_replaced`: without rows, and the first commit replaces all that is stored, readable or not."""
        database = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        database.executescript(tables)
        database.executescript(_triggers())
        found = self._client.load_since(0)
        if is_replaced:
            self._replace(found)
        else:
            self._read(database, found, found.values.keys(), is_whole=True)
        return database

    @property
    def was_empty(self) -> bool:
        """Whether nothing was stored when this was opened."""
        return not self._parts

    def _replace(self, found: Keys) -> None:
        self._head = found.values.get(HEAD)
        self._is_settled = not any(name.startswith((NEW, DECIDED)) for name in found.values)
        names = {*found.values, *(_changes(found.values) if DECIDED in found.values else ())}
        for name in (n.removeprefix(DATA).rpartition("/")[0] for n in names if n.startswith(DATA)):
            self._parts[name] = self._parts.get(name, 0) + 1
            if (key := _key(name))[0] in _PREFIXES:
                self._in_doubt.add(key)

    def changes(self) -> Callable[[sqlite3.Connection], bool]:
        """The keys that were written since the last reading, and the names of all, which show those that are gone: no
        history of etcd is needed."""
        leader = self._client.leased(LEADER)
        self.fault, is_vacant = self._fault(leader), leader is None
        names: Collection[str] = (DECIDED,)
        if self._revision != 0:
            if self._client.load_few(HEAD).get(HEAD) == self._head:
                return lambda _: is_vacant
            found = self._client.load_since(self._revision + 1)
            if _is_later(found.values.get(HEAD), self._head):  # else etcd may have been set back
                names = self._client.names(found.revision)
        if is_whole := DECIDED in names:  # its keys may have been written before
            found = self._client.load_since(0)
            names = found.values.keys()

        def apply(database: sqlite3.Connection) -> bool:
            self._read(database, found, names, is_whole=is_whole)
            return is_vacant

        return apply

    def version(self, database: sqlite3.Connection) -> int:
        return self._version

    def _read(
        self, database: sqlite3.Connection, found: Keys, names: Collection[str], *, is_whole: bool
    ) -> None:
        """Bring the database to the keys that were found of all `names`. Raises StoreError."""
        if self._head is not None and HEAD not in names:
            raise StoreError(f"{self.name}: the store is gone, as after a loss of etcd's data")
        values = dict(found.values)
        if DECIDED in values:
            changes = _changes(values)
            values |= {n: v for n, v in changes.items() if v is not None}
            values = {n: v for n, v in values.items() if changes.get(n, v) is not None}
            names = values.keys()
        written: dict[str, list[bytes]] = {}
        for name in sorted(n for n in values if n.startswith(DATA)):
            written.setdefault(name.removeprefix(DATA).rpartition("/")[0], []).append(values[name])
        kept = {n.removeprefix(DATA).rpartition("/")[0] for n in names if n.startswith(DATA)}
        database.execute("BEGIN")
        try:
            for table in GROUPS if is_whole else ():
                database.execute(f"DELETE FROM main.{table}")
            for name in () if is_whole else {*written, *(self._parts.keys() - kept)}:
                _delete_rows(database, _key(name))
            for name, value in written.items():
                self._insert(database, name, value)
            database.execute("DELETE FROM temp.changed")
            database.execute("COMMIT")
        except BaseException:
            database.execute("ROLLBACK")
            raise
        known = {} if is_whole else {name: count for name, count in self._parts.items() if name in kept}
        self._parts = known | {name: len(value) for name, value in written.items()}
        self._in_doubt = set()
        self._is_settled = not any(name.startswith((NEW, DECIDED)) for name in {*names, *found.values})
        self._head, self._revision, self._version = values.get(HEAD), found.revision, self._version + 1

    def _insert(self, database: sqlite3.Connection, name: str, value: list[bytes]) -> None:
        """Insert the rows of a key, but those of a later schema. Raises StoreError."""
        if _key(name)[0] not in _PREFIXES:
            return
        try:
            for table, rows in json.loads(zlib.decompress(b"".join(value)), object_hook=_blob).items():
                _insert_rows(database, table, rows)
        except _UNREADABLE as error:
            raise StoreError(f"{self.name}: the key {DATA}{name} cannot be read: {error}") from error

    # ---- writing ---------------------------------------------------------------------------------

    def commit(self, database: sqlite3.Connection) -> None:
        changed = self._in_doubt | set(database.execute("SELECT * FROM temp.changed"))
        if changed:
            self._keep(database, changed)
            database.execute("DELETE FROM temp.changed")
        database.execute("COMMIT")
        self._in_doubt = set()

    def _keep(self, database: sqlite3.Connection, keys: set[Key]) -> None:
        if self.lost.is_set():
            raise NotLeaderError(self._taken_over())
        if self._lease is not None and not self.is_held:
            raise StoreUnavailableError(f"{self.name}: the lease of this controller was not renewed in time")
        term = _term(database)
        if not self._is_settled:
            self._settle(term)
        values = {_name(key): _value(database, key) for key in sorted(keys)}
        counts = {name: -(-len(value) // PART_BYTES) for name, value in values.items()}
        entries: dict[str, bytes | None] = {}
        for name, value in values.items():
            for part in range(max(counts[name], self._parts.get(name, 0))):
                piece = value[part * PART_BYTES : (part + 1) * PART_BYTES]
                entries[f"{DATA}{name}/{part:03}"] = piece or None
        self._in_doubt, self._is_settled = keys, False
        self._parts |= {name: max(count, self._parts.get(name, 0)) for name, count in counts.items()}
        self._write(term, entries)
        self._parts |= counts
        self._is_settled = True

    def _write(self, term: int, entries: Mapping[str, bytes | None]) -> None:
        """Write all of the entries, or none of them."""
        batches = list(_batches(entries, self.max_keys))
        if len(batches) == 1:
            self._send(term, batches[0])
            return
        staged = {_staged(n): _DELETED if v is None else _WRITTEN + v for n, v in entries.items()}
        for batch in _batches(staged, self.max_keys):
            self._send(term, batch)
        self._send(term, {DECIDED: b"1"})
        self._move(term, entries)

    def _move(self, term: int, entries: Mapping[str, bytes | None]) -> None:
        """Write what has been decided, and may have been written in part."""
        for batch in _batches(entries, self.max_keys // 2):
            self._send(term, {**batch, **dict.fromkeys(map(_staged, batch))})
        self._send(term, {DECIDED: None})

    def _settle(self, term: int) -> None:
        """Find out what a commit that failed has left, or a process that died within one. What has been decided is
        finished, and all else is deleted."""
        load = self._client.load_few
        found = load(HEAD) | load(DECIDED) | load(NEW)
        if found.get(HEAD) != self._head and not self._is_own(found.get(HEAD)):
            self._lose()
        self._head = found.get(HEAD)
        changes = _changes(found)
        if DECIDED in found:
            self._move(term, changes)
        else:
            for batch in _batches(dict.fromkeys(map(_staged, changes)), self.max_keys):
                self._send(term, batch)
        self._is_settled = True

    def _send(self, term: int, changes: Mapping[str, bytes | None]) -> None:
        """Make some changes in one transaction of etcd. Raises NotLeaderError if another process has made one since."""
        after = self._next_head(term)
        found = self._client.replace(HEAD, self._head, after, changes)
        if found == after:
            self._head = after
        elif self._is_own(found):
            raise StoreUnavailableError(
                f"{self.name}: an earlier change, which had no answer, was made now; try again"
            )
        else:
            self._lose()

    def _next_head(self, term: int) -> bytes:
        self._number += 1
        return f"{term}:{self._process}:{self._number}".encode()

    def _is_own(self, head: bytes | None) -> bool:
        """Whether this process has written it without an answer. An older one is of an etcd that was set back."""
        return self._number_of(head) > self._number_of(self._head)

    def _number_of(self, head: bytes | None) -> int:
        """The number of this process's write; 0 for another one's."""
        process, _, number = (head or b"").partition(b":")[2].partition(b":")
        return int(number) if process == self._process.encode() else 0

    def _lose(self) -> NoReturn:
        self.lost.set()
        raise NotLeaderError(self._taken_over())

    def _taken_over(self) -> str:
        return f"{self.name}: this process does not lead any more, or another one has written to the store"

    # ---- leading ---------------------------------------------------------------------------------

    @property
    def is_held(self) -> bool:
        return self._lease is not None and self._lease.is_held

    def stand_by(self, address: str, progress: Progress) -> None:
        if self._standby is None or not self._standby.is_held:
            self._end_standby()  # one that is late may be renewed still
            standby = EtcdLease(self._lease_client, progress, lambda _: None, self._runtime)
            try:
                self._client.put(Leased(STANDBY + self._process, address.encode(), standby.number))
            except StoreError:
                standby.release()
                raise
            self._standby = standby

    def users(self) -> StoreUsers:
        members = self._lease_client.members()
        standbys: Collection[bytes] = ()
        fault = ""
        with suppress(StoreUnavailableError):  # the members show why
            standbys = self._lease_client.load_few(STANDBY).values()
            fault = self._fault(self._lease_client.leased(LEADER))
        return StoreUsers(tuple(sorted(s.decode(errors="replace") for s in standbys)), members, fault)

    def _fault(self, leader: Leased | None) -> str:
        """A key that was put by hand stays for ever. An operator deletes it: its lease may also have been taken from a
        process that leads."""
        if leader is None or leader.lease != 0:
            return ""
        return (
            f"{self.name}: the key {self._prefix}/{LEADER} was written by hand and has no lease, so no controller can "
            f"begin to lead: stop the one that leads, if any, then `etcdctl del {self._prefix}/{LEADER}`"
        )

    def try_lead(self, database: sqlite3.Connection, progress: Progress) -> bool:
        return self.changes()(database) and self.take(database, progress)

    def take(self, database: sqlite3.Connection, progress: Progress) -> bool:
        """Lead with a store as it was read last. False if another process leads, or has changed it since."""
        lost = _in_loop(self.lost.set)
        lease = EtcdLease(
            self._lease_client,
            lambda: (progress(), self._client.attempts),
            lambda lease: lost() if lease is self._lease else None,
            self._runtime,
        )
        try:
            own = Leased(LEADER, f"{socket.gethostname()}:{self._process}".encode(), lease.number)
            after = self._next_head(_term(database))
            if self._client.replace(HEAD, self._head, after, {}, own) != after:
                return False
            self._head, self._lease = after, lease
            self._end_standby()
            self.lost.clear()
            return True
        finally:
            if self._lease is not lease:
                lease.release()

    def release(self) -> None:
        """Nothing is committed any more. Memory may have what etcd has not, and is read anew."""
        self._end_standby()
        lease, self._lease = self._lease, None
        self.lost.set()
        self._revision = 0
        if lease is not None:
            lease.release()

    def _end_standby(self) -> None:
        standby, self._standby = self._standby, None
        if standby is not None:
            standby.release()

    def close(self) -> None:
        self.release()
        for client in (self._client, self._lease_client):
            client.close()


def _is_later(head: bytes | None, before: bytes | None) -> bool:
    """Whether one process has written both in one term, `head` after `before`."""
    (writer, _, number), (same, _, least) = ((h or b"").rpartition(b":") for h in (head, before))
    return writer == same and (len(number), number) > (len(least), least)


def _in_loop(call: Callable[[], None]) -> Callable[[], None]:
    """The call for a thread: it is made in the running event loop, if there is one."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return call

    async def made() -> None:
        call()

    def from_thread() -> None:
        pending = made()
        try:
            asyncio.run_coroutine_threadsafe(pending, loop)
        except RuntimeError:  # the loop is over
            pending.close()

    return from_thread


def _term(database: sqlite3.Connection) -> int:
    found = database.execute("SELECT value FROM main.facts WHERE name = 'term'").fetchone()
    return int(found[0]) if found else 0


def _triggers() -> str:
    """Statements for a table with the keys of all rows that the transaction has changed."""
    made = [
        "CREATE TEMP TABLE changed (prefix, name, part);"
    ]  # no unique key: the outer statement has the policy
    for table, group in GROUPS.items():
        for event, row in (("INSERT", "new"), ("UPDATE", "new"), ("DELETE", "old")):
            part = group.part.format(row=f"{row}.")
            trigger = f"CREATE TEMP TRIGGER {table}_{event} AFTER {event} ON main.{table}"
            key = f"'{group.prefix}', {row}.{group.column}, {part}"
            made.append(f"{trigger} BEGIN INSERT INTO changed VALUES ({key}); END;")
    return "\n".join(made)


def _value(database: sqlite3.Connection, key: Key) -> bytes:
    """The rows of a key; empty if it has none."""
    prefix, name, part = key
    tables: dict[str, list[Any]] = {}
    for table, group in GROUPS.items():
        if group.prefix == prefix:
            query = f"SELECT * FROM main.{table} WHERE {group.column} = ? AND {group.part.format(row='')} = ?"
            if rows := database.execute(query, (name, part)).fetchall():
                tables[table] = rows
    text = json.dumps(tables, separators=(",", ":"), default=_text)
    return zlib.compress(text.encode(), 1) if tables else b""


def _delete_rows(database: sqlite3.Connection, key: Key) -> None:
    prefix, name, part = key
    for table, group in GROUPS.items():
        if group.prefix == prefix:
            where = f"{group.column} = ? AND {group.part.format(row='')} = ?"
            database.execute(f"DELETE FROM main.{table} WHERE {where}", (name, part))


def _insert_rows(database: sqlite3.Connection, table: str, rows: list[list[Any]]) -> None:
    """Raises LookupError, TypeError, ValueError and sqlite3.Error for what are no rows of a table."""
    if table not in GROUPS:
        raise KeyError(table)
    places = ", ".join("?" * len(rows[0]))
    database.executemany(f"INSERT INTO main.{table} VALUES ({places})", rows)


def _text(blob: object) -> dict[str, str]:
    if not isinstance(blob, bytes):
        raise TypeError(f"{type(blob).__name__} is no value of SQLite")
    return {"base64": base64.b64encode(blob).decode()}


def _blob(found: dict[str, Any]) -> Any:
    if found.keys() == {"base64"}:
        return base64.b64decode(found["base64"], validate=True)
    return found


def _name(key: Key) -> str:
    return "/".join(key)


def _key(name: str) -> Key:
    prefix, _, rest = name.partition("/")
    return (prefix, *rest.rpartition("/")[::2])


def _staged(name: str) -> str:
    return NEW + name.removeprefix(DATA)


def _changes(found: Mapping[str, bytes]) -> dict[str, bytes | None]:
    """The entries under data/ that those under new/ stand for."""
    return {
        DATA + name.removeprefix(NEW): value[1:] if value.startswith(_WRITTEN) else None
        for name, value in found.items()
        if name.startswith(NEW)
    }


def _batches(entries: Mapping[str, bytes | None], max_keys: int) -> Iterator[dict[str, bytes | None]]:
    """The entries in parts that one transaction takes each."""
    batch: dict[str, bytes | None] = {}
    size = 0
    for name, value in entries.items():
        more = len(value or b"")
        if batch and (len(batch) == max_keys or size + more > MAX_BYTES):
            yield batch
            batch, size = {}, 0
        batch[name] = value
        size += more
    if batch:
        yield batch
