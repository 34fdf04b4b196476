# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Which case of a measurement is on, and how long the rest takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

Case = TypeVar("Case")


def one_by_one(
    cases: Sequence[Case],
    words: Callable[[Case], str],
    tell: Callable[[str], None],
    cost: Callable[[Case], float] = lambda _: 1.0,
    now: Callable[[], float] = time.monotonic,
) -> Iterator[Case]:
    """Each case, after it is told. `cost` is how long they take, in any unit: what those that are over took says how
    long the others will."""
    begun, over = now(), 0.0
    total = sum(map(cost, cases))
    for number, case in enumerate(cases, 1):
        left = f", {_span((now() - begun) / over * (total - over))} left" if over > 0 else ""
        tell(f"{number} of {len(cases)}: {words(case)}{left}")
        yield case
        over += cost(case)


def _span(seconds: float) -> str:
    return f"about {seconds:.0f} s" if seconds < 100 else f"about {seconds / 60:.0f} minutes"
