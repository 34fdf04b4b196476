# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The picture of `netfold measure fairness`: shares over time, and how long short flows take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

from netfold.measure.fairness.shares import Shares
from netfold.measure.fairness.short_flows import Short

COLUMNS = 4


def draw(shares: Sequence[Shares], short: Sequence[Short], file: Path) -> None:
    rows = math.ceil((len(shares) + 1) / COLUMNS)
    figure, axes = plt.subplots(rows, COLUMNS, figsize=(4 * COLUMNS, 2.6 * rows), squeeze=False)
    cells = [axis for row in axes for axis in row]
    for axis, one in zip(cells, shares, strict=False):
        for n, series in enumerate(zip(*one.series, strict=True)):
            kind = (
                {"label": "job", "color": "tab:blue"}
                if n < one.jobs
                else {"label": one.against, "color": "tab:orange"}
            )
            axis.plot(one.times[: len(series)], series, linewidth=1, **kind)
        axis.axhline(1 / len(one.shares), color="0.6", linewidth=0.8, linestyle=":")
        axis.set_title(f"{one.world}: {one.flows or 'job and job'} {one.against}", fontsize=8)
        axis.set_ylim(0, 1)
    last = cells[len(shares)]
    last.bar([f"{s.transport}\n{s.beside}" for s in short], [min(s.p99_ms, 1e5) for s in short])
    last.set_yscale("log")
    last.set_title("short flows, p99 ms", fontsize=8)
    last.tick_params(axis="x", labelsize=5)
    for axis in cells[len(shares) + 1 :]:
        axis.set_visible(False)
    figure.tight_layout()
    figure.savefig(file)
    plt.close(figure)
