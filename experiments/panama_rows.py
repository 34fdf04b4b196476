# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What PANAMA's points say: 99th percentiles and training times with intervals, and the paper's two claims.

Flows of a moment wait for the same gradients, so intervals come from drawing whole blocks of time anew (Efron and
Tibshirani, An Introduction to the Bootstrap, ch. 8): 95 % of what comes out. All schemes have the same flows, and a
ratio of two is drawn from the same blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netfold.experiments.panama import LARGE, SHORT
from netfold.simulator.schemes.catalog import Name

DRAWS = 400
PART = 0.99
INTERVAL = (0.025, 0.975)
FLOWS_CLAIM, TRAINING_CLAIM = 4.5, 1.34
Interval = tuple[float, float]


@dataclass(frozen=True)
class Row:
    """One scheme at one load. Times in seconds, `short_flows` of them; `large_s` is the mean iteration of the large
    models' jobs (None where there is none), and of a scheme `..._gain` how many times PANAMA's value
    it has."""

    scheme: str
    load: float
    p99_s: float
    p99_interval: Interval
    mean_s: float
    short_flows: int
    unfinished: int
    p99_gain: float
    p99_gain_interval: Interval
    large_s: float | None
    large_gain: float | None
    large_gain_interval: Interval | None
    p99_by_size: dict[str, float]
    host_links: float
    jobs: int


@dataclass(frozen=True)
class Claim:
    """`published`: the paper's factor over the ring. Ours: the greatest over the loads, where, and its interval. It is
    confirmed if the interval reaches it."""

    what: str
    published: float
    ours: float
    load: float
    interval: Interval

    @property
    def verdict(self) -> str:
        if self.interval[0] > self.published:
            return "exceeded"
        return "confirmed" if self.interval[1] >= self.published else "not reached"


def rows_of(found: Sequence[dict[str, Any]]) -> list[Row]:
    """`found`: results of panama.point; every load has PANAMA among its schemes."""
    panama = {r["load"]: r for r in found if r["scheme"] == Name.PANAMA}
    return [_row(r, panama[r["load"]]) for r in found]


def claims_of(rows: Sequence[Row]) -> list[Claim]:
    ring = [r for r in rows if r.scheme == Name.RING]
    best = max(ring, key=lambda r: r.p99_gain)
    found = [Claim("short flows' p99", FLOWS_CLAIM, best.p99_gain, best.load, best.p99_gain_interval)]
    trained = [r for r in ring if r.large_gain is not None and r.large_gain_interval is not None]
    if trained:
        best = max(trained, key=lambda r: r.large_gain or 0.0)
        assert best.large_gain is not None
        assert best.large_gain_interval is not None
        found.append(
            Claim(
                "large jobs' training", TRAINING_CLAIM, best.large_gain, best.load, best.large_gain_interval
            )
        )
    return found


def _row(own: dict[str, Any], panama: dict[str, Any]) -> Row:
    size = str(SHORT[1])
    drawn = _drawn(len(own["short"][size]["blocks"]))
    mine, theirs = (_p99(r["short"][size]["blocks"], drawn) for r in (own, panama))
    gains = mine / theirs
    large, gain, interval = _training(own["iterations"], panama["iterations"])
    short = own["short"][size]
    return Row(
        own["scheme"], own["load"], float(mine[0]), _interval(mine), short["mean"],
        sum(count for count, _ in short["blocks"]), short["unfinished"], float(gains[0]), _interval(gains),
        large, gain, interval, {s: float(_p99(x["blocks"], drawn[:1])[0]) for s, x in own["short"].items()},
        own["host_links"], own["jobs"],
    )  # fmt: skip


def _drawn(blocks: int) -> NDArray[np.int64]:
    """How often each block counts: first as it was, then as drawn; the same for all."""
    random = np.random.default_rng(blocks)
    drawn = random.multinomial(blocks, np.full(blocks, 1 / blocks), DRAWS)
    return np.vstack([np.ones((1, blocks), dtype=np.int64), drawn])


def _p99(blocks: list[Any], drawn: NDArray[np.int64]) -> NDArray[np.float64]:
    """The 99th percentile for each drawing, from the slowest of each block and how many it has."""
    counts = np.array([count for count, _ in blocks])
    times = np.array([t for _, tail in blocks for t in tail])
    block = np.repeat(np.arange(len(blocks)), [len(tail) for _, tail in blocks])
    order = np.argsort(-times, kind="stable")
    above = np.cumsum(drawn[:, block[order]], axis=1)
    place = (above < (drawn @ counts * (1 - PART))[:, None]).sum(axis=1)
    found: NDArray[np.float64] = times[order][np.minimum(place, len(times) - 1)]
    return found


def _training(
    own: dict[str, float], panama: dict[str, float]
) -> tuple[float | None, float | None, Interval | None]:
    """Mean iteration of the large jobs that both have, how many times PANAMA's, and its interval over jobs."""
    names = [n for n in own if n in panama and n.rpartition("-")[0] in LARGE]
    if not names:
        return None, None, None
    mine, theirs = (np.array([r[n] for n in names]) for r in (own, panama))
    pick = np.random.default_rng(len(names)).integers(len(names), size=(DRAWS, len(names)))
    gains = mine[pick].mean(axis=1) / theirs[pick].mean(axis=1)
    return float(mine.mean()), float(mine.mean() / theirs.mean()), _interval(gains)


def _interval(values: NDArray[np.float64]) -> Interval:
    low, high = np.quantile(values, INTERVAL)
    return float(low), float(high)
