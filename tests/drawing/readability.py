# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Readability of every picture: texts that are whole, apart from each other, large enough, and named axes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

from matplotlib.text import Text
from matplotlib.transforms import Bbox

from netfold.controller.drawing.palette import Theme
from netfold.controller.drawing.plot import Plot, drawn

SMALLEST_POINTS = 6.5
TOLERANCE = 1.0
"""Pixels by which boxes may overlap: they contain the letters' descenders."""


def faults_of(plot: Plot, theme: Theme = Theme.LIGHT, *, needs_axis_names: bool = True) -> list[str]:
    """Returns in words why the picture is unreadable; empty if it is readable."""
    with drawn(plot, theme) as figure:
        texts = [(text.get_text(), box, text.get_fontsize()) for text, box in _texts(figure)]
        whole = figure.bbox
        faults = [
            f"'{text}' is cut"
            for text, box, _ in texts
            if box.x0 < whole.x0 - 0.5
            or box.y0 < whole.y0 - 0.5
            or box.x1 > whole.x1 + 0.5
            or box.y1 > whole.y1 + 0.5
        ]
        faults += [f"'{text}' has {size:g} points" for text, _, size in texts if size < SMALLEST_POINTS]
        for (a, first, _), (b, second, _) in combinations(texts, 2):
            if _overlap(first, second):
                faults.append(f"'{a}' lies on '{b}'")
        if needs_axis_names:
            faults += _nameless(figure)
        if len(figure.legends) + sum(axes.get_legend() is not None for axes in figure.axes) > 1:
            faults.append("more than one legend")
        return faults


def _texts(figure: Any) -> list[tuple[Text, Bbox]]:
    renderer = figure.canvas.get_renderer()
    hidden = {id(text) for axes in figure.axes for text in _hidden(axes)}
    found = []
    for text in figure.findobj(Text):
        if text.get_visible() and text.get_text().strip() and id(text) not in hidden:
            found.append((text, text.get_window_extent(renderer)))
    return found


def _hidden(axes: Any) -> Iterator[Text]:
    """Texts of axes that are not shown, and labels of ticks beyond an axis."""
    if not axes.get_visible():
        yield from axes.findobj(Text)
    for axis in axes._axis_map.values():
        ends = sorted(axis.get_view_interval())
        slack = 1e-9 * (ends[1] - ends[0])
        for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
            if not axes.axison or not ends[0] - slack <= tick.get_loc() <= ends[1] + slack:
                yield from (tick.label1, tick.label2)


def _overlap(a: Bbox, b: Bbox) -> bool:
    width = min(a.x1, b.x1) - max(a.x0, b.x0)
    height = min(a.y1, b.y1) - max(a.y0, b.y0)
    return width > TOLERANCE and height > TOLERANCE


def _nameless(figure: Any) -> list[str]:
    """Axes that neither they nor the figure name. Bars of a category have their names as ticks."""
    faults = []
    has_x, has_y = bool(figure.get_supxlabel()), bool(figure.get_supylabel())
    for axes in figure.axes:
        if not axes.get_visible() or axes.name == "3d":
            continue
        for name, axis, is_named in (("x", axes.xaxis, has_x), ("y", axes.yaxis, has_y)):
            shown = [label.get_text() for label in axis.get_ticklabels() if label.get_visible()]
            is_category = any(text and not text[0].isdigit() and text[0] not in "−-." for text in shown)
            if any(shown) and not (is_named or axis.get_label().get_text() or is_category):
                faults.append(f"the {name} axis has no name")
    return faults
