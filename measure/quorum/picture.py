# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The picture of `netfold measure quorum`: the others' step over the slow worker's delay."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

from netfold.measure.quorum.experiment import Row


def draw(rows: Sequence[Row], file: Path) -> None:
    """A line without and one with the quorum."""
    figure, axis = plt.subplots(figsize=(6, 4))
    for quorum in sorted({row.quorum for row in rows}):
        own = [row for row in rows if row.quorum == quorum]
        label = f"quorum {quorum}" if quorum else "no quorum"
        axis.plot([row.delay_ms for row in own], [row.step_ms for row in own], marker="o", label=label)
    axis.set_xlabel("the slow worker computes longer by (ms)")
    axis.set_ylabel("step of the others (ms)")
    axis.legend()
    figure.tight_layout()
    figure.savefig(file)
    plt.close(figure)
