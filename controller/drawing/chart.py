# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Parts that charts share: series, what they are compared with, legends, axes. Series differ in marker and line, too,
so that a chart can be read in gray."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from netfold.controller.drawing.palette import MUTED, SERIES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MARKERS = "osD^vPX"


def series(number: int) -> dict[str, Any]:
    """Color, marker and line of the `number`th series of a plot."""
    place = number % len(SERIES)
    return {"color": SERIES[place], "marker": MARKERS[place], "markersize": 5.0, "linewidth": 1.6}


def reference(**more: Any) -> dict[str, Any]:
    """Color and line of what results are compared with: a bound, an ideal, a published value."""
    return {"color": MUTED, "linestyle": "--", "linewidth": 1.3, **more}


def legend(figure: Figure, axes: Sequence[Any], title: str | None = None) -> None:
    """One legend for all axes, right of them; each label once."""
    entries: dict[str, Any] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    if entries:
        figure.legend(list(entries.values()), list(entries), loc="outside right upper", title=title)


def log_y(axis: Any) -> None:
    """A logarithmic y axis with plain numbers: 0.5, 20, not powers of ten. Values within a decade have a linear one,
    from 0."""
    from matplotlib.ticker import LogLocator, NullFormatter  # noqa: PLC0415

    low, high = axis.dataLim.intervaly
    if high < 10 * low:
        axis.set_ylim(0, 1.15 * high)
        return
    axis.set_yscale("log")
    axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=12))
    axis.yaxis.set_major_formatter("{x:g}")
    axis.yaxis.set_minor_formatter(NullFormatter())
