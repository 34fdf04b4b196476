# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Calls whose results differ at all workers end at all or are made again by all, whenever epochs change. The checker
finds each rule that is left out."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.model.calls import Epoch, Worker, said
from tests.model.checker import bounds, check, prove
from tests.model.network import Violation
from tests.model.targeted_calls import TargetedCalls

BOTH = frozenset({0, 1})
ONE_DEEP = TargetedCalls(2, 2, 1, 2, scatters=BOTH)
TWO_DEEP = TargetedCalls(2, 2, 2, 2, scatters=BOTH)
SMALL = [
    ONE_DEEP,
    TWO_DEEP,
    TargetedCalls(2, 3, 2, 2, scatters=frozenset({1})),
    TargetedCalls(2, 3, 2, 2, repeated=frozenset({0}), scatters=frozenset({0, 2})),
    TargetedCalls(2, 2, 2, 3, scatters=frozenset({0})),
]
THREE_EPOCHS = TargetedCalls(2, 2, 2, 3, scatters=BOTH)
LARGE = [
    THREE_EPOCHS,
    TargetedCalls(3, 2, 2, 2, scatters=BOTH),
    TargetedCalls(3, 3, 2, 2, scatters=frozenset({1})),
    TargetedCalls(2, 4, 2, 3, large=frozenset({0}), scatters=frozenset({1, 2})),
]


@pytest.mark.parametrize("calls", bounds(SMALL, LARGE), ids=str)
def test_all_get_the_results_of_one_epoch(calls: TargetedCalls, record_property: Callable[..., None]):
    prove(calls, 10_000_000, record_property)


class FinishesReady(TargetedCalls):
    """A scatter that lacks the closing result alone is done, as a large sum is."""

    def without_closing(self, w: Worker) -> Worker:
        return self.finish(w, w.epoch)


class AlwaysMakesAgain(TargetedCalls):
    """A ready worker makes the call again, whatever the others have."""

    def without_closing(self, w: Worker) -> Worker:
        return w


class NoClosing(TargetedCalls):
    """A scatter ends with its data."""

    def parts_of(self, call: int) -> list[tuple[str, int]]:
        return [part for part in super().parts_of(call) if part[0] != "closing"]


class OneReadyIsEnough(TargetedCalls):
    """A ready worker finishes whatever the others vote."""

    def is_finished_by(self, vote: tuple[int, bool, bool], epoch: Epoch) -> bool:
        return vote[2]


class OnlyEqualsCount(TargetedCalls):
    """Workers that lack an earlier call are not asked."""

    def is_finished_by(self, vote: tuple[int, bool, bool], epoch: Epoch) -> bool:
        return vote[2] and all(v[2] for v in said(epoch.votes) if v[0] == vote[0])


class ClosingEndsAll(TargetedCalls):
    """A worker that has the closing result takes no part in the next epoch."""

    def closing_proves(self, call: int) -> bool:
        return True


class VotesProveReady(TargetedCalls):
    """A worker that saw the votes takes the calls of ready workers for finished."""

    def known_finished(self, epoch: Epoch) -> int:
        return self.span(epoch)[0]


@pytest.mark.parametrize(
    ("mutant", "bounds"),
    [
        (FinishesReady, TWO_DEEP),
        (AlwaysMakesAgain, TWO_DEEP),
        (NoClosing, TWO_DEEP),
        (OneReadyIsEnough, TWO_DEEP),
        (OnlyEqualsCount, TWO_DEEP),
        (ClosingEndsAll, ONE_DEEP),
        (VotesProveReady, THREE_EPOCHS),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_a_rule_that_is_left_out_is_found(mutant: type[TargetedCalls], bounds: TargetedCalls):
    calls = mutant(bounds.workers, bounds.calls, bounds.depth, bounds.lives, scatters=bounds.scatters)
    with pytest.raises(Violation):
        check(calls)  # type: ignore[arg-type]
