# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""InArt's figures that follow from the plans of Fig. 8a's points: communication times, what all workers send, and what
reaches the parameter servers, ours beside the published values (read off the plots)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from rich.table import Table

from netfold.experiments.run import Point

RESNET50_KB, VGG19_KB, LSTM_KB = 97, 548, 1627
"""Of gradients, scaled down 1000 times as in the paper."""


class Quantity(StrEnum):
    RATE = "rate, Mbit/s"
    TIME = "communication, s"
    SENT = "sent by all workers, Mbit/s"
    REACHING = "into the servers, MB an iteration"


COLUMNS = {"repaired": "inart", "x4": "inart", "atp": "atp", "lbmm": "lbmm"}
"""Ours, and the published scheme beside them."""

Published = dict[str, float]


@dataclass(frozen=True)
class Derived:
    """One value of a figure for each scheme: of a gradient of so many KB, with so many workers."""

    figure: str
    quantity: Quantity
    workers: int
    published: Published
    kilobytes: int = 0

    def ours(self, point: Point, column: str) -> float | None:
        """None: no plan has this column."""
        rate, reaching = point.values.get(column), point.reaching.get(column)
        if not rate or reaching is None:
            return None
        return {
            Quantity.RATE: rate,
            Quantity.TIME: 8e-3 * self.kilobytes / rate,
            Quantity.SENT: rate * point.x,
            Quantity.REACHING: reaching * self.kilobytes / 1e3,
        }[self.quantity]


def _lstm(workers: int, inart: float, atp: float, lbmm: float) -> Derived:
    return Derived("10a", Quantity.TIME, workers, {"inart": inart, "atp": atp, "lbmm": lbmm}, LSTM_KB)


FIGURES = (
    Derived("7", Quantity.RATE, 40, {"inart": 10.75, "atp": 4.7}),
    Derived("9", Quantity.TIME, 40, {"inart": 0.068, "atp": 0.152, "lbmm": 0.35}, RESNET50_KB),
    _lstm(10, 0.65, 1.25, 1.65),
    _lstm(20, 0.85, 2.3, 3.3),
    _lstm(30, 0.93, 2.6, 5),
    _lstm(40, 1.15, 2.75, 6.5),
    _lstm(50, 1.35, 2.96, 8.1),
    Derived("13", Quantity.SENT, 30, {"inart": 420, "atp": 160, "lbmm": 90}),
    Derived("14", Quantity.REACHING, 40, {"inart": 3.44, "atp": 7.33, "lbmm": 22}, VGG19_KB),
)


def derived(points: Iterable[Point]) -> Iterator[tuple[Derived, Point]]:
    """Those of which the point of Fig. 8a is there."""
    found = {p.x: p for p in points if p.figure.name == "8a"}
    return ((figure, found[figure.workers]) for figure in FIGURES if figure.workers in found)


def derived_table(points: Iterable[Point]) -> Table:
    table = Table(title="InArt, figures that follow from the plans of Fig. 8a (\\[published])")
    for head in ("Fig.", "what"):
        table.add_column(head)
    for head in ("workers", *("inart" if c == "repaired" else c for c in COLUMNS)):
        table.add_column(head, justify="right")
    for figure, point in derived(points):
        cells = []
        for column, scheme in COLUMNS.items():
            ours, theirs = figure.ours(point, column), figure.published.get(scheme)
            beside = "" if theirs is None or column == "x4" else rf" \[{theirs:g}]"
            cells.append(("-" if ours is None else f"{ours:.3g}") + beside)
        table.add_row(figure.figure, figure.quantity, str(figure.workers), *cells)
    return table


def derived_rows(points: Iterable[Point]) -> list[dict[str, Any]]:
    """For the JSON document."""
    return [
        {**asdict(figure), "ours": {c: v for c in COLUMNS if (v := figure.ours(point, c)) is not None}}
        for figure, point in derived(points)
    ]
