# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""One simulation of a user's own jobs on a user's own fabric, as a point of a sweep."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np

from netfold.controller.jobs.file import JobOrder, read_order
from netfold.controller.lifecycle.admission import PlanRequest, RefusedError, plan_order
from netfold.controller.planning.network import NOTHING
from netfold.controller.planning.plan import Plan, PlanningError
from netfold.controller.planning.validate import add_loads
from netfold.experiments.sweep.point import Json
from netfold.simulator.result import JobResult, Result
from netfold.simulator.scenario import Flow, InNetwork, Job, Model, Scenario, ScenarioError, Scheme, Transport
from netfold.simulator.schemes.catalog import Name, Options, in_racks, scheme_of
from netfold.simulator.schemes.rings import ring
from netfold.simulator.workloads.models import Accelerator, all_reduces, model
from netfold.simulator.workloads.sizes import SIZES
from netfold.simulator.workloads.traffic import background
from netfold.topologies.fabric import Fabric

PLANNED = "planned"
"""The scheme that is the controller's: each job as it is admitted on what those before it leave."""

ELEMENT = 4
SHORT = 100_000
"""Bytes of a short flow, at most."""
QUANTILES = tuple(range(1, 100))
FULLEST = 10
DOUBLINGS = 6


class Level(StrEnum):
    FLOW = "flow"
    PACKET = "packet"


@dataclass(frozen=True)
class Question:
    """What is simulated. `jobs` are job files' texts.

    scheme      PLANNED, or one of the catalog's for all jobs, each planned as if it were alone
    model       which every worker trains, by its name; None: all-reduces of the job's own elements, back to back
    load        of background flows: the part of all hosts' links that they would fill
    seconds     after which all ends; None: when the jobs are done, with background all the while
    gap         seconds between two jobs' starts, on average, drawn anew for each seed; 0: all start at once
    """

    fabric: Fabric
    jobs: tuple[str, ...]
    scheme: str
    level: Level
    seed: int
    iterations: int
    model: str | None
    accelerator: Accelerator
    load: float
    sizes: str
    transport: Transport
    seconds: float | None
    gap: float = 0.0


def answer(question: Question) -> Json:
    """What came of it, or `refused` with the reason: no plan, or nothing that can be run."""
    try:
        return _answer(question)
    except (RefusedError, PlanningError, ScenarioError) as error:
        return {"refused": str(error)}


def _answer(question: Question) -> Json:
    orders = [read_order(text, question.fabric) for text in question.jobs]
    plans = _plans(question, orders)
    jobs = tuple(
        Job(o.file.name, o.workers, _model(question, o), s, start, question.iterations)
        for o, (s, _), start in zip(orders, plans, _starts(question), strict=True)
    )
    scenario, result = _run(question, jobs)
    return {
        "jobs": [
            _job(job, own, plan)
            for job, own, (_, plan) in zip(jobs, result.jobs, plans, strict=True)
        ],
        "flows": _flows(scenario.flows, result),
        "links": [
            {"link": f"{a}->{b}", "utilization": found.utilization, "queue_mean": found.queue_mean,
             "queue_max": found.queue_max}
            for (a, b), found in sorted(result.links.items(), key=lambda at: -at[1].utilization)[:FULLEST]
        ],
        "slots": {
            switch: {"mean": found.mean, "most": found.most, "reserved": found.reserved}
            for switch, found in sorted(result.switches.items())
        },
        "end": result.end,
        "events": result.events,
    }  # fmt: skip


def _plans(question: Question, orders: list[JobOrder]) -> list[tuple[Scheme, Plan | None]]:
    fabric, found = question.fabric, []
    loads = NOTHING
    for order in orders:
        if question.scheme != PLANNED:
            options = Options(
                order.parameter_servers, transport=question.transport, seed=order.file.seed,
                gpus=order.file.ranks.per_host, intra=order.file.ranks.intra_gbs * 1e9,
            )  # fmt: skip
            scheme = scheme_of(Name(question.scheme), fabric, order.workers, options)
            found.append((scheme, scheme.plan if isinstance(scheme, InNetwork) else None))
            continue
        plan = plan_order(fabric, PlanRequest(order, loads))
        loads = add_loads(loads, plan.loads)
        found.append((_as_planned(question, order, plan), plan))
    return found


def _as_planned(question: Question, order: JobOrder, plan: Plan) -> Scheme:
    """The plan's trees, with what hosts of several ranks do beside them; or the ring, where that is quicker."""
    hierarchy = plan.hierarchy
    if hierarchy is None:
        return InNetwork(plan)
    best = hierarchy.chosen(plan.rate)
    if not best.in_trees:
        return ring(in_racks(question.fabric, order.workers), question.transport)
    trees = hierarchy.gradient / (plan.rate * hierarchy.unit)
    return InNetwork(plan, local_s=max(0.0, best.ms / 1e3 - trees) / hierarchy.gradient)


def _starts(question: Question) -> list[float]:
    """The first job comes at once, the others as Poisson, whatever else is drawn."""
    gaps = np.random.default_rng([question.seed, 1]).exponential(question.gap, len(question.jobs))
    return [float(t) for t in np.cumsum([0.0, *gaps[1:]])]


def _model(question: Question, order: JobOrder) -> Model:
    if question.model is None:
        return all_reduces(order.file.elements * ELEMENT)
    return model(question.model, question.accelerator)


def _run(question: Question, jobs: tuple[Job, ...]) -> tuple[Scenario, Result]:
    """With background flows that arrive until the jobs are done: for how long that is, is found by doubling."""
    simulate: Callable[[Scenario], Result] = importlib.import_module(
        f"netfold.simulator.{question.level}.run"
    ).simulate
    scenario = Scenario(question.fabric, jobs, seed=question.seed, until=question.seconds)
    if question.seconds is not None:
        scenario = replace(scenario, flows=_background(question, question.seconds))
        return scenario, simulate(scenario)
    result = simulate(scenario)
    if not question.load:
        return scenario, result
    for _ in range(DOUBLINGS):
        seconds = 2 * result.end
        scenario = replace(scenario, flows=_background(question, seconds), until=seconds)
        result = simulate(scenario)
        if all(len(job.iterations) == question.iterations for job in result.jobs):
            break
    return scenario, result


def _background(question: Question, seconds: float) -> tuple[Flow, ...]:
    if not question.load:
        return ()
    random = np.random.default_rng(question.seed)
    sizes = SIZES[question.sizes]
    return background(question.fabric, question.load, sizes, seconds, random, question.transport)


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


def _flows(flows: tuple[Flow, ...], result: Result) -> dict[str, Any]:
    """Of those that were done; `short` have SHORT bytes at most."""
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
