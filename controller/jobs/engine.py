# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The interface of what keeps a store, and the engine that keeps it in a file of SQLite. etcd_engine.py has another
one."""

from __future__ import annotations

import asyncio
import fcntl
import functools
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Protocol


class StoreError(Exception):
    """The store cannot be used; the message has the reason and a remedy."""


class NotLeaderError(StoreError):
    """Another process has written to the store, which is not this controller's any more."""


class StoreEngine(Protocol):
    """Keeps the changes of a database, each one as a whole or not at all. `name` stands in errors. `lost` is set once
    another process has taken the store over."""

    @property
    def name(self) -> str: ...

    @property
    def lost(self) -> asyncio.Event: ...

    def open(self, tables: str) -> sqlite3.Connection:
        """The database with what is stored, and with `tables` (statements that make missing ones). Raises StoreError,
        OSError and sqlite3.Error."""

    def commit(self, database: sqlite3.Connection) -> None:
        """End the transaction of the database, and keep its changes. After an error the caller rolls back, and a later
        process may find the changes or not. Raises StoreError and sqlite3.Error."""

    def try_lead(self) -> Callable[[], None] | None:
        """Keep other processes from leading, and return what lets them again; None while another one leads. Raises
        OSError."""

    def close(self) -> None: ...


class FileEngine:
    """Keeps a store in the file at `path`, which is opened or created for this user only. A change is synced to disk.
    Other processes of the machine may read it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = str(path)
        self.lost = asyncio.Event()
        """Never set: the process with the lock has the file."""

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

    def try_lead(self) -> Callable[[], None] | None:
        lock = lock_of(self.path)
        return None if lock is None else functools.partial(os.close, lock)

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
