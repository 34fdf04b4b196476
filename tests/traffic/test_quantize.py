# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from netfold.protocol.lane_bits import PAIR_BITS, SUM_BITS, headroom, kept_bits
from netfold.protocol.wire import LANE_MAX, LANE_MIN, Flag
from netfold.traffic.engine.native import library
from netfold.traffic.numerics import EXPONENT_BIAS, Fixed, error_bound
from tests.slot_oracle import SlotPool
from tests.traffic import oracle as quantize

LANES = 5
floats = st.floats(width=32, allow_nan=False, allow_infinity=False)
blocks = hnp.arrays(np.float32, (LANES,), elements=floats)


@settings(max_examples=300)
@given(st.lists(blocks, min_size=1, max_size=9))
def test_a_shared_exponent_never_overflows_and_keeps_the_documented_bound(parts):
    workers = len(parts)
    exponent = max(int(quantize.block_exponents(p[None, :])[0]) for p in parts)
    bits = quantize.shared_bits(np.array([exponent], np.uint8), workers)
    pool = SlotPool(1, LANES, workers, root=True)
    for child, part in enumerate(parts):
        done = pool.gradient(1, 0, child, 0, exponent, quantize.quantize(part[None, :], bits)[0])
    assert done.packet is not None
    assert Flag.OVERFLOW not in done.packet.flags
    bound = Fraction(error_bound(exponent, workers))
    for lane in range(LANES):
        exact = sum(Fraction(float(part[lane])) for part in parts)
        summed = Fraction(int(done.packet.lanes[lane])) / Fraction(2) ** int(bits[0])
        assert abs(summed - exact) <= bound
    with np.errstate(over="ignore"):
        got = quantize.dequantize(done.packet.lanes[None, :], bits)[0]
    exact32 = np.array([float(Fraction(int(v)) / Fraction(2) ** int(bits[0])) for v in done.packet.lanes])
    with np.errstate(over="ignore"):
        assert got.tolist() == exact32.astype(np.float32).tolist()  # one rounding, no second one


@given(blocks)
def test_the_exponent_byte_bounds_its_block(block):
    byte = int(quantize.block_exponents(block[None, :])[0])
    assert float(np.abs(block).max()) < 2.0 ** (byte - 126)
    if byte > 0:
        assert float(np.abs(block).max()) >= 2.0 ** (byte - 127)


@pytest.mark.parametrize("exponent", [0, 30, 31, 127, 254])
@pytest.mark.parametrize("workers", [1, 2, 8, 32, 1000])
def test_scales_are_normal_floats(exponent, workers):
    bits = quantize.shared_bits(np.array([exponent], np.uint8), workers)
    scale = np.ldexp(np.float32(1), bits)[0]
    assert np.isfinite(scale)
    assert scale >= np.finfo(np.float32).tiny
    assert error_bound(exponent, workers) == workers / 2 / float(scale)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", [(0, 0), (3, 4), (200_000, 1)])
def test_a_block_with_a_value_that_is_not_finite_has_the_exponent_of_ieee_754(where, value):
    blocks = np.ones((200_001, LANES), np.float32)
    blocks[where] = value
    exponents = quantize.block_exponents(blocks)
    assert np.flatnonzero(exponents == quantize.NOT_FINITE).tolist() == [where[0]]
    assert (quantize.block_exponents(quantize.finite_part(blocks)) == 127).all()


any_value = st.sampled_from([np.nan, np.inf, -np.inf, 1.0, -1.0, 0.0])


@given(hnp.arrays(np.float32, (4, 7), elements=any_value))
def test_summed_kinds_say_what_ieee_754_makes_of_the_sum(parts):
    values = quantize.finite_part(parts).sum(axis=0, dtype=np.float32)[None, :]
    quantize.overlay(values, quantize.kinds(parts).sum(axis=0, dtype=np.int32)[None, :])
    with np.errstate(invalid="ignore"):
        expected = parts.sum(axis=0)
    np.testing.assert_array_equal(values[0], expected)


def test_kinds_of_as_many_workers_as_there_may_be_stay_apart():
    for value, expected in ((np.inf, np.inf), (-np.inf, -np.inf), (np.nan, np.nan)):
        sums = quantize.kinds(np.full((1, 1), value, np.float32)) * np.int32(32767)
        values = np.zeros((1, 1), np.float32)
        quantize.overlay(values, sums)
        np.testing.assert_array_equal(values[0], [expected])


def test_an_average_is_rounded_once():
    third = quantize.dequantize(np.array([[3 << 24, 1]], np.int32), np.array([2], np.int32), 3)
    assert third.tolist() == [[2.0**22, float(np.float32(1 / 12))]]


@given(blocks, st.integers(-96, 126))
def test_a_fixed_scale_cuts_what_does_not_fit_and_says_so(block, bits):
    with np.errstate(over="ignore"):
        lanes, cut = quantize.quantize_saturating(block[None, :], np.array([bits], np.int32))
    scaled = [Fraction(float(v)) * Fraction(2) ** bits for v in block]
    assert bool(cut[0]) == any(abs(round(v)) > 2**31 - 128 for v in scaled)
    for lane, value in zip(lanes[0].tolist(), scaled, strict=True):
        expected = max(-(2**31 - 128), min(2**31 - 128, round(value)))
        assert lane == expected


@given(hnp.arrays(np.int32, (3, LANES), elements=st.integers(int(LANE_MIN), int(LANE_MAX))))
def test_halves_join_to_what_was_split(values):
    assert quantize.join_halves(quantize.split_halves(values)).tolist() == values.tolist()


@pytest.mark.parametrize("bits", [-97, 127])
def test_a_fixed_scale_out_of_range_is_refused(bits):
    with pytest.raises(ValueError, match=f"is {bits}; it must be -96 to 126"):
        Fixed(bits)


PAGE = Path(__file__).parents[2] / "docs/reference/protocol.md"
EXPONENT = 127
"""The exponent belongs to a row whose largest value is in [1, 2)."""


def table() -> list[tuple[int, int, int, int]]:
    """Workers, bits of block, of half, and the exponent of fixed's largest value at scale 1."""
    row = re.compile(r"\| ([\d,]+) \| (\d+) \| (\d+) \| 24 \| `2\^\((\d+) - f\)` \|")
    found = [m.groups() for m in map(row.fullmatch, PAGE.read_text().splitlines()) if m]
    return [(int(n.replace(",", "")), int(b), int(h), int(f)) for n, b, h, f in found]


def test_the_table_has_jobs_of_2_to_4096_workers() -> None:
    workers = [row[0] for row in table()]
    assert (workers[0], workers[-1]) == (2, 4096)


@pytest.mark.parametrize(("workers", "block", "half", "fixed"), table())
def test_the_table_is_what_the_engine_keeps(workers: int, block: int, half: int, fixed: int) -> None:
    """A value just below 2 becomes a whole number of so many bits, and the sum of all stays within the lane."""
    assert (block, half) == (kept_bits(workers), kept_bits(workers, half=True))
    shared_bits = library().nf_shared_bits
    for kept, sum_bits in ((block, SUM_BITS), (half, PAIR_BITS)):
        scale = shared_bits(EXPONENT, sum_bits, headroom(workers))
        largest = 2.0 ** (EXPONENT - EXPONENT_BIAS) * 2.0**scale
        assert largest == 2.0**kept
        assert workers * largest <= 2.0**sum_bits
    assert workers * 2**fixed <= 2**SUM_BITS
