# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Every lane of every program: 32, 64, 256 and 512 lanes, on each target."""

from __future__ import annotations

from random import Random

import pytest

from netfold.p4src.tools.p4build import LANES as PROGRAMS
from netfold.protocol.wire import LANE_MAX, LANE_MIN, Flag, Packet, Verdict
from tests.dataplane.bench import Bench
from tests.dataplane.conftest import Fresh
from tests.dataplane.fixtures import EPOCH, SETTINGS, TREE, inner, root
from tests.dataplane.frames import Ip, Netfold, gradient
from tests.dataplane.node import Child, TreeAt

MAX, MIN = int(LANE_MAX), int(LANE_MIN)


@pytest.fixture(params=PROGRAMS)
def wide(request: pytest.FixtureRequest, target: str, fresh: Fresh) -> Bench:
    return fresh(target, request.param)


def give(bench: Bench, child: Child, values: list[int], **fields: int) -> list[Packet]:
    header = Netfold(tree=TREE, epoch=EPOCH, child=child.number, lanes=values, **fields)
    left = bench.send(child.port, gradient(header, Ip(src=f"10.0.0.{child.port}")))
    return [Packet.parse(frame[42:]) for _, frame in left]


def test_every_lane_is_added_to_its_own_sum(wide: Bench):
    wide.install(*SETTINGS, root(3))
    for child, factor in zip(root(3).children, (1, 1000, -1_000_000), strict=True):
        results = give(wide, child, [factor * (lane + 1) for lane in range(wide.lanes)])
    assert results[0].lane == tuple(-998_999 * (lane + 1) for lane in range(wide.lanes))
    wide.check_counters()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("limit", [1000, 2**28, 2**31 - 1], ids=["small", "below the limits", "all"])
def test_running_sums_of_mixed_signs(wide: Bench, seed: int, limit: int):
    """Seven children, so that sums cross zero and the limits in both directions."""
    random = Random(seed)
    children = tuple(Child(1 + number % 3, number) for number in range(7))
    wide.install(*SETTINGS, TreeAt(TREE, EPOCH, 4, root=True, children=children, down=(1, 2, 3)))
    exact = [0] * wide.lanes
    for child in random.sample(children, len(children)):
        values = [random.randint(-limit - 1, limit) for _ in range(wide.lanes)]
        exact = [a + b for a, b in zip(exact, values, strict=True)]
        results = give(wide, child, values)
    result = results[0]
    assert Flag.OVERFLOW in result.flags or result.lane == tuple(exact)
    assert (Flag.OVERFLOW in result.flags) is (limit > 2**30)


@pytest.mark.parametrize("node", [root(2), inner(2)], ids=["root", "inner"])
@pytest.mark.parametrize("limit", [MAX, MIN])
def test_each_single_lane_that_does_not_fit_flags_the_sum_and_its_duplicate(
    wide: Bench, node: TreeAt, limit: int
):
    wide.install(*SETTINGS, node)
    one, two = node.children
    first = [1 if limit > 0 else -1] * wide.lanes
    for round_, lane in enumerate({0, 1, 31, 32, wide.lanes // 2, wide.lanes - 2, wide.lanes - 1}):
        values = [-5] * wide.lanes
        values[lane % wide.lanes] = limit
        give(wide, one, first, round=round_)
        (done, *_) = give(wide, two, values, round=round_)
        (again, *_) = give(wide, one, first, round=round_)
        assert [p.flags for p in (done, again)] == [Flag.OVERFLOW] * 2
        assert done.lane == again.lane


@pytest.mark.parametrize("lane", [0, 1, 30, 31, 63, 64, 255])
def test_the_next_lanes_do_not_see_a_lane_that_does_not_fit(wide: Bench, lane: int):
    """No carry leaves a lane, up or down, and its sum's flag goes with the next claim."""
    wide.install(*SETTINGS, root(3))
    lane %= wide.lanes
    for round_, limit in enumerate((MAX, MIN)):
        values = [0] * wide.lanes
        values[lane] = limit
        for child in root(3).children:
            results = give(wide, child, values, round=round_)
        assert results[0].flags == Flag.OVERFLOW
        assert set(results[0].lane[:lane] + results[0].lane[lane + 1 :]) == {0}
    for child in root(3).children:
        results = give(wide, child, [child.number] * wide.lanes, round=2)
    assert (results[0].flags, set(results[0].lane)) == (Flag(0), {sum(c.number for c in root(3).children)})


def test_another_program_s_packets_are_malformed(wide: Bench):
    wide.install(*SETTINGS, root(1))
    for lanes in {*PROGRAMS, wide.lanes - 1, wide.lanes + 1} - {wide.lanes}:
        header = Netfold(tree=TREE, epoch=EPOCH, child=1, lanes=[1] * lanes)
        assert wide.verdict_of(1, gradient(header)) is Verdict.MALFORMED
