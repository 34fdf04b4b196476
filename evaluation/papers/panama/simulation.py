# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""PANAMA's simulation (MLSys 2021; slides 19 and 20): training jobs and other traffic share a fat-tree of 1,024
servers, and short flows wait behind the jobs' gradients. A point is one scheme at one load, by flows.

From the paper: 1,024 servers, a fat-tree, six models, flows of 7 KB to 1.1 GB with a mean of 40 MB, aggregation
loads of 0.01 to 0.80, four schemes. All else is ours: see ASSUMPTIONS.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from netfold.controller.planning.plan import Plan
from netfold.evaluation.papers.panama.bootstrap import half_width
from netfold.simulator.flow.run import simulate
from netfold.simulator.scenario import (
    Bucket,
    Flow,
    InNetworkCollective,
    Job,
    Model,
    NetworkSettings,
    Scenario,
    Scheme,
    TcpVariant,
)
from netfold.simulator.schemes.catalog import SchemeName, SchemeOptions, over, scheme_of
from netfold.simulator.sweep.task import Json
from netfold.simulator.workloads.models import Accelerator, model
from netfold.simulator.workloads.sizes import SIZES
from netfold.simulator.workloads.traffic import WorkerPlacement, background, place
from netfold.topologies.fabric import Fabric
from netfold.topologies.generators import GBIT, fat_tree

SCHEMES = (SchemeName.RING, SchemeName.SWITCHML_BALANCED, SchemeName.PANAMA, SchemeName.IDEAL)
LOADS = (0.01, 0.05, 0.09, 0.13, 0.18, 0.22, 0.26, 0.30, 0.34, 0.38, 0.43, 0.47, 0.51, 0.55, 0.59, 0.63, 0.68, 0.72,
         0.76, 0.80)  # fmt: skip
"""Slide 20's axis has every one of these."""
MODELS = ("googlenet", "resnet-50", "inception-v3", "alexnet", "resnet-152", "vgg-16")
LARGE = ("alexnet", "resnet-152", "vgg-16")
SHORT = (100_000, 1_000_000, 10_000_000, 40_000_000)
"""Bytes: a short flow has no more."""
SHOWN = 1_000_000
TAIL = 0.9
"""Short flows of a block that are slower than this part of them are kept."""


@dataclass(frozen=True)
class LoadPoint:
    """One scheme at one load. `seconds` are simulated, and the flows that start after `warm_up` count, in `blocks`
    equal parts of time. That is done again with other flows, up to `replications` times, until the 99th percentile is
    known within the part `within` of it (half of its 95 % interval).

    transport, ring_transport  of the other flows, and of the ring's connections
    placement                  of a job's workers
    open_loop                  gradients come as fast as the network alone would let them, whether or not the earlier
                               ones are done; else an iteration waits for its gradients, as in training
    parallel                   connections of the ring between two of its workers
    queue_bytes                of a port; None: the fabric's
    ring_lockstep               the ring's connections wait for one another, as in a ring; else each is a flow by itself
    """

    scheme: SchemeName
    load: float
    seed: int = 0
    k: int = 16
    gbit: float = 40.0
    workers: int = 32
    trees: int = 4
    background: float = 0.2
    sizes: str = "panama"
    seconds: float = 1.0
    warm_up: float = 0.2
    blocks: int = 20
    tolerance: float = 0.01
    within: float = 0.1
    replications: int = 12
    lockstep: bool = True
    transport: TcpVariant = TcpVariant.DCTCP
    ring_transport: TcpVariant = TcpVariant.DCTCP
    placement: WorkerPlacement = WorkerPlacement.SCATTERED
    open_loop: bool = False
    ring_lockstep: bool = True
    parallel: int = 1
    queue_bytes: int | None = None


def points(seed: int = 0, quick: bool = False) -> list[LoadPoint]:
    """All of the figure; quick: five loads on a fat-tree of 128 servers, with jobs of 16."""
    if quick:
        return [
            LoadPoint(scheme, load, seed, k=8, workers=16, seconds=0.6, replications=1)
            for load in QUICK_LOADS
            for scheme in SCHEMES
        ]
    return [LoadPoint(scheme, load, seed) for load in LOADS for scheme in SCHEMES]


QUICK_LOADS = (0.05, 0.22, 0.43, 0.63, 0.80)

ASSUMPTIONS = (
    "links of 40 Gbit/s; queues mark from 100 KB on; hosts and switches add up at line rate",
    "background: 20 % of what the servers' links carry, DCTCP, between random servers; sizes by a bounded Pareto "
    "distribution of 7 KB to 1.1 GB whose mean is 40 MB",
    "a flow is short up to 1 MB (100 KB, 10 MB and 40 MB are in the JSON document too)",
    "jobs of 32 scattered workers, several on a server (its GPUs); A100's compute times; PyTorch's buckets, overlapped",
    "aggregation load: what the servers' links would carry if every job had the network to itself and sent each "
    "gradient once; jobs are added until their sum is the load",
    "PANAMA: chunks dealt out round robin to four trees of the controller's plan under one DCTCP-like window a job, "
    "so that a job shares a link as one TCP flow does; SwitchML with load balancing: the same trees, and a window that "
    "fills a link and its marked queue, whatever other traffic there is",
    "training time of a job: simulated seconds over the gradients that it reduced in them",
    "ring: workers rack by rack, one DCTCP connection between two; ideal: gradients at line rate beside the network, "
    "so that the flows are alone",
)


def point(at: LoadPoint) -> Json:
    """The result of the scheme at the load: see `_summary`."""
    found: list[LoadReplication] = []
    while len(found) < at.replications:
        found.append(_part(at, len(found)))
        if half_width([b for part in found for b in part.short[SHOWN]["blocks"]]) <= at.within:
            break
    seconds, carried = (Counter[str]() for _ in range(2))
    for part in found:
        seconds.update(part.seconds)
        carried.update(part.carried)
    return {
        "scheme": str(at.scheme),
        "load": at.load,
        "offered": sum(_load_of(at, j) for j in range(len(seconds))),
        "jobs": len(seconds),
        "replications": len(found),
        "flows": sum(part.flows for part in found),
        "events": sum(part.events for part in found),
        "host_links": float(np.mean([part.host_links for part in found])),
        "short": {str(size): _joined([part.short[size] for part in found]) for size in SHORT},
        "iterations": {name: seconds[name] / carried[name] for name in seconds if carried[name] > 0},
    }


@dataclass(frozen=True)
class LoadReplication:
    """One replication. Of each job the seconds that it had and the gradients that it reduced in them."""

    flows: int
    events: int
    host_links: float
    short: dict[int, dict[str, Any]]
    seconds: dict[str, float]
    carried: dict[str, float]


def _part(at: LoadPoint, replication: int) -> LoadReplication:
    fabric = _fabric(at.k, at.gbit)
    jobs = tuple(_jobs(at, replication))
    flows = _flows(replace(at, scheme=SchemeName.IDEAL, load=0.0), replication)
    settings = NetworkSettings(tolerance=at.tolerance, queue_bytes=at.queue_bytes)
    result = simulate(Scenario(fabric, jobs, flows, at.seed, at.seconds, settings))
    used = [x.utilization for (a, _), x in result.links.items() if fabric.is_host(a)]
    bytes_ = [_model(MODELS[number % len(MODELS)]).bytes for number in range(len(jobs))]
    return LoadReplication(
        len(flows), result.events, float(np.mean(used)) if used else 0.0,
        {size: _summary(at, flows, result.completions, size) for size in SHORT},
        {job.name: max(0.0, result.end - job.start) for job in jobs},
        {done.name: done.carried / size for done, size in zip(result.jobs, bytes_, strict=True)},
    )  # fmt: skip


def _joined(parts: list[dict[str, Any]]) -> dict[str, Any]:
    counts = [sum(count for count, _ in part["blocks"]) for part in parts]
    means = [(part["mean"] or 0.0) * count for part, count in zip(parts, counts, strict=True)]
    return {
        "mean": sum(means) / sum(counts) if sum(counts) else None,
        "unfinished": sum(part["unfinished"] for part in parts),
        "blocks": [block for part in parts for block in part["blocks"]],
    }


def _summary(
    at: LoadPoint, flows: tuple[Flow, ...], completions: tuple[float | None, ...], size: int
) -> dict[str, Any]:
    """Number of the short flows of each block, and the times of its slowest. A flow that is not complete has at
    least the time since its start."""
    length = (at.seconds - at.warm_up) / at.blocks
    blocks: list[list[float]] = [[] for _ in range(at.blocks)]
    unfinished = 0
    for flow, time in zip(flows, completions, strict=True):
        if flow.bytes > size or flow.start < at.warm_up:
            continue
        unfinished += time is None
        block = min(at.blocks - 1, int((flow.start - at.warm_up) / length))
        blocks[block].append(at.seconds - flow.start if time is None else time)
    every = [t for block in blocks for t in block]
    floor = float(np.quantile(every, TAIL)) if every else 0.0
    kept = [[len(block), sorted(t for t in block if t >= floor)] for block in blocks]
    return {"mean": float(np.mean(every)) if every else None, "unfinished": unfinished, "blocks": kept}


# ---- what is drawn, the same for all schemes ----


@cache
def _fabric(k: int, gbit: float) -> Fabric:
    return fat_tree(k, rate=gbit, unit=GBIT, name=f"panama-{k}")


@cache
def _flows(at: LoadPoint, replication: int) -> tuple[Flow, ...]:
    random = np.random.default_rng([at.seed, 1, replication])
    fabric = _fabric(at.k, at.gbit)
    return background(fabric, at.background, SIZES[at.sizes], at.seconds, random, at.transport)


def _jobs(at: LoadPoint, replication: int) -> Iterator[Job]:
    """Draw the jobs of a replication: the same sequence for every load, as far as the load allows."""
    total = 0.0
    for number in range(10_000):
        more = _load_of(at, number)
        if abs(total + more - at.load) >= abs(total - at.load):
            return
        total += more
        name = MODELS[number % len(MODELS)]
        own, alone = _model(name), _alone(at, _model(name))
        start = float(np.random.default_rng([at.seed, 2, number, replication]).uniform(0, alone))
        rounds = int(at.seconds / own.compute_s) + 2
        if at.open_loop:
            own, rounds = _unrolled(own, alone, rounds), 1
        yield Job(f"{name}-{number}", _workers(_key(at), number), own, _scheme(at, number), start, rounds)


def _unrolled(own: Model, period: float, rounds: int) -> Model:
    """`rounds` iterations as one, whose buckets become ready at a fixed pace."""
    whole = rounds * period
    ready = [
        (i * period + own.forward_s + b.ready * own.backward_s, b.bytes)
        for i in range(rounds)
        for b in own.buckets
    ]
    return Model(own.name, 0.0, whole, tuple(Bucket(size, at / whole) for at, size in sorted(ready)))


Key = tuple[int, float, int, int, int, WorkerPlacement]


def _key(at: LoadPoint) -> Key:
    return at.k, at.gbit, at.workers, at.trees, at.seed, at.placement


@cache
def _workers(key: Key, number: int) -> tuple[str, ...]:
    k, gbit, workers, _, seed, placement = key
    random = np.random.default_rng([seed, 3, number])
    return place(_fabric(k, gbit), workers, placement, random)


@cache
def _plan(key: Key, number: int) -> Plan:
    k, gbit, _, trees, seed, _ = key
    options = SchemeOptions(trees=trees, seed=seed * 1000 + number)
    scheme = scheme_of(SchemeName.PANAMA, _fabric(k, gbit), _workers(key, number), options)
    assert isinstance(scheme, InNetworkCollective)
    return scheme.plan


def _scheme(at: LoadPoint, number: int) -> Scheme:
    if at.scheme in (SchemeName.PANAMA, SchemeName.SWITCHML_BALANCED):
        return over(at.scheme, _plan(_key(at), number), SchemeOptions(lockstep=at.lockstep))
    options = SchemeOptions(transport=at.ring_transport, ring_lockstep=at.ring_lockstep, parallel=at.parallel)
    return scheme_of(at.scheme, _fabric(at.k, at.gbit), _workers(_key(at), number), options)


@cache
def _model(name: str) -> Model:
    return model(name, Accelerator.A100)


def _alone(at: LoadPoint, own: Model) -> float:
    """Seconds of an iteration with the network to itself, each byte sent once."""
    rate = at.gbit * 1e9 / 8 / NetworkSettings().wire
    now = 0.0
    for bucket in own.buckets:
        now = max(now, own.forward_s + bucket.ready * own.backward_s) + bucket.bytes / rate
    return max(now, own.compute_s)


def _load_of(at: LoadPoint, number: int) -> float:
    """Load of a job: the use of its workers' links, over that of all servers' links."""
    own = _model(MODELS[number % len(MODELS)])
    rate = at.gbit * 1e9 / 8 / NetworkSettings().wire
    return own.bytes / _alone(at, own) / rate * at.workers / len(_fabric(at.k, at.gbit).hosts)
