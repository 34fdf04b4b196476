# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Ties the model to the code: `Machine.step` and `tests.slot_oracle.SlotPool` agree on every small state and
every packet; and the arithmetic, which the model leaves out, is exact or flagged in every tree, over
values at the limits."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from netfold.protocol.wire import LANE_MAX, LANE_MIN, Flag, Verdict, make_tag
from tests.model.machine import EMPTY, Machine, Slot, Step
from tests.model.network import CONGESTION, OVERFLOW, Tree, flat, two_levels
from tests.slot_oracle import SlotPool, Sum

TAGS = [make_tag(1, 0), make_tag(1, 1), make_tag(2, 0)]
VERDICTS = {
    (True, Step.COMPLETED): Verdict.RESULT_SENT,
    (True, Step.RESENT): Verdict.RESULT_RESENT,
    (False, Step.COMPLETED): Verdict.SUM_SENT,
    (False, Step.RESENT): Verdict.SUM_RESENT,
}
PLAIN = {
    Step.STALE: Verdict.STALE_CHUNK,
    Step.ACCUMULATED: Verdict.ACCUMULATED,
    Step.DUPLICATE: Verdict.DUPLICATE,
}


def _marks(flags: Flag) -> int:
    return (OVERFLOW if Flag.OVERFLOW in flags else 0) | (CONGESTION if Flag.CONGESTION in flags else 0)


def _flags(marks: int) -> int:
    return (Flag.OVERFLOW if marks & OVERFLOW else 0) | (Flag.CONGESTION if marks & CONGESTION else 0)


@pytest.mark.parametrize("root", [True, False], ids=["root", "inner"])
@pytest.mark.parametrize("children", [1, 2, 3])
def test_the_model_is_the_code(children: int, root: bool):
    explore([(child,) for child in range(children)], root)


@pytest.mark.parametrize("root", [True, False], ids=["root", "inner"])
@pytest.mark.parametrize(
    ("children", "edges"),
    [
        (33, (31, 32)),
        (65, (63, 64)),
        pytest.param(64, (31, 32, 63), marks=pytest.mark.long),
        pytest.param(256, (63, 64, 255), marks=pytest.mark.long),
    ],
)
def test_the_model_is_the_code_at_the_edges_of_a_bitmap_s_words(
    children: int, edges: tuple[int, ...], root: bool
):
    """The children whose bits are at the edges send at any time, all others one after the other."""
    others = tuple(child for child in range(children) if child not in edges)
    explore([*((child,) for child in edges), others], root, (0, OVERFLOW | CONGESTION))


def explore(groups: Sequence[tuple[int, ...]], root: bool, each_marks: Sequence[int] = range(4)) -> None:
    """Every state that packets of groups of children lead to; those of a group send one after the other, alike."""
    machine, children = Machine(), sum(map(len, groups))
    full = (1 << children) - 1
    start = SlotPool(slots=1, lanes=1, children=children, root=root)
    waiting, known, compared = [(EMPTY, start)], {EMPTY}, 0
    while waiting:
        slot, pool = waiting.pop()
        for tag, place, marks in itertools.product(TAGS, range(len(groups)), each_marks):
            value = 10**place * (1 + TAGS.index(tag))
            after, node = slot, copy.deepcopy(pool)
            for child in groups[place]:
                after, step = machine.step(after, tag, 1 << child, marks, value, full)
                outcome = node.gradient(tag, 0, child, _flags(marks), 0, [value])
                assert outcome.verdict is (PLAIN.get(step) or VERDICTS[root, step])
                assert (outcome.packet is None) is (step in PLAIN)
                if outcome.packet is not None:
                    found = int(outcome.packet.lanes[0]), _marks(outcome.packet.flags)
                    assert found == (after.total, after.marks)
            compared += 1
            state = node.read(0)
            seen = sum(1 << bit for bit in state.seen)
            assert Slot(state.tag, seen, _marks(state.flags), int(state.lanes[0])) == after
            if after not in known:
                known.add(after)
                waiting.append((after, node))
    sets = 2 ** len(groups) - 1
    assert len(known) == 1 + len(TAGS) * sets * len(each_marks)  # every tag, set of groups and pair of marks
    assert compared == len(known) * len(TAGS) * len(groups) * len(each_marks)


LIMITS = [int(LANE_MIN), int(LANE_MIN) + 1, -1, 0, 1, int(LANE_MAX) - 1, int(LANE_MAX)]


@pytest.mark.parametrize(
    "tree",
    [
        flat(4),
        two_levels(2, 2),
        two_levels(3, direct=1),
        two_levels(1, 2, direct=1),
        Tree(3, (0, 0, 1, 2, 2, 1, 0)),
    ],
    ids=["flat", "2+2", "3 and 1", "1, 2 and 1", "three levels"],
)
def test_sums_at_the_limits_are_exact_or_flagged_at_every_level(tree: Tree):
    contributions = np.array(list(itertools.product(LIMITS, repeat=4)), np.int64)  # (cases, workers)
    flags, lanes = _sum_at(tree, 0, contributions)
    exact = contributions.sum(axis=1)
    flagged = (flags & Flag.OVERFLOW) != 0
    assert (flagged | (lanes == exact)).all()
    assert not flagged[np.abs(contributions).max(axis=1) <= 1].any()
    assert flagged.any()


def _sum_at(tree: Tree, part: int, contributions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Flags and lane that a part of the tree sends up in each case; each case has a slot of its own."""
    cases = len(contributions)
    if part >= tree.nodes:
        return np.zeros(cases, np.uint8), contributions[:, part - tree.nodes].astype(np.int32)
    children = tree.children(part)
    pool = SlotPool(slots=4096, lanes=1, children=len(children), root=part == 0)
    sums: list[Sum | None] = []
    for bit, child in enumerate(children):
        flags, lanes = _sum_at(tree, child, contributions)
        sums = [
            pool.gradient(make_tag(1, 0), case, bit, int(flags[case]), 0, [lanes[case]]).packet
            for case in range(cases)
        ]
    whole = [one for one in sums if one is not None]
    assert len(whole) == cases
    return np.array([int(one.flags) for one in whole]), np.array([one.lanes[0] for one in whole])
