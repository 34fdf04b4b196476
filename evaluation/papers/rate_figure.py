# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Papers whose figures show planned rates: figures, setups, schemes (grid.py, inart.py), and the rows of a figure, our
means beside the published values. Those are minimum sending rates; what the text does not state was read off the plots,
to about 3-5 %."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from netfold.controller.planning.plan import JobSpec
from netfold.evaluation.core.experiment import Row
from netfold.topologies.fabric import Fabric

Values = dict[str, float]


@dataclass(frozen=True)
class Figure:
    """One plot of a paper. `x` are numbers of workers or of parameter servers (`axis`); `curves` the published values
    at each x, by the scheme's name here."""

    name: str
    title: str
    axis: str
    x: tuple[int, ...]
    curves: dict[str, tuple[float | None, ...]]


@dataclass(frozen=True)
class RateSetup:
    """One random instance of one point of a figure."""

    fabric: Fabric
    job: JobSpec


@dataclass(frozen=True)
class Variant:
    """A scheme with options. `limits_fan_in`: with the limits of netfold's switches."""

    scheme: str
    options: Mapping[str, str | float] = field(default_factory=dict)
    limits_fan_in: bool = False


@dataclass(frozen=True)
class RatePaper:
    """A paper. `scheme` is its own; `variants` are further columns of ours, `baselines` those of them with published
    curves; `further_curves` are published for other columns."""

    name: str
    label: str
    unit: str
    scheme: str
    figures: tuple[Figure, ...]
    draw_setup: Callable[[Figure, int, random.Random], RateSetup]
    variants: Mapping[str, Variant]
    baselines: tuple[str, ...]
    further_curves: tuple[str, ...]
    is_logarithmic: bool
    notes: tuple[str, ...]

    def draw(self, figure: Figure, x: int, seed: int) -> RateSetup:
        """The instance of `figure` at `x` for a seed."""
        return self.draw_setup(figure, x, random.Random(f"{self.name} {figure.name} {x} {seed}"))


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
