# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The flow level: a Scenario in, a SimulationResult out. docs/explanation/simulator.md lists what is not modeled."""

from __future__ import annotations

import math
from collections import defaultdict
from functools import lru_cache

import numpy as np

from netfold.simulator.flow.layout import Channel, FlowLayout
from netfold.simulator.flow.native import FlowOutcome, FlowStarts, JobTable, Stream, run
from netfold.simulator.result import Iteration, JobResult, LinkResult, SimulationResult, SlotResult
from netfold.simulator.scenario import Flow, InNetworkCollective, Job, NetworkSettings, Scenario
from netfold.topologies.fabric import Fabric
from netfold.traffic.congestion import Congestion


def simulate(scenario: Scenario) -> SimulationResult:
    """Simulates a scenario. The result depends on nothing but that."""
    layout = FlowLayout(scenario)
    order, rows = _flows(scenario.fabric, scenario.settings, scenario.seed, scenario.flows)
    channels = [layout.channels(job) for job in scenario.jobs]
    outcome = run(
        layout.network,
        FlowStarts(
            np.array([scenario.flows[i].start for i in order]),
            np.array([scenario.flows[i].bytes for i in order], dtype=np.float64),
        ),
        [*rows, *(c.row for own in channels for c in own)],
        [_training(job, own) for job, own in zip(scenario.jobs, channels, strict=True)],
        math.inf if scenario.until is None else scenario.until,
    )
    completions = np.empty(len(order))
    completions[order] = outcome.completion
    return SimulationResult(
        jobs=_jobs(scenario, channels, outcome),
        completions=tuple(None if math.isnan(c) else c for c in completions.tolist()),
        links=_links(layout, outcome),
        switches=_switches(scenario, channels, outcome),
        end=outcome.end,
        events=outcome.events,
    )


@lru_cache(maxsize=4)
def _flows(
    fabric: Fabric, settings: NetworkSettings, seed: int, flows: tuple[Flow, ...]
) -> tuple[list[int], list[Stream]]:
    """Returns the flows in the order in which they start, and their rows. The last ones are cached: the points of a
    sweep have the same flows with other jobs, one replication after the other."""
    layout = FlowLayout(Scenario(fabric, flows=flows, seed=seed, settings=settings))
    order = sorted(range(len(flows)), key=lambda i: flows[i].start)
    return order, [layout.flow(i, flows[i]) for i in order]


def _training(job: Job, channels: list[Channel]) -> JobTable:
    model = job.model
    buckets = sorted(model.buckets, key=lambda b: b.ready)
    return JobTable(
        shares=[c.share for c in channels],
        bytes=[b.bytes for b in buckets],
        ready=[model.forward_s + b.ready * model.backward_s for b in buckets],
        compute=model.compute_s,
        latency=max(c.rtt for c in channels),
        local=job.scheme.local_s if isinstance(job.scheme, InNetworkCollective) else 0.0,
        start=job.start,
        iterations=job.iterations,
    )


def _jobs(scenario: Scenario, channels: list[list[Channel]], outcome: FlowOutcome) -> tuple[JobResult, ...]:
    results = []
    iteration = reduced = channel = 0
    for job, trees in zip(scenario.jobs, channels, strict=True):
        carried = float(outcome.carried[channel : channel + len(trees)].sum()) / sum(t.share for t in trees)
        channel += len(trees)
        buckets = len(job.model.buckets)
        done = []
        for i in range(job.iterations):
            end = outcome.ended[iteration + i]
            if math.isnan(end):
                break
            own = slice(reduced + i * buckets, reduced + (i + 1) * buckets)
            pairs = zip(outcome.was_ready[own].tolist(), outcome.was_reduced[own].tolist(), strict=True)
            done.append(Iteration(float(outcome.began[iteration + i]), float(end), tuple(pairs)))
        iteration += job.iterations
        reduced += job.iterations * buckets
        results.append(JobResult(job.name, tuple(done), carried))
    return tuple(results)


def _links(layout: FlowLayout, outcome: FlowOutcome) -> dict[tuple[str, str], LinkResult]:
    seconds = outcome.end or 1.0
    wire = layout.scenario.settings.wire
    return {
        layout.links.pairs[i]: LinkResult(
            float(outcome.sent[i] * wire),
            float(outcome.sent[i] / layout.network.capacity[i] / seconds),
            float(outcome.queue_mean[i] * wire),
            float(outcome.queue_max[i] * wire),
        )
        for i in np.flatnonzero(outcome.sent[: len(layout.links.pairs)]).tolist()
    }


def _switches(
    scenario: Scenario, channels: list[list[Channel]], outcome: FlowOutcome
) -> dict[str, SlotResult]:
    """Returns the slots of switches. Chunks in flight are in a slot of each node of their tree: by Little's law as
    many as arrive in an RTT, and never more than the window."""
    mean: dict[str, float] = defaultdict(float)
    peaks: dict[str, float] = defaultdict(float)
    reserved: dict[str, int] = defaultdict(int)
    number = -1
    for job, own in zip(scenario.jobs, channels, strict=True):
        for place, channel in enumerate(own):
            number += 1
            if not isinstance(job.scheme, InNetworkCollective):
                continue
            window = channel.row.window
            if job.scheme.congestion is Congestion.FIXED:
                held = window * float(outcome.busy[number]) / (outcome.end or 1.0)
                peak = window if outcome.busy[number] > 0 else 0.0
            else:
                held = float(outcome.carried[number]) * channel.rtt / (outcome.end or 1.0)
                peak = min(window, float(outcome.fastest[number]) * channel.rtt)
            slots = job.scheme.slots or 1 << math.ceil(math.log2(max(1.0, 2 * window / channel.chunk)))
            trees = job.scheme.plan.trees if job.scheme.lockstep else job.scheme.plan.trees[place : place + 1]
            for tree in trees:
                part = tree.share if job.scheme.lockstep else 1.0
                for node in tree.nodes:
                    if not scenario.fabric.is_host(node):
                        mean[node] += part * held / channel.chunk
                        peaks[node] += part * peak / channel.chunk
                        reserved[node] += slots
    return {v: SlotResult(mean[v], peaks[v], reserved[v]) for v in mean}
