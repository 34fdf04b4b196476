# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Which arrays can be added, how their numbers become lanes, and what that costs in accuracy:
docs/reference/protocol.md, section 6. The work is done in traffic/engine/numerics/codec.c.

All scales are powers of two, so scaling is exact and only the rounding to whole numbers loses something:
at most 1 / (2 * scale) for each worker. With a shared block exponent the scale leaves room for the sum of
all workers, so no sum can overflow (as SwitchML's quantizer, p4app-switchML cpu_exponent_quantizer_ppp.cc;
ATP's is a fixed scale).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from netfold.protocol.lane_bits import PAIR_BITS, SUM_BITS, headroom

FLOAT32, FLOAT16, INT32 = np.dtype(np.float32), np.dtype(np.float16), np.dtype(np.int32)
BFLOAT16, FLOAT64, INT64 = np.dtype(ml_dtypes.bfloat16), np.dtype(np.float64), np.dtype(np.int64)
DTYPES = (FLOAT32, FLOAT16, INT32, BFLOAT16, FLOAT64, INT64)  # of arrays; the order is enum nf_dtype's
SHORT_FLOATS = (FLOAT16, BFLOAT16)
ROTATED_DTYPES = (FLOAT32, *SHORT_FLOATS)  # of the scheme RotatedQuarter
INTEGERS = (INT32, INT64)

PREDICTION_BITS = 4  # a scale that was predicted may be this many bits too coarse (half and float64: none)
WIDE_BITS = 63  # of a float64
EXPONENT_BIAS = 126  # a float32 with exponent byte b is below 2^(b - 126) in magnitude
WIDE_BIAS = 1008  # a float64 with exponent byte b is below 2^(8 b - 1008)
QUARTER_CODE_RMS = 30  # codes of a sum of the scheme RotatedQuarter that has the whole of its range
WIDE_LEAST = 6  # below it the scale would be no float64


class ReduceOp(StrEnum):
    """The operation on the workers' arrays. `AVERAGE` is the sum over the number of workers that were in it; it
    takes floats only."""

    SUM = "sum"
    AVERAGE = "average"


@dataclass(frozen=True)
class Automatic:
    """This default is `PackedHalf` for float16 and bfloat16, `BlockFloat` for the others."""


@dataclass(frozen=True)
class BlockFloat:
    """Each chunk is scaled by the largest exponent that any worker has in it: no overflow, no setting."""


@dataclass(frozen=True)
class PackedHalf:
    """Chunks are scaled as by BlockFloat, with two numbers of 14 - log2(workers) bits in each lane: half the bytes
    on the wire. It takes floats of 32 and 16 bits."""


@dataclass(frozen=True)
class Fixed:
    """All chunks are scaled by 2^bits (-96 ... 126); a chunk that overflows is sent once more with its shared
    exponent. It takes floats of 32 and 16 bits."""

    bits: int

    def __post_init__(self) -> None:
        if not -96 <= self.bits <= 126:
            raise ValueError(f"bits of the fixed scale is {self.bits}; it must be -96 to 126")


@dataclass(frozen=True)
class IntegerSum:
    """The job adds int32 and int64 as they are; floats are refused."""


@dataclass(frozen=True)
class Float32Sum:
    """Nodes add float32, as IEEE 754 does: there is no scale, and the error depends on the order of arrival. It
    takes floats of 32 and 16 bits; v1model switches of 64 lanes and parameter servers do it."""


@dataclass(frozen=True)
class RotatedQuarter:
    """A lane has four numbers of 8 bits: a quarter of float32's bytes, for sums that may be approximate. Rows are
    rotated and rounded without bias; their range is that of the sums of earlier calls. It serves calls that name
    their arrays as gradients (`lossy`), of floats of 32 and 16 bits; all others have `Automatic`."""


Scheme: TypeAlias = Automatic | BlockFloat | PackedHalf | Fixed | IntegerSum | Float32Sum | RotatedQuarter


def scheme_for(scheme: Scheme, dtype: np.dtype[Any], lossy: bool = False) -> Scheme:
    """Returns the scheme that `scheme` stands for with arrays of this dtype. `lossy`: their sums may be
    approximate."""
    if isinstance(scheme, RotatedQuarter) and not (lossy and dtype in ROTATED_DTYPES):
        scheme = Automatic()
    if isinstance(scheme, Automatic):
        return PackedHalf() if dtype in SHORT_FLOATS else BlockFloat()
    return scheme


def error_bound(exponent: int, workers: int, half: bool = False) -> float:
    """Returns how far a sum of `workers` values of blocks with this largest exponent byte can be from the exact sum
    of the values, before the sum itself is rounded to its dtype. `half`: in the scheme PackedHalf."""
    sum_bits = PAIR_BITS if half else SUM_BITS
    bits = sum_bits - headroom(workers) - (max(exponent, sum_bits + 1) - EXPONENT_BIAS)
    return workers * 2.0 ** (-bits - 1)


def quarter_nmse(workers: int) -> float:
    """Mean square error of a row of the scheme RotatedQuarter over the mean square of its sums, where these have the
    whole of their range: a code is 1/30 of their root mean square; each worker's rounding has 1/12 of its square, and
    the staggered dithers together another one. At the margin of two steps that predictions leave it is twice that."""
    return (workers + 1) / 12 / QUARTER_CODE_RMS**2


def floats_error_bound(largest_sum: float, workers: int) -> float:
    """Returns how far a sum of `workers` float32 by the scheme Float32Sum can be from the exact one, added in any
    order, if no partial sum exceeds `largest_sum` in magnitude: half a unit in the last place for each addition."""
    return (workers - 1) * float(np.spacing(np.float32(largest_sum))) / 2


def wide_error_bound(exponent: int, workers: int) -> float:
    """Returns the error bound of float64 blocks, by their exponent byte."""
    return workers * 2.0 ** (8 * max(exponent, WIDE_LEAST) - WIDE_BIAS - WIDE_BITS - 1)


def exponent_of(largest: float, dtype: np.dtype[Any]) -> int:
    """Returns the exponent byte of a block of this dtype whose largest magnitude this is."""
    if dtype == FLOAT64:
        exponent = int(np.float64(largest).view(np.uint64)) >> 52
        return max(exponent - 7, 0) // 8
    return int(np.float32(largest).view(np.uint32)) >> 23
