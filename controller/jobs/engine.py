# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The interface of what keeps a store, and the engine that keeps it in a file of SQLite. etcd_engine.py has another
one."""

from __future__ import annotations

import asyncio
import fcntl
import os
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


class StoreError(Exception):
    """The store cannot be used; the message has the reason and a remedy."""


class StoreUnavailableError(StoreError):
    """The store cannot be read or written now. A change that failed so may be made again."""


class NotLeaderError(StoreError):
    """This process does not lead with the store any more, and changes nothing in it."""


Progress = Callable[[], object]
"""Returns another value once the process has done something. One that hangs must not keep others from leading."""


@dataclass(frozen=True)
class StoreMember:
    """A server that keeps a store. `fault`: why it does not answer, or its alarms."""

    address: str
    version: str
    leads: bool
    fault: str


@dataclass(frozen=True)
class StoreUsers:
    """The addresses of the controllers that stand by, as far as they are known, and the servers of the store. `fault`:
    why no controller can lead once the leader has ended; "" if one can."""

    standbys: tuple[str, ...] = ()
    members: tuple[StoreMember, ...] = ()
    fault: str = ""


class StoreEngine(Protocol):
    """Keeps the changes of a database, each one as a whole or not at all. `name` stands in errors. `lost` is set once
    this process does not lead any more."""

    @property
    def name(self) -> str: ...

    @property
    def lost(self) -> asyncio.Event: ...

    @property
    def is_held(self) -> bool:
        """Whether no other process can lead now. Without it nothing may be written, to the store or to a switch."""

    def open(self, tables: str) -> sqlite3.Connection:
        """The database with what is stored, and with `tables` (statements that make missing ones). Raises StoreError,
        OSError and sqlite3.Error."""

    def commit(self, database: sqlite3.Connection) -> None:
        """End the transaction of the database, and keep its changes. After an error the caller rolls back, and a later
        process may find the changes or not. Raises StoreError and sqlite3.Error."""

    def changes(self) -> Callable[[sqlite3.Connection], bool]:
        """Read what other processes have changed, which a thread may do. The result brings the database to that, and
        returns whether no process leads; it raises StoreError for what cannot be read. Raises
        StoreUnavailableError."""

    @property
    def fault(self) -> str:
        """The fault that `StoreUsers` has, as it was at the last `changes`."""

    def version(self, database: sqlite3.Connection) -> int:
        """A number that differs whenever another process has changed the database."""

    def stand_by(self, address: str, progress: Progress) -> None:
        """Note that this process stands by, and where it serves ("": nowhere), until it leads or is released. Raises
        StoreError."""

    def users(self) -> StoreUsers:
        """Find out what `StoreUsers` has, which a thread may do. Raises StoreError."""

    def try_lead(self, database: sqlite3.Connection, progress: Progress) -> bool:
        """Keep other processes from leading, until `release`, or until there is no `progress`. False while another one
        leads. Raises OSError, StoreError."""

    def release(self) -> None:
        """Let other processes lead."""

    def close(self) -> None: ...


class FileEngine:
    """Keeps a store in the file at `path`, which is opened or created for this user only. A change is synced to disk.
    Other processes of the machine may read it, and one of them leads: the kernel keeps its lock until it ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = str(path)
        self.lost = asyncio.Event()
        """Never set: the process with the lock has the file."""
        self.is_held, self.fault = True, ""
        self._lock: int | None = None

    def open(self, tables: str) -> sqlite3.Connection:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        self.path.chmod(0o600)  # SQLite gives its other files the same rights
        database = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        database.executescript(tables)
        return database

    def commit(self, database: sqlite3.Connection) -> None:
        database.execute("COMMIT")

    def changes(self) -> Callable[[sqlite3.Connection], bool]:
        return lambda _: True

    def version(self, database: sqlite3.Connection) -> int:
        [(found,)] = database.execute("PRAGMA data_version").fetchall()
        return int(found)

    def stand_by(self, address: str, progress: Progress) -> None: ...

    def users(self) -> StoreUsers:
        return StoreUsers()

    def try_lead(self, database: sqlite3.Connection, progress: Progress) -> bool:
        lock = lock_of(self.path)
        if lock is not None:
            self._lock = lock
        return lock is not None

    def release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def close(self) -> None: ...


def lock_of(path: Path) -> int | None:
    """The descriptor of the lock that keeps other processes from leading with a store; None if one leads. A link to a
    store has the lock of the store."""
    lock = os.open(f"{os.path.realpath(path)}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock
