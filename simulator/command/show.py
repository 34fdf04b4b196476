# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Tables, JSON, CSV and the picture of a simulation."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from rich.table import Table
from scipy.stats import t

from netfold.simulator.command.simulation_spec import QUANTILES, SimulationSpec

JOB_COLUMNS = (
    "job", "start_s", "workers", "bytes", "iterations", "iteration_s", "all_reduce_s", "all_reduce_p99_s"
)  # fmt: skip
FLOW_COLUMNS = ("started", "done", "mean_s", "p99_s", "short", "short_mean_s", "short_p99_s")


@dataclass(frozen=True)
class SimulationRun:
    """A scheme's simulation with one seed; `found` as `run_simulation` gives it."""

    scheme: str
    seed: int
    found: dict[str, Any]


def document(spec: SimulationSpec, runs: Sequence[SimulationRun]) -> dict[str, Any]:
    """All of it as JSON."""
    return {
        "fabric": spec.fabric.name,
        "level": spec.level,
        "iterations": spec.training.iterations,
        "model": spec.training.model,
        "load": spec.background.load,
        "sizes": spec.background.sizes,
        "transport": spec.background.transport,
        "runs": [{"scheme": r.scheme, "seed": r.seed, **r.found} for r in runs],
    }


def to_csv(runs: Sequence[SimulationRun]) -> str:
    """As CSV: a line per scheme, seed and job, the flows of the run beside it."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["scheme", "seed", *JOB_COLUMNS, *(f"flows_{name}" for name in FLOW_COLUMNS)])
    for run in runs:
        flows = [run.found["flows"][name] for name in FLOW_COLUMNS]
        for job in run.found["jobs"]:
            writer.writerow([run.scheme, run.seed, *(job[name] for name in JOB_COLUMNS), *flows])
    return text.getvalue()


def tables(spec: SimulationSpec, runs: Sequence[SimulationRun]) -> Iterator[Table]:
    """Means over the seeds; with several, half of the mean's 95 % interval (Student's t) behind them."""
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
        title=f"Background: {spec.background.sizes}, load {spec.background.load:g}, {spec.background.transport}"
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
    """The mean of seconds, and half of its 95 % interval where there are several."""
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


def plot(spec: SimulationSpec, runs: Sequence[SimulationRun], file: Path) -> None:
    """Iteration times of the jobs by scheme and, if there were any, completion times of the flows.

    Raises OSError and ValueError for a file that cannot be drawn to.
    """
    schemes = list(dict.fromkeys(r.scheme for r in runs))
    flows = any(r.found["flows"]["quantiles_s"] for r in runs)
    with plt.style.context("tableau-colorblind10"):
        chart, every = plt.subplots(
            1, 1 + flows, figsize=(6.5 * (1 + flows), 4.6), layout="constrained", squeeze=False
        )
        try:
            _plot_jobs(every[0][0], schemes, runs)
            if flows:
                _plot_flows(every[0][1], schemes, runs)
            own, beside = spec.training, spec.background
            what = own.model or "all-reduces"
            load = f", background flows ({beside.sizes}) of load {beside.load:g}" if beside.load else ""
            chart.suptitle(f"{spec.fabric.name}, {spec.level} level: {what}{load}")
            file.parent.mkdir(parents=True, exist_ok=True)
            chart.savefig(file, dpi=130)
        finally:
            plt.close(chart)


def _plot_jobs(axes: Any, schemes: Sequence[str], runs: Sequence[SimulationRun]) -> None:
    names = [job["job"] for job in runs[0].found["jobs"]]
    width, several = 0.8 / len(schemes), len({r.seed for r in runs}) > 1
    for number, scheme in enumerate(schemes):
        own = [r.found["jobs"] for r in runs if r.scheme == scheme]
        times = [[jobs[i]["iteration_s"] or np.nan for jobs in own] for i in range(len(names))]
        x = np.arange(len(names)) + (number - (len(schemes) - 1) / 2) * width
        error = np.std(times, axis=1) if several else None
        bars = axes.bar(x, np.mean(times, axis=1), width, yerr=error, label=scheme)
        axes.bar_label(bars, [spread([seconds]) for seconds in np.mean(times, axis=1)], fontsize="x-small")
    axes.set_xticks(range(len(names)), names)
    axes.set(
        ylabel="iteration, s", xlabel="job", title="mean iteration (bars: standard deviation of the draws)"
    )
    axes.legend(fontsize="small", title="scheme")
    axes.grid(axis="y", alpha=0.3)


def _plot_flows(axes: Any, schemes: Sequence[str], runs: Sequence[SimulationRun]) -> None:
    for scheme in schemes:
        drawn = [r.found["flows"]["quantiles_s"] for r in runs if r.scheme == scheme]
        drawn = [quantiles for quantiles in drawn if quantiles]
        if drawn:
            axes.plot(np.mean(drawn, axis=0), np.array(QUANTILES) / 100, label=scheme)
    axes.set(
        xscale="log",
        xlabel="completion time, s",
        ylabel="fraction of the flows",
        title="background flows",
        ylim=(0, 1),
    )
    axes.legend(fontsize="small")
    axes.grid(alpha=0.3)
