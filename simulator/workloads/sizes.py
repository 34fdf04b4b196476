# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Sizes of background flows, as points of a distribution function between which sizes are drawn evenly by their
logarithm (from a point at 0: evenly)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Sizes:
    """`points`: (bytes, part of all flows that are no larger), ascending, the last part 1."""

    name: str
    points: tuple[tuple[float, float], ...]

    def draw(self, random: np.random.Generator, count: int) -> NDArray[np.int64]:
        """Draws a size in bytes, at least 1."""
        sizes, parts = np.array(self.points).T
        at = random.random(count)
        i = np.clip(np.searchsorted(parts, at, side="right"), 1, len(parts) - 1)
        low, high = sizes[i - 1], sizes[i]
        within = np.clip((at - parts[i - 1]) / np.maximum(parts[i] - parts[i - 1], 1e-300), 0, 1)
        even = low + within * (high - low)
        bent = np.exp(np.log(np.maximum(low, 1)) * (1 - within) + np.log(high) * within)
        drawn: NDArray[np.int64] = np.maximum(1, np.where(low > 0, bent, even)).astype(np.int64)
        return drawn

    @property
    def mean(self) -> float:
        total = 0.0
        for (low, before), (high, part) in zip(self.points, self.points[1:], strict=False):
            middle = (high - low) / math.log(high / low) if low > 0 and high > low else (low + high) / 2
            total += (part - before) * middle
        return total


def pareto(low: float, high: float, mean: float, steps: int = 64) -> Sizes:
    """Returns the bounded Pareto distribution between two sizes that has this mean. Raises ValueError if none has."""
    parts = np.linspace(0, 1, steps + 1)

    def of(shape: float) -> Sizes:
        a, b = low**-shape, high**-shape
        sizes = np.empty(steps + 1)
        sizes[0], sizes[-1] = low, high
        sizes[1:-1] = (a - parts[1:-1] * (a - b)) ** (-1 / shape)
        return Sizes(f"pareto-{mean:g}", tuple(zip(sizes.tolist(), parts.tolist(), strict=True)))

    shapes = (1e-6, 5.0)
    if not of(shapes[1]).mean < mean < of(shapes[0]).mean:
        raise ValueError(
            f"no bounded Pareto distribution on {low:g} ... {high:g} bytes has the mean {mean:g}"
        )
    for _ in range(60):
        middle = sum(shapes) / 2
        shapes = (middle, shapes[1]) if of(middle).mean > mean else (shapes[0], middle)
    return of(sum(shapes) / 2)


PANAMA = pareto(7e3, 1.1e9, 40e6)
"""PANAMA's slide 19 gives 7 KB, 1.1 GB and, as the mean, 40 MB; the shape between them is ours."""

_WEB_SEARCH = ((0, 0), (10e3, 15), (20e3, 20), (30e3, 30), (50e3, 40), (80e3, 53), (200e3, 60), (1e6, 70), (2e6, 80),
               (5e6, 90), (10e6, 97), (30e6, 100))  # fmt: skip
_HADOOP = ((0, 0), (100, 1), (200, 2), (300, 5), (350, 15), (400, 20), (500, 30), (600, 40), (700, 50), (1e3, 60),
           (2e3, 67), (7e3, 70), (30e3, 72), (50e3, 82), (80e3, 87), (120e3, 90), (300e3, 95), (1e6, 97.5), (2e6, 99),
           (10e6, 100))  # fmt: skip

WEB_SEARCH = Sizes("web-search", tuple((float(s), p / 100) for s, p in _WEB_SEARCH))
"""DCTCP's web search cluster (Alizadeh et al., SIGCOMM 2010), as HPCC's evaluation has it (SIGCOMM 2019;
alibaba-edu/High-Precision-Congestion-Control, traffic_gen/WebSearch_distribution.txt)."""

HADOOP = Sizes("hadoop", tuple((float(s), p / 100) for s, p in _HADOOP))
"""Facebook's Hadoop cluster (Roy et al., SIGCOMM 2015), from the same place (FbHdp_distribution.txt)."""

SIZES = {"panama": PANAMA, "web-search": WEB_SEARCH, "hadoop": HADOOP}
