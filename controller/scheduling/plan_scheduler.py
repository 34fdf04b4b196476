# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Runs planning tasks one at a time, by priority, then by age. So only failures, member loss and job ends can
invalidate a plan during its planning."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeVar

MAX_PREEMPTIONS = 3
"""Maximum preemptions of a task: repairs without end cannot starve it. Its last run has the short deadline of
repairs."""

AGING_S = 10.0
"""Seconds after which a waiting task has the priority of a submission, so that submissions cannot starve it."""

Result = TypeVar("Result")


class PlanPriority(IntEnum):
    """Priority of a planning task; lower values run first. REPAIR: a job uses failed elements. LEAVE: a job uses
    drained elements. REROUTE: cross traffic leaves a job less than its reserved rate. SUBMISSION: an operator waits.
    QUEUE: a queued job. REPLAN: a running job may gain."""

    REPAIR = 0
    LEAVE = 1
    REROUTE = 2
    SUBMISSION = 3
    QUEUE = 4
    REPLAN = 5


@dataclass
class _Running:
    priority: PlanPriority
    task: asyncio.Task[Any]
    can_preempt: bool
    is_preempted: bool = False


@dataclass
class _Waiting:
    priority: PlanPriority
    number: int
    since: float
    turn: asyncio.Future[None]

    def priority_at(self, now: float) -> PlanPriority:
        """The priority at a time: an aged task counts as a submission. Repairs, leaves and re-routes stay ahead
        of it."""
        if now - self.since >= AGING_S:
            return min(self.priority, PlanPriority.SUBMISSION)
        return self.priority


class PlanScheduler:
    """Runs planning tasks one at a time. A task of higher priority preempts the running one, which is canceled and
    restarts: it must have no effect before its last await. `work(is_final_attempt)`: whether this run cannot be
    preempted."""

    def __init__(self) -> None:
        self._waiting: list[_Waiting] = []
        self._number = 0
        self._is_busy = False
        self._running: _Running | None = None

    async def run(
        self, priority: PlanPriority, work: Callable[[bool], Coroutine[Any, Any, Result]]
    ) -> Result:
        """Run `work` when it is its turn, and return or raise its result."""
        self._number += 1
        number, preemptions, since = self._number, 0, asyncio.get_running_loop().time()
        while True:
            await self._wait_turn(priority, number, since)
            try:
                is_final_attempt = preemptions == MAX_PREEMPTIONS
                mine = _Running(
                    priority, asyncio.create_task(work(is_final_attempt)), can_preempt=not is_final_attempt
                )
                self._running = mine
                try:
                    await asyncio.wait([mine.task])
                except asyncio.CancelledError:
                    mine.task.cancel()
                    await asyncio.wait([mine.task])
                    raise
            finally:
                self._running = None
                self._start_next()
            if not (mine.is_preempted and mine.task.cancelled()):
                done: Result = mine.task.result()
                return done
            preemptions += 1

    async def _wait_turn(self, priority: PlanPriority, number: int, since: float) -> None:
        if not self._is_busy:
            self._is_busy = True
            return
        self._preempt(priority)
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append(_Waiting(priority, number, since, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._start_next()
            raise

    def _preempt(self, priority: PlanPriority) -> None:
        now = self._running
        if now is not None and now.priority > priority and now.can_preempt and not now.is_preempted:
            now.is_preempted = True
            now.task.cancel()

    def _start_next(self) -> None:
        self._waiting = [w for w in self._waiting if not w.turn.done()]
        if not self._waiting:
            self._is_busy = False
            return
        now = asyncio.get_running_loop().time()
        first = min(self._waiting, key=lambda w: (w.priority_at(now), w.number))
        self._waiting.remove(first)
        first.turn.set_result(None)
