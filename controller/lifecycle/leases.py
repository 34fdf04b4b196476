# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Leases of members: a timer each, restarted by every heartbeat."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from netfold.controller.lifecycle.events import EventBus, LeaseExpired
from netfold.controller.lifecycle.member_status import Holder

GRACE_S = 0.2
"""Grace after a lease. A process that was suspended finds timers due before it has read the heartbeats that arrived."""


class Leases:
    """Publishes LeaseExpired once for a lease that was not renewed in time (event loop's clock)."""

    def __init__(self, events: EventBus) -> None:
        self._events = events
        self._timers: dict[Holder, asyncio.TimerHandle] = {}

    def renew(self, job: str, host: str, seconds: float) -> None:
        self._set(seconds, self._wait_grace, job, host)

    def end(self, job: str, host: str) -> None:
        timer = self._timers.pop((job, host), None)
        if timer is not None:
            timer.cancel()

    def end_job(self, job: str) -> None:
        for holder in [h for h in self._timers if h[0] == job]:
            self.end(*holder)

    @property
    def holders(self) -> frozenset[Holder]:
        return frozenset(self._timers)

    def held(self, job: str, host: str) -> bool:
        return (job, host) in self._timers

    def _set(self, seconds: float, call: Callable[[str, str], None], job: str, host: str) -> None:
        self.end(job, host)
        self._timers[job, host] = asyncio.get_running_loop().call_later(seconds, call, job, host)

    def _wait_grace(self, job: str, host: str) -> None:
        self._set(GRACE_S, self._fire, job, host)

    def _fire(self, job: str, host: str) -> None:
        del self._timers[job, host]
        self._events.publish(LeaseExpired(job, host))
