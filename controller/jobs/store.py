# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Stores what has to outlive the controller: the fabric, jobs, withdrawn elements, usage of tenants, epochs of slots,
programs of switches, and the leader's term and address.

The store is a database of SQLite. An engine keeps it in a file or in etcd (engine.py). Every change is one transaction,
kept before the switches receive it. One process at a time writes (service/leadership.py); standbys read."""

from __future__ import annotations

import asyncio
import secrets
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from netfold.controller.jobs.engine import (
    FileEngine,
    NotLeaderError,
    Progress,
    StoreEngine,
    StoreError,
    StoreUsers,
)
from netfold.controller.jobs.program_records import RolloutRecord, StoredProgram, SwitchProgram
from netfold.controller.jobs.records import JobRecord, Member, QueuePairs
from netfold.controller.jobs.slot_allocator import Range
from netfold.controller.jobs.tenant_usage import TenantUsage
from netfold.controller.jobs.withdrawal import Withdrawal
from netfold.p4src.manifest import Program

SCHEMA = 8
SCHEMA_BEFORE = 7
"""Schema of the version before. A store keeps it until `finalize`, so that this version and that one may use the store
in turn."""

OTHER_VERSION = (
    "was written by another version of netfold. Run that version until its jobs have ended; or give another --state, "
    "which ends them"
)

KNOWN_TERMS = 100
"""Number of terms whose revisions are kept. A switch that was away for longer loses its sums."""

KEY_BYTES = 32

HISTORY = 200
"""Number of ended jobs that are kept."""

_TABLES_BEFORE = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS jobs (
    name TEXT PRIMARY KEY, seq INTEGER NOT NULL, over INTEGER NOT NULL, body TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS members (
    job TEXT, host TEXT, body TEXT NOT NULL, PRIMARY KEY (job, host)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS withdrawals (element TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS epochs (
    switch TEXT, block INTEGER, epoch INTEGER NOT NULL, PRIMARY KEY (switch, block)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS revisions (
    switch TEXT, term INTEGER, number INTEGER NOT NULL, PRIMARY KEY (switch, term)
) WITHOUT ROWID;
"""
_NEW_TABLES = """
CREATE TABLE IF NOT EXISTS tenants (tenant TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS queue_pairs (
    job TEXT, host TEXT, body TEXT NOT NULL, PRIMARY KEY (job, host)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS programs (
    digest TEXT PRIMARY KEY, name TEXT NOT NULL, p4info BLOB NOT NULL, blob BLOB NOT NULL, abilities TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS switch_programs (
    switch TEXT PRIMARY KEY, digest TEXT NOT NULL, was_rolled_out INTEGER NOT NULL
) WITHOUT ROWID;
"""
"""Tables that a version of SCHEMA_BEFORE does not read, and leaves as they are. What that version would do wrong
without reading them is refused until `finalize` (`expect_final`)."""

TABLES = _TABLES_BEFORE + _NEW_TABLES

Record = TypeVar("Record", JobRecord, Member, QueuePairs, Withdrawal, TenantUsage, RolloutRecord)


@dataclass(frozen=True)
class _JobRows:
    """The rows of a job: its own, and those of hosts."""

    body: str
    members: dict[str, str]
    queue_pairs: dict[str, str]


class NotFinalError(StoreError):
    """The version before may still use the store, and could not hold what is requested."""


class Store:
    """The store that an engine keeps, or that is in the file at a path. A new one gets the text of `fabric`, and
    `mark`, or else a random one. Raises StoreError."""

    def __init__(self, kept: StoreEngine | Path, fabric: str, *, mark: int | None = None) -> None:
        self.engine = FileEngine(kept) if isinstance(kept, Path) else kept
        self.name = self.engine.name
        self.ended_changes = 0  # committed or not
        self._parsed: dict[str, tuple[_JobRows, JobRecord]] = {}
        """Jobs as they were read last: a standby parses those that have changed."""
        mark = 1024 + secrets.randbelow(64512) if mark is None else mark
        try:
            self._open(fabric, mark)
        except NotLeaderError:  # another process has made it at the same time
            self._open(fabric, mark)

    def _open(self, fabric: str, mark: int) -> None:
        """Open the store, and make it if there is none. Raises StoreError."""
        try:
            self._db = self.engine.open(TABLES)
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"{self.name}: {error}") from error
        facts: dict[str, str | int] = {
            "fabric": fabric,
            "mark": mark,
            "term": 0,
            "key": secrets.token_hex(KEY_BYTES),
        }
        if None not in map(self._fact, ("schema", *facts)):
            self.expect_schema()  # and no change, which would wait for one of the leader on a slow disk
            return
        with self.change():
            self.expect_schema()
            for name, value in facts.items():
                self._default(name, value)

    def close(self) -> None:
        self._db.close()
        self.engine.close()

    @contextmanager
    def change(self) -> Iterator[None]:
        """A transaction, committed as a whole or not at all. Raises StoreError if it cannot be kept."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self.engine.commit(self._db)
            except BaseException:
                self._roll_back()
                raise
        except sqlite3.Error as error:
            raise StoreError(f"{self.name}: {error}") from error
        finally:
            self.ended_changes += 1

    def _roll_back(self) -> None:
        if self._db.in_transaction:  # a full disk may have ended it
            self._db.execute("ROLLBACK")

    # ---- versions --------------------------------------------------------------------------------

    @property
    def is_final(self) -> bool:
        """Whether the version before cannot use the store any more."""
        return bool(self._fact("schema") == SCHEMA)

    def expect_schema(self) -> None:
        """Check that this version can use the store. A new store gets the schema of this version, within a change.
        Raises StoreError."""
        self._default("schema", SCHEMA)
        found = self._fact("schema")
        if found not in (SCHEMA_BEFORE, SCHEMA):
            raise StoreError(f"{self.name} {OTHER_VERSION} (schema {found}, here {SCHEMA})")

    def expect_final(self, what: str) -> None:
        """Raises NotFinalError, which names `what`, while the version before may use the store."""
        if not self.is_final:
            raise NotFinalError(
                f"{what} needs a store of schema {SCHEMA}, and {self.name} is kept for the version before. Once you do "
                "not go back to that version: `netfold controller finalize STATE`"
            )

    def finalize(self) -> None:
        """Give the store the schema of this version, within a change. The version before refuses it from then on."""
        self._set("schema", SCHEMA)

    # ---- the leader ------------------------------------------------------------------------------

    @property
    def primary(self) -> str:
        """The address where the leader serves, or served last; "" if none has published it."""
        return str(self._fact("primary") or "")

    @property
    def primary_tokens(self) -> str:
        """The digest of the tokens that the leader accepts, or the last one accepted; "" if none has published it."""
        return str(self._fact("primary_tokens") or "")

    def set_primary(self, address: str, tokens: str, leads_since: float = 0.0) -> None:
        """Publish the address of the leader, the digest of its `tokens`, and when it began to lead, within a change."""
        self._set("leads_since", leads_since)
        self._set("primary", address)
        self._set("primary_tokens", tokens)

    def version(self) -> int:
        """A number that differs whenever another process has changed the store. Raises StoreError."""
        try:
            return self.engine.version(self._db)
        except sqlite3.Error as error:
            raise StoreError(f"{self.name}: {error}") from error

    async def follow(self) -> bool:
        """Bring the store to what another process has changed. Return whether no process leads. Raises StoreError."""
        change = await asyncio.to_thread(self.engine.changes)
        return change(self._db)

    def stand_by(self, address: str, progress: Progress) -> None:
        """Note that this process stands by, as `StoreEngine.stand_by`."""
        self.engine.stand_by(address, progress)

    async def users(self) -> StoreUsers:
        """The other controllers and the servers of the store. Raises StoreError."""
        return await asyncio.to_thread(self.engine.users)

    def try_lead(self, progress: Progress) -> bool:
        """Keep other processes from leading, as `StoreEngine.try_lead`."""
        return self.engine.try_lead(self._db, progress)

    @property
    def leads_since(self) -> float:
        """When the leader at `primary` began to lead, by its wall clock; 0 if a version before did not write it."""
        return float(self._fact("leads_since", 0))

    # ---- the fabric ------------------------------------------------------------------------------

    @property
    def fabric(self) -> str:
        """The text of the fabric, with all numbers (stored_fabric.py)."""
        return str(self._fact("fabric"))

    @property
    def numbers(self) -> str:
        """The numbers of all names that the fabric has or had; "" for the first fabric."""
        return str(self._fact("numbers") or "")

    def set_fabric(self, fabric: str, numbers: str) -> None:
        """Replace the fabric, within a change."""
        self._set("fabric", fabric)
        self._set("numbers", numbers)

    # ---- numbers ---------------------------------------------------------------------------------

    @property
    def mark(self) -> int:
        """The tree number of management packets, chosen when the store was made."""
        return int(self._fact("mark"))

    @property
    def key(self) -> bytes:
        """The key that the tokens of members are made of, chosen when the store was made."""
        return bytes.fromhex(self._fact("key"))

    def number(self, name: str) -> int:
        """The last number handed out under a name; initially 0."""
        return int(self._fact(name, 0))

    def set_number(self, name: str, value: int) -> None:
        """Set the last number handed out under a name, within a change."""
        self._set(name, value)

    # ---- jobs ------------------------------------------------------------------------------------

    def jobs(self) -> list[JobRecord]:
        """All jobs, in the order of submission. Raises StoreError for one that this version cannot read."""
        rows: dict[str, _JobRows] = {}
        for name, body in self._rows("SELECT name, body FROM jobs ORDER BY seq"):
            rows[name] = _JobRows(body, {}, {})
        for job, host, body in self._rows("SELECT job, host, body FROM members"):
            if job in rows:
                rows[job].members[host] = body
        for job, host, body in self._rows("SELECT job, host, body FROM queue_pairs"):
            if job in rows:
                rows[job].queue_pairs[host] = body
        known = self._parsed
        self._parsed = {
            name: known[name] if name in known and known[name][0] == row else (row, self._job(row))
            for name, row in rows.items()
        }
        return [job for _, job in self._parsed.values()]

    def _job(self, rows: _JobRows) -> JobRecord:
        """Parse a job with what its members have written since. Raises StoreError."""
        job = self._read(JobRecord, rows.body)
        if rows.members:
            job = _with_members(job, {h: self._read(Member, body) for h, body in rows.members.items()})
        if rows.queue_pairs:
            pairs = {h: self._read(QueuePairs, body) for h, body in rows.queue_pairs.items()}
            job = _with_queue_pairs(job, pairs)
        return job

    def _read(self, kind: type[Record], body: str) -> Record:
        """Parse a stored record. Raises StoreError."""
        try:
            return kind.model_validate_json(body)
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(f"{self.name} {OTHER_VERSION} ({error})") from error

    def put(self, job: JobRecord) -> None:
        """Write the job, and delete jobs that ended long ago."""
        self._db.execute(
            "INSERT INTO jobs VALUES (?, ?, ?, ?) ON CONFLICT (name) DO UPDATE"
            " SET seq = excluded.seq, over = excluded.over, body = excluded.body",
            (job.name, job.seq, job.state.is_terminal, job.model_dump_json()),
        )
        for table in ("members", "queue_pairs"):
            self._db.execute(f"DELETE FROM {table} WHERE job = ?", (job.name,))
        if job.state.is_terminal:
            self._db.execute(
                "DELETE FROM jobs WHERE over AND seq NOT IN"
                " (SELECT seq FROM jobs WHERE over ORDER BY seq DESC LIMIT ?)",
                (HISTORY,),
            )

    def put_member(self, job: str, member: Member) -> None:
        """Write one member of a job, so that the record of a large job is not written again for each member that
        joins."""
        row = (job, member.host, member.model_dump_json())
        self._db.execute("INSERT OR REPLACE INTO members VALUES (?, ?, ?)", row)

    def put_queue_pairs(self, job: JobRecord, registered: QueuePairs) -> None:
        """Write what one member of a job has registered, so that the record of a large job is not written again for
        each member that registers. The version before reads it in the record alone."""
        if not self.is_final:
            self.put(job)
            return
        row = (job.name, registered.host, registered.model_dump_json())
        self._db.execute("INSERT OR REPLACE INTO queue_pairs VALUES (?, ?, ?)", row)

    # ---- withdrawn elements ----------------------------------------------------------------------

    def withdrawals(self) -> list[Withdrawal]:
        """The elements that operators have withdrawn, by name. Raises StoreError for one that this version cannot
        read."""
        rows = self._rows("SELECT body FROM withdrawals ORDER BY element")
        return [self._read(Withdrawal, body) for (body,) in rows]

    def put_withdrawal(self, withdrawal: Withdrawal) -> None:
        """Write the intent for an element, within a change."""
        row = (withdrawal.element, withdrawal.model_dump_json())
        self._db.execute("INSERT OR REPLACE INTO withdrawals VALUES (?, ?)", row)

    def delete_withdrawal(self, element: str) -> None:
        """Give an element back, within a change."""
        self._db.execute("DELETE FROM withdrawals WHERE element = ?", (element,))

    # ---- programs of switches --------------------------------------------------------------------

    @property
    def has_live_jobs(self) -> bool:
        return bool(self._rows("SELECT 1 FROM jobs WHERE NOT over LIMIT 1"))

    def switch_programs(self) -> dict[str, SwitchProgram]:
        """The programs that switches have to run, as far as they are known."""
        rows = self._rows("SELECT switch, digest, was_rolled_out FROM switch_programs")
        return {switch: SwitchProgram(digest, bool(was)) for switch, digest, was in rows}

    def program(self, digest: str) -> StoredProgram:
        """The program of a digest. Raises StoreError for one that this version cannot read."""
        try:
            [(name, p4info, blob, abilities)] = self._rows(
                "SELECT name, p4info, blob, abilities FROM programs WHERE digest = ?", digest
            )
            return StoredProgram(name, p4info, zlib.decompress(blob), Program.model_validate_json(abilities))
        except (TypeError, ValueError, zlib.error) as error:
            raise StoreError(f"{self.name}: program {digest[:12]} cannot be read: {error}") from error

    def put_program(self, program: StoredProgram) -> None:
        """Write a program, within a change."""
        abilities, blob = program.abilities.model_dump_json(), zlib.compress(program.blob)
        row = (program.digest, program.name, program.p4info, blob, abilities)
        self._db.execute("INSERT OR IGNORE INTO programs VALUES (?, ?, ?, ?, ?)", row)

    def put_switch_program(self, switch: str, program: SwitchProgram) -> None:
        """Note the program that a switch has to run, within a change."""
        row = (switch, program.digest, program.was_rolled_out)
        self._db.execute("INSERT OR REPLACE INTO switch_programs VALUES (?, ?, ?)", row)

    def forget_unused_programs(self) -> None:
        """Delete the programs that no switch has to run, within a change."""
        self._db.execute("DELETE FROM programs WHERE digest NOT IN (SELECT digest FROM switch_programs)")

    @property
    def rollout(self) -> RolloutRecord | None:
        """The last rollout. Raises StoreError for one that this version cannot read."""
        body = self._fact("rollout")
        return None if body is None else self._read(RolloutRecord, body)

    def put_rollout(self, rollout: RolloutRecord) -> None:
        """Write the last rollout, within a change."""
        self._set("rollout", rollout.model_dump_json())

    # ---- usage of tenants ------------------------------------------------------------------------

    def usage(self) -> list[TenantUsage]:
        """The usage of all tenants that ever held something. Raises StoreError for one that this version cannot
        read."""
        rows = self._rows("SELECT body FROM tenants ORDER BY tenant")
        return [self._read(TenantUsage, body) for (body,) in rows]

    def put_usage(self, usage: TenantUsage) -> None:
        """Write the usage of a tenant, within a change."""
        row = (usage.tenant, usage.model_dump_json())
        self._db.execute("INSERT OR REPLACE INTO tenants VALUES (?, ?)", row)

    def delete_usage(self, tenant: str) -> None:
        """Forget the usage of a tenant, within a change."""
        self._db.execute("DELETE FROM tenants WHERE tenant = ?", (tenant,))

    # ---- epochs ----------------------------------------------------------------------------------

    def epochs(self, switch: str) -> dict[int, int]:
        """The greatest epoch that each block of slots has seen."""
        return dict(self._rows("SELECT block, epoch FROM epochs WHERE switch = ?", switch))

    def use_slots(self, used: Mapping[str, Iterable[Range]], epoch: int) -> None:
        """Note that ranges are used in an epoch, which makes a new revision of each switch's slots."""
        rows = [(s, b, epoch) for s, ranges in used.items() for r in ranges for b in r.blocks]
        self._db.executemany("INSERT OR REPLACE INTO epochs VALUES (?, ?, ?)", rows)
        term = int(self._fact("term"))
        for switch in used:
            [(last,)] = self._rows("SELECT max(number) FROM revisions WHERE switch = ?", switch)
            row = (switch, term, (last or 0) + 1)
            self._db.execute("INSERT OR REPLACE INTO revisions VALUES (?, ?, ?)", row)
            self._db.execute(
                "DELETE FROM revisions WHERE switch = ? AND term NOT IN"
                " (SELECT term FROM revisions WHERE switch = ? ORDER BY term DESC LIMIT ?)",
                (switch, switch, KNOWN_TERMS),
            )

    def revisions(self, switch: str) -> dict[int, int]:
        """The last revision of the switch's slots in each term in which they were used."""
        return dict(self._rows("SELECT term, number FROM revisions WHERE switch = ?", switch))

    def registers_empty(self, switch: str, blocks: Iterable[int] | None = None) -> None:
        """Note that the registers of the switch (of all blocks or of some) are zero, so that their epochs count from
        the beginning."""
        if blocks is None:
            self._db.execute("DELETE FROM epochs WHERE switch = ?", (switch,))
        else:
            rows = [(switch, b) for b in blocks]
            self._db.executemany("DELETE FROM epochs WHERE switch = ? AND block = ?", rows)

    # ---- rows and facts -------------------------------------------------------------------------

    def _rows(self, query: str, *values: str) -> list[Any]:
        """The answer to a query. Raises StoreError if the database cannot be read."""
        try:
            return self._db.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise StoreError(f"{self.name}: {error}") from error

    def _fact(self, name: str, default: int | None = None) -> Any:
        rows = self._rows("SELECT value FROM facts WHERE name = ?", name)
        return rows[0][0] if rows else default

    def _set(self, name: str, value: str | float) -> None:
        self._db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))

    def _default(self, name: str, value: str | int) -> None:
        if self._fact(name) is None:
            self._set(name, value)


def _with_members(job: JobRecord, newer: Mapping[str, Member]) -> JobRecord:
    """The job with the changes of its members that were written after it."""
    return job.model_copy(update={"members": tuple(newer.get(m.host, m) for m in job.members)})


def _with_queue_pairs(job: JobRecord, newer: Mapping[str, QueuePairs]) -> JobRecord:
    """The job with what its members registered after it was written."""
    others = (e for e in job.queue_pairs if e.host not in newer)
    return job.model_copy(update={"queue_pairs": (*others, *newer.values())})
