# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Runs tasks that no caller awaits, timers, and changes that a full disk delays. Their exceptions are logged and
handled."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Coroutine

from netfold.controller.jobs.engine import StoreError
from netfold.controller.switches.deadline import Countdown

log = logging.getLogger(__name__)

NO_JOB = ""

STORE_RETRY_S = 1.0
"""Seconds between two attempts of a change that the store refuses: a full disk has no event for free space."""


class BackgroundTasks:
    """Runs tasks, timers and store changes until `stop` ends them. An exception of a task is logged with its trace and
    passed to its `on_error`, which restores a defined state."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._timers: defaultdict[str, set[Countdown]] = defaultdict(set)
        self._retries: set[tuple[object, ...]] = set()
        self._is_stopped = False

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
        on_error: Callable[[Exception], None] = lambda error: None,
    ) -> None:
        """Start `work`; `what` names it in the log."""
        if self._is_stopped:
            work.close()
            return
        task = asyncio.create_task(_guarded(work, what, on_error), name=what)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: work.close())  # it may have been canceled before it began

    def call_later(self, seconds: float, call: Callable[..., None], *args: object, job: str = NO_JOB) -> None:
        """Start a timer, which is a countdown; `forget` ends those of a job."""
        if self._is_stopped:
            return

        def fire() -> None:
            self._drop(job, timer)
            try:
                call(*args)
            except StoreError as error:
                self._retry(error, call, args, job)
            except Exception:  # a job's timer must not end the loop
                log.exception("a timer failed: %s%s", call.__name__, args)

        timer = Countdown(seconds, fire)
        self._timers[job].add(timer)

    def persist(self, call: Callable[..., None], *args: object, job: str = NO_JOB) -> None:
        """Call now, and repeat the call every STORE_RETRY_S as long as the store refuses the change. This is for
        changes that nothing may refuse: a lease that expired, a switch that is ready. `forget` ends the attempts of a
        job."""
        try:
            call(*args)
        except StoreError as error:
            self._retry(error, call, args, job)

    def _retry(
        self, error: StoreError, call: Callable[..., None], args: tuple[object, ...], job: str
    ) -> None:
        log.error("%s is tried again in %g s: %s", call.__name__.strip("_"), STORE_RETRY_S, error)
        if (call, args, job) not in self._retries:
            self._retries.add((call, args, job))
            self.call_later(STORE_RETRY_S, self._try_again, call, args, job, job=job)

    def _try_again(self, call: Callable[..., None], args: tuple[object, ...], job: str) -> None:
        self._retries.discard((call, args, job))
        self.persist(call, *args, job=job)

    def forget(self, job: str) -> None:
        """End the timers of an ended job."""
        for timer in self._timers.pop(job, ()):
            timer.cancel()
        self._retries = {r for r in self._retries if r[-1] != job}

    def stop(self) -> None:
        """End all, and start no more: calls of the service may still be under way."""
        self._is_stopped = True
        for job in list(self._timers):
            self.forget(job)
        for task in self._tasks:
            task.cancel()

    def _drop(self, job: str, timer: Countdown) -> None:
        self._timers[job].discard(timer)
        if not self._timers[job]:
            del self._timers[job]


async def _guarded(
    work: Coroutine[None, None, None], what: str, on_error: Callable[[Exception], None]
) -> None:
    try:
        await work
    except Exception as error:  # the task is not awaited
        log.exception("%s failed", what)
        try:
            on_error(error)
        except Exception:  # only the log is left
            log.exception("and so did its error handler")
