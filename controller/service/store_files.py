# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Backs up, restores, copies, verifies and finalizes a store in a file or in etcd. A leader may use it meanwhile, but
for a restore and a copy."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from netfold.controller.jobs.engine import FileEngine, StoreError, lock_of
from netfold.controller.jobs.etcd_engine import GROUPS, EtcdEngine, engine_of
from netfold.controller.jobs.program_records import RolloutState
from netfold.controller.jobs.records import JobRecord
from netfold.controller.jobs.store import SCHEMA, TABLES, Store
from netfold.controller.lifecycle.allocation import ranges_of
from netfold.controller.lifecycle.capacity import background_of, fits
from netfold.controller.lifecycle.job_registry import resolved_with
from netfold.controller.lifecycle.tree_numbers import switches_of
from netfold.controller.switches.failed_elements import WithdrawalError, element_named, link_name
from netfold.protocol.listing import listing
from netfold.topologies.fabric import Fabric, FabricError
from netfold.topologies.spec import fabric_from_spec

State = str | Path
"""A store, as `engine_of` takes it."""

_EXISTS = "exists; name a place without a store"


class StoreInUseError(StoreError):
    """A controller leads with the store."""


@dataclass(frozen=True)
class VerifiedStore:
    """A store that was verified. `faults`: the reasons why a controller could not continue with it."""

    schema: int
    fabric: str
    jobs: int
    live_jobs: int
    faults: tuple[str, ...]


def verify(path: State) -> VerifiedStore:
    """Check a store or a backup of one: the file or the keys, the schema, each record, and the placements in its
    fabric. It stays as it is. Raises StoreError for what is no store of this version or of the one before."""
    with tempfile.TemporaryDirectory(prefix="netfold-verify-") as folder:
        copy = Path(folder) / "store.db"
        _copy(path, copy)
        try:
            return _verified(path, copy)
        except sqlite3.Error as error:
            raise StoreError(f"{path} is damaged: {error}") from error
        except StoreError as error:
            raise StoreError(str(error).replace(str(copy), str(path))) from error


def _verified(path: State, copy: Path) -> VerifiedStore:
    """Check the copy of a store. Raises StoreError, sqlite3.Error."""
    with closing(sqlite3.connect(copy)) as database:
        [(found,), *_] = database.execute("PRAGMA integrity_check").fetchall()
        if found != "ok":
            raise StoreError(f"{path} is damaged: {found}")
        _expect_store(database, path)
    with closing(Store(copy, "")) as store:
        jobs = store.jobs()
        live = [j for j in jobs if not j.state.is_terminal]
        try:
            fabric = fabric_from_spec(store.fabric)
        except FabricError as error:
            raise StoreError(f"{path}: its fabric cannot be read: {error}") from error
        _read_programs(store)
        faults = (*_withdrawn_faults(store, fabric), *_job_faults(live, fabric))
        return VerifiedStore(store.number("schema"), fabric.name, len(jobs), len(live), faults)


def _read_programs(store: Store) -> None:
    """Raises StoreError for a program that a switch has to run, or may get back, and that cannot be read."""
    digests = {known.digest for known in store.switch_programs().values()}
    rollout = store.rollout
    if rollout is not None and rollout.state is RolloutState.RUNNING:
        digests |= {rollout.digest, *rollout.previous.values()}
    for digest in digests:
        store.program(digest)


def back_up(state: State, copy: Path) -> VerifiedStore:
    """Copy a store to a new file, also while a controller writes, and verify the copy. Raises StoreError."""
    if os.path.lexists(copy):
        raise StoreError(f"{copy} exists; name a new file")
    try:
        _copy(state, copy)
        with closing(sqlite3.connect(copy)) as made:
            # The copy is one file then, and can be read where nothing can be written.
            made.execute("PRAGMA journal_mode = DELETE")
    except (StoreError, sqlite3.Error) as error:
        with suppress(OSError):
            copy.unlink()
        raise StoreError(f"{copy} is not written: {error}") from error
    return verify(copy)


def restore(backup: Path, state: State, *, is_new: bool = False) -> VerifiedStore:
    """Put a backup in the place of a store, which may be missing; `is_new`: one in etcd has to be. A backup with faults
    is refused. Raises StoreError; StoreInUseError while a controller leads with the store."""
    engine = engine_of(state)
    if isinstance(engine, FileEngine) and _is_same(backup, engine.path):
        raise StoreError(f"{backup} is the store itself")
    verdict = verify(backup)
    if verdict.faults:
        raise StoreError(f"{backup} is not restored: {listing(verdict.faults)}")
    if isinstance(engine, FileEngine):
        _replace_file(engine.path, backup)
    else:
        _replace_keys(engine, backup, verdict, is_new=is_new)
    return verdict


def _is_same(one: Path, other: Path) -> bool:
    return one.exists() and other.exists() and one.samefile(other)


def _replace_file(file: Path, backup: Path) -> None:
    """Replace a store in a file, which may be damaged. Raises StoreError."""
    with _without_leader(file):
        if file.exists() and not _is_database(file):
            for suffix in ("", "-wal", "-shm"):
                file.with_name(file.name + suffix).unlink(missing_ok=True)
        _copy(backup, file)


def _replace_keys(engine: EtcdEngine, backup: Path, verdict: VerifiedStore, *, is_new: bool) -> None:
    """Replace all rows of a store in etcd, which may be damaged. Raises StoreError."""
    if verdict.schema != SCHEMA:
        raise StoreError(f"{engine.name}: no version before reads a store there; finalize {backup} first")
    try:
        with closing(engine), closing(engine.open(TABLES, is_replaced=True)) as database:
            if is_new and not engine.was_empty:
                raise StoreError(f"{engine.name} {_EXISTS}")
            if not engine.take(database, object):
                raise _in_use(engine.name)
            database.execute("ATTACH ? AS backup", (str(backup),))
            database.execute("BEGIN")
            for table in GROUPS:
                database.execute(f"INSERT INTO main.{table} SELECT * FROM backup.{table}")
            engine.commit(database)
    except sqlite3.Error as error:
        raise StoreError(f"{engine.name}: {error}") from error


def copy(source: State, target: State) -> VerifiedStore:
    """Copy a store to a place without one: a file or an etcd. Raises StoreError; StoreInUseError while a controller
    leads with the file of the source."""
    with _existing(source) as database:
        _expect_store(database, source)
    found, new = engine_of(source), engine_of(target)
    if isinstance(new, FileEngine) and os.path.lexists(new.path):
        raise StoreError(f"{target} {_EXISTS}")
    with ExitStack() as stack:
        if isinstance(found, FileEngine):
            stack.enter_context(_without_leader(found.path))
        made = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="netfold-copy-")), "store.db")
        try:
            back_up(source, made)
            return restore(made, target, is_new=True)
        except StoreInUseError:
            raise
        except StoreError as error:
            raise StoreError(str(error).replace(str(made), str(source))) from error


def finalize(state: State) -> None:
    """Give a store the schema of this version, also while a controller leads. Raises StoreError."""
    with _existing(state) as database:
        _expect_store(database, state)
    with closing(Store(engine_of(state), "")) as store:
        if not store.is_final:
            with store.change():
                store.finalize()


@contextmanager
def _without_leader(state: Path) -> Iterator[None]:
    """Keep controllers from leading. Raises StoreError."""
    try:
        state.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = lock_of(state)
    except OSError as error:
        raise StoreError(f"{state}: {error.strerror}") from error
    if lock is None:
        raise _in_use(state)
    try:
        yield
    finally:
        os.close(lock)


def _in_use(state: State) -> StoreInUseError:
    return StoreInUseError(f"a controller leads with {state}: stop it and its standbys first")


def _is_database(path: Path) -> bool:
    try:
        with _existing(path) as database:
            database.execute("PRAGMA schema_version").fetchone()
    except StoreError:
        return False
    return True


@contextmanager
def _existing(state: State) -> Iterator[sqlite3.Connection]:
    """The database of a store, whose file exists. Raises StoreError."""
    engine = engine_of(state)
    try:
        if isinstance(engine, FileEngine):
            opened = sqlite3.connect(f"{engine.path.absolute().as_uri()}?mode=ro", uri=True)
        else:
            opened = engine.open(TABLES)
        with closing(engine), closing(opened) as database:
            yield database
    except sqlite3.Error as error:
        raise StoreError(f"{engine.name}: {error}") from error


def _copy(state: State, copy: Path) -> None:
    """Copy a database that may be written meanwhile, for this user only. A database that is there is replaced in one
    transaction, also for a standby that has it open. Raises StoreError."""
    with _existing(state) as found:
        try:
            os.close(os.open(copy, os.O_WRONLY | os.O_CREAT, 0o600))
        except OSError as error:
            raise StoreError(f"{copy} cannot be written: {error.strerror}") from error
        with closing(sqlite3.connect(copy)) as to:
            found.backup(to)


def _expect_store(database: sqlite3.Connection, state: State) -> None:
    """Raises StoreError."""
    try:
        found = database.execute("SELECT value FROM facts WHERE name = 'schema'").fetchone()
    except sqlite3.Error as error:
        raise StoreError(f"{state} is not a store of netfold: {error}") from error
    if found is None:
        raise StoreError(f"{state} is not a store of netfold: it has no schema")


def _withdrawn_faults(store: Store, fabric: Fabric) -> Iterator[str]:
    for withdrawal in store.withdrawals():
        try:
            element_named(fabric, withdrawal.element)
        except WithdrawalError as error:
            yield f"a withdrawn element: {error}"


def _job_faults(live: list[JobRecord], fabric: Fabric) -> Iterator[str]:
    """Reasons why jobs that have not ended do not fit the fabric."""
    slots: Counter[tuple[str, int]] = Counter()
    numbers: Counter[tuple[str, int]] = Counter()
    nodes, links = {e.name for e in fabric.elements}, {frozenset((k.a, k.b)) for k in fabric.links}
    for job in live:
        missing = sorted({*job.nodes, *(m.host for m in job.members)} - nodes)
        lost = sorted(link_name(link) for p in job.placements for link in p.links - links)
        if missing or lost:
            yield f"job {job.name}: the fabric has no {listing([*missing, *lost])}"
            continue
        try:
            resolved_with(job, fabric)
        except FabricError as error:
            yield f"job {job.name}: {error}"
        if job.placement is not None and job.state.is_installed:
            others = background_of(other for other in live if other is not job and nodes >= other.nodes)
            if not fits(fabric, job.placement.plan, others):
                yield f"job {job.name}: its rates do not fit beside those of others"
        held = (found for p in job.placements for found in ranges_of(p).items())
        # A set, because both placements of a job that moves may have the same slots.
        slots.update({(switch, block) for switch, ranges in held for r in ranges for block in r.blocks})
        for placement in job.placements:
            for tree, of_plan in zip(placement.trees, placement.plan.trees, strict=True):
                numbers.update((switch, tree.tree) for switch in switches_of(fabric, of_plan))
    for what, found in (("block of slots", slots), ("tree number", numbers)):
        for (switch, number), count in found.items():
            if count > 1:
                yield f"switch {switch}: {what} {number} is given {count} times"
