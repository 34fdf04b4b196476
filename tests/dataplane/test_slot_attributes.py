# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The attributes of a sum: saturation and its flag, the exponent, congestion."""

from __future__ import annotations

import itertools

import pytest

from netfold.protocol.wire import LANE_MAX, LANE_MIN, Flag, Packet, Verdict
from tests.dataplane.bench import Bench
from tests.dataplane.fixtures import SETTINGS, inner, root, sent
from tests.dataplane.frames import CE, ECT0, ECT1, LANES, NOT_ECT
from tests.dataplane.node import TreeAt

MAX, MIN = int(LANE_MAX), int(LANE_MIN)
LIMITS = [MIN, MIN + 1, -1, 0, 1, MAX - 1, MAX]
NODES = pytest.mark.parametrize("node", [root(3), inner(3)], ids=["root", "inner"])


def fold(bench: Bench, *frames: bytes) -> Packet:
    """One packet of each worker in turn; the sum that leaves at the end."""
    for worker, frame in enumerate(frames, 1):
        left = bench.send(worker, frame)
    return Packet.parse(left[0][1][42:])


@NODES
def test_sums_at_the_limits_are_exact_or_flagged(bench: Bench, node: TreeAt):
    """Every triple of values at the limits, 32 at a time, in the same slot again and again."""
    bench.install(*SETTINGS, node)
    cases = list(itertools.product(LIMITS, repeat=3))
    cases += [(0, 0, 0)] * (-len(cases) % LANES)
    flagged = 0
    for round_, at in enumerate(range(0, len(cases), LANES)):
        columns = zip(*cases[at : at + LANES], strict=True)
        done = fold(bench, *(sent(w, list(column), round=round_) for w, column in enumerate(columns, 1)))
        exact = [sum(case) for case in cases[at : at + LANES]]
        wrong = [case for case, found in zip(exact, done.lane, strict=True) if case != found]
        assert Flag.OVERFLOW in done.flags or not wrong
        flagged += Flag.OVERFLOW in done.flags
    assert flagged
    bench.check_counters()


@NODES
def test_a_lane_that_left_the_range_and_came_back_is_flagged(bench: Bench, node: TreeAt):
    bench.install(*SETTINGS, node)
    done = fold(
        bench,
        sent(1, [MAX - 1, MIN + 1] + [0] * 30),
        sent(2, [2, -2] + [1] * 30),
        sent(3, [-9, 9] + [1] * 30),
    )
    if not bench.device.wraps:
        assert done.lane == (MAX, MIN, *[2] * 30)
    assert done.flags == Flag.OVERFLOW


@NODES
@pytest.mark.parametrize("lane", [0, 15, 16, 31])
def test_one_saturated_lane_is_enough(bench: Bench, node: TreeAt, lane: int):
    bench.install(*SETTINGS, node)
    values = [1] * LANES
    values[lane] = MAX
    assert fold(bench, sent(1), sent(2), sent(3, values)).flags == Flag.OVERFLOW


@NODES
def test_a_true_sum_next_to_a_limit_is_not_flagged(bench: Bench, node: TreeAt):
    bench.install(*SETTINGS, node)
    assert fold(bench, sent(1, MAX - 3), sent(2, 1), sent(3, 1)).flags == Flag(0)
    assert fold(bench, *(sent(w, -5 + w, round=1) for w in (1, 2, 3))).flags == Flag(0)


@NODES
@pytest.mark.parametrize("worker", [1, 2, 3])
@pytest.mark.parametrize("flag", [Flag.OVERFLOW, Flag.CONGESTION])
def test_a_flag_of_any_contribution_sticks_until_the_next_chunk(
    bench: Bench, node: TreeAt, worker: int, flag: Flag
):
    bench.install(*SETTINGS, node)
    assert fold(bench, *(sent(w, flags=int(flag) * (w == worker)) for w in (1, 2, 3))).flags == flag
    assert fold(bench, *(sent(w, round=1) for w in (1, 2, 3))).flags == Flag(0)


@NODES
def test_reserved_bits_do_not_get_into_a_sum(bench: Bench, node: TreeAt):
    bench.install(*SETTINGS, node)
    for worker in (1, 2):
        bench.send(worker, sent(worker, flags=0x3D, reserved=0xFF))
    ((_, frame), *_) = bench.send(3, sent(3, flags=0x3D))
    assert frame[43] == 0


@NODES
@pytest.mark.parametrize("exponents", [*itertools.permutations((0, 127, 255)), (128, 127, 5), (0, 0, 0)])
def test_the_exponent_is_the_largest_as_an_unsigned_number(
    bench: Bench, node: TreeAt, exponents: tuple[int, int, int]
):
    bench.install(*SETTINGS, node)
    done = fold(bench, *(sent(w, exponent=e) for w, e in enumerate(exponents, 1)))
    assert done.exponent == max(exponents)


@NODES
@pytest.mark.parametrize("ecn", [NOT_ECT, ECT0, ECT1, CE])
@pytest.mark.parametrize("worker", [1, 3])
def test_a_congestion_mark_of_the_path_is_carried_into_the_sum(
    bench: Bench, node: TreeAt, ecn: int, worker: int
):
    bench.install(*SETTINGS, node)
    for w in (1, 2):
        bench.send(w, sent(w, ecn=ecn if w == worker else ECT0))
    ((_, frame), *_) = bench.send(3, sent(3, ecn=ecn if worker == 3 else ECT0))
    assert (Flag.CONGESTION in Packet.parse(frame[42:]).flags) is (ecn == CE)
    assert frame[15] & 3 == ECT0  # what leaves can be marked anew


@NODES
def test_a_repeated_packet_joins_its_marks_and_nothing_else(bench: Bench, node: TreeAt):
    bench.install(*SETTINGS, node)
    bench.send(1, sent(1, 5, exponent=2))
    assert bench.verdict_of(1, sent(1, 9, exponent=7, ecn=CE)) is Verdict.DUPLICATE
    bench.send(2, sent(2, 5))
    ((_, frame), *_) = bench.send(3, sent(3, 5))
    done = Packet.parse(frame[42:])
    assert (done.flags, done.exponent, set(done.lane)) == (Flag.CONGESTION, 7, {15})
    ((_, frame), *_) = bench.send(2, sent(2, 5, flags=Flag.OVERFLOW, exponent=9))
    again = Packet.parse(frame[42:])
    assert (again.flags, again.exponent, set(again.lane)) == (Flag.CONGESTION | Flag.OVERFLOW, 9, {15})
