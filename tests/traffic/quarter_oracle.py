# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Scheme quarter in numpy (docs/reference/protocol.md, section 6): what traffic/engine/numerics/rotate.c is
compared with. Rows of 4 L elements, a power of two, are rotated by a randomized Hadamard transform, and rounded with
dithers that are staggered over the workers, and packed four to a lane. The range of a row is that of the expected
sum."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from netfold.protocol.wire import LaneArray
from netfold.traffic.numerics import quarter_nmse

Floats: TypeAlias = NDArray[np.float32]
Codes: TypeAlias = NDArray[np.int64]

MASK32 = 0xFFFFFFFF
MASK64 = 2**64 - 1
INPUT_BITS = 19  # magnitudes of a row's integers are at most 2^19, so a rotation of 2,048 of them fits int32
MAX_SCALE_BITS = 126  # 2^126 is a normal float32
EXPONENT_BIAS = 126
RANGE_BIAS = 176  # range byte r: a root mean square of at most 2^((r - 176) / 4)
BELOW_RANGES = 0  # sums are zeros, or smaller than those of all ranges
ABOVE_RANGES = 254  # sums are larger than those of all ranges
NO_RANGE = 255
MARGIN = 2  # how many bytes larger the range is than that of the sums that predict it
SLACK = 12  # how many bytes smaller than the range sums may be
CODE_RMS = 30  # codes of a sum that has the whole of its range; the limit of a code is 4.2 times that
CODE_MAX = 127
QUARTERS = tuple(float(np.float32(2 ** (k / 4) / CODE_RMS)) for k in range(4))
"""Quantum of the range bytes 176 to 179."""
DITHER_BITS = 16
NOT_FINITE = 255


def mix(hash_: int, number: int) -> int:
    """Rule C5's."""
    hash_ = (hash_ ^ number) + 0x9E3779B97F4A7C15 & MASK64
    hash_ = (hash_ ^ hash_ >> 30) * 0xBF58476D1CE4E5B9 & MASK64
    hash_ = (hash_ ^ hash_ >> 27) * 0x94D049BB133111EB & MASK64
    return hash_ ^ hash_ >> 31


def words(fingerprint: int, row: int, width: int) -> NDArray[np.int64]:
    """32 random bits for each element of a row: the highest is its sign, the lowest 16 the dither of the coefficient in
    its place."""
    x = (mix(fingerprint, row) + np.arange(width, dtype=np.uint64) * np.uint64(0x9E3779B9)) & np.uint64(
        MASK32
    )
    x ^= x >> np.uint64(16)
    x = x * np.uint64(0x7FEB352D) & np.uint64(MASK32)
    x ^= x >> np.uint64(15)
    x = x * np.uint64(0x846CA68B) & np.uint64(MASK32)
    x ^= x >> np.uint64(16)
    return x.astype(np.int64)


def hadamard(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The Walsh-Hadamard transform of a row, in its natural order, not normalized."""
    step = 1
    while step < len(values):
        pairs = values.reshape(-1, 2, step)
        values = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], 1).reshape(-1)
        step *= 2
    return values


def quantum(range_byte: int) -> float:
    """Value of one code, of a sum of this range."""
    place = range_byte - RANGE_BIAS
    return math.ldexp(QUARTERS[place % 4], place // 4)


def observed_range(mean_square: float) -> int:
    """The smallest range byte that holds this mean square of a row's sums. NO_RANGE if it is not finite."""
    if not math.isfinite(mean_square):
        return NO_RANGE
    if mean_square == 0:
        return BELOW_RANGES
    mantissa, exponent = math.frexp(mean_square)
    byte = RANGE_BIAS + 2 * exponent - (mantissa < math.sqrt(0.5))
    return min(max(byte, BELOW_RANGES), ABOVE_RANGES)


def predicted_range(observed: int) -> int:
    """The range of sums that earlier ones predict. NO_RANGE: none holds them, or none is fine enough."""
    byte = observed + MARGIN
    return byte if observed != BELOW_RANGES and byte < ABOVE_RANGES else NO_RANGE


def is_accepted(observed: int, range_byte: int) -> bool:
    """Whether the sums of a row that is not all zeros count, or the row is re-encoded."""
    return observed != BELOW_RANGES and range_byte - SLACK <= observed <= range_byte < ABOVE_RANGES


def error_bound(range_byte: int, workers: int) -> float:
    """Expected mean square error of the sums of a row that is accepted, at most."""
    return quarter_nmse(workers) * 2.0 ** ((range_byte - RANGE_BIAS) / 2)


def predicted_nmse(workers: int) -> float:
    """The same over the mean square of sums that are as large as those that predict their range, at most: the range is
    then up to three bytes above theirs."""
    return quarter_nmse(workers) * 2.0 ** ((MARGIN + 1) / 2)


def encode(
    row: Floats, range_byte: int, fingerprint: int, number: int, rank: int, workers: int
) -> Codes | None:
    """The codes of a worker's row. None: a coefficient is beyond a code, so the row does not fit."""
    width = len(row)
    random = words(fingerprint, number, width)
    largest = int((row.view(np.uint32) & np.uint32(0x7FFFFFFF)).max() >> 23)
    if largest == NOT_FINITE:
        return None
    bits = min(INPUT_BITS - (largest - EXPONENT_BIAS), MAX_SCALE_BITS)
    whole = np.rint(row * np.ldexp(np.float32(1), bits)).astype(np.int64)
    rotated = hadamard(np.where(random >> 31, -whole, whole))
    with np.errstate(over="ignore", invalid="ignore"):
        factor = np.float32(math.ldexp(1.0, DITHER_BITS - bits) / (quantum(range_byte) * math.sqrt(width)))
        scaled = rotated.astype(np.float32) * factor
    if not bool((np.abs(scaled) <= np.float32(CODE_MAX << DITHER_BITS)).all()):
        return None
    stagger = (rank << DITHER_BITS) // workers
    dither = (random + stagger) & ((1 << DITHER_BITS) - 1)
    return (np.rint(scaled).astype(np.int64) + dither) >> DITHER_BITS


def pack(codes: Codes) -> LaneArray:
    """Four codes to a lane, those of the row's first quarter in the highest field."""
    a, b, c, d = codes.reshape(4, -1)
    lanes: LaneArray = ((a << 24) + (b << 16) + (c << 8) + d).astype(np.int32)
    return lanes


def unpack(lanes: LaneArray) -> Codes:
    """Summed codes of summed lanes, the lowest field first: what it borrowed is given back to the next."""
    rest = lanes.astype(np.int64)
    fields = []
    for _ in range(4):
        low = (rest + 128) % 256 - 128
        fields.append(low)
        rest = (rest - low) >> 8
    return np.concatenate(fields[::-1])


@dataclass(frozen=True)
class Decoded:
    """`observed`: the range byte of the sums."""

    values: Floats
    observed: int


def decode(codes: Codes, range_byte: int, fingerprint: int, number: int, divisor: int = 1) -> Decoded:
    """The sums of a row, over `divisor`."""
    width = len(codes)
    random = words(fingerprint, number, width)
    turned = hadamard(codes)
    step = quantum(range_byte)
    factor = np.float32(step / math.sqrt(width) / divisor)
    values = np.where(random >> 31, -turned, turned).astype(np.float32) * factor
    energy = int((codes * codes).sum())
    return Decoded(values, observed_range(energy * (step * step) / width))
