# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Threads of a simulated process. One that waits leaves the event loop to the world, as a call that blocks does: its
greenlet goes on once it is woken. What the process's own event loop runs is one of them."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from greenlet import getcurrent, greenlet

from tests.simulation.loop import ProcessKilledError

if TYPE_CHECKING:
    from tests.simulation.process import Process


class Thread(greenlet):
    """`is_loop`: it runs the event loop of its process, which stands still while it waits."""

    def __init__(self, process: Process, work: Callable[[], object], *, is_loop: bool) -> None:
        super().__init__(self._work)
        self.process = process
        self.is_loop = is_loop
        self._do = work
        self._waits = 0
        self._is_waiting = True

    def _work(self) -> None:
        try:
            self._do()
        except ProcessKilledError:
            return

    def go_on(self) -> None:
        """Run it until it waits or ends."""
        self._is_waiting = False
        self.parent = getcurrent()
        with _no_task():
            self.switch()

    def kill(self) -> None:
        """It waits, and its process has died."""
        self.parent = getcurrent()
        with _no_task():
            self.throw(ProcessKilledError(self.process.name))

    def wait(self, seconds: float, begin: Callable[[Callable[[], None]], None] = lambda wake: None) -> None:
        """Wait until `begin`'s argument is called by the world, and no longer than so."""
        process, loop = self.process, asyncio.get_running_loop()
        process.check()
        self._waits += 1
        number, self._is_waiting = self._waits, True

        def wake() -> None:
            if self._is_waiting and number == self._waits:
                process.wake(self)

        timer = loop.call_later(seconds, wake, context=contextvars.Context())
        begin(wake)
        process.waiting[self] = None
        try:
            assert self.parent is not None
            with _no_task():
                self.parent.switch()
        finally:
            del process.waiting[self]
            timer.cancel()
        process.check()


@contextmanager
def _no_task() -> Iterator[None]:
    """Interrupt the running task, so that others can run in the event loop."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    if task is not None:
        asyncio.tasks._leave_task(loop, task)
    try:
        yield
    finally:
        if task is not None:
            asyncio.tasks._enter_task(loop, task)


def current_thread() -> Thread:
    thread = getcurrent()
    assert isinstance(thread, Thread), "the world waits for nothing"
    return thread


class ThreadEvent:
    """See etcd_runtime.LeaseEvent."""

    def __init__(self) -> None:
        self._is_set = False
        self._wakes: list[Callable[[], None]] = []

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True
        for wake in self._wakes:
            asyncio.get_running_loop().call_soon(wake, context=contextvars.Context())
        self._wakes = []

    def wait(self, timeout: float) -> bool:
        if not self._is_set:
            current_thread().wait(timeout, self._wakes.append)
        return self._is_set
