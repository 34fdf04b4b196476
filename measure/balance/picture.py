# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The picture of `netfold measure balance`: times against the ideal, by size and by how slow a tree is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

from netfold.measure.balance.experiment import TREES, Balanced


def draw(rows: Sequence[Balanced], file: Path) -> None:
    figure, (times, parts) = plt.subplots(1, 2, figsize=(10, 4))
    for size in dict.fromkeys(r.size for r in rows):
        own = sorted((r for r in rows if r.size == size), key=lambda r: r.speed)
        times.plot([r.speed for r in own], [r.of_ideal for r in own], marker="o", label=f"{size / 1e6:g} MB")
        parts.plot([r.speed for r in own], [r.carried[0] for r in own], marker="o")
    speeds = sorted({r.speed for r in rows})
    plain = {r.speed: r.unbalanced_s / r.ideal_s for r in rows}
    times.plot(speeds, [plain[s] for s in speeds], color="0.5", linestyle=":", label="as planned")
    parts.plot(speeds, [s / (TREES - 1 + s) for s in speeds], color="0.5", linestyle=":", label="ideal")
    times.set_yscale("log")
    times.set_ylabel("time, of the ideal")
    parts.set_ylabel("carried by the slow tree")
    for axis in (times, parts):
        axis.set_xlabel("what is left of the slow tree's links")
        axis.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(file)
    plt.close(figure)
