# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Who is still there: a timer for each member, set anew by every heartbeat."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from netfold.controller.lifecycle.presence import Holder

SECOND_LOOK_S = 0.2
"""A process that was held up finds its timers due before it has read the heartbeats that came in meanwhile."""


class Leases:
    """Calls `expired(job, host)` once when a lease has run out. The event loop's clock is the clock."""

    def __init__(self, expired: Callable[[str, str], None]) -> None:
        self._expired = expired
        self._timers: dict[Holder, asyncio.TimerHandle] = {}

    def renew(self, job: str, host: str, seconds: float) -> None:
        self._set(seconds, self._look_again, job, host)

    def end(self, job: str, host: str) -> None:
        timer = self._timers.pop((job, host), None)
        if timer is not None:
            timer.cancel()

    def end_job(self, job: str) -> None:
        for holder in [h for h in self._timers if h[0] == job]:
            self.end(*holder)

    def held(self, job: str, host: str) -> bool:
        return (job, host) in self._timers

    def _set(self, seconds: float, call: Callable[[str, str], None], job: str, host: str) -> None:
        self.end(job, host)
        self._timers[job, host] = asyncio.get_running_loop().call_later(seconds, call, job, host)

    def _look_again(self, job: str, host: str) -> None:
        self._set(SECOND_LOOK_S, self._fire, job, host)

    def _fire(self, job: str, host: str) -> None:
        del self._timers[job, host]
        self._expired(job, host)
