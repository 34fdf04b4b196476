# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Work beside the event loop's main line: tasks that nobody awaits and timers. None of their exceptions is lost."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Coroutine

log = logging.getLogger(__name__)

NO_JOB = ""

LATE_S = 0.5
"""A timer that fires so much too late belongs to a process that was held up: it has not heard what came meanwhile."""


class Tasks:
    """All that is under way; `stop` ends it. What a task or timer raises is logged with its trace, and then handed
    to its `broke`, which puts what the task was for into a defined state."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._timers: defaultdict[str, set[asyncio.TimerHandle]] = defaultdict(set)

    @property
    def under_way(self) -> frozenset[asyncio.Task[None]]:
        return frozenset(self._tasks)

    @property
    def timers(self) -> int:
        return sum(len(t) for t in self._timers.values())

    def spawn(
        self,
        work: Coroutine[None, None, None],
        what: str,
        broke: Callable[[Exception], None] = lambda error: None,
    ) -> None:
        """Start `work`; `what` names it in the log."""
        task = asyncio.create_task(_guarded(work, what, broke), name=what)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def later(self, seconds: float, call: Callable[..., None], *args: object, job: str = NO_JOB) -> None:
        """A timer, of a job if one is named: `forget` ends it with the job. It waits once more, no longer than before,
        for as long as the process was held up at its end."""
        self._set(seconds, seconds, call, args, job)

    def _set(
        self, seconds: float, more: float, call: Callable[..., None], args: tuple[object, ...], job: str
    ) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + seconds
        timer: asyncio.TimerHandle

        def fire() -> None:
            self._drop(job, timer)
            late = loop.time() - due
            if more and late > LATE_S:
                self._set(min(late, more), 0.0, call, args, job)
                return
            try:
                call(*args)
            except Exception:  # the last guard: one job's timer must not be the loop's trouble
                log.exception("a timer broke: %s%s", call.__name__, args)

        timer = loop.call_at(due, fire)
        self._timers[job].add(timer)

    def forget(self, job: str) -> None:
        """The job is over: its timers end."""
        for timer in self._timers.pop(job, ()):
            timer.cancel()

    def stop(self) -> None:
        for job in list(self._timers):
            self.forget(job)
        for task in self._tasks:
            task.cancel()

    def _drop(self, job: str, timer: asyncio.TimerHandle) -> None:
        self._timers[job].discard(timer)
        if not self._timers[job]:
            del self._timers[job]


async def _guarded(work: Coroutine[None, None, None], what: str, broke: Callable[[Exception], None]) -> None:
    try:
        await work
    except Exception as error:  # the last guard of a task that nobody awaits: said aloud, and handed on
        log.exception("%s broke", what)
        try:
            broke(error)
        except Exception:  # nobody is left to hear of it but the log
            log.exception("and so did what should follow")
