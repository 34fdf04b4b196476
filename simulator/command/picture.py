# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The picture of a simulation: iteration times of jobs and completion times of flows, by scheme."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from netfold.controller.drawing.chart import legend, series
from netfold.controller.drawing.palette import SERIES, TEXT
from netfold.controller.drawing.plot import Plot
from netfold.simulator.command.show import SimulationRun, spread
from netfold.simulator.command.simulation_spec import QUANTILES, SimulationSpec

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINES = ("-", "--", "-.", ":")
MAX_BARS = 24
"""A chart with more bars has no values at their ends: a table has them."""


def simulation_plot(spec: SimulationSpec, runs: Sequence[SimulationRun]) -> Plot:
    """Draws the mean iteration of each job and, if there are flows, the distribution of their completion times."""
    schemes = list(dict.fromkeys(r.scheme for r in runs))
    flows = any(r.found["flows"]["quantiles_s"] for r in runs)
    jobs = len(runs[0].found["jobs"])

    def draw(figure: Figure) -> None:
        axes = figure.subplots(1, 1 + flows, squeeze=False)[0]
        _draw_jobs(axes[0], schemes, runs)
        if flows:
            _draw_flows(axes[1], schemes, runs)
        figure.suptitle(_title(spec), fontsize="medium")
        legend(figure, axes, "scheme")

    height = max(3.4, 1.6 + 0.3 * jobs * len(schemes))
    return Plot(draw, (7.0 + 4.6 * flows, min(height, 16.0)))


def _title(spec: SimulationSpec) -> str:
    own, beside = spec.training, spec.background
    what = f"{own.iterations} iterations of {own.model or 'all-reduces'}"
    load = (
        f"\nbeside {beside.flow_sizes} flows, load {beside.load:g}, {beside.transport}" if beside.load else ""
    )
    return f"{spec.fabric.name}, {spec.level} level: {what}{load}"


def _draw_jobs(axes: Axes, schemes: Sequence[str], runs: Sequence[SimulationRun]) -> None:
    """Draws a group of horizontal bars for each job."""
    jobs = runs[0].found["jobs"]
    names = [f"{job['job']}\n{job['workers']} workers, {job['bytes'] / 1e6:.3g} MB" for job in jobs]
    thick, has_draws = 0.8 / len(schemes), len({r.seed for r in runs}) > 1
    longest = 0.0
    for number, scheme in enumerate(schemes):
        own = [r.found["jobs"] for r in runs if r.scheme == scheme]
        times = np.array([[found[i]["iteration_s"] or np.nan for found in own] for i in range(len(names))])
        means = np.mean(times, axis=1)
        error = np.std(times, axis=1) if has_draws else None
        y = np.arange(len(names)) + (number - (len(schemes) - 1) / 2) * thick
        color = SERIES[number % len(SERIES)]
        bars = axes.barh(y, means, thick, xerr=error, label=scheme, color=color, error_kw={"ecolor": TEXT})
        if len(names) * len(schemes) <= MAX_BARS:
            axes.bar_label(bars, [spread([seconds]) for seconds in means], padding=4, fontsize=8)
        longest = max(longest, float(np.nanmax(means + (0 if error is None else error), initial=0.0)))
    axes.set_yticks(range(len(names)), names, fontsize=9)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    errors = "; lines: standard deviation of the draws" if has_draws else ""
    axes.set(xlabel=f"mean iteration, s{errors}", xlim=(0, 1.25 * longest or 1.0), title="Jobs")


def _draw_flows(axes: Axes, schemes: Sequence[str], runs: Sequence[SimulationRun]) -> None:
    for number, scheme in enumerate(schemes):
        found: list[Any] = [r.found["flows"]["quantiles_s"] for r in runs if r.scheme == scheme]
        found = [quantiles for quantiles in found if quantiles]
        if found:
            style = series(number) | {"marker": "", "linestyle": LINES[number % len(LINES)]}
            axes.plot(np.mean(found, axis=0), np.array(QUANTILES) / 100, **style)
    axes.set(xscale="log", xlabel="completion time, s", ylabel="part of the flows", ylim=(0, 1))
    axes.set_title("Background flows")
