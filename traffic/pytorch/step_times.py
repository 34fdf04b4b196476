# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Times of a rank's training steps: computing, communication that computing hides, and communication that it does
not."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from torch.optim.optimizer import register_optimizer_step_post_hook

MAX_STEPS = 512
"""The newest steps, which a report is made of."""

Interval = tuple[float, float]
"""Start and end, seconds of one clock."""


@dataclass(frozen=True)
class StepTime:
    """Times in milliseconds. `exposed`: the program waited for collectives; `in_flight`: one or more were on their way;
    `first`: from the submission of the step's first collective to its result. A rank that comes late has the shortest
    `first`, because the others wait for it."""

    total: float
    exposed: float
    in_flight: float
    first: float
    calls: int
    nbytes: int


@dataclass
class CallTime:
    """`done`: seconds, 0 while the collective is on its way."""

    submitted: float
    nbytes: int
    done: float = 0.0


@dataclass
class _Step:
    calls: list[CallTime] = field(default_factory=list)
    waits: list[Interval] = field(default_factory=list)


class StepTimes:
    """Times of the newest MAX_STEPS steps. A step ends when the program's optimizer has ended one. From any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # of the three below
        self._step = _Step()
        self._started: float | None = None  # the end of the step before
        self._steps: deque[StepTime] = deque(maxlen=MAX_STEPS)
        self._hook: Any = register_optimizer_step_post_hook(lambda *_: self.end_step(time.monotonic()))

    def submitted(self, nbytes: int) -> CallTime:
        call = CallTime(time.monotonic(), nbytes)
        with self._lock:
            self._step.calls.append(call)
        return call

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """The program waits for a collective inside."""
        started = time.monotonic()
        try:
            yield
        finally:
            with self._lock:
                self._step.waits.append((started, time.monotonic()))

    def end_step(self, now: float) -> None:
        """A step of several optimizers ends with the last of them: those that follow have no collective."""
        with self._lock:
            step, self._step = self._step, _Step()
            started, self._started = self._started, now
            if started is None:
                return
            if step.calls:
                self._steps.append(step_time(started, now, step.calls, step.waits))
            else:
                self._step, self._started = step, started

    def steps(self) -> list[StepTime]:
        with self._lock:
            return list(self._steps)

    def close(self) -> None:
        self._hook.remove()


def step_time(started: float, ended: float, calls: Sequence[CallTime], waits: Sequence[Interval]) -> StepTime:
    """DistributedDataParallel waits in C++, after it has submitted the last bucket: from there on to the last result
    the program waits, too."""
    flights = [(c.submitted, min(c.done or ended, ended)) for c in calls]
    tail = (max(c.submitted for c in calls), max(done for _, done in flights))
    within = [(max(a, started), min(b, ended)) for a, b in (*waits, tail)]
    return StepTime(
        total=1e3 * (ended - started),
        exposed=1e3 * covered(within),
        in_flight=1e3 * covered(flights),
        first=1e3 * (flights[0][1] - flights[0][0]),
        calls=len(calls),
        nbytes=sum(c.nbytes for c in calls),
    )


def covered(intervals: Sequence[Interval]) -> float:
    """Seconds that lie in one interval at least."""
    total, reached = 0.0, float("-inf")
    for start, end in sorted(intervals):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total
