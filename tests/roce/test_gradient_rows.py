# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Rows of RoCE gradients are those of the oracle, and their check numbers tell sums that are not all codes' sum."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from netfold.protocol.wire import LaneArray
from netfold.traffic.engine.native import build
from netfold.traffic.roce.recipe import SHARED_OPTIONS
from netfold.traffic.roce.worker import SOURCES as FILES
from tests.traffic import quarter_oracle as oracle

ROW = 5
FINGERPRINT = 0x0123456789ABCDEF

pytestmark = pytest.mark.skipif(
    not Path("/usr/include/infiniband/verbs.h").exists(), reason="needs libibverbs-dev (its headers)"
)


class _Assignment(ctypes.Structure):
    """The first members of nr_assignment; rows use no other."""

    _fields_ = [(name, ctypes.c_uint32) for name in ("epoch", "rank", "workers", "lanes", "trees")]


class _Rows(ctypes.Structure):
    _fields_ = (
        ("count", ctypes.c_size_t),
        ("fingerprint", ctypes.c_uint64),
        ("predicted", ctypes.c_char_p),
        ("observed", ctypes.c_void_p),
    )


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    options = [o for o in SHARED_OPTIONS if not o.startswith("-fvisibility")]
    library = ctypes.CDLL(str(build(FILES, tmp_path_factory.mktemp("code"), options)))
    library.nr_write_row.restype = ctypes.c_int32
    return library


@dataclass(frozen=True)
class Job:
    code: ctypes.CDLL
    workers: int
    lanes: int
    range_byte: int

    def rows(self, observed: ctypes.Array[ctypes.c_char]) -> _Rows:
        predicted = bytes([self.range_byte]) * (ROW + 1)
        return _Rows(ROW + 1, FINGERPRINT, predicted, ctypes.addressof(observed))

    def written(self, values: oracle.Floats, rank: int) -> tuple[LaneArray, int]:
        lanes, observed = np.zeros(self.lanes, ">i4"), ctypes.create_string_buffer(ROW + 1)
        own, rows = _Assignment(1, rank, self.workers, self.lanes, 1), self.rows(observed)
        check = self.code.nr_write_row(
            ctypes.c_void_p(lanes.ctypes.data), ctypes.c_void_p(values.ctypes.data), ctypes.c_size_t(len(values)),
            ctypes.c_size_t(ROW), ctypes.byref(rows), ctypes.byref(own),
        )  # fmt: skip
        return lanes.astype(np.int32), int(check)

    def read(self, lanes: LaneArray, check: int) -> tuple[oracle.Floats, int]:
        """The values and the observed range."""
        summed, values = lanes.astype(">i4"), np.zeros(4 * self.lanes, np.float32)
        observed = ctypes.create_string_buffer(ROW + 1)
        own, rows = _Assignment(1, 0, self.workers, self.lanes, 1), self.rows(observed)
        self.code.nr_read_row(
            ctypes.c_void_p(values.ctypes.data), ctypes.c_size_t(len(values)), ctypes.c_void_p(summed.ctypes.data),
            ctypes.c_int32(check), ctypes.c_double(1), ctypes.c_size_t(ROW), ctypes.byref(rows), ctypes.byref(own),
        )  # fmt: skip
        return values, observed.raw[ROW]


def inputs(workers: int, width: int) -> list[oracle.Floats]:
    random = np.random.default_rng(workers)
    return [random.standard_normal(width).astype(np.float32) for _ in range(workers)]


@pytest.mark.parametrize("lanes", [64, 256])
@pytest.mark.parametrize("workers", [2, 7, 64])
def test_rows_and_sums_are_the_oracle_s(code: ctypes.CDLL, workers: int, lanes: int):
    range_byte = oracle.observed_range(float(workers)) + 1
    job, checks, lane_sums = Job(code, workers, lanes, range_byte), 0, np.zeros(lanes, np.int64)
    for rank, values in enumerate(inputs(workers, 4 * lanes)):
        codes = oracle.encode(values, range_byte, FINGERPRINT, ROW, rank, workers)
        assert codes is not None
        found, check = job.written(values, rank)
        np.testing.assert_array_equal(found, oracle.pack(codes))
        checks += check
        lane_sums += found
    sums = lane_sums.astype(np.int32)
    expected = oracle.decode(oracle.unpack(sums), range_byte, FINGERPRINT, ROW)
    values, observed = job.read(sums, checks)
    np.testing.assert_array_equal(values, expected.values)
    assert observed == expected.observed


@pytest.mark.parametrize("fault", ["a field", "a saturated lane", "a refusal"])
def test_sums_that_contradict_their_check_number_are_sent_again(code: ctypes.CDLL, fault: str):
    job = Job(code, 4, 64, oracle.observed_range(4.0) + 1)
    parts = [job.written(values, rank) for rank, values in enumerate(inputs(4, 256))]
    if fault == "a refusal":
        parts[2] = job.written(np.full(256, np.nan, np.float32), 2)
        assert not parts[2][0].any()
    lanes, check = np.sum([p[0] for p in parts], 0, dtype=np.int32), sum(p[1] for p in parts)
    if fault == "a field":  # it left its eight bits: the next field has one more
        lanes[17] += 1 << 8
    elif fault == "a saturated lane":
        lanes[17] = 2**31 - 1
    assert job.read(lanes, check)[1] == oracle.NO_RANGE


@pytest.mark.parametrize("size", [0.0, 1e-30, 1.0, 1e20])
@pytest.mark.parametrize("sums_before", [oracle.BELOW_RANGES, oracle.ABOVE_RANGES, oracle.NO_RANGE])
def test_a_row_without_a_range_is_sent_again_unless_it_is_zeros(
    code: ctypes.CDLL, sums_before: int, size: float
):
    job = Job(code, 4, 64, oracle.predicted_range(sums_before))
    parts = [job.written(values * np.float32(size), rank) for rank, values in enumerate(inputs(4, 256))]
    lanes, check = np.sum([p[0] for p in parts], 0, dtype=np.int32), sum(p[1] for p in parts)
    values, observed = job.read(lanes, check)
    assert observed == (oracle.NO_RANGE if size else oracle.BELOW_RANGES)
    assert not values.any()


@pytest.mark.parametrize("exponent", [-60, -44, -43.5, 18, 19.2, 19.4, 20, 30])
def test_sums_of_every_size_are_within_the_error_bound_or_sent_again(code: ctypes.CDLL, exponent: float):
    """With the finest and the coarsest range, one of which is near."""
    range_byte = oracle.predicted_range(1 if exponent < 0 else oracle.ABOVE_RANGES - oracle.MARGIN - 1)
    job = Job(code, 4, 256, range_byte)
    arrays = [values * np.float32(2**exponent / 2) for values in inputs(4, 1024)]
    parts = [job.written(values, rank) for rank, values in enumerate(arrays)]
    lanes, check = np.sum([p[0] for p in parts], 0, dtype=np.int32), sum(p[1] for p in parts)
    values, observed = job.read(lanes, check)
    exact = np.sum(arrays, axis=0, dtype=np.float64)
    assert (observed == oracle.NO_RANGE) == (exponent in (-60, -44, 19.4, 20, 30))
    if observed != oracle.NO_RANGE:
        assert ((values - exact) ** 2).mean() < 1.3 * oracle.error_bound(range_byte, 4)
