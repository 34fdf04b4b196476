# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Tables, JSON, CSV and the picture of a simulation, with sentences below the tables: they name what the ideal leaves
out, and why trees are not faster than a ring."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.table import Table
from scipy.stats import t

from netfold.controller.drawing.chart import legend, series
from netfold.controller.drawing.palette import SERIES, TEXT
from netfold.controller.drawing.plot import Plot
from netfold.simulator.command.simulation_spec import QUANTILES, Level, SimulationSpec
from netfold.simulator.flow.layout import TREE_SHARE_BESIDE_TCP
from netfold.simulator.schemes.catalog import SchemeName

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


JOB_COLUMNS = (
    "job", "start_s", "workers", "bytes", "iterations", "iteration_s", "all_reduce_s", "all_reduce_p99_s"
)  # fmt: skip
FLOW_COLUMNS = ("started", "done", "mean_s", "p99_s", "short", "short_mean_s", "short_p99_s")

RINGS = (SchemeName.RING, SchemeName.HIERARCHICAL_RING)

FASTER = 0.95
"""A scheme is faster than another one if its iterations take at most this part of the other's."""

IDEAL = (
    "ideal is a bound, not a scheme: every worker sends and receives the gradient once at its link's rate. It uses "
    "no link: it leaves out other jobs, background flows, queues, congestion control and the capacities of switches."
)

LINES = ("-", "--", "-.", ":")

MAX_BARS = 24
"""A chart with more bars has no values at their ends: a table has them."""


@dataclass(frozen=True)
class SimulationRun:
    """A scheme's simulation with one seed; `found` is the result of `run_simulation`."""

    scheme: str
    seed: int
    found: dict[str, Any]


def document(spec: SimulationSpec, runs: Sequence[SimulationRun]) -> dict[str, Any]:
    """Returns all of it as JSON."""
    return {
        "fabric": spec.fabric.name,
        "level": spec.level,
        "iterations": spec.training.iterations,
        "model": spec.training.model,
        "load": spec.background.load,
        "sizes": spec.background.flow_sizes,
        "transport": spec.background.transport,
        "runs": [{"scheme": r.scheme, "seed": r.seed, **r.found} for r in runs],
    }


def to_csv(runs: Sequence[SimulationRun]) -> str:
    """Returns all of it as CSV: a line per scheme, seed and job, which includes the flows of the run."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["scheme", "seed", *JOB_COLUMNS, *(f"flows_{name}" for name in FLOW_COLUMNS)])
    for run in runs:
        flows = [run.found["flows"][name] for name in FLOW_COLUMNS]
        for job in run.found["jobs"]:
            writer.writerow([run.scheme, run.seed, *(job[name] for name in JOB_COLUMNS), *flows])
    return text.getvalue()


def tables(spec: SimulationSpec, runs: Sequence[SimulationRun]) -> Iterator[Table]:
    """Returns means over the seeds; with several, half of the mean's 95 % interval (Student's t) follows."""
    schemes = list(dict.fromkeys(r.scheme for r in runs))
    yield _jobs(spec, schemes, runs)
    if any(r.found["flows"]["started"] for r in runs):
        yield _flows(spec, schemes, runs)
    yield _links(runs[0], several=len(runs) > 1)


def _jobs(spec: SimulationSpec, schemes: Sequence[str], runs: Sequence[SimulationRun]) -> Table:
    table = Table(title=f"Jobs on {spec.fabric.name}, {spec.level} level")
    for head in (
        "scheme",
        "job",
        "workers",
        "MB",
        "planned rate",
        "iterations",
        "iteration",
        "all-reduce",
        "99 %",
    ):
        table.add_column(head, justify="left" if head in ("scheme", "job") else "right")
    for scheme in schemes:
        own = [r.found["jobs"] for r in runs if r.scheme == scheme]
        for place, job in enumerate(own[0]):
            planned = job["planned"]
            rate = (
                "-"
                if planned is None
                else f"{planned['rate']:.4g} {planned['unit']} ({planned['algorithm']})"
            )
            done = min(jobs[place]["iterations"] for jobs in own)
            short = "" if done == spec.training.iterations else f" of {spec.training.iterations}"
            times = (spread([jobs[place][name] for jobs in own]) for name in JOB_COLUMNS[-3:])
            table.add_row(
                scheme,
                job["job"],
                str(job["workers"]),
                f"{job['bytes'] / 1e6:.4g}",
                rate,
                f"{done}{short}",
                *times,
            )
    return table


def _flows(spec: SimulationSpec, schemes: Sequence[str], runs: Sequence[SimulationRun]) -> Table:
    table = Table(
        title=f"Background: {spec.background.flow_sizes}, load {spec.background.load:g}, {spec.background.transport}"
    )
    for head in ("scheme", "started", "done", "mean", "99 %", "short (100 kB)", "mean", "99 %"):
        table.add_column(head, justify="left" if head == "scheme" else "right")
    for scheme in schemes:
        own = [r.found["flows"] for r in runs if r.scheme == scheme]
        cells = []
        for name in FLOW_COLUMNS:
            values = [flows[name] for flows in own]
            cells.append(spread(values) if name.endswith("_s") else f"{np.mean(values):.6g}")
        table.add_row(scheme, *cells)
    return table


def _links(run: SimulationRun, *, several: bool) -> Table:
    which = f", {run.scheme}, seed {run.seed}" if several else ""
    table = Table(title=f"The most loaded links over {run.found['end']:.4g} s{which}")
    for head in ("link", "utilization", "mean queue", "max queue"):
        table.add_column(head, justify="left" if head == "link" else "right")
    for link in run.found["links"]:
        queues = (f"{link[name] / 1e3:.4g} kB" for name in ("queue_mean", "queue_max"))
        table.add_row(link["link"], f"{link['utilization']:.1%}", *queues)
    return table


def spread(values: Sequence[float | None]) -> str:
    """Returns the mean of seconds, and half of its 95 % interval where there are several."""
    there = [v for v in values if v is not None]
    if not there:
        return "-"
    mean = float(np.mean(there))
    unit, name = next(((u, n) for u, n in ((1.0, "s"), (1e-3, "ms")) if mean >= u), (1e-6, "us"))
    shown = f"{mean / unit:.4g}"
    if len(there) > 1:
        half = float(t.ppf(0.975, len(there) - 1) * np.std(there, ddof=1) / len(there) ** 0.5)
        shown += f" ± {half / unit:.2g}"
    return f"{shown} {name}"


def notes(spec: SimulationSpec, runs: Sequence[SimulationRun]) -> Iterator[str]:
    schemes = list(dict.fromkeys(r.scheme for r in runs))
    if SchemeName.IDEAL in schemes:
        yield IDEAL
    rings = {name: seconds for name in RINGS if name in schemes and (seconds := _iteration_s(name, runs))}
    if not rings:
        return
    ring = min(rings, key=lambda name: rings[name])
    for scheme in schemes:
        seconds = _iteration_s(scheme, runs)
        if (
            scheme in (*RINGS, SchemeName.DOUBLE_BINARY_TREE, SchemeName.IDEAL)
            or seconds is None
            or seconds <= FASTER * rings[ring]
        ):
            continue
        yield f"{scheme} is not faster than {ring}: {' '.join(_reasons(spec))}"


def _iteration_s(scheme: str, runs: Sequence[SimulationRun]) -> float | None:
    times = [job["iteration_s"] for r in runs if r.scheme == scheme for job in r.found["jobs"]]
    known = [t for t in times if t is not None]
    return float(np.mean(known)) if known else None


def _reasons(spec: SimulationSpec) -> Iterator[str]:
    if spec.background.load:
        share = f"{TREE_SHARE_BESIDE_TCP:g} of" if spec.level is Level.FLOW else "less than"
        yield (
            f"on a full link the trees of a job get {share} what a TCP flow gets, a ring's connection as much as a "
            "flow, and the most loaded link sets the rate of a whole tree."
        )
    if spec.training.model is not None:
        yield "Iterations contain the compute time, during which buckets are reduced; compare the all-reduce times."
    yield (
        "Without congestion a tree sends each byte once where a ring of n workers sends it 2 (n - 1) / n times: a tree "
        "is at most twice as fast, less if its plan's rate is below that of the workers' links."
    )


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
