# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Papers whose figures show planned rates: figures, setups, schemes (grid.py, inart.py). Values are
minimum sending rates; those that the text does not state were read off the plots, to about 3-5 %."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from netfold.controller.planning.plan import JobSpec
from netfold.topologies.fabric import Fabric


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
