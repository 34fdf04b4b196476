# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Short contributions and cut results, explored whole for small trees: every worker that wants lanes gets those of the
sum of all, and no worker waits for good. The checker finds each rule that is left out."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import pytest

from tests.model.checker import bounds, check, prove
from tests.model.machine import Life, Slot, Step
from tests.model.network import Message, Tree, Violation, flat, two_levels
from tests.model.targeted import (
    DATA,
    EMPTY_CHUNK,
    TO_ALL,
    Chunk,
    Targeted,
    TargetedMachine,
    gather,
    scatter,
)

RAISED = (Life(1, 1), Life(1, 2))
ONE = frozenset({(1, 0)})
SCATTERS, GATHERS = (scatter(0), scatter(1), scatter(2)), (gather(0), gather(1), gather(2))
BOTH, MIXED = (scatter(0), gather(1)), (scatter(0), gather(1), TO_ALL)


def system(
    tree: Tree, kinds: tuple[Chunk, ...], window: int = 1, chunks: int = 3, **more: object
) -> Targeted:
    return Targeted(tree, window, 2 * window, chunks, kinds=kinds, **more)  # type: ignore[arg-type]


SMALL = {
    "flat, 2 workers, scatters": system(flat(2), SCATTERS[:2], chunks=4),
    "flat, 2 workers, gathers": system(flat(2), GATHERS[:2], chunks=4),
    "flat, 2 workers, both of one owner": system(flat(2), (scatter(0), gather(0)), chunks=4),
    "flat, 2 workers, all kinds": system(flat(2), (EMPTY_CHUNK, scatter(1), gather(0), TO_ALL), chunks=4),
    "flat, 3 workers, scatters": system(flat(3), SCATTERS),
    "flat, 3 workers, gathers": system(flat(3), GATHERS),
    "flat, 3 workers, mixed": system(flat(3), MIXED),
    "flat, 2 workers, W=1, A=4": Targeted(flat(2), 1, 4, 6, kinds=(*BOTH, EMPTY_CHUNK)),
    "flat, marks": system(flat(2), (scatter(1), gather(0)), marking=True, overflowing=ONE),
    "flat, 2 workers, epoch raised": system(flat(2), BOTH, lives=RAISED),
    "two levels, 2 workers and 1 at the root, scatters": system(two_levels(2, direct=1), SCATTERS),
    "two levels, 2 workers and 1 at the root, gathers": system(two_levels(2, direct=1), GATHERS),
    "two levels, 1 and 1 workers": system(two_levels(1, 1), BOTH, chunks=4),
    "two levels, marks": system(two_levels(2), (scatter(1), gather(0)), marking=True, overflowing=ONE),
}
LARGE = {
    "flat, 2 workers, W=2, slots reused": system(flat(2), BOTH, window=2, chunks=5),
    "flat, 3 workers, W=2": system(flat(3), MIXED, window=2),
    "two levels, 1 worker and 1 at the root, epoch raised": system(
        two_levels(1, direct=1), (scatter(0), gather(0)), lives=RAISED
    ),
    "two levels, 2 and 2 workers": system(two_levels(2, 2), (scatter(0), gather(3), scatter(2))),
    "three levels": system(Tree(3, (0, 0, 1, 2, 2, 0)), (scatter(0), gather(1), gather(2))),
    "two levels, 2 workers and 1 at the root, W=2": system(two_levels(2, direct=1), MIXED, window=2),
}


@pytest.mark.parametrize("name", bounds(SMALL, LARGE))
def test_all_invariants_and_progress_hold_in_every_state(name: str, record_property: Callable[..., None]):
    assert prove((SMALL | LARGE)[name], 2_500_000, record_property).states > 100


@pytest.mark.parametrize(("window", "slots", "chunks"), [(1, 1, 2), (2, 2, 3)], ids=["A=1 W=1", "A=2 W=2"])
def test_a_window_above_half_of_the_slots_gets_stuck_but_never_wrong(window: int, slots: int, chunks: int):
    with pytest.raises(Violation) as found:
        check(Targeted(flat(2), window, slots, chunks, kinds=BOTH))
    assert found.value.name == "progress"


class ShortClaimKeepsLanes(TargetedMachine):
    """A claim by a short packet leaves the lanes of the chunk before."""

    def added(self, slot: Slot, tag: int, message: Message) -> int:
        return slot.total if message.is_short and tag > slot.tag else message.value


class ShortIsNotNoted(TargetedMachine):
    """A short packet sets no bit."""

    def step(self, slot: Slot, tag: int, bit: int, marks: int, value: int, full: int) -> tuple[Slot, Step]:
        return super().step(slot, tag, bit if marks & DATA else 0, marks, value, full)


class ShortCompletesEmpty(TargetedMachine):
    """The lanes of a sum that a short packet completes are not those of the slot."""

    def sent(self, slot: Slot, message: Message) -> int:
        return 0 if message.is_short else slot.total


class SumAsShortAsItsLast(TargetedMachine):
    """A partial sum has the form of the packet that completes it."""

    def sum_is_short(self, slot: Slot, message: Message) -> bool:
        return message.is_short


class DataIsOfTheClaim(TargetedMachine):
    """DATA is not merged."""

    def step(self, slot: Slot, tag: int, bit: int, marks: int, value: int, full: int) -> tuple[Slot, Step]:
        return super().step(slot, tag, bit, marks & ~DATA if tag == slot.tag else marks, value, full)


class DataIsNeverCleared(TargetedMachine):
    """A claim keeps DATA of the chunk before."""

    def step(self, slot: Slot, tag: int, bit: int, marks: int, value: int, full: int) -> tuple[Slot, Step]:
        left_behind = slot.marks & DATA if tag > slot.tag else 0
        return super().step(slot, tag, bit, marks | left_behind, value, full)


class OwnerCompletesAlone(TargetedMachine):
    """A gather is complete with its owner's contribution. The owner is the first child here."""

    def step(self, slot: Slot, tag: int, bit: int, marks: int, value: int, full: int) -> tuple[Slot, Step]:
        seen = (slot.seen if tag == slot.tag else 0) | bit
        return super().step(slot, tag, bit, marks, value, seen if seen & 1 else full)


class RetransmissionIsShort(TargetedMachine):
    """A worker that lacks a result requests it with a header alone."""

    def forms(self, is_whole: bool) -> tuple[bool, ...]:
        return (True, False) if is_whole else (False,)


class AllAreCut(TargetedMachine):
    """A switch does not know the owner's port."""

    def is_cut(self, chunk: Chunk, below: Sequence[int]) -> bool:
        return True


class CutAndTaken(AllAreCut):
    """A worker takes a result that lacks the lanes it wants."""

    def takes_result(self, wants: bool, result: Message) -> bool:
        return True


class GatherCutsAboveOthers(TargetedMachine):
    """A gather's copy is cut on each port that leads to the owner, also where it leads to others."""

    def is_cut(self, chunk: Chunk, below: Sequence[int]) -> bool:
        return chunk.owner in below if chunk.all_but else super().is_cut(chunk, below)


class ResentIsCut(TargetedMachine):
    """A result that is sent again is a header alone."""

    def resent_is_cut(self, chunk: Chunk, below: Sequence[int]) -> bool:
        return chunk != TO_ALL


class InnerCutsTheSum(TargetedMachine):
    """An inner node cuts its partial sum as if it were a result."""

    def sum_is_short(self, slot: Slot, message: Message) -> bool:
        return not slot.marks & DATA or message.bit == 1


class DuplicateShortClears(TargetedMachine):
    """A repeated short packet clears the lanes."""

    def step(self, slot: Slot, tag: int, bit: int, marks: int, value: int, full: int) -> tuple[Slot, Step]:
        after, step = super().step(slot, tag, bit, marks, value, full)
        is_repeated_short = not marks & DATA and tag == slot.tag and slot.seen & bit
        return after._replace(total=0) if is_repeated_short else after, step


DEEP, DEEPER = two_levels(2, direct=1), two_levels(2)


@pytest.mark.parametrize(
    ("mutant", "targeted", "broken"),
    [
        (ShortClaimKeepsLanes, system(flat(2), (TO_ALL, *BOTH)), {"I1"}),
        (ShortIsNotNoted, system(flat(2), (gather(0),)), {"I1", "progress"}),
        (ShortCompletesEmpty, system(flat(2), (gather(0),)), {"I2"}),
        (SumAsShortAsItsLast, system(DEEP, (gather(0),)), {"I1", "I2"}),
        (DataIsOfTheClaim, system(DEEP, (gather(0),)), {"I1", "I2"}),
        (DataIsNeverCleared, system(flat(2), (TO_ALL, EMPTY_CHUNK, EMPTY_CHUNK)), {"I1"}),
        (OwnerCompletesAlone, system(flat(2), (gather(0),)), {"I1", "I2", "progress"}),
        (RetransmissionIsShort, system(flat(2), (scatter(0),)), {"I1", "I2"}),
        (CutAndTaken, system(DEEP, (scatter(0),)), {"I2"}),
        (AllAreCut, system(DEEPER, (scatter(0),)), {"progress"}),
        (GatherCutsAboveOthers, system(DEEP, (gather(0),), at_once=True), {"T1"}),
        (ResentIsCut, system(flat(2), (scatter(0),)), {"progress"}),
        (InnerCutsTheSum, system(DEEP, (scatter(2),)), {"I1", "I2"}),
        (DuplicateShortClears, system(flat(2), (scatter(0),)), {"I1", "I2"}),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_the_checker_finds_a_broken_rule(mutant: type[TargetedMachine], targeted: Targeted, broken: set[str]):
    with pytest.raises(Violation) as found:
        check(dataclasses.replace(targeted, machine=mutant()))
    assert found.value.name in broken
