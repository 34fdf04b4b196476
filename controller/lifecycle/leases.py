# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Keeps leases of members, which heartbeats renew."""

from __future__ import annotations

from functools import partial

from netfold.controller.lifecycle.events import EventBus, LeaseExpired
from netfold.controller.lifecycle.member_status import Holder
from netfold.controller.switches.deadline import Countdown

GRACE_S = 0.2
"""Grace after a lease, because a heartbeat may be late."""


class Leases:
    """Publishes LeaseExpired once for a lease that was not renewed in time."""

    def __init__(self, events: EventBus) -> None:
        self._events = events
        self._leases: dict[Holder, Countdown] = {}
        self._is_stopped = False

    def stop(self) -> None:
        """End all leases, and take no more: the controller ends, and the next one has leases of its own."""
        self._is_stopped = True
        for holder in list(self._leases):
            self.end(*holder)

    def renew(self, job: str, host: str, seconds: float) -> None:
        if self._is_stopped:
            return
        holder, length_s = (job, host), seconds + GRACE_S
        lease = self._leases.get(holder)
        if lease is not None and lease.seconds == length_s:
            lease.restart()
        else:
            self.end(job, host)
            self._leases[holder] = Countdown(length_s, partial(self._expire, holder))

    def end(self, job: str, host: str) -> None:
        if (lease := self._leases.pop((job, host), None)) is not None:
            lease.cancel()

    def end_job(self, job: str) -> None:
        for holder in [h for h in self._leases if h[0] == job]:
            self.end(*holder)

    @property
    def holders(self) -> frozenset[Holder]:
        return frozenset(self._leases)

    def held(self, job: str, host: str) -> bool:
        return (job, host) in self._leases

    def _expire(self, holder: Holder) -> None:
        del self._leases[holder]
        self._events.publish(LeaseExpired(*holder))
