# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A simulated process of an operating system: it has tasks and threads, and it can be stopped or killed at any moment,
unnoticed by its code."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from greenlet import getcurrent

from tests.simulation.loop import PROCESS, ProcessKilledError, VirtualLoop
from tests.simulation.thread import Thread

Result = TypeVar("Result")

MAX_UNWINDING = 100
MIN_SWEEP = 64


class Process:
    """`killed` is set at its death. Whatever lies outside (disk, switches, sockets) has to call `check` first.
    `has_threads`: what it runs may wait, as in a call of etcd. `waiting` are its threads that wait."""

    def __init__(self, name: str, *, has_threads: bool = False) -> None:
        self.name = name
        self.has_threads = has_threads
        self.is_alive = True
        self.is_stopped = False
        self.is_hung = False
        self.waiting: dict[Thread, None] = {}
        self._woken: list[Thread] = []
        self._held: list[asyncio.Handle] = []
        self.killed = asyncio.Event()
        self._tasks: list[asyncio.Task[Any]] = []
        self._sweep_at = MIN_SWEEP
        self.context = contextvars.copy_context()
        self.context.run(PROCESS.set, self)

    def check(self) -> None:
        if not self.is_alive:
            raise ProcessKilledError(self.name)

    def spawn(self, work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
        return asyncio.get_running_loop().create_task(work, context=self.context)

    def own(self, task: asyncio.Task[Any]) -> None:
        """Called by the task factory for each task of the process. Those that are done are forgotten now and then."""
        self._tasks.append(task)
        if len(self._tasks) >= self._sweep_at:
            self._tasks = self.tasks
            self._sweep_at = max(MIN_SWEEP, 2 * len(self._tasks))

    @property
    def tasks(self) -> list[asyncio.Task[Any]]:
        return [t for t in self._tasks if not t.done()]

    # ---- threads --------------------------------------------------------------------------------------

    @property
    def is_held(self) -> bool:
        """Whether its event loop stands still, as within a commit: its state may be half changed."""
        return self.is_stopped or self.is_hung or any(t.is_loop for t in self.waiting)

    def run(self, handle: asyncio.Handle) -> None:
        """Called by the loop of virtual time for each callback of the process."""
        if not self.has_threads or not self.is_alive:
            handle._run()
        elif self.is_held:
            self._held.append(handle)
        else:
            self._go_on(Thread(self, handle._run, is_loop=True))

    def call(self, work: Callable[[], object]) -> None:
        """Let the process react to the world: at once, if its event loop can."""
        context = self.context.copy()
        if not self.has_threads or isinstance(getcurrent(), Thread):
            context.run(work)
        elif self.is_held:
            asyncio.get_running_loop().call_soon(work, context=context)
        else:
            self._go_on(Thread(self, lambda: context.run(work), is_loop=True))

    def work(self, work: Callable[[], object]) -> None:
        """Run it in a thread, if the process has any, and else here."""
        if self.has_threads:
            self.start(work)
        else:
            work()

    def start(self, work: Callable[[], object]) -> Thread:
        """Run it in a thread beside the event loop."""
        context = self.context.copy()
        thread = Thread(self, lambda: context.run(work), is_loop=False)
        loop = asyncio.get_running_loop()
        loop.call_soon(lambda: self.wake(thread) if self.is_alive else None, context=contextvars.Context())
        return thread

    def wake(self, thread: Thread) -> None:
        """Called by the world when a thread need not wait any longer."""
        if self.is_stopped or (thread.is_loop and self.is_hung):
            if thread not in self._woken:
                self._woken.append(thread)
        else:
            self._go_on(thread)

    def _go_on(self, thread: Thread) -> None:
        thread.go_on()
        self._put_back()

    def stop(self) -> None:
        """Stop all its threads, as SIGSTOP does."""
        self.is_stopped = True

    def hang(self) -> None:
        """Its event loop stands still."""
        self.is_hung = True

    def resume(self) -> None:
        self.is_stopped = self.is_hung = False
        woken, self._woken = self._woken, []
        for thread in woken:
            self._go_on(thread)
        self._put_back()

    def _put_back(self) -> None:
        if self._held and not (self.is_alive and self.is_held):
            loop = asyncio.get_running_loop()
            assert isinstance(loop, VirtualLoop)
            loop.put_back(self._held)
            self._held = []

    # ---- its end --------------------------------------------------------------------------------------

    def die(self) -> None:
        """From now on nothing that it does has an effect. `unwind` has to follow, from another process."""
        self.is_alive = False
        self.killed.set()
        self._put_back()

    def unwind(self) -> None:
        """End its tasks, while the world stands still."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        for thread in list(self.waiting):
            thread.kill()
        for _ in range(MAX_UNWINDING):
            left = self.tasks
            if not left:
                return
            for task in left:
                task.cancel()
            loop.run_process_only(self, lambda: not self.tasks)
        raise AssertionError(f"{self.name} does not end: {self.tasks}")


class _NumberedTask(asyncio.Task[Any]):
    """A task whose place in a set is the same in each run: a task group that ends cancels its own in that order."""

    def __init__(self, work: Any, loop: VirtualLoop, context: contextvars.Context | None) -> None:
        loop.tasks_made += 1
        self._number = loop.tasks_made
        super().__init__(work, loop=loop, context=context)

    def __hash__(self) -> int:
        return self._number


def task_factory(
    loop: asyncio.AbstractEventLoop, work: Any, context: contextvars.Context | None = None
) -> asyncio.Task[Any]:
    assert isinstance(loop, VirtualLoop)
    task = _NumberedTask(work, loop, context)
    owner = (contextvars.copy_context() if context is None else context).get(PROCESS)
    if isinstance(owner, Process):
        owner.own(task)
    return task
