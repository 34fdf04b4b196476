# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Which turns of an event loop its watchdog takes for standing still. test_processes.py has whole controllers."""

from __future__ import annotations

import subprocess
import sys

import pytest

LONG_TURN = """
import asyncio, time
from netfold.controller.service.watchdog import SystemdNotifier
from netfold.controller.service.watchdog import watched_loop

steps = []

async def main():
    with watched_loop(2.0, SystemdNotifier()) as watchdog:
        if {counts}:
            watchdog.progress = lambda: len(steps)
        await asyncio.sleep(0.1)
        for _ in range(10):
            time.sleep(0.5)
            steps.append(None)

asyncio.run(main())
"""


@pytest.mark.parametrize(("counts", "code"), [(True, 0), (False, 1)])
def test_a_turn_of_many_changes_is_progress_and_one_long_step_is_not(counts: bool, code: int):
    """As of timers that are due together while another process has locked the store."""
    done = subprocess.run(
        [sys.executable, "-c", LONG_TURN.format(counts=counts)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert ("in main" in done.stderr) == (code == 1)
