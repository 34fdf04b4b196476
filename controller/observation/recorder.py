# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Records the controller: what an observer sees becomes lines, in memory and, if wanted, in a file."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from netfold.controller.lifecycle.clock import Clock
from netfold.controller.observation.event_log import EventLog
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
