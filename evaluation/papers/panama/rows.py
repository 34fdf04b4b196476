# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""From PANAMA's points: 99th percentiles and training times with intervals, and the paper's two claims. All schemes
have the same flows, and a ratio of two is drawn from the same blocks; where one has more replications than the other,
each from its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netfold.evaluation.core.experiment import Row
from netfold.evaluation.papers.panama.bootstrap import (
    RESAMPLES,
    Interval,
    interval_of,
    percentiles,
    resamples,
)
from netfold.evaluation.papers.panama.simulation import LARGE, SHOWN
from netfold.simulator.schemes.catalog import SchemeName

FLOWS_CLAIM, TRAINING_CLAIM = 4.5, 1.34


@dataclass(frozen=True)
class LoadRow(Row):
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
    p99_gain_by_size: dict[str, tuple[float, Interval]]
    host_links: float
    jobs: int
    replications: int


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


def rows_of(found: Sequence[dict[str, Any]]) -> list[LoadRow]:
    """`found`: results of panama.point; every load has PANAMA among its schemes."""
    panama = {r["load"]: r for r in found if r["scheme"] == SchemeName.PANAMA}
    return [_row(r, panama[r["load"]]) for r in found]


def claims_of(rows: Sequence[LoadRow]) -> list[Claim]:
    ring = [r for r in rows if r.scheme == SchemeName.RING]
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


def _row(own: dict[str, Any], panama: dict[str, Any]) -> LoadRow:
    mine, theirs = _p99(own), _p99(panama)
    gains = mine / theirs
    large, gain, interval = _training(own["iterations"], panama["iterations"])
    short = own["short"][str(SHOWN)]
    return LoadRow(
        own["scheme"], own["load"], float(mine[0]), interval_of(mine), short["mean"],
        sum(count for count, _ in short["blocks"]), short["unfinished"], float(gains[0]), interval_of(gains),
        large, gain, interval, {s: float(_p99(own, s)[0]) for s in own["short"]},
        {s: _gain(own, panama, s) for s in own["short"]}, own["host_links"], own["jobs"], own["replications"],
    )  # fmt: skip


def _p99(result: dict[str, Any], size: str = str(SHOWN)) -> NDArray[np.float64]:
    blocks = result["short"][size]["blocks"]
    return percentiles(blocks, resamples(len(blocks)))


def _gain(own: dict[str, Any], panama: dict[str, Any], size: str) -> tuple[float, Interval]:
    gains = _p99(own, size) / _p99(panama, size)
    return float(gains[0]), interval_of(gains)


def _training(
    own: dict[str, float], panama: dict[str, float]
) -> tuple[float | None, float | None, Interval | None]:
    """Mean iteration of the large jobs that both have, how many times PANAMA's, and its interval over jobs."""
    names = [n for n in own if n in panama and n.rpartition("-")[0] in LARGE]
    if not names:
        return None, None, None
    mine, theirs = (np.array([r[n] for n in names]) for r in (own, panama))
    pick = np.random.default_rng(len(names)).integers(len(names), size=(RESAMPLES, len(names)))
    gains = mine[pick].mean(axis=1) / theirs[pick].mean(axis=1)
    return float(mine.mean()), float(mine.mean() / theirs.mean()), interval_of(gains)
