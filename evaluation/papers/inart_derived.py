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

from netfold.evaluation.core.experiment import Column, table
from netfold.evaluation.papers.rate_figure import RatePoint

RESNET50_KB, VGG19_KB, LSTM_KB = 97, 548, 1627
"""Size of gradients, scaled down 1000 times as in the paper."""


class Quantity(StrEnum):
    RATE = "rate, Mbit/s"
    TIME = "communication, s"
    SENT = "sent by all workers, Mbit/s"
    REACHING = "into the servers, MB an iteration"


COLUMNS = {"repaired": "inart", "x4": "inart", "atp": "atp", "lbmm": "lbmm"}
"""Ours, and the published scheme beside them."""

Published = dict[str, float]


@dataclass(frozen=True)
class DerivedFigure:
    """One value of a figure for each scheme: of a gradient of so many KB, with so many workers."""

    figure: str
    quantity: Quantity
    workers: int
    published: Published
    kilobytes: int = 0

    def ours(self, point: RatePoint, column: str) -> float | None:
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


def _lstm(workers: int, inart: float, atp: float, lbmm: float) -> DerivedFigure:
    return DerivedFigure("10a", Quantity.TIME, workers, {"inart": inart, "atp": atp, "lbmm": lbmm}, LSTM_KB)


FIGURES = (
    DerivedFigure("7", Quantity.RATE, 40, {"inart": 10.75, "atp": 4.7}),
    DerivedFigure("9", Quantity.TIME, 40, {"inart": 0.068, "atp": 0.152, "lbmm": 0.35}, RESNET50_KB),
    _lstm(10, 0.65, 1.25, 1.65),
    _lstm(20, 0.85, 2.3, 3.3),
    _lstm(30, 0.93, 2.6, 5),
    _lstm(40, 1.15, 2.75, 6.5),
    _lstm(50, 1.35, 2.96, 8.1),
    DerivedFigure("13", Quantity.SENT, 30, {"inart": 420, "atp": 160, "lbmm": 90}),
    DerivedFigure("14", Quantity.REACHING, 40, {"inart": 3.44, "atp": 7.33, "lbmm": 22}, VGG19_KB),
)


def derived(points: Iterable[RatePoint]) -> Iterator[tuple[DerivedFigure, RatePoint]]:
    """The rows whose point of Fig. 8a is known."""
    found = {p.x: p for p in points if p.figure.name == "8a"}
    return ((figure, found[figure.workers]) for figure in FIGURES if figure.workers in found)


def derived_table(points: Iterable[RatePoint]) -> Table:
    def shown(column: str, scheme: str) -> Column[tuple[DerivedFigure, RatePoint]]:
        def cell(row: tuple[DerivedFigure, RatePoint]) -> str:
            figure, point = row
            ours, theirs = figure.ours(point, column), figure.published.get(scheme)
            beside = "" if theirs is None or column == "x4" else rf" \[{theirs:g}]"
            return ("-" if ours is None else f"{ours:.3g}") + beside

        return Column("inart" if column == "repaired" else column, cell)

    columns = (
        Column[tuple[DerivedFigure, RatePoint]]("Fig.", lambda row: row[0].figure, is_text=True),
        Column[tuple[DerivedFigure, RatePoint]]("quantity", lambda row: row[0].quantity, is_text=True),
        Column[tuple[DerivedFigure, RatePoint]]("workers", lambda row: row[0].workers),
        *(shown(column, scheme) for column, scheme in COLUMNS.items()),
    )
    return table(
        "InArt, figures that follow from the plans of Fig. 8a (\\[published])", columns, derived(points)
    )


def derived_rows(points: Iterable[RatePoint]) -> list[dict[str, Any]]:
    """Return the row for the JSON document."""
    return [
        {**asdict(figure), "ours": {c: v for c in COLUMNS if (v := figure.ours(point, c)) is not None}}
        for figure, point in derived(points)
    ]
