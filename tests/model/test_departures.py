# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Workers that leave while others stay: each call of the others ends in one sum, the same at all of them, or fails
because a worker has left; none waits for good. The checker finds each rule that is left out."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.model.calls import Epoch, State, Worker
from tests.model.checker import bounds, check, prove
from tests.model.departures import Departures
from tests.model.network import Violation

LARGE_CALLS = frozenset({0, 1})
SMALL = [
    Departures(2, 3, 2, 3, stops=(1, 3), elastic=elastic, spare=spare, aborts=aborts)
    for elastic in (True, False)
    for spare, aborts in ((0, False), (1, False), (1, True))
] + [
    Departures(3, 2, 2, 3, stops=(0, 1, 2)),
    Departures(3, 2, 1, 2, stops=(2, 2, 2), elastic=False),
    Departures(2, 2, 1, 3, large=LARGE_CALLS, stops=(1, 2), spare=1),
    Departures(2, 2, 1, 3, large=LARGE_CALLS, stops=(2, 2), elastic=False, spare=1),
]
LARGE = [
    Departures(3, 3, 2, 4, stops=(1, 2, 3), spare=1),
    Departures(3, 2, 2, 4, stops=(1, 1, 2), elastic=False, spare=1, aborts=True),
    Departures(3, 2, 1, 4, large=LARGE_CALLS, stops=(1, 2, 2), spare=1),
]


@pytest.mark.parametrize("system", bounds(SMALL, LARGE), ids=str)
def test_the_calls_of_workers_that_stay_end(system: Departures, record_property: Callable[..., None]):
    prove(system, 10_000_000, record_property)


class NeverAsks(Departures):
    """Waits for a worker that has left."""

    def requests(self, state: State, epoch: Epoch, w: Worker) -> bool:
        return False


class AsksForCallsAlone(Departures):
    """Waits for results that a worker that has left was to hand over."""

    def requests(self, state: State, epoch: Epoch, w: Worker) -> bool:
        return super().requests(state, epoch, w) and not self.lacks_results(epoch, w)


class MakesCallsOfFewer(Departures):
    """Begins calls in the epoch that is there for results alone."""

    def _settled(self, w: Worker, epoch: Epoch, number: int) -> tuple[Worker, Epoch]:
        return super(Departures, self)._settled(w, epoch, number)

    def is_over(self, state: State, epoch: Epoch, w: Worker) -> bool:
        return False


class FailsAtOnce(Departures):
    """Fails as soon as a worker has left, also in a call that this one has finished."""

    def limit(self, state: State, epoch: Epoch) -> int:
        return min(super().limit(state, epoch), 0 if self.departed(state, epoch) else self.calls + 1)


class ReplacesTheEpochAtOnce(Departures):
    """Requests an epoch when a worker leaves, whatever it lacks itself."""

    def requests(self, state: State, epoch: Epoch, w: Worker) -> bool:
        return w.submitted > w.done and bool(self.departed(state, epoch))


@pytest.mark.parametrize(
    ("mutant", "found"),
    [
        (NeverAsks(2, 2, 2, 2, stops=(1, 2)), "progress"),
        (AsksForCallsAlone(2, 2, 2, 3, stops=(1, 2), spare=1), "progress"),
        (MakesCallsOfFewer(2, 2, 2, 3, stops=(1, 2), elastic=False, spare=1), "all|progress"),
        (FailsAtOnce(2, 2, 1, 2, stops=(2, 2), elastic=False), "too soon"),
        (ReplacesTheEpochAtOnce(2, 2, 2, 3, stops=(2, 2)), "agreement"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Departures) else value,
)
def test_a_rule_that_is_left_out_is_found(mutant: Departures, found: str):
    with pytest.raises(Violation, match=f"^({found})"):
        check(mutant)  # type: ignore[arg-type]
