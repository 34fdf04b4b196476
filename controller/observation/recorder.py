# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Records the controller: what an observer sees, and the events, become lines, in memory and, if wanted, in a file."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable
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
from netfold.controller.observation.observer import JobChange, Observer
from netfold.controller.recording.history import MAX_BYTES, History
from netfold.controller.recording.lines import change_line, event_line, state_line
from netfold.controller.recording.recording_file import RecordingFile

PERIOD_S = 0.5
"""Loads and counters change without an event of the controller."""
MIN_PAUSE_S = 0.02
"""Changes of one moment are one line."""

SEGMENT_S = 60.0
"""Age of a segment after which another starts, if anything has changed."""

SEGMENT_BYTES = 4 << 20

MAX_WAITING = 1000


class Recorder:
    """`run` records until it is canceled: each `period_s`, and at once when a job or switch has changed."""

    def __init__(
        self,
        fabric: str,
        observer: Observer,
        events: EventLog,
        clock: Clock,
        wait_for_change: Callable[[], Awaitable[object]],
        period_s: float = PERIOD_S,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        """`fabric`: the line that describes it. `max_bytes`: of the lines in memory."""
        self.history = History(max_bytes)
        self.file: RecordingFile | None = None
        self._fabric = fabric
        self._observer = observer
        self._events = events
        self._clock = clock
        self._wait_for_change = wait_for_change
        self._period_s = period_s
        self._segment_at = 0.0

    async def run(self) -> None:
        try:
            while True:
                self.record()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._period_s):
                        await self._wait_for_change()
                    await asyncio.sleep(MIN_PAUSE_S)
        finally:
            if self.file is not None:
                self.file.close()

    def record(self) -> None:
        """Look once, and write what has changed."""
        changes = self._observer.look()
        now = self._clock.wall_s()
        lines = [event_line(o.at, o.event, o.text, **o.of) for o in self._events.take()]
        lines += [line for change in self._observer.job_changes if (line := _job_event(now, change))]
        is_old = now - self._segment_at > SEGMENT_S or self.history.segment_size > SEGMENT_BYTES
        if not self.history.end or (changes and is_old):
            self._start_segment(now)
        elif changes:
            lines.append(change_line(now, changes))
        self._write(lines)

    def _start_segment(self, now: float) -> None:
        self._segment_at = now
        segment = [self._fabric, state_line(now, self._observer.state)]
        self.history.start_segment(segment)
        if self.file is not None:
            self.file.start_segment(segment)

    def _write(self, lines: list[str]) -> None:
        if not lines:
            return
        self.history.append(lines)
        if self.file is not None:
            self.file.append(lines)


def _job_event(now: float, change: JobChange) -> str | None:
    """The line of a job's new state or epoch."""
    before, job = change.before, change.now
    if before is not None and (before.state, before.epoch) == (job.state, job.epoch):
        return None
    what = f"{job.state}" if before is None or before.state != job.state else f"epoch {job.epoch}"
    text = f"{what}: {job.reason}" if job.reason else what
    is_epoch = before is None or before.epoch != job.epoch
    return event_line(now, "epoch" if is_epoch and job.epoch else "job", text, job=job.name, epoch=job.epoch)


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
