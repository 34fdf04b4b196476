# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Lanes that are float32 (docs/reference/protocol.md, 3.3), in the program that adds them: bit by bit what
numpy adds in the order of arrival."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from netfold.controller.switches.tables import CPU_PORT, MANAGEMENT_PORT
from netfold.p4src.manifest import lanes_with
from netfold.protocol.wire import Flag, Kind, Packet
from netfold.traffic.numerics import floats_error_bound
from tests.dataplane.bench import Bench
from tests.dataplane.conftest import V1MODEL_TARGETS, Fresh
from tests.dataplane.fixtures import EPOCH, SETTINGS, TREE, inner
from tests.dataplane.frames import Ip, Netfold, gradient
from tests.dataplane.node import MANAGED, Child, TreeAt

Bits = NDArray[np.uint32]

LANES = lanes_with("floats")[0]
CHILDREN = tuple(Child(1 + number % 3, number) for number in range(7))
ROOT = TreeAt(TREE, EPOCH, 4, root=True, children=CHILDREN, down=(1, 2, 3))
NAN = 0x7FC00000
KINDS = ("any", "near", "apart", "subnormal", "largest", "ties")
EDGES = np.array(
    [
        *(
            0x00000000,
            0x00000001,
            0x00000002,
            0x003FFFFF,
            0x007FFFFF,
            0x00800000,
            0x00800001,
            0x00FFFFFF,
            0x01000000,
        ),
        *(
            0x33800000,
            0x33FFFFFF,
            0x34000000,
            0x3F7FFFFF,
            0x3F800000,
            0x3F800001,
            0x4B7FFFFF,
            0x4B800000,
            0x4B800001,
        ),
        *(
            0x72FFFFFF,
            0x73000000,
            0x73800000,
            0x7F000000,
            0x7F7FFFFE,
            0x7F7FFFFF,
            0x7F800000,
            0x7F800001,
            0x7FC00000,
        ),
    ],
    np.uint32,
)
EDGES = np.concatenate([EDGES, EDGES | 0x80000000])  # of both signs


@pytest.fixture
def floats(target: str, fresh: Fresh) -> Bench:
    bench = fresh(target, LANES)
    bench.install(*SETTINGS, ROOT)
    return bench


def give(bench: Bench, child: Child, bits: Bits, flags: int = Flag.FLOATS, **fields: int) -> list[Packet]:
    header = Netfold(
        tree=TREE,
        epoch=EPOCH,
        child=child.number,
        lanes=bits.view(np.int32).tolist(),
        flags=int(flags),
        **fields,
    )
    left = bench.send(child.port, gradient(header, Ip(src=f"10.0.0.{child.port}")))
    return [Packet.parse(frame[42:]) for _, frame in left]


def sum_of(bench: Bench, contributions: Sequence[Bits], round_: int = 0) -> Bits:
    """Returns the switch's sum of one row of lanes for each child; the other children give nothing (-0)."""
    results: list[Packet] = []
    nothing = np.full(LANES, 0x80000000, np.uint32)
    for place, child in enumerate(CHILDREN):
        bits = contributions[place] if place < len(contributions) else nothing
        results = give(bench, child, bits, round=round_)
    assert Flag.FLOATS in results[0].flags
    assert Flag.OVERFLOW not in results[0].flags
    return np.array(results[0].lane, np.int32).view(np.uint32)


def added(one: Bits, other: Bits) -> Bits:
    with np.errstate(all="ignore"):
        total = one.view(np.float32) + other.view(np.float32)
    return np.where(np.isnan(total), np.uint32(NAN), total.view(np.uint32))


def rows(bits: Bits) -> Bits:
    """Cut into rows of lanes, the last one filled up with zeros."""
    return np.pad(bits, (0, -len(bits) % LANES)).reshape(-1, LANES)


def test_every_edge_meets_every_edge(floats: Bench):
    one, other = (rows(grid.ravel()) for grid in np.meshgrid(EDGES, EDGES))
    for round_, (a, b) in enumerate(zip(one, other, strict=True)):
        np.testing.assert_array_equal(sum_of(floats, [a, b], round_), added(a, b))


def random_bits(random: np.random.Generator, kind: str) -> Bits:
    """Numbers of all kinds: any bits; magnitudes near each other, which cancel; subnormals; near the largest; ties."""
    sign = random.integers(0, 2, LANES, dtype=np.uint32) << 31
    fraction = random.integers(0, 1 << 23, LANES, dtype=np.uint32)
    exponent = {
        "any": random.integers(0, 256, LANES),
        "near": 120 + random.integers(0, 3, LANES),
        "apart": 100 + random.integers(0, 30, LANES),
        "subnormal": random.integers(0, 3, LANES),
        "largest": 252 + random.integers(0, 3, LANES),
        "ties": 127 + random.integers(0, 26, LANES),
    }[kind].astype(np.uint32)
    if kind == "ties":  # few bits at both ends
        fraction = fraction & random.choice(np.array([0x600000, 0x000003, 0x400001, 0], np.uint32), LANES)
    return sign | exponent << 23 | fraction


@pytest.mark.parametrize("kind", KINDS)
def test_sums_are_numpy_s_bit_by_bit(floats: Bench, kind: str):
    random = np.random.default_rng(len(kind))
    for round_ in range(20):
        contributions = [random_bits(random, kind) for _ in CHILDREN]
        total = contributions[0]
        for bits in contributions[1:]:
            total = added(total, bits)
        np.testing.assert_array_equal(sum_of(floats, contributions, round_), total)
    floats.check_counters()


def test_the_error_is_below_half_a_unit_of_the_largest_partial_sum_for_each_addition(floats: Bench):
    random = np.random.default_rng(1)
    for round_ in range(20):
        parts = [
            (random.standard_normal(LANES) * 10.0 ** random.uniform(-3, 3)).astype(np.float32)
            for _ in CHILDREN
        ]
        found = sum_of(floats, [p.view(np.uint32) for p in parts], round_).view(np.float32).astype(np.float64)
        exact = np.cumsum(np.array(parts, np.float64), axis=0)
        bound = np.array([floats_error_bound(float(s), len(parts)) for s in np.abs(exact).max(axis=0)])
        np.testing.assert_array_less(np.abs(found - exact[-1]), bound)


def test_copies_add_nothing_and_repetitions_are_the_same_bits(floats: Bench):
    copies(floats)


def copies(floats: Bench) -> None:
    random = np.random.default_rng(2)
    first = random_bits(random, "any")
    give(floats, CHILDREN[0], first, round=9000)
    assert give(floats, CHILDREN[0], first, round=9000) == []
    result = sum_of(floats, [first, random_bits(random, "any")], 9000)
    repeated = give(floats, CHILDREN[3], random_bits(random, "any"), round=9000)
    assert [p.lane for p in repeated] == [tuple(result.view(np.int32).tolist())]


def test_whole_numbers_and_floats_take_turns_in_a_slot(floats: Bench):
    ones = np.full(LANES, 1, np.uint32)
    for child in CHILDREN:
        results = give(floats, child, ones, flags=0)
    assert results[0].lane == (7,) * LANES
    assert results[0].flags == 0
    bits = np.full(LANES, 0x7FFFFFFF, np.uint32)  # a NaN, and the largest int32
    assert set(sum_of(floats, [bits], 1).tolist()) == {NAN}
    for child in CHILDREN:
        results = give(floats, child, bits, flags=0, round=2)
    assert results[0].flags == Flag.OVERFLOW


def test_a_sum_of_floats_goes_without_late_workers_in_a_tree_with_a_quorum(floats: Bench, target: str):
    if target not in V1MODEL_TARGETS:
        pytest.skip("a chip has no quorums")
    first, second, late = CHILDREN[:3]
    floats.install(replace(ROOT, children=(first, second, late), quorum=2))
    random = np.random.default_rng(6)
    for round_, kind in enumerate(KINDS):
        one, other, more = (random_bits(random, kind) for _ in range(3))
        flags = Flag.FLOATS | Flag.QUORUM
        assert give(floats, first, one, flags, round=round_, reserved=1) == []
        assert give(floats, second, other, flags, round=round_, reserved=1) == []
        results = give(floats, first, one, flags | Flag.SEAL, round=round_, reserved=1)
        answers = give(floats, late, more, flags, round=round_, reserved=1)
        assert (len(results), len(answers)) == (3, 1)
        for result in (*results, *answers):
            assert (result.count, Flag.FLOATS in result.flags) == (2, True)
            np.testing.assert_array_equal(np.array(result.lane, np.int32).view(np.uint32), added(one, other))
    floats.check_counters(TREE)


def test_an_inner_node_sends_floats_up_as_floats(target: str, fresh: Fresh):
    bench = fresh(target, LANES)
    bench.install(*SETTINGS, inner(2))
    half = np.full(LANES, 0.5, np.float32).view(np.uint32)
    give(bench, Child(1, 1), half)
    (up,) = give(bench, Child(2, 2), half)
    assert up.flags == Flag.FLOATS
    assert up.lane == (0x3F800000,) * LANES


@pytest.mark.parametrize("reset", [False, True], ids=["read", "reset"])
def test_management_shows_floats_as_they_are(floats: Bench, reset: bool):
    bits = np.full(LANES, 0x7FFFFFFF, np.uint32)
    give(floats, CHILDREN[0], bits)
    header = Netfold(tree=MANAGED, kind=Kind.RESET if reset else Kind.READ, lanes=[0] * LANES)
    ((_, answer),) = floats.send(CPU_PORT, b"\0\0" + gradient(header, port=MANAGEMENT_PORT))
    shown = Packet.parse(answer[6 + 42 :])
    assert (shown.lane, shown.flags) == ((0x7FFFFFFF,) * LANES, Flag.FLOATS)


@pytest.mark.parametrize("lanes", [32, 256])
def test_programs_that_add_no_floats_say_so(lanes: int, fresh: Fresh):
    """The flag is gone in what they send, so that workers see it."""
    bench = fresh("softswitch", lanes)
    bench.install(*SETTINGS, TreeAt(TREE, EPOCH, 4, root=True, children=CHILDREN[:1], down=(1,)))
    (result,) = give(bench, CHILDREN[0], np.zeros(lanes, np.uint32))
    assert result.flags == 0
