# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A scenario is a fabric, training jobs on it, and background flows. Both levels, `flow` and `packet`, take a
Scenario and return a SimulationResult (result.py). Sizes are bytes of payload, times seconds, rates of the fabric
in its own unit.

All random values are drawn before a scenario is made. Only `seed` remains, which chooses equal-cost paths
(routes.py): a scenario has the same result in every run."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from netfold.controller.planning.plan import Plan
from netfold.topologies.fabric import Fabric
from netfold.traffic.congestion import Congestion
from netfold.traffic.engine.call_log import CallKind


class ScenarioError(ValueError):
    """An invalid scenario. The message names the job or flow and what is expected."""


class TcpVariant(StrEnum):
    """TCP's variants, by which streams from host to host share links, in the order of the packet level's `enum
    np_transport`. CUBIC_ECN responds to marks as to losses (RFC 3168)."""

    RENO = "reno"
    CUBIC = "cubic"
    DCTCP = "dctcp"
    CUBIC_ECN = "cubic-ecn"


@dataclass(frozen=True, slots=True)
class Flow:
    """A flow sends bytes from one host to another, from `start` on. On a full link flows get rates in proportion to
    `weight`."""

    source: str
    destination: str
    bytes: int
    start: float
    transport: TcpVariant = TcpVariant.DCTCP
    weight: float = 1.0


@dataclass(frozen=True)
class Bucket:
    """The array of one call, by default a part of the gradient, which is all-reduced. It is complete when `ready` of
    the backward pass (0 to 1) is over. A reduce-scatter and an all-gather have an equal block of each worker, a
    broadcast and a reduce the first worker as root: packet level, jobs over trees."""

    bytes: int
    ready: float = 1.0
    kind: CallKind = CallKind.ALL_REDUCE


@dataclass(frozen=True)
class Model:
    """One iteration of training on one worker: forward, then backward, during which the buckets become ready one by
    one. The next forward pass starts when the last bucket's sum is there."""

    name: str
    forward_s: float
    backward_s: float
    buckets: tuple[Bucket, ...]

    @property
    def bytes(self) -> int:
        return sum(b.bytes for b in self.buckets)

    @property
    def has_targets(self) -> bool:
        """Returns whether packets are targeted (docs/reference/protocol.md, section 2.1)."""
        return any(b.kind is not CallKind.ALL_REDUCE for b in self.buckets)

    @property
    def compute_s(self) -> float:
        return self.forward_s + self.backward_s


@dataclass(frozen=True)
class CollectiveEdge:
    """A connection from host to host that carries `factor` bytes for each byte of the gradient."""

    source: str
    destination: str
    factor: float


@dataclass(frozen=True)
class HostCollective:
    """An all-reduce by the hosts alone, over connections that advance in step: the slowest sets the pace, as in a ring.

    steps      messages that follow one another, each a hop's delay, before a bucket is done (a ring of n: 2 (n - 1))
    transport  of all its connections
    lockstep    flow level: all go at the pace of the slowest; else each is a flow by itself until its part is through
    parallel   flow level: parallel TCP connections for each of the hops
    """

    hops: tuple[CollectiveEdge, ...]
    steps: int
    transport: TcpVariant = TcpVariant.DCTCP
    lockstep: bool = True
    parallel: int = 1


@dataclass(frozen=True)
class InNetworkCollective:
    """An all-reduce over the trees of a plan, as the controller makes it.

    congestion  how workers choose the bytes in flight: FIXED always has `window` of them
    window      maximum payload bytes that a worker has in flight in each tree; None: as many as fill its link
                behind a queue of the marking threshold (NetworkSettings.marking_bytes)
    slots       of each tree on each of its nodes; None: as many as two windows need
    lanes       values of 4 bytes in a packet
    lockstep     flow level: chunks are dealt out to the trees round robin under one window, as in PANAMA, so that all
                trees go at the pace of the slowest; else each has a window of its own, as netfold's workers have
    local_s     in addition, seconds for each byte of the gradient inside the machines (parallel NetReduce)
    """

    plan: Plan
    congestion: Congestion = Congestion.PANAMA
    window: int | None = None
    slots: int | None = None
    lanes: int = 256
    lockstep: bool = False
    local_s: float = 0.0


@dataclass(frozen=True)
class IdealCollective:
    """An all-reduce at a rate of its own (bytes/s) that puts nothing on any link: the bound on all schemes."""

    rate: float
    latency_s: float = 0.0


Scheme = HostCollective | InNetworkCollective | IdealCollective


@dataclass(frozen=True)
class Job:
    """Training by `workers` that begins at `start` and has this many iterations. Workers are in step. A Model
    without compute time is a row of all-reduces, back to back. `arrivals`: of each worker, how many seconds after
    an iteration's start it arrives (packet level, jobs over trees); empty: at the start."""

    name: str
    workers: tuple[str, ...]
    model: Model
    scheme: Scheme
    start: float = 0.0
    iterations: int = 1
    arrivals: tuple[float, ...] = ()


@dataclass(frozen=True)
class NetworkSettings:
    """Settings of the whole network.

    segment_bytes    payload of a flow's packet
    header_bytes     of Ethernet, IPv4 and TCP before it
    gap_bytes        around every frame: checksum, preamble, gap
    marking_bytes    a queue marks packets from here on, and DCTCP keeps it there
    queue_bytes      of every port; None: the fabric's own queue, in packets
    initial_segments TCP's first window
    handshake        whether a flow's time has TCP's opening round trip in it
    hop_delay_s      of every link one way, where the fabric has 0
    tolerance        flow level: rates may be off their fair share by this part (0: exact), which is quicker
    """

    segment_bytes: int = 1460
    header_bytes: int = 54
    gap_bytes: int = 24
    marking_bytes: int = 100_000
    queue_bytes: int | None = None
    initial_segments: int = 10
    handshake: bool = False
    hop_delay_s: float = 1e-6
    tolerance: float = 0.0

    @property
    def packet_bytes(self) -> int:
        """Returns the bytes of a flow's full packet on a wire."""
        return self.segment_bytes + self.header_bytes + self.gap_bytes

    @property
    def wire(self) -> float:
        """Returns the bytes on a wire for each byte of payload."""
        return self.packet_bytes / self.segment_bytes


@dataclass(frozen=True)
class Scenario:
    """Jobs and flows that run until all are complete, or until the second `until`."""

    fabric: Fabric
    jobs: tuple[Job, ...] = ()
    flows: tuple[Flow, ...] = ()
    seed: int = 0
    until: float | None = None
    settings: NetworkSettings = field(default_factory=NetworkSettings)

    def __post_init__(self) -> None:
        for fault in self._faults():
            raise ScenarioError(fault)

    def _faults(self) -> Iterator[str]:
        hosts = {h.name for h in self.fabric.hosts}
        for number, flow in enumerate(self.flows):
            for end in (flow.source, flow.destination):
                if end not in hosts:
                    yield f"flow {number}: '{end}' is no host of {self.fabric.name}"
            if flow.source == flow.destination:
                yield f"flow {number} goes from '{flow.source}' to itself"
            if flow.bytes < 1 or not flow.weight > 0 or not 0 <= flow.start < math.inf:
                yield f"flow {number}: bytes and weight must be above 0, start 0 or more"
        names = [job.name for job in self.jobs]
        for job in self.jobs:
            what = f"job '{job.name}'"
            if names.count(job.name) > 1:
                yield f"{what}: the name is given twice"
            unknown = [w for w in job.workers if w not in hosts]
            if unknown:
                yield f"{what}: '{unknown[0]}' is no host of {self.fabric.name}"
            if not job.workers or job.iterations < 1 or not 0 <= job.start < math.inf:
                yield f"{what} needs a worker, an iteration, and a start of 0 or more"
            if job.arrivals and (len(job.arrivals) != len(job.workers) or min(job.arrivals) < 0):
                yield f"{what}: arrivals are one for each worker, 0 or more"
            if any(b.bytes < 1 or not 0 <= b.ready <= 1 for b in job.model.buckets):
                yield f"{what}: a bucket needs a byte at least, and is ready at 0 to 1 of the backward pass"
            if any(b.kind is CallKind.BARRIER for b in job.model.buckets):
                yield f"{what}: a barrier has no bucket"
            if job.model.has_targets and not isinstance(job.scheme, InNetworkCollective):
                yield f"{what}: hosts alone make all-reduces; scatters and gathers go over trees"
