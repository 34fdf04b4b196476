# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A simulated process of an operating system: it has tasks, and it can be killed at any moment, unnoticed by its
code."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Coroutine
from typing import Any, TypeVar

from tests.simulation.loop import PROCESS, ProcessKilledError, VirtualLoop

Result = TypeVar("Result")

MAX_UNWINDING = 100
MIN_SWEEP = 64


class Process:
    """`killed` is set at its death. Whatever lies outside (disk, switches, sockets) has to call `check` first."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_alive = True
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

    def die(self) -> None:
        """From now on nothing that it does has an effect. `unwind` has to follow, from another process."""
        self.is_alive = False
        self.killed.set()

    def unwind(self) -> None:
        """End its tasks, while the world stands still."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        for _ in range(MAX_UNWINDING):
            left = self.tasks
            if not left:
                return
            for task in left:
                task.cancel()
            loop.run_process_only(self, lambda: not self.tasks)
        raise AssertionError(f"{self.name} does not end: {self.tasks}")


def task_factory(
    loop: asyncio.AbstractEventLoop, work: Any, context: contextvars.Context | None = None
) -> asyncio.Task[Any]:
    task = asyncio.Task(work, loop=loop, context=context)
    owner = (contextvars.copy_context() if context is None else context).get(PROCESS)
    if isinstance(owner, Process):
        owner.own(task)
    return task
