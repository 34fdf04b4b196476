# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Which case of an experiment runs, and an estimate of the remaining time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

Case = TypeVar("Case")


def one_by_one(
    cases: Sequence[Case],
    label: Callable[[Case], str],
    notify: Callable[[str], None],
    cost: Callable[[Case], float] = lambda _: 1.0,
    now: Callable[[], float] = time.monotonic,
) -> Iterator[Case]:
    """Each case, after a line about it. `cost` is a case's duration in any unit; the cost and the time of the completed
    cases give the estimate."""
    started, done = now(), 0.0
    total = sum(map(cost, cases))
    for number, case in enumerate(cases, 1):
        left = f", {_span((now() - started) / done * (total - done))} left" if done > 0 else ""
        notify(f"{number} of {len(cases)}: {label(case)}{left}")
        yield case
        done += cost(case)


def _span(seconds: float) -> str:
    return f"about {seconds:.0f} s" if seconds < 100 else f"about {seconds / 60:.0f} minutes"
