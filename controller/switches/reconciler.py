# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Makes the contents of a connected switch equal to the desired ones, and keeps them so: reads the switch first, writes
the difference, then waits for new desired contents or for the next audit, which reads again."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import NoReturn

import finsy as fy

from netfold.controller.jobs.revisions import Revision
from netfold.controller.switches.base_entries import revisions_in
from netfold.controller.switches.connection import SwitchConnection
from netfold.controller.switches.desired_contents import DesiredContents, DesiredContentsInbox
from netfold.controller.switches.entries import Contents, Key, UnknownEntityError
from netfold.controller.switches.finsy_adapter import error_text, is_late
from netfold.controller.switches.install import WriteBatch, apply, count_differences, write_batches
from netfold.controller.switches.switch_health import HealthReporter

log = logging.getLogger(__name__)

MIN_RETRY_S, MAX_RETRY_S = 0.1, 1.0
"""Seconds between two attempts of writes that the switch refuses."""


class ForeignStateError(Exception):
    """The switch has contents that no controller of this store wrote: its pipeline has to be pushed again."""


class InstalledState:
    """State of a switch: `contents` are its contents as far as known. Methods raise fy.P4ClientError if the switch
    refuses."""

    def __init__(self, connection: SwitchConnection, marker: Key, management_tree: int) -> None:
        self.contents: Contents = {}
        self._connection = connection
        self._marker = marker
        self._management_tree = management_tree

    @property
    def has_store_marker(self) -> bool:
        """Whether a controller of this store wrote the contents."""
        return self._marker in self.contents

    @property
    def revisions(self) -> list[Revision]:
        """Revisions of the switch's slots that its entries name."""
        return revisions_in(self.contents, self._management_tree)

    def count_differences(self, desired: Contents) -> int:
        """The number of entries that differ."""
        return count_differences(self.contents, desired)

    async def read(self) -> int:
        """Read the contents, and return the number of entries that differ from the known ones. Raises
        ForeignStateError."""
        try:
            known, self.contents = self.contents, await self._connection.read()
        except UnknownEntityError as error:
            raise ForeignStateError(str(error)) from error
        return self.count_differences(known)

    async def write(self, batch: WriteBatch) -> None:
        await self._connection.write(batch)
        apply(self.contents, batch)


class Reconciler:
    """Reconciles a switch while its connection lasts. `on_registers_lost(switch)` is awaited before the first write
    into a switch whose registers are empty. `has_revision(switch, revision)`: whether the store has made this revision
    of its slots."""

    def __init__(
        self,
        installed: InstalledState,
        inbox: DesiredContentsInbox,
        reporter: HealthReporter,
        on_registers_lost: Callable[[str], Awaitable[None]],
        has_revision: Callable[[str, Revision], bool],
        audit_s: float,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._installed = installed
        self._inbox = inbox
        self._reporter = reporter
        self._on_registers_lost = on_registers_lost
        self._has_revision = has_revision
        self._audit_s = audit_s
        self._now = now
        self._audit_at = now() + audit_s

    async def adopt(self, *, was_pushed: bool) -> None:
        """Read the switch, and decide whether its registers can have sums of jobs of this store. Contents that exist
        right after a pipeline push (`was_pushed`) are drift. Raises ForeignStateError."""
        await self._installed.read()
        if self._installed.has_store_marker:
            self._check_revisions()
            desired = await self._inbox.newer_than(0)
            self._reporter.health.repaired += self._installed.count_differences(desired.contents)
            return
        if self._installed.contents and not was_pushed:
            raise ForeignStateError(f"{len(self._installed.contents)} entries are not of this store")
        await self._on_registers_lost(self._reporter.name)

    def _check_revisions(self) -> None:
        """Raises ForeignStateError if the slots of the switch have been used in epochs that the store does not know."""
        name = self._reporter.name
        for revision in self._installed.revisions:
            if not self._has_revision(name, revision):
                raise ForeignStateError("its entries are newer than this store, which is an older copy")

    async def run(self) -> NoReturn:
        """Reconcile until canceled. Raises ForeignStateError, fy.P4ClientError."""
        failures = 0
        while True:
            desired = await self._inbox.newer_than(0)
            try:
                await self._write(desired)
            except fy.P4ClientError as error:
                failures += 1
                await self._recover(error, desired, failures)
                continue
            failures = 0
            self._reporter.set_ready(desired.version)
            await self._wait(desired.version)

    async def _write(self, desired: DesiredContents) -> None:
        began = self._now()
        for batch in write_batches(self._installed.contents, desired.contents):
            await self._installed.write(batch)
            self._reporter.health.converge_s = self._now() - began

    async def _recover(self, error: fy.P4ClientError, desired: DesiredContents, failures: int) -> None:
        """Read the contents after the failed write, and wait until there are newer desired contents, or with
        exponential backoff."""
        health = self._reporter.health
        health.error, health.silent = error_text(error), is_late(error)
        health.refusals += not health.silent
        log.warning("%s: a write failed: %s", self._reporter.name, health.error)
        await self._installed.read()
        with suppress(TimeoutError):
            pause = min(MIN_RETRY_S * 2 ** (failures - 1), MAX_RETRY_S)
            async with asyncio.timeout(pause):
                await self._inbox.newer_than(desired.version)

    async def _wait(self, version: int) -> None:
        """Wait until there are newer desired contents, or an audit finds differences. Desired contents that change
        often do not delay audits."""
        while True:
            until_audit_s = self._audit_at - self._now()
            if until_audit_s > 0:
                with suppress(TimeoutError):
                    async with asyncio.timeout(until_audit_s):
                        await self._inbox.newer_than(version)
                        return
            await self._audit()
            newest = self._inbox.newest
            if newest is None or self._installed.count_differences(newest.contents):
                return

    async def _audit(self) -> None:
        health = self._reporter.health
        self._audit_at = self._now() + self._audit_s
        drift = await self._installed.read()
        health.audits += 1
        health.repaired += drift
        if drift:
            log.warning("%s: %d entries had drifted", self._reporter.name, drift)
        if not self._installed.has_store_marker:
            if self._installed.contents:
                raise ForeignStateError("the marker entry of this store is gone")
            await self._on_registers_lost(self._reporter.name)
