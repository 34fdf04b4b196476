# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Where the store of a world is, and its backup: in files, or in a simulated etcd."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from pathlib import Path
from typing import Protocol

from netfold.controller.jobs.engine import StoreEngine
from netfold.controller.jobs.etcd_client import EtcdAddress
from netfold.controller.jobs.etcd_engine import EtcdEngine
from netfold.controller.jobs.etcd_runtime import EtcdRuntime
from netfold.controller.jobs.store import TABLES, Store
from tests.simulation.etcd import MEMBERS, PREFIX, SimulatedEtcd
from tests.simulation.etcd_channel import direct

MARK = 40_000
"""The store's management tree, which it would draw by itself."""

ADDRESS = EtcdAddress(MEMBERS, PREFIX)


class Stores(Protocol):
    """The operations of the world itself on the store, beside all controllers."""

    @property
    def exists(self) -> bool: ...

    @property
    def has_backup(self) -> bool: ...

    def open(self, fabric: str) -> Store: ...

    def back_up(self) -> None: ...

    def open_backup(self, fabric: str) -> Store: ...

    def restore(self) -> None:
        """Restore the store while no controller runs."""

    def rows(self) -> dict[str, int]:
        """Count the rows of each table."""


class FileStores:
    def __init__(self, folder: Path) -> None:
        self._path = folder / "state.db"
        self._backup = folder / "backup.db"

    @property
    def exists(self) -> bool:
        return self._path.exists()

    @property
    def has_backup(self) -> bool:
        return self._backup.exists()

    def open(self, fabric: str) -> Store:
        return Store(self._path, fabric, mark=MARK)

    def back_up(self) -> None:
        with (
            contextlib.closing(sqlite3.connect(self._path)) as found,
            contextlib.closing(sqlite3.connect(self._backup)) as copy,
        ):
            found.backup(copy)

    def open_backup(self, fabric: str) -> Store:
        return Store(self._backup, fabric, mark=MARK)

    def restore(self) -> None:
        for suffix in ("", "-wal", "-shm"):
            self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)
        shutil.copyfile(self._backup, self._path)

    def rows(self) -> dict[str, int]:
        with contextlib.closing(sqlite3.connect(self._path)) as store:
            return _counted(store)


class EtcdStores:
    def __init__(self) -> None:
        self.etcd = SimulatedEtcd()
        self._backup: SimulatedEtcd | None = None

    @property
    def exists(self) -> bool:
        return self.etcd.has_keys

    @property
    def has_backup(self) -> bool:
        return self._backup is not None

    def open(self, fabric: str) -> Store:
        return Store(self._engine(self.etcd), fabric, mark=MARK)

    def back_up(self) -> None:
        self._backup = self.etcd.copy()

    def open_backup(self, fabric: str) -> Store:
        assert self._backup is not None
        return Store(self._engine(self._backup), fabric, mark=MARK)

    def restore(self) -> None:
        assert self._backup is not None
        self.etcd.restore(self._backup)

    def rows(self) -> dict[str, int]:
        return _counted(self.read())

    def read(self) -> sqlite3.Connection:
        """The store as a controller finds it that starts now."""
        return self._engine(self.etcd).open(TABLES)

    def _engine(self, etcd: SimulatedEtcd) -> StoreEngine:
        return EtcdEngine(ADDRESS, direct(etcd))


def engine_on(runtime: EtcdRuntime, number: int, max_keys: int) -> EtcdEngine:
    """The engine of the process of a number, which it would draw by itself."""
    engine = EtcdEngine(ADDRESS, runtime)
    engine._process, engine.max_keys = f"{number:08x}", max_keys
    return engine


def _counted(store: sqlite3.Connection) -> dict[str, int]:
    tables = [n for (n,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return {t: store.execute(f"SELECT count(*) FROM {t}").fetchone()[0] for t in tables}
