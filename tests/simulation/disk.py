# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The disk under the real store: full for a while, or the machine dies at a commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any

from netfold.controller.jobs.engine import StoreError
from netfold.controller.jobs.records import JobRecord
from netfold.controller.jobs.store import Store
from tests.simulation.loop import ProcessKilledError
from tests.simulation.process import Process

OnWritten = Callable[[JobRecord | None, JobRecord], None]


class CommitFault(Enum):
    """A fault of a commit."""

    FULL = "the disk is full"
    KILLED_BEFORE = "the controller is killed before the commit"
    KILLED_AFTER = "the controller is killed after the commit"


class Disk:
    def __init__(self) -> None:
        self.is_full = False
        self.commits = 0
        self._faults: dict[int, tuple[CommitFault, Callable[[], None]]] = {}

    def after(self, number: int, fault: CommitFault, then: Callable[[], None]) -> None:
        """The `number`th commit from now on meets a fault; `then` is called with it."""
        self._faults[self.commits + number] = (fault, then)

    def clear(self) -> None:
        self._faults.clear()

    def next_fault(self) -> tuple[CommitFault | None, Callable[[], None]]:
        self.commits += 1
        if self.is_full:
            return CommitFault.FULL, lambda: None
        return self._faults.pop(self.commits, (None, lambda: None))


class SimulatedStore:
    """See JobStore. All else is the real store's. `on_written` gets each job that a commit has changed: as it was, and
    as it is; as it was is None for one that this process has not written before, or that had ended."""

    def __init__(self, store: Store, disk: Disk, process: Process, on_written: OnWritten) -> None:
        self._store = store
        self._disk = disk
        self._process = process
        self._on_written = on_written
        self._jobs = {j.name: j for j in store.jobs()}
        self._changed: dict[str, JobRecord] = {}

    def put(self, job: JobRecord) -> None:
        self._changed[job.name] = job
        self._store.put(job)

    def __getattr__(self, name: str) -> Any:
        self._process.check()
        return getattr(self._store, name)

    @contextmanager
    def change(self) -> Iterator[None]:
        self._process.check()
        self._changed = {}
        fault, then = self._disk.next_fault()
        with self._store.change():
            yield
            self._process.check()
            if fault is CommitFault.FULL:
                raise StoreError("state.db: database or disk is full")
            if fault is CommitFault.KILLED_BEFORE:
                then()
                raise ProcessKilledError(self._process.name)
        for name, job in self._changed.items():
            self._on_written(self._jobs.get(name), job)
        changed = self._jobs | self._changed
        self._jobs = {name: job for name, job in changed.items() if not job.state.is_terminal}
        if fault is CommitFault.KILLED_AFTER:
            then()
            raise ProcessKilledError(self._process.name)
