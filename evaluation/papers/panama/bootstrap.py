# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Confidence intervals of 99th percentiles of flows. Flows of one moment wait for the same gradients, so whole blocks
of time are resampled (block bootstrap: Efron and Tibshirani, An Introduction to the Bootstrap, ch. 8). A block is its
number of flows and the times of its slowest ones, enough of them for the percentile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 400
TAIL_PART = 0.99
INTERVAL = (0.025, 0.975)
Interval = tuple[float, float]


def resamples(blocks: int) -> NDArray[np.int64]:
    """Count how often each block is drawn: each once in the first row, and by chance in the others. Equal numbers of
    blocks have equal counts."""
    random = np.random.default_rng(blocks)
    drawn = random.multinomial(blocks, np.full(blocks, 1 / blocks), RESAMPLES)
    return np.vstack([np.ones((1, blocks), dtype=np.int64), drawn])


def percentiles(blocks: Sequence[Any], drawn: NDArray[np.int64]) -> NDArray[np.float64]:
    """The 99th percentile of each resample; NaN without flows."""
    counts = np.array([count for count, _ in blocks])
    times = np.array([t for _, tail in blocks for t in tail])
    if not len(times):
        return np.full(len(drawn), np.nan)
    block = np.repeat(np.arange(len(blocks)), [len(tail) for _, tail in blocks])
    order = np.argsort(-times, kind="stable")
    above = np.cumsum(drawn[:, block[order]], axis=1)
    place = (above < (drawn @ counts * (1 - TAIL_PART))[:, None]).sum(axis=1)
    found: NDArray[np.float64] = times[order][np.minimum(place, len(times) - 1)]
    return found


def interval_of(values: NDArray[np.float64]) -> Interval:
    low, high = np.quantile(values, INTERVAL)
    return float(low), float(high)


def half_width(blocks: Sequence[Any]) -> float:
    """Half of the 99th percentile's interval, relative to it."""
    found = percentiles(blocks, resamples(len(blocks)))
    low, high = interval_of(found)
    return (high - low) / 2 / float(found[0])
