# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""codec.c: a row of each dtype and scheme to lanes, the lanes of all workers added as a switch adds them, and back:
against numpy, and within the bounds of docs/reference/protocol.md, section 6."""

from __future__ import annotations

import ctypes
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from netfold.protocol.lane_bits import PAIR_BITS, headroom
from netfold.protocol.wire import Flag
from netfold.traffic.engine.native import library
from netfold.traffic.numerics import (
    BFLOAT16,
    DTYPES,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT64,
    error_bound,
    exponent_of,
    wide_error_bound,
)
from tests.slot_oracle import SlotPool
from tests.traffic import oracle

LANES = 20
SHARED, HALF = 0, 3
float32s = st.floats(width=32, allow_nan=False, allow_infinity=False)
float64s = st.floats(allow_nan=False, allow_infinity=False)


class _Excess(ctypes.Structure):
    _fields_ = (
        ("index", ctypes.c_int64),
        ("_until_aligned", ctypes.c_int64),
        ("total", ctypes.c_uint8 * 16),  # __int128
    )


class Codec:
    """struct nf_codec, of so many workers."""

    def __init__(self, dtype: np.dtype[Any], scheme: int, workers: int, average: bool = False) -> None:
        self.dtype = dtype
        self._room = (ctypes.c_int64 * 32)()
        self._code = library()
        self._code.nf_row_exponent.restype = ctypes.c_uint8
        self._code.nf_row_unpack.restype = _Excess
        self._code.nf_codec_init(self._room, DTYPES.index(dtype), scheme, 0, ctypes.c_int64(LANES))
        self._code.nf_codec_set_workers(self._room, ctypes.c_int64(workers), int(average))

    def exponent(self, row: np.ndarray) -> int:
        found: int = self._code.nf_row_exponent(self._room, at(row), 0)
        return found

    def bits(self, exponent: int) -> int:
        found: int = self._code.nf_row_bits(self._room, ctypes.c_uint8(exponent))
        return found

    def pack(self, row: np.ndarray, bits: int) -> np.ndarray:
        lanes = np.zeros(LANES, ">i4")
        self._code.nf_row_pack(self._room, at(lanes), at(row), bits, 0)
        return lanes.astype(np.int32)

    def unpack(self, sums: np.ndarray, bits: int, count: int) -> tuple[np.ndarray, _Excess]:
        to = np.zeros(count, self.dtype)
        lanes = sums.astype(">i4")
        excess = self._code.nf_row_unpack(self._room, at(to), ctypes.c_int64(count), at(lanes), bits, None)
        return to, excess


def at(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def added(lanes: list[np.ndarray]) -> np.ndarray:
    """As a switch adds them; no lane may reach a rail."""
    pool = SlotPool(1, LANES, len(lanes), root=True)
    for child, part in enumerate(lanes):
        done = pool.gradient(1, 0, child, 0, 0, part)
    assert done.packet is not None
    assert Flag.OVERFLOW not in done.packet.flags
    return done.packet.lanes


def rows(width: int, dtype: np.dtype[Any], elements: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Draws rows of 1 to 17 workers."""
    one = hnp.arrays(dtype, (width,), elements=elements)
    return st.lists(one, min_size=1, max_size=17)


@settings(max_examples=200)
@given(rows(2 * LANES, FLOAT32, float32s), st.booleans())
def test_16x2_lanes_are_numpys_never_near_a_limit_and_keep_the_documented_bound(parts, average):
    workers = len(parts)
    codec = Codec(FLOAT32, HALF, workers, average)
    exponent = max(codec.exponent(part) for part in parts)
    bits = codec.bits(exponent)
    assert bits == oracle.pair_bits(np.array([exponent], np.uint8), workers)[0]
    lanes = [codec.pack(part, bits) for part in parts]
    for part, packed in zip(parts, lanes, strict=True):
        whole = oracle.quantize(part[None, :], np.array([bits]))
        assert np.abs(whole).max() <= 2 ** (PAIR_BITS - headroom(workers))
        assert packed.tolist() == oracle.pack_pairs(whole)[0].tolist()
    sums = added(lanes)
    assert np.abs(sums.astype(np.int64)).max() <= 2**30 + 2**14
    divisor = workers if average else 1
    with np.errstate(over="ignore"):
        expected = oracle.dequantize(oracle.unpack_pairs(sums[None, :]), np.array([bits]), divisor)[0]
    assert codec.unpack(sums, bits, 2 * LANES)[0].tobytes() == expected.tobytes()
    bound = Fraction(error_bound(exponent, workers, half=True))
    exact = [sum(map(Fraction, map(float, column))) for column in np.stack(parts, axis=1)]
    for whole, right in zip(oracle.unpack_pairs(sums[None, :])[0].tolist(), exact, strict=True):
        assert abs(Fraction(whole) / Fraction(2) ** bits - right) <= bound


@pytest.mark.parametrize("sign", [(1, 1), (1, -1), (-1, 1), (-1, -1), (0, -1)])
@pytest.mark.parametrize("workers", [1, 2, 3, 8, 64])
def test_the_largest_16x2_lanes_of_all_signs_are_separated(workers, sign):
    """The second lane gives back what it borrowed from the first, at the edges too."""
    codec = Codec(FLOAT32, HALF, workers)
    edge = np.nextafter(np.float32(2), np.float32(0))
    row = np.repeat(np.array(sign, np.float32) * edge, LANES)
    bits = codec.bits(codec.exponent(row))
    got, _ = codec.unpack(added([codec.pack(row, bits)] * workers), bits, 2 * LANES)
    assert got.tolist() == np.repeat(np.array(sign, np.float32) * 2 * workers, LANES).tolist()


@pytest.mark.parametrize("dtype", [FLOAT16, BFLOAT16], ids=str)
@settings(max_examples=60)
@given(parts=rows(2 * LANES, FLOAT32, st.floats(-6e4, 6e4, width=32)))
def test_short_floats_in_16x2_lanes_are_the_rounded_sums_of_their_float32(dtype, parts):
    workers = len(parts)
    short, single = Codec(dtype, HALF, workers), Codec(FLOAT32, HALF, workers)
    parts = [part.astype(dtype) for part in parts]
    same = [part.astype(np.float32) for part in parts]
    exponent = max(short.exponent(part) for part in parts)
    assert exponent == max(single.exponent(part) for part in same)
    bits = short.bits(exponent)
    sums = added([short.pack(part, bits) for part in parts])
    with np.errstate(over="ignore"):
        expected = single.unpack(sums, bits, 2 * LANES)[0].astype(dtype)
    assert short.unpack(sums, bits, 2 * LANES)[0].tobytes() == expected.tobytes()


@settings(max_examples=200)
@given(rows(LANES // 4, FLOAT64, float64s | st.floats(-1, 1)))
def test_float64_keeps_the_documented_bound(parts):
    workers = len(parts)
    codec = Codec(FLOAT64, SHARED, workers)
    exponent = max(codec.exponent(part) for part in parts)
    assert exponent == max(oracle.wide_exponents(np.array(parts)))
    assert exponent == exponent_of(float(np.abs(parts).max()), FLOAT64)
    bits = codec.bits(exponent)
    assert bits == oracle.wide_bits(np.array([exponent]))[0]
    lanes = [codec.pack(part, bits) for part in parts]
    for part, packed in zip(parts, lanes, strict=True):
        whole = oracle.quantize_wide(part[None, :], np.array([bits]))
        assert packed.tolist() == oracle.split_wide(whole)[0].tolist()
    sums = added(lanes)
    got = codec.unpack(sums, bits, LANES // 4)[0]
    bound = Fraction(wide_error_bound(exponent, workers))
    exact = [sum(map(Fraction, column)) for column in np.stack(parts, axis=1).tolist()]
    for value, whole, right in zip(got.tolist(), oracle.join_wide(sums[None, :])[0], exact, strict=True):
        total = Fraction(whole) / Fraction(2) ** bits
        assert abs(total - right) <= bound
        if abs(total) < Fraction(2) ** 1023:
            assert value == float(total), "rounded once"


@settings(max_examples=200)
@given(rows(LANES // 4, INT64, st.integers(-(2**63), 2**63 - 1)))
def test_int64_sums_are_exact_or_named(parts):
    codec = Codec(INT64, SHARED, len(parts))
    sums = added([codec.pack(part, 0) for part in parts])
    exact = [sum(column) for column in np.stack(parts, axis=1).tolist()]
    assert oracle.join_wide(sums[None, :])[0] == exact
    got, excess = codec.unpack(sums, 0, LANES // 4)
    beyond = [i for i, total in enumerate(exact) if not -(2**63) <= total < 2**63]
    assert excess.index == (beyond[0] if beyond else -1)
    if beyond:
        assert int.from_bytes(excess.total, "little", signed=True) == exact[beyond[0]]
    else:
        assert got.tolist() == exact


@pytest.mark.parametrize("extreme", [2**63 - 1, -(2**63)])
def test_int64_lanes_of_the_most_workers_do_not_saturate(extreme):
    codec = Codec(INT64, SHARED, 32767)
    lanes = codec.pack(np.full(LANES // 4, extreme, np.int64), 0).astype(np.int64) * 32767
    assert np.abs(lanes).max() < 2**31 - 1
    assert oracle.join_wide(lanes.astype(np.int32)[None, :])[0] == [extreme * 32767] * (LANES // 4)
