# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The checks of a trial find what they are for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from tests.testbed.trial.checks import Ending, violations_of
from tests.testbed.trial.drawing import TrialJob
from tests.testbed.trial.records import Sum, Turn, WorkerRecord
from tests.testbed.trial.sums import Contents, Share, contents_of, contribution

DONE = Ending("done", "every worker left")
CALLS = 3


def job(**changes: object) -> TrialJob:
    fixed = TrialJob("a", {"h1": CALLS, "h2": CALLS}, "panama", 10)
    return replace(fixed, **changes)  # type: ignore[arg-type]


def salt(index: int, call: int) -> int:
    return (index + call) % 7


def right_sum(call: int, indices: Sequence[int] = (0, 1), epoch: int = 1, later: int = 0) -> Sum:
    """The second worker has a `later` salt than usual."""
    total = sum(contribution(index, salt(index, call + later * index)) for index in indices)
    assert isinstance(total, np.ndarray)
    return Sum(call, epoch, f"digest {call} of {indices}, {later} later", contents_of(total))


def right_records() -> list[WorkerRecord]:
    def record(index: int) -> WorkerRecord:
        turns = (Turn(salt(index, call), right_sum(call)) for call in range(CALLS))
        return WorkerRecord(f"h{index + 1}", tuple(turns))

    return [record(0), record(1)]


def with_sum(records: list[WorkerRecord], change: Callable[[Sum], Sum]) -> list[WorkerRecord]:
    """The second call of the second worker has another result."""
    first, second = records
    turns = list(second.turns)
    assert turns[1].sum is not None
    turns[1] = Turn(turns[1].salt, change(turns[1].sum))
    return [first, replace(second, turns=tuple(turns))]


def with_contents(records: list[WorkerRecord], change: Callable[[Contents], Contents]) -> list[WorkerRecord]:
    return with_sum(records, lambda s: replace(s, contents=change(s.contents)))


def test_a_sum_names_its_contributors_and_their_salts():
    found = contents_of(contribution(1, 4) + contribution(5, 6))
    assert found.shares == {1: Share(4, 1500, 0), 5: Share(6, 1500, 0)}
    assert (found.stray, found.fewest) == (0, 2)


@pytest.mark.parametrize("bad", [0.5, -1.0, 1e30, np.nan, np.inf])
def test_an_element_that_is_no_sum_is_stray(bad: float):
    total = contribution(0, 1)
    total[7] = bad
    assert contents_of(total).stray == 1


def test_an_element_of_another_call_is_wrong():
    total = contribution(0, 1) + contribution(1, 1)
    total[9] = (contribution(0, 1) + contribution(1, 2))[9]
    assert contents_of(total).shares[1].wrong == 1


def test_a_job_whose_sums_are_right_has_no_violation():
    assert violations_of(job(), right_records(), DONE, is_canceled=False) == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda r: with_sum(r, lambda s: replace(s, digest="x")), "another result"),
        (lambda r: with_contents(r, lambda c: replace(c, stray=1)), "no sum"),
        (
            lambda r: with_contents(r, lambda c: replace(c, shares={1: c.shares[1]}, fewest=1)),
            "1 contributors",
        ),
        (
            lambda r: with_contents(r, lambda c: replace(c, shares={**c.shares, 0: Share(6, 1500, 0)})),
            "h1 contributed something else",
        ),
        (
            lambda r: with_contents(r, lambda c: replace(c, shares={**c.shares, 0: Share(1, 1400, 0)})),
            "h1 is in 1400 of",
        ),
        (
            lambda r: with_contents(r, lambda c: replace(c, shares={**c.shares, 4: Share(1, 1500, 0)})),
            "index 4",
        ),
        (lambda r: with_sum(r, lambda s: replace(s, call=0)), "results of 3 calls"),
        (lambda r: [r[0], replace(r[1], turns=r[1].turns[:2])], "results of 2 calls"),
        (lambda r: [r[0], replace(r[1], error="AllReduceTimeoutError")], "AllReduceTimeoutError"),
        (lambda r: [r[0], replace(r[1], crash="exit code 1; KeyError")], "KeyError"),
    ],
)
def test_what_is_wrong_is_told(change: Callable[[list[WorkerRecord]], list[WorkerRecord]], told: str):
    found = violations_of(job(), change(right_records()), DONE, is_canceled=False)
    assert any(told in text for text in found), found


@pytest.mark.parametrize(
    ("ending", "is_right"),
    [
        (DONE, True),
        (Ending("failed", "the lease of h2 expired"), False),
        (Ending("failed", "h2 did not join within 60 s"), True),
        (Ending("failed", "switches did not take its entries in 10 s: leaf1: busy"), False),
        (Ending("canceled", "canceled by an operator"), False),
        (Ending("running", ""), False),
        (Ending("unknown", "the controller has lost it"), False),
    ],
)
def test_a_job_that_nothing_touched_is_done(ending: Ending, is_right: bool):
    assert (not violations_of(job(), right_records(), ending, is_canceled=False)) is is_right


def test_a_job_that_lost_a_worker_fails_with_its_name_and_an_elastic_one_goes_on():
    failed = Ending("failed", "the lease of h2 expired: no heartbeat for 15 s")
    first, second = right_records()
    records = [replace(first, error="JobFailedError"), replace(second, is_killed=True)]
    assert violations_of(job(), records, failed, is_canceled=False) == []
    assert violations_of(job(is_elastic=True), records, failed, is_canceled=False) != []
    records = [first, replace(second, is_killed=True)]
    assert violations_of(job(is_elastic=True), records, DONE, is_canceled=False) == []


def test_a_killed_workers_last_contribution_may_be_in_a_sum_that_it_did_not_see():
    first, second = right_records()
    cut = (*second.turns[:2], Turn(second.turns[2].salt, None))
    killed = replace(second, turns=cut, is_killed=True)
    assert violations_of(job(is_elastic=True), [first, killed], DONE, is_canceled=False) == []
    other = replace(killed, turns=(*cut[:2], Turn((cut[2].salt + 1) % 7, None)))
    assert violations_of(job(is_elastic=True), [first, other], DONE, is_canceled=False) != []


def test_a_worker_that_leaves_early_ends_the_others_calls_by_name():
    early = job(calls={"h1": 9, "h2": CALLS})
    first, second = right_records()
    told = [replace(first, error="WorkersLeftError", text="h2 left"), second]
    assert violations_of(early, told, DONE, is_canceled=False) == []
    assert violations_of(early, [first, second], DONE, is_canceled=False) != []


@pytest.mark.parametrize(
    ("is_elastic", "indices", "epoch", "is_right"),
    [(True, (1,), 2, True), (False, (1,), 2, False), (True, (1,), 1, False), (True, (0,), 2, False)],
)
def test_only_an_elastic_job_makes_a_call_again_and_without_those_that_left(
    is_elastic: bool, indices: Sequence[int], epoch: int, is_right: bool
):
    """With a quorum a worker may be many calls behind those that have left."""
    records = with_sum(right_records(), lambda s: right_sum(s.call, indices, epoch))
    for order in (records, records[::-1]):
        one = job(is_elastic=is_elastic, quorum=1)
        found = violations_of(one, order, DONE, is_canceled=False)
        assert any("another result" in text for text in found) is not is_right, found


@pytest.mark.parametrize(("later", "is_right"), [(3, True), (0, False)])
def test_a_killed_worker_and_its_successor_may_both_have_a_result_of_a_call(later: int, is_right: bool):
    """No other worker has that of the killed one, and a new epoch makes the call again. An earlier call's result is
    handed over."""
    first, second = right_records()
    *turns, last = first.turns
    again = replace(right_sum(2, epoch=2, later=later), digest="made again")
    handed_over = Turn(turns[-1].salt, right_sum(1, epoch=2))
    first = replace(first, turns=(turns[0], handed_over, Turn(last.salt, again)))
    successor = replace(second, turns=(Turn(salt(1, 2 + later), again),), is_newcomer=True)
    records = [first, replace(second, is_killed=True), successor]
    for order in (records, records[::-1]):
        found = violations_of(job(is_elastic=True), order, DONE, is_canceled=False)
        assert (not found) is is_right, found
