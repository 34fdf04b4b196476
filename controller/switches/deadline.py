# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Provides a deadline for an answer. A process that was suspended, or whose event loop is late, finds deadlines over
before it has read the answers that arrived: a late answer is not missing."""

from __future__ import annotations

import asyncio
from types import TracebackType

LATE_S = 0.5
"""Lateness of a timer, in seconds, that indicates a process that was suspended: messages have not been read yet."""


def lateness(late_s: float, seconds: float) -> float:
    """The grace of a timer of `seconds` that fires `late_s` after its time; 0: it fired in time."""
    return min(late_s, seconds) if late_s > LATE_S else 0.0


class Deadline:
    """A context that raises TimeoutError at the deadline, `seconds` after it was entered. If the event loop is late at
    that time, the deadline moves by the same lateness, at most by `seconds`."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._timeout = asyncio.timeout(None)
        self._timer: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> Deadline:
        await self._timeout.__aenter__()
        self._set(self._seconds)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await self._timeout.__aexit__(kind, error, trace)

    def extend(self, seconds: float) -> None:
        """Move the deadline to `seconds` from now, unless it is over or was not entered."""
        if self._timer is not None and not self._timeout.expired():
            self._timer.cancel()
            self._seconds = seconds
            self._set(seconds)

    def _set(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_at(loop.time() + seconds, self._fire, loop.time() + seconds)

    def _fire(self, due: float) -> None:
        if grace := lateness(asyncio.get_running_loop().time() - due, self._seconds):
            self._set(grace)
        else:
            self._timeout.reschedule(due)
