# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""numerics/quantize.c against what numpy says, on all kinds of floats."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from netfold.protocol.wire import LANE_MAX, LANE_MIN
from netfold.traffic.engine.native import library
from netfold.traffic.numerics import DTYPES, SHORT_FLOATS
from tests.traffic import oracle

LANES = 19  # whole vectors and a rest
anything = hnp.arrays(np.uint32, (LANES,), elements=st.integers(0, 2**32 - 1)).map(
    lambda bits: bits.view(np.float32)
)
finite = hnp.arrays(np.float32, (LANES,), elements=st.floats(width=32, allow_nan=False, allow_infinity=False))
sums = hnp.arrays(np.int32, (LANES,), elements=st.integers(int(LANE_MIN), int(LANE_MAX)))


def at(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def call(name: str, *arguments: Any, result: Any = None) -> Any:
    function = getattr(library(), name)
    function.restype = result
    return function(*arguments, ctypes.c_int64(LANES))


def lanes_of(name: str, values: np.ndarray, *arguments: Any) -> list[int]:
    out = np.zeros(LANES, ">i4")
    call(name, at(out), at(values), *arguments)
    return out.tolist()


@settings(max_examples=100)
@given(anything)
def test_exponents_and_special_codes_are_numpys(values):
    block = values[None, :]
    assert call("nf_exponent", at(values), result=ctypes.c_uint8) == oracle.block_exponents(block)[0]
    rest = oracle.block_exponents(oracle.finite_part(block))[0]
    assert call("nf_finite_exponent", at(values), result=ctypes.c_uint8) == rest
    assert lanes_of("nf_special_codes", values) == oracle.kinds(block)[0].tolist()
    expected = oracle.finite_part(block)[0].tobytes()
    cleared = values.copy()
    call("nf_clear_special", at(cleared))
    assert cleared.tobytes() == expected


@settings(max_examples=100)
@given(finite, anything, st.integers(-96, 126), st.integers(1, 1000))
def test_lanes_are_numpys(values, others, bits, workers):
    exponent = oracle.block_exponents(values[None, :])
    shared = oracle.shared_bits(exponent, workers)
    assert (
        lanes_of("nf_quantize", values, int(shared[0]))
        == oracle.quantize(values[None, :], shared)[0].tolist()
    )
    with np.errstate(all="ignore"):
        lanes, cut = oracle.quantize_saturating(others[None, :], np.array([bits], np.int32))
    out = np.zeros(LANES, ">i4")
    said = call("nf_quantize_saturating", at(out), at(others), bits, result=ctypes.c_int)
    assert (out.tolist(), bool(said)) == (lanes[0].tolist(), bool(cut[0]))


@settings(max_examples=100)
@given(sums, st.integers(-100, 130), st.integers(1, 1000), hnp.arrays(np.int32, (LANES,)))
def test_sums_and_averages_are_numpys(words, bits, divisor, kinds):
    with np.errstate(over="ignore"):
        expected = oracle.dequantize(words[None, :], np.array([bits], np.int32), divisor)
    got = np.zeros(LANES, np.float32)
    scale = ctypes.c_double(float(np.ldexp(1.0, -bits)) / divisor)
    call("nf_dequantize", at(got), at(words.astype(">i4")), scale)
    assert got.tobytes() == expected[0].tobytes()
    oracle.overlay(expected, kinds[None, :])
    overlaid = library().nf_with_special
    overlaid.restype, overlaid.argtypes = ctypes.c_double, [ctypes.c_double, ctypes.c_int32]
    pairs = zip(got.tolist(), kinds.tolist(), strict=True)
    np.testing.assert_array_equal([overlaid(*pair) for pair in pairs], expected[0])


@pytest.mark.parametrize("dtype", SHORT_FLOATS, ids=str)
def test_every_short_float_becomes_the_float32_that_it_is(dtype):
    words = np.arange(1 << 16, dtype=np.uint16)
    got = np.zeros(1 << 16, np.float32)
    library().nf_load(DTYPES.index(dtype), at(got), at(words), ctypes.c_int64(1 << 16))
    np.testing.assert_array_equal(got, words.view(dtype).astype(np.float32))


@pytest.mark.parametrize("dtype", SHORT_FLOATS, ids=str)
@settings(max_examples=100)
@given(hnp.arrays(np.uint32, (200,), elements=st.integers(0, 2**32 - 1)), st.integers(-20, 20))
def test_float32_becomes_short_as_in_numpy(dtype, bits, shift):
    values = bits.view(np.float32)
    near = np.ldexp(np.float32(1) + (bits & 0x7FFFFF) * np.float32(2.0**-23), shift).astype(np.float32)
    for floats in (values, near, -near):
        got = np.zeros(len(floats), np.uint16)
        library().nf_store(DTYPES.index(dtype), at(got), at(floats), ctypes.c_int64(len(floats)))
        with np.errstate(over="ignore", invalid="ignore"):
            expected = floats.astype(dtype).astype(np.float32)
        np.testing.assert_array_equal(got.view(dtype).astype(np.float32), expected)
