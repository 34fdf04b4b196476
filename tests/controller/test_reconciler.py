# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""When a switch's entries are read back."""

from __future__ import annotations

import asyncio
from typing import cast

from netfold.controller.switches.desired_contents import DesiredContents, DesiredContentsInbox
from netfold.controller.switches.entries import Contents
from netfold.controller.switches.install import WriteBatch
from netfold.controller.switches.reconciler import InstalledState, Reconciler
from netfold.controller.switches.switch_health import HealthReporter

AUDIT_S = 30.0
TIMEOUT_S = 20.0


class _Empty:
    """See InstalledState: a switch that wants no entries."""

    has_store_marker = True

    def __init__(self) -> None:
        self.contents: Contents = {}

    async def read(self) -> int:
        return 0

    async def write(self, batch: WriteBatch) -> None:
        raise AssertionError(f"nothing differs, and {batch} is written")

    def count_differences(self, desired: Contents) -> int:
        return len(desired)


def test_desired_contents_that_change_every_second_do_not_delay_audits():
    async def scenario() -> int:
        now_s, is_applied = 0.0, asyncio.Event()
        inbox = DesiredContentsInbox()
        reporter = HealthReporter("s1", "127.0.0.1:1", lambda name: is_applied.set(), lambda: now_s)

        async def registers_lost(switch: str) -> None:
            raise AssertionError(f"{switch} has lost nothing")

        reconciler = Reconciler(
            cast(InstalledState, _Empty()),
            inbox,
            reporter,
            registers_lost,
            lambda switch, revision: True,
            AUDIT_S,
            lambda: now_s,
        )
        running = asyncio.create_task(reconciler.run())
        for version in range(1, int(2 * AUDIT_S) + 2):
            now_s += 1.0
            is_applied.clear()
            inbox.put(DesiredContents(version, {}))
            await is_applied.wait()
        running.cancel()
        await asyncio.wait([running])
        return reporter.health.audits

    assert asyncio.run(asyncio.wait_for(scenario(), TIMEOUT_S)) == 2
