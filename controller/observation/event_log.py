# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The controller's events as texts with a time, until the recorder takes them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from netfold.controller.lifecycle.clock import Clock
from netfold.controller.lifecycle.events import (
    ElementsFailed,
    JobRunning,
    JobStranded,
    LeaseExpired,
    MaintenanceRequested,
)

MAX_WAITING = 1000


@dataclass(frozen=True)
class Occurrence:
    """`at`: seconds since 1970; `of`: what it concerns."""

    at: float
    event: str
    text: str
    of: dict[str, Any] = field(default_factory=dict)


class EventLog:
    """core.py subscribes it. Without a recorder it keeps the last events only."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: deque[Occurrence] = deque(maxlen=MAX_WAITING)

    def take(self) -> list[Occurrence]:
        """Return the events since the last call."""
        taken = list(self._waiting)
        self._waiting.clear()
        return taken

    def on_job_running(self, event: JobRunning) -> None:
        self._add("job_running", "all switches hold its entries", job=event.job)

    def on_job_stranded(self, event: JobStranded) -> None:
        self._add("job_stranded", event.reason, job=event.job)

    def on_lease_expired(self, event: LeaseExpired) -> None:
        self._add("lease_expired", f"{event.host} sent no heartbeat", job=event.job, host=event.host)

    def on_elements_failed(self, event: ElementsFailed) -> None:
        failed = event.elements.names
        self._add("elements_failed", event.reason or ", ".join(failed), elements=failed)

    def on_maintenance(self, event: MaintenanceRequested) -> None:
        self._add("maintenance", event.text, elements=list(event.elements))

    def _add(self, event: str, text: str, **of: Any) -> None:
        self._waiting.append(Occurrence(self._clock.wall_s(), event, text, of))
