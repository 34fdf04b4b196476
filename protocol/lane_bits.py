# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Computes how many bits of a value fit into a lane that has to hold the sum of all workers
(docs/reference/protocol.md, section 6)."""

from __future__ import annotations

import math
from functools import cache

SUM_BITS = 30
"""Sums of magnitude up to 2^30 stay clear of the limits of int32."""

PAIR_BITS = 14
"""Sums of magnitude up to 2^14, two of them in a lane, stay clear of each other."""

MAX_QUARTER_WORKERS = 64
"""Maximum workers of the scheme RotatedQuarter, whose error grows with them."""


@cache
def headroom(workers: int) -> int:
    """Bits that a sum of `workers` numbers may need more than one of them."""
    return math.ceil(math.log2(workers))


def kept_bits(workers: int, half: bool = False) -> int:
    """Significant bits, without the sign, that a shared exponent leaves the largest value of a row: the sum needs the
    others. `half`: in the scheme PackedHalf. float32 has 24, float16 11, bfloat16 8."""
    return (PAIR_BITS if half else SUM_BITS) - headroom(workers)
