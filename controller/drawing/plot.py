# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A plot becomes a picture: PNG, PDF, or an SVG that is light or dark as its reader's screen is."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from netfold.controller.drawing import palette
from netfold.controller.drawing.palette import Theme

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf")
DPI = 150
_STYLE_END = "</style>"


class PictureFormatError(ValueError):
    """A file whose suffix is no format of pictures."""


@dataclass(frozen=True)
class Plot:
    """`draw` receives a figure of `size` inches without axes. `suffix`: of the name of its file, if an experiment has
    several. `arranges_itself`: places its axes itself; else they share the figure."""

    draw: Callable[[Figure], None]
    size: tuple[float, float] = (10.0, 4.4)
    suffix: str = ""
    arranges_itself: bool = False


@contextmanager
def drawn(plot: Plot, theme: Theme = Theme.LIGHT) -> Iterator[Figure]:
    """The figure, laid out."""
    from matplotlib import rc_context  # noqa: PLC0415 (it takes half a second)
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    with rc_context(_style(theme)):
        figure = Figure(figsize=plot.size, dpi=DPI)
        if not plot.arranges_itself:
            figure.set_layout_engine("constrained")
        FigureCanvasAgg(figure)
        plot.draw(figure)
        figure.draw_without_rendering()
        yield figure


def render(plot: Plot, form: str = "png", theme: Theme = Theme.LIGHT) -> bytes:
    """The plot as one of FORMATS. The same plot gives the same bytes. A light SVG has the dark colors, too, for
    screens that prefer them. Raises PictureFormatError."""
    if form not in FORMATS:
        raise PictureFormatError(f"'{form}' is no format of pictures; expected one of {', '.join(FORMATS)}")
    with drawn(plot, theme) as figure:
        picture = io.BytesIO()
        figure.savefig(picture, format=form, metadata=_UNDATED.get(form))
    content = picture.getvalue()
    if form == "svg" and theme is Theme.LIGHT:
        return _with_dark_colors(content.decode()).encode()
    return content


_UNDATED: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}


def save(plot: Plot, file: Path, theme: Theme = Theme.LIGHT) -> None:
    """Write to `file`, whose suffix is the format, and make its folder. Raises PictureFormatError, OSError."""
    content = render(plot, format_of(file), theme)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


def format_of(file: Path) -> str:
    """Raises PictureFormatError."""
    form = file.suffix.removeprefix(".").lower()
    if form not in FORMATS:
        known = ", ".join(f".{known}" for known in FORMATS)
        raise PictureFormatError(f"{file} has the suffix '{file.suffix}'; expected one of {known}")
    return form


def _style(theme: Theme) -> dict[str, Any]:
    from cycler import cycler  # noqa: PLC0415 (comes with matplotlib)

    text, muted = palette.TEXT_COLOR.on(theme), palette.MUTED_COLOR.on(theme)
    background = palette.BACKGROUND_COLOR.on(theme)
    return {
        "axes.axisbelow": True,
        "axes.edgecolor": muted,
        "axes.facecolor": background,
        "axes.grid": True,
        "axes.labelcolor": text,
        "axes.prop_cycle": cycler(color=palette.cycle(theme)),
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlecolor": text,
        "axes.titlesize": "medium",
        "figure.facecolor": background,
        "figure.constrained_layout.h_pad": 0.1,
        "figure.constrained_layout.w_pad": 0.1,
        "figure.titlesize": "medium",
        "font.family": "sans-serif",
        "font.sans-serif": ["DejaVu Sans"],  # which matplotlib brings: the same on every machine
        "font.size": 10,
        "grid.color": palette.GRID_COLOR.on(theme),
        "hatch.color": background,
        "image.cmap": "cividis",
        "legend.fontsize": "small",
        "legend.frameon": False,
        "legend.labelcolor": text,
        "savefig.facecolor": background,
        "svg.fonttype": "none",  # text stays text, which readers search and hear, in a third of the lines
        "svg.hashsalt": "netfold",
        "text.color": text,
        "xtick.color": muted,
        "xtick.labelcolor": text,
        "ytick.color": muted,
        "ytick.labelcolor": text,
    }


def _with_dark_colors(svg: str) -> str:
    """The SVG with a rule for each color, so that it is dark where its reader prefers that. Programs that do not know
    style sheets show it in light colors."""
    rules = []
    for light, dark in dict(palette.ALL_COLORS).items():
        for property_ in ("fill", "stroke"):
            if f"{property_}: {light}" in svg:
                rules.append(f'[style*="{property_}: {light}"]{{{property_}:{dark} !important}}')
    media = f"@media (prefers-color-scheme: dark) {{{' '.join(rules)}}}"
    return svg.replace(_STYLE_END, f"{media}{_STYLE_END}", 1)
