# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""docs/reference/protocol.md, section 6, in numpy: what traffic/engine/numerics/quantize.c and codec.c are
compared with."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from netfold.protocol.lane_bits import PAIR_BITS, SUM_BITS, headroom
from netfold.protocol.wire import LaneArray
from netfold.traffic.numerics import EXPONENT_BIAS, WIDE_BIAS, WIDE_BITS, WIDE_LEAST

Floats: TypeAlias = NDArray[np.float32]
Exponents: TypeAlias = NDArray[np.uint8]

_MAGNITUDE = np.uint32(0x7FFFFFFF)
_MANTISSA_BITS = 23
NOT_FINITE = 255  # the exponent byte of a block that holds a NaN or an infinity
_LIMIT = np.float32(2**31 - 128)  # the largest float32 below 2^31
_PLUS, _MINUS = np.int32(1), np.int32(1 << 16)  # what infinities add to a lane; a NaN adds both


def block_exponents(blocks: NDArray[Any]) -> Exponents:
    """The exponent byte of each row of float16 or float32 `blocks` (n, L): all of row i is below 2^(byte -
    126). NOT_FINITE for a row that holds a NaN or an infinity."""
    bits = blocks.astype(np.float32, copy=False).view(np.uint32)
    exponents: Exponents = ((bits & _MAGNITUDE).max(axis=1) >> _MANTISSA_BITS).astype(np.uint8)
    return exponents


def finite_part(blocks: NDArray[Any]) -> NDArray[Any]:
    """The blocks with 0 in place of NaN and infinities."""
    finite: NDArray[Any] = np.where(np.isfinite(blocks), blocks, blocks.dtype.type(0))
    return finite


def kinds(blocks: NDArray[Any]) -> LaneArray:
    """For each element of `blocks` (n, L) a number whose sum over up to 32767 workers says whether one of them has
    +inf, -inf or NaN there; 0: a finite number."""
    unknown = np.isnan(blocks)
    sums: LaneArray = _PLUS * ((blocks == np.inf) | unknown) + _MINUS * ((blocks == -np.inf) | unknown)
    return sums


def overlay(values: Floats, sums: LaneArray) -> None:
    """Writes into the sums of the finite parts (n, L) what the summed `kinds` (n, L) make of them, as IEEE 754 adds:
    an infinity stays, infinities of both signs or a NaN give NaN."""
    plus, minus = sums & (_MINUS - 1) != 0, sums >> 16 != 0
    values[plus] = np.inf
    values[minus] = -np.inf
    values[plus & minus] = np.nan


def shared_bits(exponents: Exponents, workers: int) -> NDArray[np.int32]:
    """The power of two by which blocks of these (largest) exponents, not NOT_FINITE, are scaled so that sums stay
    within 2^30."""
    room = np.maximum(exponents, SUM_BITS + 1).astype(np.int32) - EXPONENT_BIAS
    bits: NDArray[np.int32] = SUM_BITS - headroom(workers) - room
    return bits


def quantize(blocks: NDArray[Any], bits: NDArray[np.int32]) -> LaneArray:
    """Rows of float16 or float32 times 2^bits, rounded to even, as int32 (n, L). No value may reach 2^31."""
    scaled = blocks * np.ldexp(np.float32(1), bits)[:, None]
    np.rint(scaled, out=scaled)
    return scaled.astype(np.int32)


def quantize_saturating(blocks: NDArray[Any], bits: NDArray[np.int32]) -> tuple[LaneArray, NDArray[np.bool_]]:
    """As `quantize`, but values that do not fit are cut, NaN is 0, and the second answer (n,) says in which rows."""
    scaled = blocks * np.ldexp(np.float32(1), bits)[:, None]
    np.rint(scaled, out=scaled)
    cut: NDArray[np.bool_] = ~(np.abs(scaled).max(axis=1) <= _LIMIT)
    np.clip(scaled, -_LIMIT, _LIMIT, out=scaled)
    scaled[np.isnan(scaled)] = 0
    return scaled.astype(np.int32), cut


def dequantize(sums: LaneArray, bits: NDArray[np.int32], divisor: int = 1) -> Floats:
    """Sums (n, L) over `divisor` back to float32, computed as float64 and rounded once. What is beyond float32's range
    becomes infinite, as in float arithmetic (and numpy warns of it where it is not told otherwise)."""
    values = sums * (np.ldexp(1.0, -bits) / divisor)[:, None]
    return values.astype(np.float32)


def pair_bits(exponents: Exponents, workers: int) -> NDArray[np.int32]:
    """As `shared_bits`, so that sums stay within 2^14: of `pack_pairs`."""
    room = np.maximum(exponents, PAIR_BITS + 1).astype(np.int32) - EXPONENT_BIAS
    bits: NDArray[np.int32] = PAIR_BITS - headroom(workers) - room
    return bits


def pack_pairs(values: LaneArray) -> LaneArray:
    """Whole numbers (n, 2 L) two to a lane (n, L): the first half of a row times 2^16, plus the second half."""
    half = values.shape[1] // 2
    lanes: LaneArray = (values[:, :half] * np.int32(1 << 16) + values[:, half:]).astype(np.int32)
    return lanes


def unpack_pairs(sums: LaneArray) -> LaneArray:
    """The summed pairs (n, 2 L) in lanes (n, L)."""
    low = sums.astype(np.int16).astype(np.int32)
    return np.concatenate([(sums - low) >> 16, low], axis=1)


def wide_exponents(blocks: NDArray[np.float64]) -> Exponents:
    """The exponent byte of each row of float64 (n, L): all of row i is below 2^(8 byte - 1008). NOT_FINITE as ever."""
    largest = np.abs(finite_part(blocks)).max(axis=1)
    exponents = (largest.view(np.uint64) >> np.uint64(52)).astype(np.int64)  # as IEEE 754 biases them
    bytes_ = (np.maximum(exponents - 7, 0) // 8).astype(np.uint8)
    bytes_[~np.isfinite(blocks).all(axis=1)] = NOT_FINITE
    return bytes_


def wide_bits(exponents: Exponents) -> NDArray[np.int32]:
    bits: NDArray[np.int32] = WIDE_BITS + WIDE_BIAS - 8 * np.maximum(exponents, WIDE_LEAST).astype(np.int32)
    return bits


def quantize_wide(blocks: NDArray[np.float64], bits: NDArray[np.int32]) -> NDArray[np.int64]:
    whole: NDArray[np.int64] = np.rint(np.ldexp(blocks, bits[:, None])).astype(np.int64)
    return whole


def split_wide(values: NDArray[np.int64]) -> LaneArray:
    """int64 (n, L) as four lanes each (n, 4 L): sixteen bits, the lowest of all first; the highest have the sign."""
    pieces = [values & 0xFFFF, values >> 16 & 0xFFFF, values >> 32 & 0xFFFF, values >> 48]
    return np.concatenate(pieces, axis=1).astype(np.int32)


def join_wide(sums: LaneArray) -> list[list[int]]:
    """The sums (n, L), of any size, of what `split_wide` split."""
    pieces = [part.astype(object) for part in np.split(sums, 4, axis=1)]
    total = sum(part * (1 << 16 * place) for place, part in enumerate(pieces))
    rows: list[list[int]] = total.tolist()
    return rows


def split_halves(values: LaneArray) -> LaneArray:
    """int32 (n, L) as its high and low 16 bits (2n, L), alternating: sums of up to 32767 workers cannot
    overflow."""
    halves = np.empty((2 * len(values), values.shape[1]), np.int32)
    halves[0::2] = values >> 16
    halves[1::2] = values & 0xFFFF
    return halves


def join_halves(halves: LaneArray) -> NDArray[np.int64]:
    """The sums (n, L) of what `split_halves` split."""
    joined: NDArray[np.int64] = halves[0::2].astype(np.int64) * 65536 + halves[1::2]
    return joined
