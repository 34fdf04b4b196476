# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Counts time down for answers and heartbeats. A process that was suspended, or whose event loop a commit has held up,
finds timers due before it has read what arrived: a late answer is not missing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType

STEPS = 8
"""Steps of a countdown. Each ends in a turn of the event loop of its own, and a heartbeat is sent after a third of a
lease: it can be read in five turns at least."""


class Countdown:
    """Calls `call` once `seconds` are over, in equal steps. One that is late by more than its length counts as one,
    however late it is. So the time in which the loop stood still counts little, and a loop that is always late ends a
    countdown all the same."""

    def __init__(self, seconds: float, call: Callable[[], object]) -> None:
        self.seconds = seconds
        self._call = call
        self._loop = asyncio.get_running_loop()
        self._left = STEPS
        self._due = self._loop.time()
        self._restarted_at: float | None = None
        self._set()

    def restart(self) -> None:
        """Count from now on. No timer is set or canceled: heartbeats are many."""
        self._restarted_at = self._loop.time()

    def cancel(self) -> None:
        self._timer.cancel()

    def _set(self) -> None:
        now, step = self._loop.time(), self.seconds / STEPS
        self._due = self._due + step if self._due + step > now else now + step
        self._timer = self._loop.call_at(self._due, self._end_step)

    def _end_step(self) -> None:
        self._left -= 1
        if self._restarted_at is not None:
            self._left, self._due, self._restarted_at = STEPS, self._restarted_at, None
        if self._left:
            self._set()
        else:
            self._call()


class Deadline:
    """A context that raises TimeoutError at the deadline, a countdown of `seconds` after it was entered."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._timeout = asyncio.timeout(None)
        self._countdown: Countdown | None = None

    async def __aenter__(self) -> Deadline:
        await self._timeout.__aenter__()
        self._countdown = Countdown(self._seconds, self._end)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._countdown is not None:
            self._countdown.cancel()
        await self._timeout.__aexit__(kind, error, trace)

    def extend(self, seconds: float) -> None:
        """Move the deadline to `seconds` from now, unless it is over or was not entered."""
        if self._countdown is not None and not self._timeout.expired():
            self._countdown.cancel()
            self._countdown = Countdown(seconds, self._end)

    def _end(self) -> None:
        self._timeout.reschedule(asyncio.get_running_loop().time())
