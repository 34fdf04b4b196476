# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The row of a rate figure: our means at one x, beside the published values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from netfold.evaluation.core.experiment import Row
from netfold.evaluation.papers.rate_figure import Figure

Values = dict[str, float]


@dataclass(frozen=True)
class RatePoint(Row):
    """Our means at one x of a figure. A column without a value in any draw is left out.

    values       rates by column
    reaching     by column, how many whole gradients reach the parameter servers in an iteration
    server_over, switch_over
                 load of the worst resource over its capacity after rounding, before repair (`rounded` keeps the LP's
                 rate)
    """

    figure: Figure
    x: int
    values: Values
    reaching: Values
    server_over: float
    switch_over: float
    draws: int

    def published(self, scheme: str) -> float | None:
        curve = self.figure.curves.get(scheme)
        return None if curve is None else curve[self.figure.x.index(self.x)]

    def to_dict(self) -> dict[str, Any]:
        return {
            "figure": self.figure.name,
            "title": self.figure.title,
            self.figure.axis: self.x,
            "draws": self.draws,
            "ours": self.values,
            "reaching": self.reaching,
            "server_over": self.server_over,
            "switch_over": self.switch_over,
            "published": {scheme: self.published(scheme) for scheme in self.figure.curves},
        }
