# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Tables, JSON and CSV of a simulation, with sentences below the tables: they name what the ideal leaves out, and why
trees are not faster than a ring."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.table import Table
from scipy.stats import t

from netfold.simulator.command.simulation_spec import Level, SimulationSpec
from netfold.simulator.flow.layout import TREE_SHARE_BESIDE_TCP
from netfold.simulator.schemes.catalog import SchemeName

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
