# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Reports whether a switch is connected and has its desired contents."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

log = logging.getLogger(__name__)


@dataclass
class Health:
    """State of a session.

    ready       connected, and the contents are the desired ones of version `applied` or are being changed from them
    reached     the server answers; it may still be loading the pipeline
    error       why it is not ready, or why the last write failed
    preempted   another controller is primary: the switch runs, and takes no writes
    silent      the switch takes connections and has not answered in time: it hangs, or its machine is too busy
    since       when `ready`, `preempted` or `silent` last changed (event loop's clock)
    failed_at   when the connection, or an attempt to connect, last failed (event loop's clock)
    refusals    number of consecutive writes that the switch refused
    repaired    entries that differed when they were read
    converge_s  duration of the last writes
    """

    ready: bool = False
    reached: bool = False
    applied: int = 0
    error: str = "not connected yet"
    preempted: bool = False
    silent: bool = True
    since: float = field(default_factory=time.monotonic)
    failed_at: float = -math.inf
    refusals: int = 0
    repaired: int = 0
    converge_s: float = 0.0
    audits: int = 0


class HealthReporter:
    """Changes a switch's `health`; `on_change(name)` is called after each change of `ready` or `applied`. `now`: the
    event loop's clock. The log gets the failure of the first connection and of one that was ready, but not of each
    retry."""

    def __init__(
        self,
        name: str,
        address: str,
        on_change: Callable[[str], None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self.health = Health(since=now())
        self._address = address
        self._on_change = on_change
        self._now = now
        self._is_first = True

    def set_ready(self, version: int) -> None:
        health = self.health
        if not health.ready:
            health.since = self._now()
        health.ready, health.applied, health.error = True, version, ""
        health.preempted, health.silent, health.refusals = False, False, 0
        self._is_first = False
        self._on_change(self.name)

    def set_reached(self) -> None:
        """Note that the switch takes connections: it can now fail only by the time that it takes."""
        health = self.health
        if not health.silent:
            health.since = self._now()
        health.reached, health.silent, health.error = True, True, "it is connected, and not ready yet"

    def set_failed(self, error: str, *, preempted: bool = False, silent: bool = False) -> None:
        health = self.health
        health.failed_at = self._now()
        is_change = health.ready or (health.preempted, health.silent) != (preempted, silent)
        if is_change:
            health.since = health.failed_at
        if is_change or self._is_first:
            log.warning("%s (%s): %s", self.name, self._address, error)
        self._is_first = False
        health.ready, health.error, health.preempted, health.silent = False, error, preempted, silent
        self._on_change(self.name)
