# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The packet level: a Scenario in, a SimulationResult out. docs/explanation/simulator.md lists what is not modeled."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace

import numpy as np

from netfold.simulator.packet.native import NEVER, PS, VERDICTS, PacketOutcome, TcpSettings, run
from netfold.simulator.packet.packet_options import PacketOptions
from netfold.simulator.packet.tables import PacketLayout
from netfold.simulator.result import Iteration, JobResult, LinkResult, SimulationResult, SlotResult
from netfold.simulator.scenario import IdealCollective, Job, Scenario, ScenarioError
from netfold.traffic.engine.engine import Status


class SimulationFailedError(Exception):
    """A worker's call failed, or its sums were wrong. The message names it."""


def simulate(scenario: Scenario, options: PacketOptions | None = None) -> SimulationResult:
    """Simulates a scenario. The result depends on the arguments only. Raises SimulationFailedError,
    CompilerMissingError, MemoryError."""
    options = options or PacketOptions()
    layout = PacketLayout(scenario, options)
    outcome = run(
        layout.rows(),
        layout.times,
        layout.assignments,
        _tcp(scenario, options),
        scenario.seed,
        NEVER - 1 if scenario.until is None else round(scenario.until * PS),
        _sampling(scenario, options),
    )
    if outcome.failed:
        raise SimulationFailedError(
            f"a call ended with {Status(outcome.failed).name} after {outcome.end / PS} s"
        )
    wrong = int(outcome.job[:, 1].sum())
    if wrong:
        raise SimulationFailedError(f"{wrong} elements of sums are wrong")
    return _result(scenario, layout, outcome)


def _tcp(scenario: Scenario, options: PacketOptions) -> TcpSettings:
    settings = scenario.settings
    return TcpSettings(
        segment_bytes=settings.segment_bytes,
        header_bytes=settings.packet_bytes - settings.segment_bytes,
        initial=settings.initial_segments,
        delayed=options.segments_per_ack,
        handshake=int(settings.handshake),
        delay=round(options.delayed_ack_s * PS),
        min_rto=round(options.min_rto_s * PS),
        initial_rto=round(options.initial_rto_s * PS),
    )


def _sampling(scenario: Scenario, options: PacketOptions) -> tuple[int, int]:
    if not options.sample_interval_s:
        return 0, 0
    if scenario.until is None:
        raise ScenarioError(
            "flows are looked at every so often only in a scenario that has an end: give `until`"
        )
    return round(options.sample_interval_s * PS), math.floor(
        scenario.until / options.sample_interval_s + 1e-9
    )


def _progress(
    scenario: Scenario, layout: PacketLayout, outcome: PacketOutcome
) -> tuple[tuple[float, ...], ...]:
    flows = scenario.flows
    row_of = {number: row for row, number in enumerate(layout.flow_order) if number is not None}
    segment = scenario.settings.segment_bytes
    return tuple(
        tuple(min(flow.bytes, float(sample[row_of[i]]) * segment) for i, flow in enumerate(flows))
        for sample in outcome.sample
    )


def _result(scenario: Scenario, layout: PacketLayout, outcome: PacketOutcome) -> SimulationResult:
    seconds = outcome.end / PS
    completions: list[float | None] = [None] * len(scenario.flows)
    for place, number in enumerate(layout.flow_order):
        if number is not None and outcome.flow[place, 0] != NEVER:
            completions[number] = float(outcome.flow[place, 0]) / PS - scenario.flows[number].start
    jobs = tuple(_job(job, layout, outcome) for job in scenario.jobs)
    end = max([seconds, *(j.end for j in jobs if j.end is not None)])
    return SimulationResult(
        jobs=jobs,
        completions=tuple(completions),
        links=_links(layout, outcome, seconds or 1.0),
        switches=_switches(scenario, layout, outcome, seconds or 1.0),
        end=end,
        events=outcome.events,
        progress=_progress(scenario, layout, outcome),
    )


def _job(job: Job, layout: PacketLayout, outcome: PacketOutcome) -> JobResult:
    if isinstance(job.scheme, IdealCollective):
        return _free(job, job.scheme)
    place = layout.places[job.name]
    done = int(outcome.exchange[place.row, 0] if place.exchange else outcome.job[place.row, 0])
    buckets = len(job.model.buckets)
    times = outcome.time[place.first_time : place.first_time + done * buckets].reshape(done, buckets, 2)
    iterations, began = [], job.start
    for rows in times:
        end = max(began + job.model.compute_s, float(rows[:, 1].max()))
        iterations.append(Iteration(began, end, tuple((float(a), float(b)) for a, b in rows)))
        began = end
    return JobResult(job.name, tuple(iterations))


def _free(job: Job, scheme: IdealCollective) -> JobResult:
    """Returns the results of a job without links: one bucket after the other."""
    iterations, began, model = [], job.start, job.model
    for _ in range(job.iterations):
        reduced, idle = [], began
        for bucket in sorted(model.buckets, key=lambda b: b.ready):
            ready = began + model.forward_s + bucket.ready * model.backward_s
            idle = max(ready, idle) + bucket.bytes / scheme.rate + scheme.latency_s
            reduced.append((ready, idle))
        end = max(began + model.compute_s, idle)
        iterations.append(Iteration(began, end, tuple(reduced)))
        began = end
    return JobResult(job.name, tuple(iterations))


def _links(layout: PacketLayout, outcome: PacketOutcome, seconds: float) -> dict[tuple[str, str], LinkResult]:
    found = {}
    for i in np.flatnonzero(outcome.link[:, 0]).tolist():
        _, sent, _, _, _, most, waited, _ = outcome.link[i].tolist()
        rate = float(layout.rates[i])
        found[layout.links.pairs[i]] = LinkResult(sent, sent / rate / seconds, waited / PS / seconds, most)
    return found


def _switches(
    scenario: Scenario, layout: PacketLayout, outcome: PacketOutcome, seconds: float
) -> dict[str, SlotResult]:
    """Returns the slots that are claimed and wait for children. `peak` is the sum of the peaks of all trees."""
    found: dict[str, SlotResult] = defaultdict(lambda: SlotResult(0.0, 0.0, 0))
    for row, name in enumerate(layout.trees.node_names):
        if scenario.fabric.is_host(name):
            continue
        peak, area = outcome.node[row, VERDICTS], outcome.node[row, VERDICTS + 1]
        old = found[name]
        found[name] = replace(
            old,
            mean=old.mean + float(area) / PS / seconds,
            peak=old.peak + float(peak),
            reserved=old.reserved + layout.trees.nodes[row][0],
        )
    return dict(found)
