# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""How many bits of a value are left with many workers: the table of docs/reference/protocol.md, section 6, against the
engine's own scales and sums."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from netfold.protocol.lane_bits import PAIR_BITS, SUM_BITS, headroom, kept_bits
from netfold.traffic.engine.native import library
from netfold.traffic.numerics import EXPONENT_BIAS

PAGE = Path(__file__).parents[2] / "docs/reference/protocol.md"
EXPONENT = 127
"""Of a row whose largest value is in [1, 2)."""


def table() -> list[tuple[int, int, int, int]]:
    """Workers, bits of block, of half, and the exponent of fixed's largest value at scale 1."""
    row = re.compile(r"\| ([\d,]+) \| (\d+) \| (\d+) \| 24 \| `2\^\((\d+) - f\)` \|")
    found = [m.groups() for m in map(row.fullmatch, PAGE.read_text().splitlines()) if m]
    return [(int(n.replace(",", "")), int(b), int(h), int(f)) for n, b, h, f in found]


def test_the_table_has_jobs_of_2_to_4096_workers() -> None:
    workers = [row[0] for row in table()]
    assert (workers[0], workers[-1]) == (2, 4096)


@pytest.mark.parametrize(("workers", "block", "half", "fixed"), table())
def test_the_table_is_what_the_engine_keeps(workers: int, block: int, half: int, fixed: int) -> None:
    """A value just below 2 becomes a whole number of so many bits, and the sum of all stays within the lane."""
    assert (block, half) == (kept_bits(workers), kept_bits(workers, half=True))
    shared_bits = library().nf_shared_bits
    for kept, sum_bits in ((block, SUM_BITS), (half, PAIR_BITS)):
        scale = shared_bits(EXPONENT, sum_bits, headroom(workers))
        largest = 2.0 ** (EXPONENT - EXPONENT_BIAS) * 2.0**scale
        assert largest == 2.0**kept
        assert workers * largest <= 2.0**sum_bits
    assert workers * 2**fixed <= 2**SUM_BITS
