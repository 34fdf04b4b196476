# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""One simulation of a user's own jobs, read from files, on a user's own fabric, as a point of a sweep."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from netfold.controller.jobs.file import JobError, ResolvedJob, resolve_job
from netfold.controller.lifecycle.capacity import RefusedError
from netfold.controller.planning.plan import Plan, PlanningError
from netfold.controller.planning.residual_network import NO_LOADS
from netfold.controller.planning.scheme_registry import SCHEMES
from netfold.controller.planning.validate import add_loads
from netfold.controller.scheduling.job_planner import PlanRequest, plan_job
from netfold.simulator.result import JobResult, SimulationResult
from netfold.simulator.scenario import (
    Flow,
    InNetworkCollective,
    Job,
    Model,
    Scenario,
    ScenarioError,
    Scheme,
    TcpVariant,
)
from netfold.simulator.schemes.catalog import SchemeName, SchemeOptions, in_racks, scheme_of
from netfold.simulator.schemes.rings import ring
from netfold.simulator.sweep.task import Json
from netfold.simulator.workloads.models import MODELS, Accelerator, all_reduces, model
from netfold.simulator.workloads.sizes import SIZES
from netfold.simulator.workloads.traffic import background
from netfold.topologies.fabric import Fabric
from netfold.topologies.yaml_locations import Problem

PLANNED = "planned"
"""This is the controller's scheme: each job is admitted on the residual capacity of the earlier ones."""

ELEMENT = 4
SHORT = 100_000
"""A short flow has at most this many bytes."""
QUANTILES = tuple(range(1, 100))
MAX_LINKS = 10
DOUBLINGS = 6

PLANNERS = tuple(name for name in SCHEMES if name not in tuple(SchemeName))
"""The controller and installed packages have these schemes, but the catalog does not know how they send."""

_BETWEEN = re.compile(r"^---[ \t]*(?:#.*)?$", re.MULTILINE)


class Level(StrEnum):
    FLOW = "flow"
    PACKET = "packet"


@dataclass(frozen=True)
class Training:
    """Options of the jobs."""

    PANEL = "Training"

    iterations: Annotated[int, typer.Option(min=1, max=100_000, help="Iterations of each job.")] = 10
    model: Annotated[
        str | None,
        typer.Option(
            help="Model that workers train, with its compute times. Default: all-reduces of the job's elements in a "
            f"row. One of {', '.join(MODELS)}."
        ),
    ] = None
    accelerator: Annotated[Accelerator, typer.Option(help="Accelerator of the compute times.")] = (
        Accelerator.A100
    )
    gap: Annotated[
        float,
        typer.Option(
            min=0.0, help="Mean seconds between the starts of two jobs (Poisson). Default: all start at once."
        ),
    ] = 0.0


@dataclass(frozen=True)
class Background:
    """Options of the background flows."""

    PANEL = "Background flows"

    load: Annotated[
        float,
        typer.Option(min=0.0, max=2.0, help="Demand of background flows, as a fraction of all hosts' links."),
    ] = 0.0
    flow_sizes: Annotated[
        str, typer.Option(help=f"Size distribution of background flows: {', '.join(SIZES)}.")
    ] = "web-search"
    transport: Annotated[TcpVariant, typer.Option(help="Transport of background flows and of rings.")] = (
        TcpVariant.DCTCP
    )


@dataclass(frozen=True)
class SimulationSpec:
    """Input of a simulation. `jobs` are job files' texts.

    scheme   PLANNED; one of PLANNERS for all jobs; or one of the catalog's for all jobs, each
             planned as if it were alone
    seconds  simulated time; None: until the jobs are complete, with background flows all the time
    """

    fabric: Fabric
    jobs: tuple[str, ...]
    scheme: str
    level: Level
    seed: int
    training: Training
    background: Background
    seconds: float | None


@dataclass(frozen=True)
class Simulated:
    """A simulation with its results; `plans` are those of `jobs` that have one."""

    jobs: tuple[Job, ...]
    plans: tuple[Plan | None, ...]
    scenario: Scenario
    result: SimulationResult


def run_simulation(spec: SimulationSpec) -> Json:
    """Returns the results, or `refused` with the reason: there is no plan, or the scenario is invalid."""
    try:
        return _simulate(spec)
    except (RefusedError, PlanningError, ScenarioError) as error:
        return {"refused": str(error)}


def simulated(spec: SimulationSpec) -> Simulated:
    """Simulates the jobs. Raises RefusedError, PlanningError or ScenarioError."""
    orders = [_order(spec, text) for text in spec.jobs]
    plans = _plans(spec, orders)
    jobs = tuple(
        Job(o.file.name, o.workers, _model(spec, o), s, start, spec.training.iterations)
        for o, (s, _), start in zip(orders, plans, _starts(spec), strict=True)
    )
    scenario, result = _run(spec, jobs)
    return Simulated(jobs, tuple(plan for _, plan in plans), scenario, result)


def _simulate(spec: SimulationSpec) -> Json:
    done = simulated(spec)
    result = done.result
    return {
        "jobs": [
            _job(job, own, plan)
            for job, own, plan in zip(done.jobs, result.jobs, done.plans, strict=True)
        ],
        "flows": _flows(done.scenario.flows, result),
        "links": [
            {"link": f"{a}->{b}", "utilization": found.utilization, "queue_mean": found.queue_mean,
             "queue_max": found.queue_max}
            for (a, b), found in sorted(result.links.items(), key=lambda at: -at[1].utilization)[:MAX_LINKS]
        ],
        "slots": {
            switch: {"mean": found.mean, "peak": found.peak, "reserved": found.reserved}
            for switch, found in sorted(result.switches.items())
        },
        "end": result.end,
        "events": result.events,
    }  # fmt: skip


def _order(spec: SimulationSpec, text: str) -> ResolvedJob:
    """Returns the job of a file, by the scheme of the spec if it is one of PLANNERS."""
    resolved = resolve_job(text, spec.fabric)
    if spec.scheme not in PLANNERS:
        return resolved
    file = resolved.file.model_copy(update={"scheme": spec.scheme})
    return resolved.model_copy(update={"file": file})


def _plans(spec: SimulationSpec, orders: list[ResolvedJob]) -> list[tuple[Scheme, Plan | None]]:
    fabric, found = spec.fabric, []
    loads = NO_LOADS
    for resolved in orders:
        if spec.scheme != PLANNED and spec.scheme not in PLANNERS:
            options = SchemeOptions(
                resolved.parameter_servers, transport=spec.background.transport, seed=resolved.file.seed,
                gpus=resolved.file.ranks.per_host, intra=resolved.file.ranks.intra_gbs * 1e9,
            )  # fmt: skip
            scheme = scheme_of(SchemeName(spec.scheme), fabric, resolved.workers, options)
            found.append((scheme, scheme.plan if isinstance(scheme, InNetworkCollective) else None))
            continue
        plan = plan_job(fabric, PlanRequest(resolved, loads))
        loads = add_loads(loads, plan.loads)
        found.append((_planned_scheme(spec, resolved, plan), plan))
    return found


def _planned_scheme(spec: SimulationSpec, resolved: ResolvedJob, plan: Plan) -> Scheme:
    """Returns the plan's trees with the local reduction of hosts of several ranks, or the ring where that is
    faster."""
    hierarchy = plan.hierarchy
    if hierarchy is None:
        return InNetworkCollective(plan)
    best = hierarchy.chosen(plan.rate)
    if not best.in_trees:
        return ring(in_racks(spec.fabric, resolved.workers), spec.background.transport)
    trees = hierarchy.gradient / (plan.rate * hierarchy.unit)
    return InNetworkCollective(plan, local_s=max(0.0, best.ms / 1e3 - trees) / hierarchy.gradient)


def _starts(spec: SimulationSpec) -> list[float]:
    """Draws the starts: the first job starts at once, the others as a Poisson process, independent of other draws."""
    gaps = np.random.default_rng([spec.seed, 1]).exponential(spec.training.gap, len(spec.jobs))
    return [float(t) for t in np.cumsum([0.0, *gaps[1:]])]


def _model(spec: SimulationSpec, resolved: ResolvedJob) -> Model:
    if spec.training.model is None:
        return all_reduces(resolved.file.elements * ELEMENT)
    return model(spec.training.model, spec.training.accelerator)


def _run(spec: SimulationSpec, jobs: tuple[Job, ...]) -> tuple[Scenario, SimulationResult]:
    """Runs with background flows that arrive until the jobs are complete: the duration is found by doubling."""
    simulate: Callable[[Scenario], SimulationResult] = importlib.import_module(
        f"netfold.simulator.{spec.level}.run"
    ).simulate
    scenario = Scenario(spec.fabric, jobs, seed=spec.seed, until=spec.seconds)
    if spec.seconds is not None:
        scenario = replace(scenario, flows=_background(spec, spec.seconds))
        return scenario, simulate(scenario)
    result = simulate(scenario)
    if not spec.background.load:
        return scenario, result
    for _ in range(DOUBLINGS):
        seconds = 2 * result.end
        scenario = replace(scenario, flows=_background(spec, seconds), until=seconds)
        result = simulate(scenario)
        if all(len(job.iterations) == spec.training.iterations for job in result.jobs):
            break
    return scenario, result


def _background(spec: SimulationSpec, seconds: float) -> tuple[Flow, ...]:
    if not spec.background.load:
        return ()
    random = np.random.default_rng(spec.seed)
    sizes = SIZES[spec.background.flow_sizes]
    return background(spec.fabric, spec.background.load, sizes, seconds, random, spec.background.transport)


def _job(job: Job, result: JobResult, plan: Plan | None) -> dict[str, Any]:
    took = result.all_reduce_s
    return {
        "job": job.name,
        "start_s": job.start,
        "workers": len(job.workers),
        "bytes": job.model.bytes,
        "planned": None
        if plan is None
        else {"algorithm": plan.algorithm, "rate": plan.rate, "unit": plan.unit},
        "iterations": len(result.iterations),
        "iteration_s": _mean([i.duration for i in result.iterations]),
        "all_reduce_s": _mean(took),
        "all_reduce_p99_s": float(np.quantile(took, 0.99)) if took else None,
    }


def _mean(values: tuple[float, ...] | list[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _flows(flows: tuple[Flow, ...], result: SimulationResult) -> dict[str, Any]:
    """Returns the times of complete flows; `short` ones have at most SHORT bytes."""
    done = [(f.bytes, c) for f, c in zip(flows, result.completions, strict=True) if c is not None]
    every = [c for _, c in done]
    short = [c for size, c in done if size <= SHORT]
    return {
        "started": len(flows),
        "done": len(done),
        "mean_s": _mean(every),
        "p99_s": float(np.quantile(every, 0.99)) if every else None,
        "short": len(short),
        "short_mean_s": _mean(short),
        "short_p99_s": float(np.quantile(short, 0.99)) if short else None,
        "quantiles_s": np.quantile(every, np.array(QUANTILES) / 100).tolist() if every else [],
    }


def read_jobs(files: Sequence[Path], fabric: Fabric) -> tuple[ResolvedJob, ...]:
    """Reads the jobs in the order in which they are admitted. Raises SpecError (JobError is one) with file and
    line, also for a name that is given twice."""
    orders: list[ResolvedJob] = []
    for file in files:
        try:
            text = file.read_text()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no text"
            raise JobError(str(file), [Problem(1, 1, f"cannot be read: {reason}")]) from None
        for job in _jobs(text):
            order = resolve_job(job, fabric, str(file))
            if order.file.name in (o.file.name for o in orders):
                line = len(job) - len(job.lstrip("\n")) + 1
                raise JobError(str(file), [Problem(line, 1, f"a job '{order.file.name}' is given twice")])
            orders.append(order)
    return tuple(orders)


def _jobs(text: str) -> list[str]:
    """Splits a file into its jobs. Each has as many empty lines before it as the file has lines before it, so that
    errors name the file's."""
    found, began = [], 0
    ends = [(m.start(), m.end()) for m in _BETWEEN.finditer(text)]
    for end, after in [*ends, (len(text), len(text))]:
        part = text[began:end]
        if part.strip():
            found.append("\n" * text.count("\n", 0, began) + part)
        began = after
    return found or [text]
