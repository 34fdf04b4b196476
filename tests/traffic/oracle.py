# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""docs/protocol.md, section 6, in numpy: what traffic/engine/numbers.c is compared with."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from netfold.traffic.numerics import EXPONENT_BIAS, EXPONENT_MIN, SUM_BITS, headroom
from netfold.traffic.packets.wire import Words

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
    room = np.maximum(exponents, EXPONENT_MIN).astype(np.int32) - EXPONENT_BIAS
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
