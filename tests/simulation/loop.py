# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""An event loop of virtual time. Time passes only when nothing is ready, a seed chooses which ready callback runs next,
and "threads" run in the loop after a delay."""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import math
import random
from collections.abc import Callable
from typing import Any

PROCESS: contextvars.ContextVar[Any] = contextvars.ContextVar("process", default=None)
"""The simulated process that a task or callback belongs to; None: the world around the processes."""

MAX_THREAD_S = 0.2
MAX_CHOICES = 8
"""Ready callbacks among which the seed chooses."""


class ProcessKilledError(BaseException):
    """Raised at a process that acts on the world after its death, so that it has no effect."""


class DeadlockError(Exception):
    """Nothing is ready, and no timer is set: what waits will wait for ever."""


class LoopClock:
    """See Clock; virtual."""

    def wall_s(self) -> float:
        return 1.7e9 + asyncio.get_running_loop().time()

    def monotonic_s(self) -> float:
        return asyncio.get_running_loop().time()


class VirtualLoop(asyncio.BaseEventLoop):
    """`reorder`: chance, for each callback, that it is not the next one in order that runs but any of those ready.
    `tick_s`: timers are due at multiples of it, so that much happens at the same instant; 0: at any time."""

    def __init__(self, seed: int, reorder: float, tick_s: float = 0.0) -> None:
        super().__init__()
        self._random = random.Random(f"order {seed}")
        self._reorder = reorder
        self.tick_s = tick_s
        self._virtual_now = 0.0
        self.steps = 0
        self.tasks_made = 0
        self.set_exception_handler(self._on_exception)
        self.errors: list[str] = []
        self._urgent: list[Callable[[], None]] = []
        self._ready: Any
        self._stopping: bool
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._timers_set = 0

    def time(self) -> float:
        return self._virtual_now

    def suspend(self, seconds: float) -> None:
        """As of a process that was stopped: timers are due before what arrived has been read."""
        self._virtual_now += seconds

    def run_in_executor(self, executor: object, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        """A thread: runs at once, or after other tasks had their turns; its result comes later still."""
        future = self.create_future()
        before, after = self._random.uniform(0, MAX_THREAD_S), self._random.uniform(0, MAX_THREAD_S)

        def work() -> None:
            try:
                result = func(*args)
            except Exception as error:
                self.call_later(after, _set, future.set_exception, future, error)
            else:
                self.call_later(after, _set, future.set_result, future, result)

        process = PROCESS.get()
        self.call_later(before, work if process is None else lambda: process.work(work))
        return future

    def put_back(self, handles: list[asyncio.Handle]) -> None:
        """Queue again what a process could not run before."""
        self._ready.extendleft(reversed(handles))

    def call_next(self, call: Callable[[], None]) -> None:
        """Call it before anything else runs."""
        self._urgent.append(call)

    def run_process_only(self, process: object, is_over: Callable[[], bool]) -> None:
        """Run what is ready of one process, in order, until it is over or has nothing ready. For a process that was
        killed: its tasks unwind, while the world stands still."""
        while not is_over():
            mine = next((h for h in self._ready if h._context.get(PROCESS) is process), None)
            if mine is None:
                return
            self._ready.remove(mine)
            if not mine._cancelled:
                mine._run()

    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        """Timers of the same time are due in the order in which they were set."""
        if self.tick_s:
            when = math.ceil(when / self.tick_s) * self.tick_s
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        self._timers_set += 1
        heapq.heappush(self._timers, (when, self._timers_set, timer))
        return timer

    def drop_canceled_timers(self) -> None:
        """They are kept until their time, otherwise."""
        self._timers[:] = [t for t in self._timers if not t[2]._cancelled]
        heapq.heapify(self._timers)

    # ---- asyncio's own interface ----------------------------------------------------------------------

    def _run_once(self) -> None:
        """Runs until the loop is to stop."""
        timers, ready, urgent, draw = self._timers, self._ready, self._urgent, self._random.random
        while True:
            self.steps += 1
            while urgent:
                urgent.pop(0)()
            while timers and timers[0][2]._cancelled:
                heapq.heappop(timers)
            if not ready:
                if not timers:
                    raise DeadlockError("nothing is ready, and no timer is set")
                self._virtual_now = max(self._virtual_now, timers[0][0])
            while timers and timers[0][0] <= self._virtual_now:
                _, _, timer = heapq.heappop(timers)
                if not timer._cancelled:
                    owner = timer._context.get(PROCESS)
                    if owner is None or owner.is_alive:
                        ready.append(timer)
            if ready:
                if len(ready) > 1 and self._reorder and draw() < self._reorder:
                    ready.rotate(-self._random.randrange(min(len(ready), MAX_CHOICES)))
                handle = ready.popleft()
                if not handle._cancelled:
                    owner = handle._context.get(PROCESS)
                    if owner is None:
                        handle._run()
                    else:
                        owner.run(handle)
            if self._stopping:
                return

    def _write_to_self(self) -> None:
        pass

    def _process_events(self, event_list: object) -> None:
        pass

    def _on_exception(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, ProcessKilledError):
            return
        what = context.get("task") if error is None else error
        self.errors.append(f"{context.get('message')}: {what!r}")


def _set(call: Callable[[Any], None], future: asyncio.Future[Any], value: Any) -> None:
    if not future.done():
        call(value)
