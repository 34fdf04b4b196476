# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Ends a process whose event loop stands still, so that a standby can lead: the kernel releases the lock of a process
only when it has ended (docs/decisions/0048). Writes to the store and to the log block the loop, so they count."""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from netfold.controller.jobs.progress import ProgressChecks

WATCHDOG_S = 30.0
"""Default limit in seconds. A change of the store takes at most 5 s if another process has locked it."""

STDERR = 2  # sys.stderr has a lock, which the loop may hold
HUNG = 1
"""Exit code of a process that the watchdog ended."""

CHECKS = 10
"""Number of consecutive checks without a beat."""

MAX_PERIOD_S = 0.25
"""Seconds between two beats. The checks of a lease are more frequent than those of a watchdog."""
DUMP_S = 1.0
"""Seconds for writing the trace: the log may be what blocks the loop."""


@contextmanager
def watched_loop(limit_s: float, notifier: SystemdNotifier) -> Iterator[Watchdog]:
    """Watch the running event loop within the context: the process ends if the loop stands still for `limit_s`; 0: it
    does not. The watchdog of systemd gets its beats."""
    watchdog = Watchdog(limit_s, notifier)
    beating = asyncio.create_task(watchdog.beat())
    if limit_s:
        threading.Thread(target=watchdog.check, name="watchdog", daemon=True).start()
    try:
        yield watchdog
    finally:
        watchdog.ended.set()
        beating.cancel()


class Watchdog:
    def __init__(self, limit_s: float, notifier: SystemdNotifier) -> None:
        self._limit_s = limit_s
        self._notifier = notifier
        self._beats = 0
        self._beaten_at = time.monotonic()
        self.progress: Callable[[], int] = lambda: 0
        """Counts steps within a turn of the loop, which is progress too: a turn has as many changes of the store as
        timers are due, and each may wait for the store's lock."""
        self.ended = threading.Event()

    def idle_s(self) -> float:
        """Seconds since the loop has last turned."""
        return time.monotonic() - self._beaten_at

    async def beat(self) -> None:
        waits = [w / CHECKS for w in (self._limit_s, systemd_watchdog_s()) if w]
        while True:
            self._beats += 1
            self._beaten_at = time.monotonic()
            self._notifier.beat()
            await asyncio.sleep(min((MAX_PERIOD_S, *waits)))

    def check(self) -> None:
        checks = ProgressChecks(self.counts)
        while checks.missed < CHECKS:
            if self.ended.wait(self._limit_s / CHECKS):
                return
            checks.check()
        try:
            dump = threading.Thread(target=_write, args=(self._trace(),), daemon=True)
            dump.start()
            dump.join(DUMP_S)
        finally:  # without memory, descriptors or threads, too
            os._exit(HUNG)

    def counts(self) -> tuple[int, int]:
        """A value that differs once the loop has gone on."""
        return self._beats, self.progress()

    def _trace(self) -> bytes:
        """Take the trace by a file in memory: faulthandler writes with the lock of the interpreter held, and a log that
        blocks would keep it."""
        with os.fdopen(os.memfd_create("trace"), "rb") as file:
            faulthandler.dump_traceback(file.fileno())
            file.seek(0)
            trace = file.read()
        return f"netfold controller: the event loop stood still for {self._limit_s:g} s:\n".encode() + trace


def _write(text: bytes) -> None:
    with contextlib.suppress(OSError):
        os.write(STDERR, text)


class SystemdNotifier:
    """Notifies without blocking: systemd may be slow, and a message lost. Each beat repeats the announcement. Its
    socket is opened once, as a process may run out of descriptors."""

    def __init__(self) -> None:
        address = os.environ.get("NOTIFY_SOCKET", "")
        # "@" stands for the first byte of a name in the abstract namespace (sd_notify(3)).
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) if address else None
        if self._socket is not None:
            self._socket.setblocking(False)
        self._announced = ""

    def announce(self, status: str) -> None:
        """Announce that the process serves."""
        self._announced = f"READY=1\nSTATUS={status}\n"
        self.beat()

    def beat(self) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.sendto(f"{self._announced}WATCHDOG=1".encode(), self._address)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()


def systemd_watchdog_s() -> float:
    """WatchdogSec of the unit; 0 without one."""
    microseconds = os.environ.get("WATCHDOG_USEC", "")
    return int(microseconds) / 1e6 if microseconds.isdecimal() else 0.0
