# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Scheme quarter, docs/reference/protocol.md, section 6: the engine's codec against numpy, and what a sum is worth."""

from __future__ import annotations

import ctypes

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from netfold.protocol.wire import LANES_MAX
from netfold.traffic.engine.native import HEADERS, library
from tests.traffic import quarter_oracle as oracle

WIDTH = 1024
FINGERPRINT = 0x1234_5678_9ABC_DEF0


class Rotation(ctypes.Structure):
    _fields_ = HEADERS.fields("nf_rotation")


def at(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def exponent_of(row: np.ndarray) -> int:
    return int((row.view(np.uint32) & np.uint32(0x7FFFFFFF)).max() >> 23)


def pack(row: np.ndarray, range_byte: int, rank: int, workers: int, number: int = 3) -> np.ndarray | None:
    """The engine's lanes; None: the row does not fit."""
    code = library()
    lanes = np.zeros(len(row) // 4, ">i4")
    rotation = Rotation(FINGERPRINT, number, rank, workers)
    fits = code.nf_rotate_pack(
        at(lanes), at(row), ctypes.c_int64(len(row)), ctypes.c_uint8(exponent_of(row)),
        ctypes.c_uint8(range_byte), ctypes.byref(rotation),
    )  # fmt: skip
    return lanes.astype(np.int32) if fits else None


def unpack(lanes: np.ndarray, range_byte: int, divisor: int, number: int = 3) -> tuple[np.ndarray, int]:
    code = library()
    code.nf_rotate_unpack.restype = ctypes.c_uint8
    values = np.zeros(4 * len(lanes), np.float32)
    wire = lanes.astype(">i4")
    observed = code.nf_rotate_unpack(
        at(values), at(wire), ctypes.c_int64(len(values)), ctypes.c_uint8(range_byte),
        ctypes.c_double(divisor), ctypes.byref(Rotation(FINGERPRINT, number, 0, 1)),
    )  # fmt: skip
    return values, observed


@settings(max_examples=150)
@given(
    st.sampled_from([4, 8, 16, 32, 128, 256, 1024, 4 * LANES_MAX]),
    st.data(),
    st.integers(0, 254),
    st.integers(1, 64),
)
def test_lanes_and_sums_are_numpys(width, data, range_byte, workers):
    elements = st.floats(width=32, allow_nan=False, allow_infinity=False)
    row = data.draw(hnp.arrays(np.float32, width, elements=elements))
    rank = data.draw(st.integers(0, workers - 1))
    expected = oracle.encode(row, range_byte, FINGERPRINT, 3, rank, workers)
    lanes = pack(row, range_byte, rank, workers)
    assert (expected is None) == (lanes is None)
    if lanes is None:
        return
    assert lanes.tolist() == oracle.pack(expected).tolist()
    assert oracle.unpack(lanes).tolist() == expected.tolist()
    sums, observed = unpack(lanes, range_byte, workers)
    decoded = oracle.decode(expected, range_byte, FINGERPRINT, 3, workers)
    assert sums.tobytes() == decoded.values.tobytes()
    assert observed == decoded.observed
