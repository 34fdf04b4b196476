# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Calls under way one beside the other: all workers end with the same results whenever epochs change, chunk numbers
mean the same everywhere, and no worker waits for good. The checker finds each rule that is left out."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.model.calls import TOGETHER, Calls, Worker
from tests.model.checker import bounds, check, prove
from tests.model.network import Violation

EVEN = frozenset({0, 2})
SMALL = [
    Calls(2, 3, 2, 2, repeated=EVEN),
    Calls(2, 3, 1, 2, repeated=EVEN, large=frozenset({1})),
    Calls(2, 3, 2, 2, large=frozenset({0, 2})),
    Calls(2, 2, 2, 3),
    Calls(3, 2, 2, 2),
]
LARGE = [Calls(2, 4, 2, 3, repeated=EVEN, large=frozenset({1, 2})), Calls(3, 3, 2, 2), Calls(2, 5, 3, 2)]


@pytest.mark.parametrize("calls", bounds(SMALL, LARGE), ids=str)
def test_all_get_the_same_results_and_none_waits_for_good(calls: Calls, record_property: Callable[..., None]):
    prove(calls, 10_000_000, record_property)


class KeepsNothing(Calls):
    """Lets a result go when the call is over here."""

    def finish(self, w, value):  # type: ignore[no-untyped-def]
        w = super().finish(w, value)
        return w._replace(proven=w.done)


class LetsGoTooEarly(Calls):
    def proof(self, call: int) -> int:
        return call - self.depth + 2


class BeginsTooEarly(Calls):
    """Begins one call more than may be under way."""

    def begins(self, w: Worker) -> bool:
        return w.begun < w.submitted and w.begun < w.done + self.depth + 1


class DoesAgain(Calls):
    """A worker that lacks a call does it again, with those that have it already; these keep what they have."""

    def together(self, w, epoch, number):  # type: ignore[no-untyped-def]
        lowest, highest = self.span(epoch)
        for call in range(lowest, highest):
            row = epoch.main[call]
            row = (*row[:number], ("hand", w.epoch), *row[number + 1 :])
            epoch = epoch._replace(main=(*epoch.main[:call], row, *epoch.main[call + 1 :]))
        return w._replace(stage=TOGETHER, proven=max(w.proven, lowest), begun=max(w.begun, highest)), epoch


class StaysAway(Calls):
    """Without a call it does not take part in the new epoch."""

    def votes(self, w: Worker) -> bool:
        return w.submitted > w.done


class PredictsByTheLatest(Calls):
    """Takes the scales from the latest call that is over here."""

    def predicts(self, w: Worker, since: int) -> int:
        return w.done - 1 if w.done > since else -1


class PredictsAcrossEpochs(Calls):
    """Takes scales from calls that some did in the epoch before and others were handed over."""

    def predicts(self, w: Worker, since: int) -> int:
        return w.epoch if w.tried else -1


class RepeatsOutOfTurn(Calls):
    """A call's repetition goes when its own results are in, before those of the calls before it."""

    def next_part(self, w: Worker):  # type: ignore[no-untyped-def]
        for call in range(w.done, self.calls):
            if w.got >> call & 1 and call in self.repeated and not (call == w.done and w.parts):
                return ("repeat", call)
        return super().next_part(w)


class ForgetsWhatItTried(Calls):
    """Says of every call that it is a new one."""

    def renewed(self, w: Worker) -> Worker:
        return super().renewed(w)._replace(tried=False)


class DoesAgainWhatWaitsToClose(Calls):
    """Takes a call that lacks its closing result alone for one that is not done."""

    def lacks_closing_only(self, w: Worker) -> bool:
        return False


TWO = Calls(2, 3, 2, 2, repeated=EVEN)


@pytest.mark.parametrize(
    ("mutant", "found"),
    [
        (KeepsNothing(2, 2, 2, 2), "kept"),
        (LetsGoTooEarly(2, 3, 2, 2), "kept"),
        (BeginsTooEarly(2, 4, 2, 2), "span|kept"),
        (DoesAgain(2, 2, 2, 2), "agreement"),
        (StaysAway(2, 2, 2, 2), "progress"),
        (PredictsByTheLatest(2, 3, 2, 2), "numbers"),
        (PredictsAcrossEpochs(2, 3, 2, 2), "numbers"),
        (RepeatsOutOfTurn(2, 3, 2, 2, repeated=frozenset({0, 1})), "numbers"),
        (ForgetsWhatItTried(2, 2, 2, 2), "strangers"),
        (DoesAgainWhatWaitsToClose(2, 2, 1, 2, large=frozenset({0})), "kept|agreement"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Calls) else value,
)
def test_a_rule_that_is_left_out_is_found(mutant: Calls, found: str):
    with pytest.raises(Violation, match=f"^({found})"):
        check(mutant)  # type: ignore[arg-type]
