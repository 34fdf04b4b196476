# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Color-blind readers tell the colors apart, on light and on dark; the page has the same colors as the pictures."""

from __future__ import annotations

import re
from itertools import combinations, pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from netfold.controller.drawing import palette
from netfold.controller.drawing.palette import Color, Theme, load_level
from tests.house.imports import REPOSITORY

STATIC = REPOSITORY / "controller/web/static"
STYLE = (STATIC / "style.css").read_text()

DEFICIENCIES = {
    "none": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
"""Machado, Oliveira, Fernandes 2009, of linear RGB, at full severity."""

MIN_DISTANCE = 10.0
"""CIE76 in Lab; 2.3 is just noticeable."""


def _linear(color: str) -> NDArray[np.float64]:
    srgb = np.array([int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def _lab(linear: NDArray[np.float64]) -> NDArray[np.float64]:
    to_xyz = [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
    xyz = np.array(to_xyz) @ linear / np.array([0.95047, 1.0, 1.08883])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def distance(a: str, b: str, deficiency: str) -> float:
    seen = (_lab(np.clip(np.array(DEFICIENCIES[deficiency]) @ _linear(c), 0, 1)) for c in (a, b))
    return float(np.linalg.norm(np.subtract(*seen)))


def contrast(a: str, b: str) -> float:
    """WCAG 2."""
    high, low = sorted((float(np.dot([0.2126, 0.7152, 0.0722], _linear(c))) for c in (a, b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
@pytest.mark.parametrize("theme", Theme)
@pytest.mark.parametrize("colors", [palette.SERIES_COLORS, palette.TREE_COLORS], ids=["series", "trees"])
def test_readers_tell_all_colors_apart(colors: tuple[Color, ...], theme: Theme, deficiency: str):
    shown = [color.on(theme) for color in colors]
    near = {(a, b): distance(a, b, deficiency) for a, b in combinations(shown, 2)}
    assert {pair: round(d, 1) for pair, d in near.items() if d < MIN_DISTANCE} == {}


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
@pytest.mark.parametrize("theme", Theme)
def test_readers_tell_neighboring_loads_apart_and_full_links_from_all_others(theme: Theme, deficiency: str):
    shown = [color.on(theme) for color in palette.LOAD_COLORS]
    for a, b in [*pairwise(shown), *((low, shown[-1]) for low in shown[:-1])]:
        assert distance(a, b, deficiency) > MIN_DISTANCE, (a, b)
    assert list(palette.LOAD_WIDTHS) == sorted(set(palette.LOAD_WIDTHS)), "width says it, too"


@pytest.mark.parametrize("theme", Theme)
def test_lines_and_texts_stand_out_from_the_background(theme: Theme):
    ground = palette.BACKGROUND_COLOR.on(theme)
    assert all(contrast(color.on(theme), ground) >= 2.1 for color in palette.SERIES_COLORS)
    assert all(contrast(color.on(theme), ground) >= 3.0 for color in palette.TREE_COLORS)
    assert contrast(palette.LOAD_COLORS[-1].on(theme), ground) >= 3.0
    for text in (palette.TEXT_COLOR, palette.MUTED_COLOR):
        assert contrast(text.on(theme), ground) >= 4.5


def test_each_light_color_has_one_dark_one():
    """An SVG replaces colors by their value."""
    assert len(dict(palette.ALL_COLORS)) == len(set(palette.ALL_COLORS))


def test_the_page_has_the_colors_and_levels_of_the_pictures():
    def page(name: str) -> Color:
        found = re.search(rf"{name}: light-dark\((#\w+), (#\w+)\)", STYLE)
        assert found is not None, name
        return Color(*found.groups())

    assert tuple(page(f"--load-{level}") for level in range(6)) == palette.LOAD_COLORS
    jobs = re.findall(r'\[data-color="\d"\] \{ --job: light-dark\((#\w+), (#\w+)\)', STYLE)
    assert tuple(Color(*pair) for pair in jobs) == palette.TREE_COLORS
    for name, color in (
        ("--background", palette.BACKGROUND_COLOR),
        ("--text", palette.TEXT_COLOR),
        ("--muted", palette.MUTED_COLOR),
        ("--grid", palette.GRID_COLOR),
        ("--worker", palette.WORKER_COLOR),
    ):
        assert page(name) == color, name
    levels = re.search(r"LEVELS = \[([\d., ]+)\]", (STATIC / "js/fabric_state.js").read_text())
    assert levels is not None
    assert tuple(map(float, levels[1].split(","))) == palette.LOAD_LEVELS


def test_a_level_begins_at_its_limit():
    assert [load_level(x) for x in (0.0, 0.0199, 0.02, 0.25, 0.5, 0.75, 0.9, 1.4)] == [0, 0, 1, 2, 3, 4, 5, 5]
