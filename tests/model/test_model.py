# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The protocol, explored whole for small trees: I1 to I6 and progress hold in every state, and the checker
misses every rule that a mutant breaks.

How the invariants show. I1 and I6: each slot that a packet changed holds exactly the sum of the children
seen, of one chunk of one life. I2 and I3: a worker takes nothing but the sum of all, which leaves one value
for all workers. I4: a packet of another life changes no slot. I5: a second life finishes on the slots that
the first left as they were.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from tests.model import mutants
from tests.model.checker import TooManyStates, bounds, check, prove
from tests.model.machine import Life, Machine
from tests.model.network import System, Tree, Violation, flat, two_levels

RAISED = (Life(1, 1), Life(1, 2))
OTHER_TREE = (Life(1, 1), Life(2, 2))
ONE = frozenset({(1, 0)})  # the first chunk of worker 1 carries the overflow flag
THREE_LEVELS = Tree(3, (0, 0, 1, 2, 2, 0))  # root, inner, inner with two workers, and a worker at the root

SMALL = {
    "flat, 2 workers, W=1": System(flat(2), window=1, slots=2, chunks=4),
    "flat, 3 workers, W=1": System(flat(3), window=1, slots=2, chunks=3),
    "flat, 2 workers, W=2": System(flat(2), window=2, slots=4, chunks=5),
    "flat, 3 workers, W=2, 3 chunks": System(flat(3), window=2, slots=4, chunks=3),
    "flat, 2 workers, W=1, A=4": System(flat(2), window=1, slots=4, chunks=6),
    "flat, marks": System(flat(2), window=1, slots=2, chunks=3, marking=True, overflowing=ONE),
    "flat, 2 workers, epoch raised": System(flat(2), window=1, slots=2, chunks=3, lives=RAISED),
    "flat, 2 workers, W=2, epoch raised": System(flat(2), window=2, slots=4, chunks=3, lives=RAISED),
    "flat, 3 workers, epoch raised": System(flat(3), window=1, slots=2, chunks=3, lives=RAISED),
    "flat, 2 workers, slots to another tree": System(flat(2), window=1, slots=2, chunks=3, lives=OTHER_TREE),
    "two levels, 2 and 2 workers": System(two_levels(2, 2), window=1, slots=2, chunks=3),
    "two levels, 3 workers": System(two_levels(3), window=1, slots=2, chunks=3),
    "two levels, 2 workers and 1 at the root, W=2": System(
        two_levels(2, direct=1), window=2, slots=4, chunks=3
    ),
    "two levels, 1 worker and 1 at the root, epoch raised": System(
        two_levels(1, direct=1), window=1, slots=2, chunks=3, lives=RAISED
    ),
    "two levels, marks": System(two_levels(2), window=1, slots=2, chunks=3, marking=True, overflowing=ONE),
    "three levels": System(THREE_LEVELS, window=1, slots=2, chunks=3),
}

LARGE = {
    "two levels, 2 workers and 1 at the root, epoch raised": System(
        two_levels(2, direct=1), window=1, slots=2, chunks=3, lives=RAISED
    ),
    "flat, 3 workers, W=2": System(flat(3), window=2, slots=4, chunks=5),
    "flat, 4 workers, W=1": System(flat(4), window=1, slots=2, chunks=3),
    "flat, 2 workers, W=2, 4 chunks, epoch raised": System(
        flat(2), window=2, slots=4, chunks=4, lives=RAISED
    ),
    "two levels, 1 and 1 workers, W=2, slots reused": System(two_levels(1, 1), window=2, slots=4, chunks=5),
    "two levels, 2 workers and 1 at the root, W=2, slots reused": System(
        two_levels(2, direct=1), window=2, slots=4, chunks=5
    ),
    "three levels, epoch raised": System(THREE_LEVELS, window=1, slots=2, chunks=2, lives=RAISED),
}


@pytest.mark.parametrize("name", bounds(SMALL, LARGE))
def test_all_invariants_and_progress_hold_in_every_state(name: str, record_property: Callable[..., None]):
    assert prove((SMALL | LARGE)[name], 4_000_000, record_property).states > 100


FLAT = System(flat(2), window=1, slots=2, chunks=3)
DEEP = System(two_levels(2, direct=1), window=1, slots=2, chunks=3)
AGAIN = System(flat(2), window=1, slots=2, chunks=3, lives=RAISED)


def _with(system: System, machine: type[Machine]) -> System:
    return dataclasses.replace(system, machine=machine())


@pytest.mark.parametrize(
    ("mutant", "system", "broken"),
    [
        (mutants.NoBitmap, FLAT, {"I1"}),
        (mutants.TagIgnored, FLAT, {"I1", "I2"}),
        (mutants.OlderClaims, FLAT, {"progress"}),
        (mutants.TagWithoutEpoch, AGAIN, {"I1", "I2"}),
        (mutants.AdmissionIgnoresEpoch, AGAIN, {"I4"}),
        (
            mutants.AdmissionIgnoresTree,
            System(flat(2), window=1, slots=2, chunks=3, lives=(Life(1, 1), Life(2, 1))),
            {"I4"},
        ),
        (mutants.WorkerIgnoresEpoch, AGAIN, {"I2"}),
        (mutants.ClaimAdds, FLAT, {"I1"}),
        (
            mutants.ClaimKeepsMarks,
            System(flat(2), window=1, slots=2, chunks=3, overflowing=ONE),
            {"I1"},
        ),
        (mutants.InnerAnswers, DEEP, {"I2"}),
        (mutants.InnerForgets, DEEP, {"progress"}),
        (mutants.RootForgets, FLAT, {"progress"}),
        (mutants.PartialResult, FLAT, {"I2"}),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_the_checker_finds_a_broken_rule(mutant: type[Machine], system: System, broken: set[str]):
    with pytest.raises(Violation) as found:
        check(_with(system, mutant))
    assert found.value.name in broken


@pytest.mark.parametrize(
    ("window", "slots", "chunks"),
    [(1, 1, 2), (2, 2, 3), (2, 3, 4), (2, 5, 6)],
    ids=["A=1 W=1", "A=2 W=2", "A=3 W=2", "A=5 W=2: A >= 2W, but W does not divide A"],
)
def test_a_window_above_half_of_the_slots_gets_stuck_but_never_wrong(window: int, slots: int, chunks: int):
    with pytest.raises(Violation) as found:
        check(System(flat(2), window=window, slots=slots, chunks=chunks))
    assert found.value.name == "progress"  # which is looked at after all states were safe


@pytest.mark.parametrize("second", [Life(1, 1), Life(2, 1)], ids=["same tree", "another tree"])
def test_slots_given_away_without_a_newer_epoch_spoil_the_next_job(second: Life):
    with pytest.raises(Violation) as found:
        check(System(flat(2), window=1, slots=2, chunks=3, lives=(Life(1, 1), second)))
    assert found.value.name in {"I1", "I2"}


def test_a_search_that_was_cut_proves_nothing():
    with pytest.raises(TooManyStates):
        check(FLAT, limit=50)
