# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Who plans next: one piece of work at a time, the most urgent first, the oldest of equals first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeVar

MOST_STOPS = 3
"""So often a piece of work makes way for a more urgent one; then it is finished, so that repairs without end cannot
keep it from ever being done. It is told so, and has to be as quick as they are."""

PATIENCE_S = 10.0
"""After this the queue and `replan` are served as submissions are, so that these cannot keep them out."""

Result = TypeVar("Result")


class Urgency(IntEnum):
    """A job that uses what is broken; one that others squeeze; one that an operator waits for; one in the queue; one
    that might gain."""

    REPAIR = 0
    REROUTE = 1
    SUBMISSION = 2
    QUEUE = 3
    REPLAN = 4


@dataclass
class _UnderWay:
    urgency: Urgency
    task: asyncio.Task[Any]
    may_stop: bool
    stopped: bool = False


@dataclass
class _Waiting:
    urgency: Urgency
    number: int
    since: float
    turn: asyncio.Future[None]

    def urgency_at(self, now: float) -> Urgency:
        """Whoever has waited for long is as urgent as a submission, and so in the end the oldest of them; repairs stay
        before all."""
        if now - self.since >= PATIENCE_S:
            return min(self.urgency, Urgency.SUBMISSION)
        return self.urgency


class Turns:
    """`take` waits for a turn. Work that makes way is canceled and begun again: it must have changed nothing before its
    last await. `work(last)` is told when it is not stopped any more."""

    def __init__(self) -> None:
        self._waiting: list[_Waiting] = []
        self._number = 0
        self._taken = False
        self._under_way: _UnderWay | None = None

    async def take(self, urgency: Urgency, work: Callable[[bool], Coroutine[Any, Any, Result]]) -> Result:
        """What `work` returns or raises, done when nothing more urgent is to do."""
        self._number += 1
        number, stops, since = self._number, 0, asyncio.get_running_loop().time()
        while True:
            await self._turn(urgency, number, since)
            try:
                last = stops == MOST_STOPS
                mine = _UnderWay(urgency, asyncio.create_task(work(last)), may_stop=not last)
                self._under_way = mine
                try:
                    await asyncio.wait([mine.task])
                except asyncio.CancelledError:
                    mine.task.cancel()
                    await asyncio.wait([mine.task])
                    raise
            finally:
                self._under_way = None
                self._pass_on()
            if not (mine.stopped and mine.task.cancelled()):
                done: Result = mine.task.result()
                return done
            stops += 1

    async def _turn(self, urgency: Urgency, number: int, since: float) -> None:
        if not self._taken:
            self._taken = True
            return
        self._make_way(urgency)
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append(_Waiting(urgency, number, since, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._pass_on()
            raise

    def _make_way(self, urgency: Urgency) -> None:
        now = self._under_way
        if now is not None and now.urgency > urgency and now.may_stop and not now.stopped:
            now.stopped = True
            now.task.cancel()

    def _pass_on(self) -> None:
        self._waiting = [w for w in self._waiting if not w.turn.done()]
        if not self._waiting:
            self._taken = False
            return
        now = asyncio.get_running_loop().time()
        first = min(self._waiting, key=lambda w: (w.urgency_at(now), w.number))
        self._waiting.remove(first)
        first.turn.set_result(None)
