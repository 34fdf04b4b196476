# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The colors of all pictures, each with a light and a dark form; the page's style sheet has the same.

Series have the hues of Okabe and Ito (jfly.uni-koeln.de/color), which color-blind readers tell apart. Loads go from
gray to amber and red; lines of a load also differ in width. A role is a name such as "C3", which matplotlib looks up in
the cycle of the current theme.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Theme(StrEnum):
    """The background that a picture is read on."""

    LIGHT = "light"
    DARK = "dark"


class Color(NamedTuple):
    """Hexadecimal, lower case."""

    light: str
    dark: str

    def on(self, theme: Theme) -> str:
        return self.light if theme is Theme.LIGHT else self.dark


SERIES_COLORS = (
    Color("#0072b2", "#4aa8e0"),  # blue
    Color("#d55e00", "#f07f35"),  # vermilion
    Color("#009e73", "#1fc296"),  # green
    Color("#b0568a", "#e597c2"),  # purple
    Color("#e69f00", "#ffd166"),  # orange
    Color("#2f96cf", "#8fd0f7"),  # sky
    Color("#3d4858", "#dfe4ea"),  # slate, in the place of black
)
TREE_COLORS = (
    Color("#0072b2", "#4aa8e0"),
    Color("#00805d", "#1fc296"),
    Color("#b0568a", "#e597c2"),
    Color("#2f96cf", "#8fd0f7"),
    Color("#2d1070", "#8f63ea"),
    Color("#6e6e00", "#cccc4d"),
)
"""Colors of trees and jobs. Amber and red are kept for loads."""

LOAD_COLORS = (
    Color("#ccd1d9", "#333c48"),
    Color("#a9b1be", "#4a5565"),
    Color("#828c9c", "#6d7a8c"),
    Color("#566173", "#9fabba"),
    Color("#d9780f", "#f0a04b"),
    Color("#c1121f", "#ff5c5c"),
)
LOAD_LEVELS = (0.02, 0.25, 0.5, 0.75, 0.9)
"""Lower limits of the levels 1 to 5, as parts of a link's rate."""

LOAD_WIDTHS = (1.0, 1.4, 2.0, 2.6, 3.3, 4.2)
"""Points."""

BACKGROUND_COLOR = Color("#ffffff", "#12161c")
TEXT_COLOR = Color("#1c2430", "#e8ecf1")
MUTED_COLOR = Color("#5a6474", "#a4aebc")
GRID_COLOR = Color("#e3e6ea", "#2b333e")
NODE_COLOR = Color("#fefefe", "#1f2732")
WORKER_COLOR = Color("#cfe3f2", "#234a66")

ALL_COLORS = (
    *SERIES_COLORS,
    *TREE_COLORS,
    *LOAD_COLORS,
    BACKGROUND_COLOR,
    TEXT_COLOR,
    MUTED_COLOR,
    GRID_COLOR,
    NODE_COLOR,
    WORKER_COLOR,
)


def cycle(theme: Theme) -> list[str]:
    """Names of the roles, in their order."""
    return [color.on(theme) for color in ALL_COLORS]


SERIES = tuple(f"C{number}" for number in range(len(SERIES_COLORS)))
BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, SLATE = SERIES
_TREES_AT = len(SERIES)
TREES = tuple(f"C{_TREES_AT + number}" for number in range(len(TREE_COLORS)))
_LOADS_AT = _TREES_AT + len(TREES)
LOADS = tuple(f"C{_LOADS_AT + number}" for number in range(len(LOAD_COLORS)))
BACKGROUND, TEXT, MUTED, GRID, NODE, WORKER = (
    f"C{_LOADS_AT + len(LOADS) + number}" for number in range(len(ALL_COLORS) - _LOADS_AT - len(LOADS))
)


def load_level(used: float) -> int:
    """0 to 5: the level of a load, as a part of the link's rate."""
    return sum(used >= limit for limit in LOAD_LEVELS)
