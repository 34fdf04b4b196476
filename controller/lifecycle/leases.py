# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Keeps leases of members. A heartbeat moves the end of a lease; its timer checks the end when it fires, so that
heartbeats set and cancel no timers."""

from __future__ import annotations

import asyncio

from netfold.controller.lifecycle.events import EventBus, LeaseExpired
from netfold.controller.lifecycle.member_status import Holder
from netfold.controller.switches.deadline import lateness

GRACE_S = 0.2
"""Grace after a lease, because the controller may read a heartbeat late. A process that was suspended finds timers due
before it has read the heartbeats that arrived: the grace is longer by the lateness of the timer, at most by a lease. A
timer of a grace that is late itself gives another grace."""


class Leases:
    """Publishes LeaseExpired once for a lease that was not renewed in time (event loop's clock)."""

    def __init__(self, events: EventBus) -> None:
        self._events = events
        self._leases: dict[Holder, tuple[float, float]] = {}
        """The end and the length of each lease, in seconds."""
        self._timers: dict[Holder, asyncio.TimerHandle] = {}
        """One timer for each lease, due at the end of the lease or earlier, or at the end of its grace."""
        self._is_stopped = False

    def stop(self) -> None:
        """End all leases, and take no more: the controller ends, and the next one has leases of its own."""
        self._is_stopped = True
        for holder in list(self._leases):
            self.end(*holder)

    def renew(self, job: str, host: str, seconds: float) -> None:
        if self._is_stopped:
            return
        loop, holder = asyncio.get_running_loop(), (job, host)
        end = loop.time() + seconds
        self._leases[holder] = (end, seconds)
        timer = self._timers.get(holder)
        if timer is None:
            self._timers[holder] = loop.call_at(end, self._look, holder)
        elif end < timer.when():
            timer.cancel()
            self._timers[holder] = loop.call_at(end, self._look, holder)

    def end(self, job: str, host: str) -> None:
        if self._leases.pop((job, host), None) is not None:
            self._timers.pop((job, host)).cancel()

    def end_job(self, job: str) -> None:
        for holder in [h for h in self._leases if h[0] == job]:
            self.end(*holder)

    @property
    def holders(self) -> frozenset[Holder]:
        return frozenset(self._leases)

    def held(self, job: str, host: str) -> bool:
        return (job, host) in self._leases

    def _look(self, holder: Holder) -> None:
        if not self._was_renewed(holder):
            loop = asyncio.get_running_loop()
            end, seconds = self._leases[holder]
            self._give_grace(holder, GRACE_S + min(loop.time() - end, seconds))

    def _give_grace(self, holder: Holder, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._timers[holder] = loop.call_later(seconds, self._fire, holder, loop.time() + seconds)

    def _fire(self, holder: Holder, due: float) -> None:
        if self._was_renewed(holder):
            return
        if grace := lateness(asyncio.get_running_loop().time() - due, self._leases[holder][1]):
            self._give_grace(holder, grace)
        else:
            del self._leases[holder], self._timers[holder]
            self._events.publish(LeaseExpired(*holder))

    def _was_renewed(self, holder: Holder) -> bool:
        """Whether the end of the lease has moved into the future; if so, its timer is set again."""
        loop, (end, _) = asyncio.get_running_loop(), self._leases[holder]
        if end <= loop.time():
            return False
        self._timers[holder] = loop.call_at(end, self._look, holder)
        return True
