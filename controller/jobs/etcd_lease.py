# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The lease by which a controller leads with a store in etcd. A thread renews it while the process goes on."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from netfold.controller.jobs.engine import Progress, StoreError
from netfold.controller.jobs.etcd_client import EtcdClient
from netfold.controller.jobs.etcd_runtime import RUNTIME, EtcdRuntime
from netfold.controller.jobs.progress import ProgressChecks

LEASE_S = 2
"""The least that etcd grants with its default election timeout."""
RENEWALS = 6
"""Attempts to renew a lease within its time."""
CHECKS = 5 * RENEWALS
"""Consecutive checks without progress, ten seconds, after which the lease is not renewed until there is some. A busy
machine takes six for a turn of the loop that begins to lead with 1,000 jobs: with less, no process could."""
LATE_S = 5.0
"""Time after the end by the own clock in which etcd may still have the lease, as while its members elect a leader. Then
this process stops leading: another one may lead, and members of jobs have to find it."""
RETRY_S = 0.05


class EtcdLease:
    """A lease from its creation on. `on_lost` is called in the thread once it is over. Raises StoreError."""

    def __init__(
        self,
        client: EtcdClient,
        progress: Progress,
        on_lost: Callable[[EtcdLease], None],
        runtime: EtcdRuntime = RUNTIME,
    ) -> None:
        self._client = client
        self._checks = ProgressChecks(progress)
        self._on_lost = on_lost
        self._now = runtime.now
        self._ended = runtime.event()
        sent = self._now()
        self.number, seconds = client.grant(LEASE_S)
        self._period_s = seconds / RENEWALS
        self._until = sent + seconds
        self._thread = runtime.start("lease", self._keep)

    @property
    def is_held(self) -> bool:
        """Whether no other process can lead, by the own clock: etcd counts from when a renewal arrives, and this clock
        from when it was sent."""
        return not self._ended.is_set() and self._now() < self._until

    def release(self) -> None:
        """End the lease, also one that etcd may have ended: while it is renewed, no process can lead."""
        self._ended.set()
        with suppress(StoreError):  # it ends by itself
            self._client.revoke(self.number)

    def _keep(self) -> None:
        pause_s = self._period_s
        try:
            while not self._ended.wait(pause_s):
                pause_s = self._period_s
                if self._checks.check() < CHECKS:
                    pause_s = self._renew()
                if not self._ended.is_set() and self._now() >= self._until + LATE_S:
                    self._lose()
        except BaseException:  # as without memory or threads: nothing renews it any more
            if not self._ended.is_set():
                self._lose()
                raise

    def _renew(self) -> float:
        """Renew it once, and return the time until the next attempt."""
        sent = self._now()
        seconds = self._client.renew(self.number)
        if seconds is None:
            return RETRY_S
        if seconds == 0:
            self._lose()
        self._until = max(self._until, sent + seconds)
        return self._period_s

    def _lose(self) -> None:
        self._ended.set()
        self._on_lost(self)
