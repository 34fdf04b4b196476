# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netfold.protocol.wire import Flag, Verdict, make_tag
from tests.slot_oracle import SlotPool

LANES = 3
MAX, MIN = 2**31 - 1, -(2**31)


def pool(children: int = 2, root: bool = True, slots: int = 4) -> SlotPool:
    return SlotPool(slots, LANES, children, root)


def give(
    node: SlotPool,
    round_: int,
    child: int,
    lanes: list[int],
    flags: int = 0,
    exponent: int = 0,
    epoch: int = 1,
):
    return node.gradient(make_tag(epoch, round_), 0, child, flags, exponent, lanes)


@pytest.mark.parametrize(
    ("root", "sent", "repeated"),
    [(True, Verdict.RESULT_SENT, Verdict.RESULT_RESENT), (False, Verdict.SUM_SENT, Verdict.SUM_RESENT)],
)
def test_the_last_child_completes_and_any_child_may_ask_again(root, sent, repeated):
    node = pool(root=root)
    assert give(node, 0, 0, [1, 2, 3]).verdict is Verdict.ACCUMULATED
    assert give(node, 0, 0, [1, 2, 3]).verdict is Verdict.DUPLICATE
    last = give(node, 0, 1, [10, 20, 30])
    assert last.verdict is sent
    assert last.packet.lanes.tolist() == [11, 22, 33]
    again = give(node, 0, 0, [7, 7, 7])
    assert again.verdict is repeated
    assert again.packet.lanes.tolist() == [11, 22, 33]


def test_a_repeated_packet_joins_its_marks_but_not_its_lanes():
    node = pool()
    give(node, 0, 0, [1, 1, 1])
    assert give(node, 0, 0, [1, 1, 1], flags=Flag.CONGESTION, exponent=5).verdict is Verdict.DUPLICATE
    done = give(node, 0, 1, [1, 1, 1])
    assert (done.packet.flags, done.packet.exponent, done.packet.lanes.tolist()) == (
        Flag.CONGESTION,
        5,
        [2, 2, 2],
    )


def test_a_newer_chunk_claims_the_slot_and_the_older_one_is_stale():
    node = pool()
    give(node, 0, 0, [5, 5, 5], flags=Flag.OVERFLOW, exponent=9)
    assert give(node, 1, 1, [1, 1, 1]).verdict is Verdict.ACCUMULATED
    assert give(node, 0, 1, [5, 5, 5]).verdict is Verdict.STALE_CHUNK
    done = give(node, 1, 0, [1, 1, 1], exponent=3)
    assert done.verdict is Verdict.RESULT_SENT
    assert (done.packet.flags, done.packet.exponent, done.packet.lanes.tolist()) == (Flag(0), 3, [2, 2, 2])


def test_a_new_epoch_is_newer_than_every_round_of_the_old_one():
    node = pool()
    give(node, 2**20 - 1, 0, [5, 5, 5])
    assert give(node, 0, 0, [1, 1, 1], epoch=2).verdict is Verdict.ACCUMULATED
    assert node.read(0).tag == make_tag(2, 0)


def test_a_tree_with_one_child_completes_at_once():
    node = pool(children=1)
    assert give(node, 0, 0, [1, 2, 3]).verdict is Verdict.RESULT_SENT


def test_a_sum_that_reached_a_rail_stays_there_and_says_so():
    node = pool(children=3)
    give(node, 0, 0, [MAX - 1, MIN + 1, 0])
    give(node, 0, 1, [2, -2, 0])
    done = give(node, 0, 2, [-100, 100, 5])
    assert done.packet.lanes.tolist() == [MAX, MIN, 5]
    assert Flag.OVERFLOW in done.packet.flags


def test_flags_of_a_contribution_stick_and_the_exponent_is_the_largest():
    node = pool(children=3)
    give(node, 0, 0, [0, 0, 0], flags=Flag.CONGESTION, exponent=4)
    give(node, 0, 1, [0, 0, 0], flags=Flag.OVERFLOW, exponent=200)
    done = give(node, 0, 2, [0, 0, 0], exponent=7)
    assert done.packet.flags == Flag.CONGESTION | Flag.OVERFLOW
    assert done.packet.exponent == 200


def test_a_slot_outside_the_range_changes_nothing():
    node = pool()
    assert node.gradient(make_tag(1, 0), 4, 0, 0, 0, [1, 1, 1]).verdict is Verdict.BAD_SLOT
    assert all(node.read(slot).tag == 0 for slot in range(4))


def test_reset_lets_an_older_epoch_claim_again():
    node = pool()
    give(node, 0, 0, [1, 1, 1], epoch=9)
    assert node.reset(0).tag == make_tag(9, 0)
    assert give(node, 0, 0, [1, 1, 1], epoch=1).verdict is Verdict.ACCUMULATED


@pytest.mark.parametrize("children", [32, 64, 65, 130])
def test_any_number_of_children(children):
    node = pool(children=children)
    for child in range(children - 1):
        assert give(node, 0, child, [1, 1, 1]).verdict is Verdict.ACCUMULATED
    assert give(node, 0, children - 1, [1, 1, 1]).packet.lanes.tolist() == [children] * 3
    assert node.read(0).seen == frozenset(range(children))


lane = st.one_of(st.integers(MIN, MAX), st.sampled_from([MIN, MIN + 1, -1, 0, 1, MAX - 1, MAX]))


@settings(max_examples=100)
@given(values=st.lists(lane, min_size=1, max_size=6))
def test_the_sum_is_exact_or_flagged(values):
    node = SlotPool(1, 1, len(values), True)
    for child, value in enumerate(values):
        done = node.gradient(1, 0, child, 0, 0, [value])
    assert done.packet is not None
    if Flag.OVERFLOW not in done.packet.flags:
        assert done.packet.lanes.tolist() == [sum(values)]
