# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Sums of the scheme quarter without a network: the engine's codec for each worker, lanes added as switches add them,
and ranges predicted by the call before (a call that follows all). Rows that do not fit are exact here; half's error is
far below."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from netfold.traffic.engine.native import HEADERS, library
from tests.traffic.quarter_oracle import NO_RANGE, is_accepted, predicted_range

WIDTH = 1024


class _Rotation(ctypes.Structure):
    _fields_ = HEADERS.fields("nf_rotation")


def _at(array: NDArray[np.generic]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


@dataclass
class QuarterSums:
    """Call after call of one profile."""

    calls: int = 0
    rows: int = 0
    reencoded: int = 0
    errors: float = 0.0
    energy: float = 0.0
    _ranges: NDArray[np.int64] | None = field(default=None, repr=False)

    @property
    def nmse(self) -> float:
        """Returns the error of all sums but the first call's."""
        return self.errors / self.energy

    def average(self, inputs: NDArray[np.float32]) -> NDArray[np.float32]:
        """The mean of `inputs` (workers, elements)."""
        workers, elements = inputs.shape
        padded = np.zeros((workers, -(-elements // WIDTH) * WIDTH), np.float32)
        padded[:, :elements] = inputs
        rows = padded.reshape(workers, -1, WIDTH)
        exact = rows.sum(axis=0, dtype=np.float64).astype(np.float32)
        ranges = self._ranges
        found = exact.copy() if ranges is None else self._sums(rows, ranges, exact)
        self._ranges = np.array([_range_of(row) for row in found])
        self.calls += 1
        return (found / workers).reshape(-1)[:elements]

    def _sums(
        self, rows: NDArray[np.float32], ranges: NDArray[np.int64], exact: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        found = exact.copy()
        for number, (sums, before) in enumerate(zip(found, ranges.tolist(), strict=True)):
            self._sum_row(rows[:, number], predicted_range(before), number, sums)
        self.rows += len(exact)
        self.errors += float(((found - exact).astype(np.float64) ** 2).sum())
        self.energy += float((exact.astype(np.float64) ** 2).sum())
        return found

    def _sum_row(
        self, inputs: NDArray[np.float32], range_byte: int, number: int, sums: NDArray[np.float32]
    ) -> None:
        """Writes the row's sums if they fit the range."""
        if range_byte == NO_RANGE:
            self.reencoded += int(inputs.any())
            return
        code = library()
        code.nf_rotate_unpack.restype = ctypes.c_uint8
        workers = len(inputs)
        rotation = _Rotation(self.calls * 0x9E3779B97F4A7C15 % 2**64, number, 0, workers)
        total, lanes = np.zeros(WIDTH // 4, np.int64), np.zeros(WIDTH // 4, ">i4")
        exponents = (inputs.view(np.uint32) & 0x7FFFFFFF).max(axis=1) >> 23
        width, range_c = ctypes.c_int64(WIDTH), ctypes.c_uint8(range_byte)
        for rank, exponent in enumerate(exponents.tolist()):
            rotation.rank = rank
            row = np.ascontiguousarray(inputs[rank])
            if not code.nf_rotate_pack(
                _at(lanes), _at(row), width, ctypes.c_uint8(exponent), range_c, ctypes.byref(rotation)
            ):
                self.reencoded += 1
                return
            total += lanes
            if np.abs(total).max() >= 2**31 - 1:  # a rail
                self.reencoded += 1
                return
        summed, values = total.astype(">i4"), np.zeros(WIDTH, np.float32)
        observed = code.nf_rotate_unpack(
            _at(values), _at(summed), width, range_c, ctypes.c_double(1), ctypes.byref(rotation)
        )
        if exponents.max() and not is_accepted(observed, range_byte):
            self.reencoded += 1
            return
        sums[:] = values


def _range_of(row: NDArray[np.float32]) -> int:
    code = library()
    code.nf_range_of.restype = ctypes.c_uint8
    found: int = code.nf_range_of(ctypes.c_double(float((row.astype(np.float64) ** 2).mean())))
    return found
