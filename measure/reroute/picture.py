# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The picture of `netfold measure reroute`: every iteration's time, with the load behind it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

from netfold.measure.reroute.experiment import Row


def draw(rows: Sequence[Row], load_s: float, file: Path) -> None:
    """A panel for each load and number of jobs; of several jobs the first."""
    loads, counts = sorted({r.load for r in rows}), sorted({r.jobs for r in rows})
    size = (6 * len(counts), 3.5 * len(loads))
    figure, axes = plt.subplots(
        len(loads), len(counts), figsize=size, squeeze=False, sharex=True, sharey=True
    )
    for (load, count), axis in zip(itertools.product(loads, counts), axes.flat, strict=True):
        axis.axvspan(0, load_s, color="0.9", label="TCP on a spine's links")
        for r in (r for r in rows if (r.load, r.jobs) == (load, count) and r.job.endswith("-1")):
            axis.plot([at for at, _ in r.timeline], [ms for _, ms in r.timeline], label=r.mode, linewidth=1)
        axis.set_title(f"{count} job{'s' if count > 1 else ''}, TCP on {load:.0%}")
    for axis in axes[-1]:
        axis.set_xlabel("seconds since the onset")
    for axis in axes[:, 0]:
        axis.set_ylabel("milliseconds of an iteration")
    axes[0][0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(file)
    plt.close(figure)
