# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""99th percentiles of flows that come in blocks of time, with their intervals. Flows of a moment wait for the same
gradients, so whole blocks are drawn anew (Efron and Tibshirani, An Introduction to the Bootstrap, ch. 8): 95 % of what
comes out. A block is how many flows it has and the times of its slowest, enough of them for the percentile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

DRAWS = 400
PART = 0.99
ENDS = (0.025, 0.975)
Interval = tuple[float, float]


def drawings(blocks: int) -> NDArray[np.int64]:
    """How often each block counts: first as it was, then as drawn; the same for all of as many blocks."""
    random = np.random.default_rng(blocks)
    drawn = random.multinomial(blocks, np.full(blocks, 1 / blocks), DRAWS)
    return np.vstack([np.ones((1, blocks), dtype=np.int64), drawn])


def percentiles(blocks: Sequence[Any], drawn: NDArray[np.int64]) -> NDArray[np.float64]:
    """The 99th percentile for each drawing; NaN if there are no flows."""
    counts = np.array([count for count, _ in blocks])
    times = np.array([t for _, tail in blocks for t in tail])
    if not len(times):
        return np.full(len(drawn), np.nan)
    block = np.repeat(np.arange(len(blocks)), [len(tail) for _, tail in blocks])
    order = np.argsort(-times, kind="stable")
    above = np.cumsum(drawn[:, block[order]], axis=1)
    place = (above < (drawn @ counts * (1 - PART))[:, None]).sum(axis=1)
    found: NDArray[np.float64] = times[order][np.minimum(place, len(times) - 1)]
    return found


def interval_of(values: NDArray[np.float64]) -> Interval:
    low, high = np.quantile(values, ENDS)
    return float(low), float(high)


def half_width(blocks: Sequence[Any]) -> float:
    """Of the 99th percentile's interval, as a part of it."""
    found = percentiles(blocks, drawings(len(blocks)))
    low, high = interval_of(found)
    return (high - low) / 2 / float(found[0])
