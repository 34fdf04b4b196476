# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A process whose event loop stands still ends, so that a standby can lead: the kernel returns the lock of a process
that ended, and of no other (docs/decisions/0048). Writes to the store and to the log block the loop, so they count."""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from netfold.controller.service.systemd import notify_systemd, systemd_watchdog_s

WATCHDOG_S = 30.0
"""Default. The longest step of a busy loop takes seconds: SQLite alone waits 5 s for another process's lock."""

STDERR = 2  # sys.stderr has a lock, which the loop may hold
HUNG = 1
"""Exit code."""

CHECKS = 10
"""In a row without a beat. A clock would count the time in which the whole process was stopped, too."""

MAX_PERIOD_S = 1.0
DUMP_S = 1.0
"""For the trace: the log may be what blocks the loop."""


@contextmanager
def watched_loop(limit_s: float) -> Iterator[None]:
    """Within, the process ends if its running event loop stands still for `limit_s`; 0: it does not. systemd's watchdog
    gets its beats."""
    watchdog = _Watchdog(limit_s)
    beating = asyncio.create_task(watchdog.beat())
    if limit_s:
        threading.Thread(target=watchdog.check, name="watchdog", daemon=True).start()
    try:
        yield
    finally:
        watchdog.ended.set()
        beating.cancel()


class _Watchdog:
    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._beats = 0
        self.ended = threading.Event()

    async def beat(self) -> None:
        waits = [w / CHECKS for w in (self._limit_s, systemd_watchdog_s()) if w]
        while True:
            self._beats += 1
            notify_systemd("WATCHDOG=1")
            await asyncio.sleep(min(MAX_PERIOD_S, *waits))

    def check(self) -> None:
        missed, beats = 0, self._beats
        while missed < CHECKS:
            if self.ended.wait(self._limit_s / CHECKS):
                return
            missed = missed + 1 if beats == self._beats else 0
            beats = self._beats
        dump = threading.Thread(target=self._dump, daemon=True)
        dump.start()
        dump.join(DUMP_S)
        os._exit(HUNG)

    def _dump(self) -> None:
        with contextlib.suppress(OSError):
            os.write(
                STDERR, f"netfold controller: the event loop stood still for {self._limit_s:g} s:\n".encode()
            )
            faulthandler.dump_traceback(STDERR)
