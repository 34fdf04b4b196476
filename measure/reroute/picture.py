# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The picture of `netfold measure reroute`: every iteration's time, with the load behind it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

from netfold.measure.reroute.experiment import Row


def draw(rows: Sequence[Row], load_s: float, file: Path) -> None:
    """One panel for each number of jobs; of several jobs the first."""
    counts = sorted({r.jobs for r in rows})
    figure, axes = plt.subplots(1, len(counts), figsize=(6 * len(counts), 4), squeeze=False, sharey=True)
    for axis, count in zip(axes[0], counts, strict=True):
        axis.axvspan(0, load_s, color="0.9", label="TCP on a spine's links")
        for r in (r for r in rows if r.jobs == count and r.job.endswith("-1")):
            axis.plot([at for at, _ in r.timeline], [ms for _, ms in r.timeline], label=r.mode, linewidth=1)
        axis.set_title(f"{count} job{'s' if count > 1 else ''}")
        axis.set_xlabel("seconds since the onset")
    axes[0][0].set_ylabel("milliseconds of an iteration")
    axes[0][0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(file)
    plt.close(figure)
