# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""How numbers become lanes, and what that costs in accuracy: docs/protocol.md, section 6. The work is done in
traffic/engine/numbers.c.

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
from typing import TypeAlias

SUM_BITS = 30  # sums of magnitude up to 2^30 stay clear of the rails of int32
EXPONENT_MIN = 31  # below it the scale would be no normal float32
EXPONENT_BIAS = 126  # a float32 with exponent byte b is below 2^(b - 126) in magnitude


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


def error_bound(exponent: int, workers: int) -> float:
    """How far a sum of `workers` values of blocks with this largest exponent can be from the exact sum of the
    values, before the sum itself is rounded to its dtype."""
    bits = SUM_BITS - headroom(workers) - (max(exponent, EXPONENT_MIN) - EXPONENT_BIAS)
    return workers * 2.0 ** (-bits - 1)
