# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Sums that are sealed without all workers, explored whole for small trees: what a worker takes is what the root sealed
first, of at least a quorum, each in it once and counted, and all live ones go on or are told to leave; the checker
finds each rule left out."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from tests.model import quorum
from tests.model.checker import bounds, check, prove
from tests.model.network import Tree, Violation, flat, two_levels
from tests.model.quorum import QuorumSystem, Rules

DEAD = frozenset({0})
SPLIT = two_levels(2, direct=1)  # an inner node with two workers, and one at the root
PAIRS = two_levels(2, 2)

SMALL = {
    "2 of 3": QuorumSystem(flat(3), 2, slots=2, chunks=2),
    "1 of 2, slots reused": QuorumSystem(flat(2), 1, slots=2, chunks=3),
    "2 of 3, slots reused, one is dead": QuorumSystem(flat(3), 2, slots=2, chunks=3, dead=DEAD),
    "two levels, 2 of 3": QuorumSystem(SPLIT, 2, slots=2, chunks=1),
    "two levels, 1 of 3, a dead one below": QuorumSystem(SPLIT, 1, slots=2, chunks=2, dead=DEAD),
    "two levels, 2 of 3, slots reused, a dead one below": QuorumSystem(
        SPLIT, 2, slots=2, chunks=3, dead=DEAD
    ),
    "two levels, 2 of 3, a dead one at the root": QuorumSystem(
        SPLIT, 2, slots=2, chunks=2, dead=frozenset({2})
    ),
    "two levels, 3 of 3": QuorumSystem(SPLIT, 3, slots=2, chunks=1),
    "two levels, a half is absent": QuorumSystem(two_levels(1, 1), 1, slots=2, chunks=3, dead=DEAD),
    "three levels, 2 of 3": QuorumSystem(Tree(3, (0, 0, 1, 2, 2, 0)), 2, slots=2, chunks=1),
    "no deadline": QuorumSystem(SPLIT, 2, slots=2, chunks=3, deadlines=False),
}
LARGE = {
    "two levels, 1 of 2, slots reused": QuorumSystem(two_levels(2), 1, slots=2, chunks=3),
    "1 of 2, W=2": QuorumSystem(flat(2), 1, slots=4, chunks=3),
    "two levels, 3 of 4, one missing in each half": QuorumSystem(PAIRS, 3, slots=2, chunks=1),
    "2 of 3, slots reused": QuorumSystem(flat(3), 2, slots=2, chunks=3),
    "two levels, 2 of 3, slots reused": QuorumSystem(SPLIT, 2, slots=2, chunks=2),
}


@pytest.mark.parametrize("name", bounds(SMALL, LARGE))
def test_all_take_what_was_sealed_first_and_go_on_or_leave(name: str, record_property: Callable[..., None]):
    prove((SMALL | LARGE)[name], 4_000_000, record_property)


@pytest.mark.parametrize(
    ("mutant", "name", "broken"),
    [
        (quorum.DropsLate, "two levels, 2 of 3, a dead one at the root", {"progress"}),
        (quorum.AddsLate, "two levels, 2 of 3", {"I1", "I3", "count", "progress"}),
        (quorum.AddsLate, "2 of 3", {"I3"}),
        (quorum.SealsBelowQuorum, "2 of 3", {"quorum"}),
        (quorum.WaitsForAll, "2 of 3, slots reused, one is dead", {"progress"}),
        (quorum.SealsWhenChildrenAreIn, "two levels, 3 of 3", {"quorum"}),
        (quorum.CountsPackets, "two levels, 2 of 3", {"count"}),
        (quorum.CountsRepeats, "2 of 3", {"count"}),
        (quorum.LateUntold, "2 of 3", {"progress"}),
        (quorum.SlotReusedUntold, "1 of 2, slots reused", {"progress"}),
        pytest.param(
            quorum.InnerDropsStale, "two levels, 1 of 2, slots reused", {"progress"}, marks=pytest.mark.long
        ),
        (quorum.SumForgetsDeadline, "two levels, a half is absent", {"progress"}),
        (quorum.ForgetsDeadlineOnceSealed, "two levels, a half is absent", {"progress"}),
        (quorum.PassesWhatIsIn, "two levels, 2 of 3", {"I1", "count"}),
        (quorum.WorkerTakesSlotReused, "1 of 2, slots reused", {"I3"}),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_the_checker_finds_a_rule_left_out(mutant: type[Rules], name: str, broken: set[str]):
    with pytest.raises(Violation) as found:
        check(dataclasses.replace((SMALL | LARGE)[name], rules=mutant()))
    assert found.value.name in broken


def test_a_late_worker_needs_a_bit_of_its_own_at_the_root():
    """With its inner node's bit it is taken for a repetition, and the quorum may never be reached."""
    system = SMALL["two levels, 2 of 3, a dead one at the root"]
    with pytest.raises(Violation) as found:
        check(dataclasses.replace(system, passing=False))
    assert found.value.name == "progress"
