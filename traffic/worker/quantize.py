# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Floats to the int32 lanes that switches add, and back. The scheme is docs/protocol.md, section 6.

All scales are powers of two, so scaling is exact and only the rounding to whole numbers loses something:
at most 1 / (2 * scale) for each worker. With a shared block exponent the scale leaves room for the sum of
all workers, so no sum can overflow (as SwitchML's quantizer, p4app-switchML cpu_exponent_quantizer_ppp.cc;
ATP's is a fixed scale).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from netfold.traffic.packets.wire import Words

Floats: TypeAlias = NDArray[np.float32]
Exponents: TypeAlias = NDArray[np.uint8]

_MAGNITUDE = np.uint32(0x7FFFFFFF)
_MANTISSA_BITS = 23
_EXPONENT_BIAS = 126  # a float32 with exponent byte b is below 2^(b - 126) in magnitude
NOT_FINITE = 255  # the exponent byte of a block that holds a NaN or an infinity
SUM_BITS = 30  # sums of magnitude up to 2^30 stay clear of the rails of int32
EXPONENT_MIN = 31  # below it the scale would be no normal float32
_LIMIT = np.float32(2**31 - 128)  # the largest float32 below 2^31
_BLOCK_ROWS_BYTES = 1 << 18  # inspect this much at once: it stays in the cache
_PLUS, _MINUS = (
    np.int32(1),
    np.int32(1 << 16),
)  # what an infinity of either sign adds to a lane; a NaN adds both


class ReduceOp(StrEnum):
    """What becomes of the workers' arrays. `AVERAGE` is the sum over the number of workers that were in it; of floats
    only."""

    SUM = "sum"
    AVERAGE = "average"


@dataclass(frozen=True)
class SharedExponent:
    """Each chunk is scaled by the largest exponent that any worker has in it. The default: no overflow, no
    setting."""


@dataclass(frozen=True)
class Fixed:
    """All chunks are scaled by 2^bits (-96 ... 126); a chunk that overflows is repeated with its shared exponent."""

    bits: int

    def __post_init__(self) -> None:
        if not -96 <= self.bits <= 126:
            raise ValueError(f"bits of the fixed scale is {self.bits}; it must be -96 to 126")


@dataclass(frozen=True)
class WholeNumbers:
    """The job adds int32 as they are; floats are refused."""


Scheme: TypeAlias = SharedExponent | Fixed | WholeNumbers


@cache
def headroom(workers: int) -> int:
    """Bits that a sum of `workers` numbers may need more than one of them."""
    return math.ceil(math.log2(workers))


def block_exponents(blocks: NDArray[Any]) -> Exponents:
    """The exponent byte of each row of float16 or float32 `blocks` (n, L): all of row i is below 2^(byte -
    126). NOT_FINITE for a row that holds a NaN or an infinity."""
    exponents = np.empty(len(blocks), np.uint8)
    step = max(1, _BLOCK_ROWS_BYTES // (4 * blocks.shape[1]))
    for start in range(0, len(blocks), step):
        bits = blocks[start : start + step].astype(np.float32, copy=False).view(np.uint32)
        exponents[start : start + step] = (bits & _MAGNITUDE).max(axis=1) >> _MANTISSA_BITS
    return exponents


def finite_part(blocks: NDArray[Any]) -> NDArray[Any]:
    """The blocks with 0 in place of NaN and infinities."""
    finite: NDArray[Any] = np.where(np.isfinite(blocks), blocks, blocks.dtype.type(0))
    return finite


def kinds(blocks: NDArray[Any]) -> Words:
    """For each element of `blocks` (n, L) a number whose sum over up to 32767 workers says whether one of them has
    +inf, -inf or NaN there; 0: a finite number."""
    unknown = np.isnan(blocks)
    sums: Words = _PLUS * ((blocks == np.inf) | unknown) + _MINUS * ((blocks == -np.inf) | unknown)
    return sums


def overlay(values: Floats, sums: Words) -> None:
    """Writes into the sums of the finite parts (n, L) what the summed `kinds` (n, L) make of them, as IEEE 754 adds:
    an infinity stays, infinities of both signs or a NaN give NaN."""
    plus, minus = sums & (_MINUS - 1) != 0, sums >> 16 != 0
    values[plus] = np.inf
    values[minus] = -np.inf
    values[plus & minus] = np.nan


def shared_bits(exponents: Exponents, workers: int) -> NDArray[np.int32]:
    """The power of two by which blocks of these (largest) exponents, not NOT_FINITE, are scaled so that sums stay
    within 2^30."""
    room = np.maximum(exponents, EXPONENT_MIN).astype(np.int32) - _EXPONENT_BIAS
    bits: NDArray[np.int32] = SUM_BITS - headroom(workers) - room
    return bits


def quantize(blocks: NDArray[Any], bits: NDArray[np.int32]) -> Words:
    """Rows of float16 or float32 times 2^bits, rounded to even, as int32 (n, L). No value may reach 2^31."""
    scaled = blocks * np.ldexp(np.float32(1), bits)[:, None]
    np.rint(scaled, out=scaled)
    return scaled.astype(np.int32)


def quantize_saturating(blocks: NDArray[Any], bits: NDArray[np.int32]) -> tuple[Words, NDArray[np.bool_]]:
    """As `quantize`, but values that do not fit are cut, NaN is 0, and the second answer (n,) says in which rows."""
    scaled = blocks * np.ldexp(np.float32(1), bits)[:, None]
    np.rint(scaled, out=scaled)
    cut: NDArray[np.bool_] = ~(np.abs(scaled).max(axis=1) <= _LIMIT)
    np.clip(scaled, -_LIMIT, _LIMIT, out=scaled)
    scaled[np.isnan(scaled)] = 0
    return scaled.astype(np.int32), cut


def dequantize(sums: Words, bits: NDArray[np.int32], divisor: int = 1) -> Floats:
    """Sums (n, L) over `divisor` back to float32, computed as float64 and rounded once. What is beyond float32's range
    becomes infinite, as in float arithmetic (and numpy warns of it where it is not told otherwise)."""
    values = sums * (np.ldexp(1.0, -bits) / divisor)[:, None]
    return values.astype(np.float32)


def error_bound(exponent: int, workers: int) -> float:
    """How far a sum of `workers` values of blocks with this largest exponent can be from the exact sum of the
    values, before the sum itself is rounded to its dtype."""
    bits = int(shared_bits(np.array([exponent], np.uint8), workers)[0])
    return workers * 2.0 ** (-bits - 1)


def split_halves(values: Words) -> Words:
    """int32 (n, L) as its high and low 16 bits (2n, L), alternating: sums of up to 32767 workers cannot
    overflow."""
    halves = np.empty((2 * len(values), values.shape[1]), np.int32)
    halves[0::2] = values >> 16
    halves[1::2] = values & 0xFFFF
    return halves


def join_halves(halves: Words) -> NDArray[np.int64]:
    """The sums (n, L) of what `split_halves` split."""
    joined: NDArray[np.int64] = halves[0::2].astype(np.int64) * 65536 + halves[1::2]
    return joined
