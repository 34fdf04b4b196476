# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""One style for all plots. Colors are those of Okabe and Ito (jfly.uni-koeln.de/color), which color-blind readers can
tell apart; markers differ too, so that a plot can be read in gray."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLUE, VERMILION, GREEN, ORANGE = "#0072B2", "#D55E00", "#009E73", "#E69F00"
PURPLE, SKY, YELLOW, GRAY, BLACK = "#CC79A7", "#56B4E9", "#F0E442", "#7F7F7F", "#000000"
PALETTE = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY, BLACK)
MARKERS = "osD^vPX"
DPI = 130


@dataclass(frozen=True)
class Plot:
    """A file NAME-SUFFIX.png. `draw` receives a figure of `size` inches without axes."""

    draw: Callable[[Figure], None]
    size: tuple[float, float] = (10.0, 4.4)
    suffix: str = ""


def series(number: int) -> dict[str, Any]:
    """Color, marker and line of the `number`th series of a plot."""
    place = number % len(PALETTE)
    return {"color": PALETTE[place], "marker": MARKERS[place], "markersize": 4.0, "linewidth": 1.4}


def reference(**more: Any) -> dict[str, Any]:
    """Color and line of what results are compared with: a bound, an ideal, a published value."""
    return {"color": GRAY, "linestyle": "--", "linewidth": 1.2, **more}


def legend(figure: Figure, axes: Sequence[Any]) -> None:
    """One legend for all axes, right of them; each label once."""
    entries: dict[str, Any] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    if entries:
        figure.legend(list(entries.values()), list(entries), loc="outside right upper")


def log_y(axis: Any) -> None:
    """A logarithmic y axis with plain numbers: 0.5, 20, not powers of ten."""
    axis.set_yscale("log")
    for which in (axis.yaxis.set_major_formatter, axis.yaxis.set_minor_formatter):
        which("{x:g}")
    axis.tick_params(axis="y", which="minor", labelsize="x-small")


def render(plot: Plot) -> bytes:
    """The plot as PNG."""
    import matplotlib as mpl  # noqa: PLC0415 (it takes half a second)
    from cycler import cycler  # noqa: PLC0415 (comes with matplotlib)

    mpl.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415

    style = {
        "axes.grid": True,
        "grid.alpha": 0.3,
        "axes.prop_cycle": cycler(color=list(PALETTE)),
        "axes.titlesize": "medium",
        "legend.fontsize": "small",
        "savefig.dpi": DPI,
    }
    with mpl.rc_context(style):
        figure = pyplot.figure(figsize=plot.size, layout="constrained")
        try:
            plot.draw(figure)
            png = io.BytesIO()
            figure.savefig(png, format="png")
            return png.getvalue()
        finally:
            pyplot.close(figure)
