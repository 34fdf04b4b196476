# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The picture of `netfold measure arrivals`: what those who wait send, and when all is done."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

from netfold.measure.arrivals.experiment import Arrival


def draw(rows: Sequence[Arrival], file: Path) -> None:
    figure, (sent, took) = plt.subplots(1, 2, figsize=(10, 4))
    for call in sorted({r.call for r in rows}):
        own = [r for r in rows if r.call == call]
        spreads = [r.spread_ms for r in own]
        sent.plot(spreads, [100 * r.again_part for r in own], marker="o", label=f"call {call}")
        took.plot(
            spreads, [r.seconds * 1e3 for r in own], marker="o", label=f"call {call}, after the last came"
        )
        took.plot(spreads, [r.together_s * 1e3 for r in own], color="0.5", linestyle=":", label="all at once")
    sent.set_ylabel("sent again while waiting, % of the links")
    sent.set_ylim(bottom=0)
    took.set_ylabel("ms to the sums at all workers")
    took.set_ylim(bottom=0)
    took.legend(fontsize=8)
    for axis in (sent, took):
        axis.set_xlabel("ms from the first worker to the last")
    figure.tight_layout()
    figure.savefig(file)
    plt.close(figure)
