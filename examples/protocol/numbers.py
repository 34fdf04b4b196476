# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""float32 to lanes and back: section 6 of docs/reference/protocol.md, scheme block; the fingerprint of section 5.3."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .packet import Lanes

Floats = NDArray[np.float32]
NOT_FINITE = 255
MIN_BYTE, MARGIN, SLACK, HISTORY = 31, 1, 4, 32
MASK = 2**64 - 1


def mix(hash_: int, numbers: Iterable[int]) -> int:
    """C5."""
    for number in numbers:
        hash_ = (hash_ ^ number) + 0x9E3779B97F4A7C15 & MASK
        hash_ = (hash_ ^ hash_ >> 30) * 0xBF58476D1CE4E5B9 & MASK
        hash_ = (hash_ ^ hash_ >> 27) * 0x94D049BB133111EB & MASK
        hash_ ^= hash_ >> 31
    return hash_


def exponent_byte(row: Floats) -> int:
    """F2."""
    return int((row.view(np.uint32) & 0x7FFFFFFF).max() >> 23)


def scale_bits(byte: int, workers: int) -> int:
    """F5."""
    return 30 - math.ceil(math.log2(workers)) - (max(byte, MIN_BYTE) - 126)


def quantize(row: Floats, byte: int, workers: int) -> Lanes:
    """F1; special values become 0 (F11)."""
    finite = np.where(np.isfinite(row), row, np.float32(0))
    return np.rint(np.ldexp(finite.astype(np.float64), scale_bits(byte, workers))).astype(np.int32)


def dequantize(lanes: Lanes, byte: int, workers: int) -> Floats:
    return np.ldexp(lanes.astype(np.float64), -scale_bits(byte, workers)).astype(np.float32)


def special_codes(row: Floats) -> Lanes:
    """F11: 1 for +inf, 2^16 for -inf, both for NaN."""
    plus, minus, nan = row == np.inf, row == -np.inf, np.isnan(row)
    return np.select([nan, minus, plus], [1 + (1 << 16), 1 << 16, 1], 0).astype(np.int32)


def with_special(sums: Floats, codes: Lanes) -> Floats:
    """F10."""
    plus, minus = (codes & 0xFFFF) > 0, (codes >> 16) > 0
    signed = np.where(plus, np.float32(np.inf), np.where(minus, np.float32(-np.inf), sums))
    return np.where(plus & minus, np.float32(np.nan), signed).astype(np.float32)


def predicted_byte(observed: int) -> int:
    return min(max(observed + MARGIN, MIN_BYTE), NOT_FINITE - 1)


def is_mispredicted(byte: int, observed: int) -> bool:
    """F8."""
    too_small = observed != 0 and byte > MIN_BYTE and observed + SLACK < byte
    return observed == NOT_FINITE or too_small


@dataclass
class Profile:
    """F9: what was observed in earlier calls of one profile, for `rows` first rows. `started`: (number of the call, its
    bytes), in the order of calls; the first `learned` of them count."""

    rows: int
    started: list[tuple[int, list[int]]] = field(default_factory=list)
    learned: int = 0
    scores: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.scores = [64 * self.rows] * HISTORY

    def start(self, call: int, depth: int) -> list[int] | None:
        """Bytes to predict from for this call, or None; what the call observes goes into `started[-1]`."""
        while self.learned < len(self.started) and self.started[self.learned][0] <= call - depth:
            self._learn(self.learned)
            self.learned += 1
        place = len(self.started)
        known = [d for d in range(1, HISTORY + 1) if 0 <= place - d < self.learned]
        best = min(known, key=lambda d: self.scores[d - 1], default=None)
        before = self.started[place - best][1] if best else None
        self.started.append((call, list(before or [0] * self.rows)))
        return before

    def _learn(self, place: int) -> None:
        now = self.started[place][1]
        for distance in range(1, min(place, HISTORY - 1) + 1):
            then = self.started[place - distance][1]
            misses = sum(
                b > predicted_byte(a) or is_mispredicted(predicted_byte(a), b)
                for a, b in zip(then, now, strict=True)
            )
            self.scores[distance - 1] = (self.scores[distance - 1] + 64 * misses) // 2
