# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Workers that come to calls under way: every call that a newcomer takes is one that it was in, the others' results are
theirs alone, and no worker waits for good, however epochs follow each other. The checker finds each rule left out."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.model.calls import Epoch, Worker
from tests.model.checker import bounds, check, prove
from tests.model.network import Violation
from tests.model.newcomers import Newcomers

GONE = (9, 1, 9)
SMALL = [
    Newcomers(3, 3, 2, 2),
    Newcomers(3, 3, 2, 2, departures=GONE),
    Newcomers(3, 2, 2, 3, departures=GONE),
]
LARGE = [
    Newcomers(3, 2, 1, 3, large=frozenset({0})),
    Newcomers(3, 2, 2, 3),
    Newcomers(3, 2, 1, 3, repeated=frozenset({0, 1})),
    Newcomers(3, 3, 2, 3, departures=GONE),
    Newcomers(3, 2, 2, 3, arrivals=(0, 1, 2)),
]


@pytest.mark.slow
@pytest.mark.parametrize("system", bounds(SMALL, LARGE), ids=str)
def test_newcomers_are_in_step(system: Newcomers, record_property: Callable[..., None]):
    prove(system, 10_000_000, record_property)


class TakenForAHolder(Newcomers):
    """A worker beyond a call is taken for one that has its result."""

    def holds(self, w: Worker, call: int) -> bool:
        return call < w.done


class JoinsTheLowest(Newcomers):
    """A newcomer goes on with the first call that some worker lacks."""

    def joins(self, epoch: Epoch) -> int:
        return self.span(epoch)[0]


class CountsFromItsOwnFirst(Newcomers):
    """A newcomer votes for the first of its program's calls."""

    def ballot(self, w: Worker) -> object:
        return w.done, w.tried


class StaysOut(Newcomers):
    """A newcomer has no part in what others hand over."""

    def passed(self, epoch: Epoch, call: int, number: int) -> Epoch:
        return epoch


@pytest.mark.parametrize(
    ("mutant", "found"),
    [
        (TakenForAHolder(3, 2, 1, 3), "kept"),
        (JoinsTheLowest(3, 2, 1, 2), "numbers|others|agreement"),
        (CountsFromItsOwnFirst(3, 2, 1, 2), "strangers|numbers|others"),
        (StaysOut(3, 2, 1, 2), "progress"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Newcomers) else value,
)
def test_a_rule_that_is_left_out_is_found(mutant: Newcomers, found: str):
    with pytest.raises(Violation, match=f"^({found})"):
        check(mutant)  # type: ignore[arg-type]
