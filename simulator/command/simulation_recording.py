# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Makes a recording of a simulation, for `netfold replay`: loads of links over simulated time, and the plans.

A simulation's results have the times of every reduction and flow. The load of a link in a step of time is what
these carry over it, each at its mean rate from its start to its end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from netfold.controller.recording.lines import (
    Json,
    RecordingSource,
    State,
    StateSection,
    change_line,
    event_line,
    fabric_line,
    plan_row,
    state_line,
    tree_document,
)
from netfold.simulator.command.simulation_spec import Simulated
from netfold.simulator.flow.layout import FlowLayout
from netfold.simulator.result import JobResult
from netfold.simulator.scenario import Job

STEPS = 200
"""A recording has this many steps of time."""

LOAD_DIGITS = 3
"""Loads are recorded in thousandths of a link's rate."""

Span = tuple[float, float]
"""A transfer has a start and an end, in seconds."""


def recording_of(simulations: Sequence[tuple[str, Simulated]]) -> list[str]:
    """Returns the lines: of the first simulation the loads over time, of each one the plan of its first job.
    `simulations`: with the names of their schemes, on one fabric."""
    name, shown = simulations[0]
    fabric = shown.scenario.fabric
    jobs, cross = _loads(shown)
    links = [f"{a}->{b}" for link in fabric.links for a, b in ((link.a, link.b), (link.b, link.a))]
    events = sorted(chain.from_iterable(_events(shown, name)))
    state: State = {
        StateSection.SWITCHES: {
            switch: {
                "ready": True,
                "error": "",
                "repaired": 0,
                "slots_in_use": found.reserved,
                "slots": fabric.switch(switch).slots,
            }
            for switch, found in shown.result.switches.items()
        },
        StateSection.JOBS: {job.name: _job_row(shown, number, name) for number, job in enumerate(shown.jobs)},
        StateSection.LINKS: dict(zip(links, _rows(jobs[:, 0], cross[:, 0]), strict=True)),
        StateSection.PLANS: {
            scheme: plan_row(plan) for scheme, simulated in simulations if (plan := simulated.plans[0])
        },
    }
    lines = [fabric_line(fabric, RecordingSource.SIMULATOR), state_line(0.0, state)]
    lines += [event_line(at, "job", text, job=job) for at, job, text in events]
    for step in range(1, STEPS):
        changed = np.flatnonzero(
            (jobs[:, step] != jobs[:, step - 1]) | (cross[:, step] != cross[:, step - 1])
        )
        rows = _rows(jobs[changed, step], cross[changed, step])
        changes = dict(zip((links[i] for i in changed.tolist()), rows, strict=True))
        lines.append(change_line(step * shown.result.end / STEPS, {StateSection.LINKS: changes}))
    return [*lines, change_line(shown.result.end, {})]


def _rows(jobs: NDArray[np.float64], cross: NDArray[np.float64]) -> list[list[float]]:
    rows: list[list[float]] = np.stack([jobs, cross], axis=1).tolist()
    return rows


def _loads(simulated: Simulated) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns the loads of jobs and of flows by link (as in LinkTable) and step, in the fabric's unit."""
    scenario, result = simulated.scenario, simulated.result
    layout = FlowLayout(scenario)
    links = len(layout.links.pairs)
    jobs, cross = np.zeros((links, STEPS)), np.zeros((links, STEPS))
    edges = np.linspace(0.0, result.end, STEPS + 1)
    wire = scenario.settings.wire
    for job, done in zip(scenario.jobs, result.jobs, strict=True):
        for size, span in _reductions(job, done):
            for channel in layout.channels(job):
                sent = size * channel.share * wire * _parts(edges, span)
                _add(jobs, links, channel.row.links, channel.row.coefs, sent)
    for number, (flow, seconds) in enumerate(zip(scenario.flows, result.completions, strict=True)):
        if seconds is not None:
            row = layout.flow(number, flow)
            sent = flow.bytes * wire * _parts(edges, (flow.start, flow.start + seconds))
            _add(cross, links, row.links, row.coefs, sent)
    capacity = layout.links.rates[:, np.newaxis] * result.end / STEPS
    in_unit = layout.links.rates[:, np.newaxis] / (scenario.fabric.unit.bits_per_second / 8)
    return np.round(jobs / capacity, LOAD_DIGITS) * in_unit, np.round(cross / capacity, LOAD_DIGITS) * in_unit


def _add(
    loads: NDArray[np.float64],
    links: int,
    row: Sequence[int],
    coefs: Sequence[float],
    sent: NDArray[np.float64],
) -> None:
    """Adds the loads of a stream's row; numbers beyond `links` are limits of nodes."""
    for link, coef in zip(row, coefs, strict=True):
        if link < links:
            loads[link] += coef * sent


def _reductions(job: Job, done: JobResult) -> Iterator[tuple[int, Span]]:
    """Yields the bytes of each bucket, and when it was reduced: after the one before it."""
    sizes = [bucket.bytes for bucket in sorted(job.model.buckets, key=lambda b: b.ready)]
    for iteration in done.iterations:
        free = iteration.start
        for size, (ready, reduced) in zip(sizes, iteration.reduced, strict=True):
            yield size, (max(ready, free), reduced)
            free = reduced


def _parts(edges: NDArray[np.float64], span: Span) -> NDArray[np.float64]:
    """Computes which part of a transfer falls into each step."""
    start, end = span
    if end <= start:
        found = np.zeros(len(edges) - 1)
        found[min(int(np.searchsorted(edges, start, side="right")) - 1, len(found) - 1)] = 1.0
        return found
    return np.diff(np.clip((edges - start) / (end - start), 0.0, 1.0))


def _events(simulated: Simulated, scheme: str) -> Iterator[list[tuple[float, str, str]]]:
    for job, done in zip(simulated.jobs, simulated.result.jobs, strict=True):
        text = f"started, by {scheme}"
        yield [(job.start, job.name, text)]
        if done.end is not None:
            yield [(done.end, job.name, f"{len(done.iterations)} iterations are complete")]


def _job_row(simulated: Simulated, number: int, scheme: str) -> Json:
    job, plan = simulated.jobs[number], simulated.plans[number]
    row = {
        "state": "running",
        "reason": "",
        "epoch": 1,
        "sequence": number,
        "workers": list(job.workers),
        "scheme": scheme,
        "straggler": None,
        "trees": [],
    }
    if plan is None:
        return row
    return row | {
        "rate": plan.rate,
        "unit": plan.unit,
        "trees": [tree_document(tree) for tree in plan.trees],
    }
