# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The functions of flow.h for Python: arrays in, arrays out."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cache

import numpy as np
from numpy.typing import NDArray

from netfold.simulator.native import compiled, headers

Reals = NDArray[np.float64]
Numbers = NDArray[np.int64]


class FlowType(IntEnum):
    """These are enum sf_flow_type: the effect of a stream on the queue of its bottleneck link."""

    ECN = 0
    LOSS_BASED = 1
    FIXED_WINDOW = 2
    NO_QUEUE = 3


@dataclass(frozen=True)
class Stream:
    """A stream has the links that it uses, and by how much of each for a byte of its own; see struct sf_streams."""

    links: Sequence[int]
    coefs: Sequence[float]
    type: FlowType = FlowType.ECN
    weight: float = 1.0
    cap: float = np.inf
    window: float = 0.0
    delay: float = 0.0


@dataclass(frozen=True)
class FlowNetwork:
    """This is struct sf_network without its results."""

    capacity: Reals
    queue: Reals
    marking: float
    segment: float
    first_window: float
    tolerance: float = 0.0
    handshake: bool = False


@dataclass(frozen=True)
class FlowStarts:
    """Start (ascending) and bytes of each flow."""

    start: Reals
    bytes: Reals


@dataclass(frozen=True)
class JobTable:
    """One job: its channels follow those of the jobs before it. `ready` (ascending) and `compute` count from an
    iteration's start."""

    shares: Sequence[float]
    bytes: Sequence[float]
    ready: Sequence[float]
    compute: float
    latency: float
    local: float
    start: float
    iterations: int


@dataclass(frozen=True)
class FlowOutcome:
    """NaN marks what was not complete. The iterations and buckets of all jobs follow one another."""

    end: float
    events: int
    sent: Reals
    queue_mean: Reals
    queue_max: Reals
    completion: Reals
    carried: Reals
    busy: Reals
    fastest: Reals
    began: Reals
    ended: Reals
    was_ready: Reals
    was_reduced: Reals


class _Network(ctypes.Structure):
    _fields_ = headers("flow").fields("sf_network")


class _Streams(ctypes.Structure):
    _fields_ = headers("flow").fields("sf_streams")


class _Jobs(ctypes.Structure):
    _fields_ = headers("flow").fields("sf_jobs")


@cache
def _library() -> ctypes.CDLL:
    return compiled("flow", "sf_")


class _Arrays:
    """Keeps the arrays that C has pointers to."""

    def __init__(self) -> None:
        self._kept: list[NDArray[np.generic]] = []

    def __call__(self, values: object, kind: type[np.generic] = np.float64) -> int:
        array: NDArray[np.generic] = np.ascontiguousarray(values, dtype=kind)
        self._kept.append(array)
        return array.ctypes.data


def run(
    network: FlowNetwork, flows: FlowStarts, rows: Sequence[Stream], jobs: Sequence[JobTable], until: float
) -> FlowOutcome:
    """Runs a scenario. `rows`: of the flows, then of the channels of each job. Raises MemoryError without memory."""
    at = _Arrays()
    count, links = len(flows.start), len(network.capacity)
    channels = len(rows) - count
    iterations = [j.iterations for j in jobs]
    reduced = [j.iterations * len(j.bytes) for j in jobs]

    def out(length: int, fill: float = 0.0) -> Reals:
        return np.full(length, fill)

    found = FlowOutcome(
        0.0, 0, out(links), out(links), out(links), out(count, np.nan), out(channels), out(channels), out(channels),
        out(sum(iterations), np.nan), out(sum(iterations), np.nan), out(sum(reduced), np.nan),
        out(sum(reduced), np.nan),
    )  # fmt: skip
    n = _Network(
        links, at(network.capacity), at(network.queue), network.marking, network.segment, network.first_window,
        network.tolerance, int(network.handshake), at(found.sent), at(found.queue_mean), at(found.queue_max),
    )  # fmt: skip
    s = _Streams(
        count, channels, at(_starts([len(r.links) for r in rows]), np.int64),
        at(_joined([r.links for r in rows]), np.int32), at(_joined([r.coefs for r in rows])),
        at([r.weight for r in rows]), at([r.cap for r in rows]), at([r.type for r in rows], np.uint8),
        at([r.window for r in rows]), at([r.delay for r in rows]), at(flows.start), at(flows.bytes),
        at(found.completion), at(found.carried), at(found.busy), at(found.fastest),
    )  # fmt: skip
    j = _Jobs(
        len(jobs), at(_starts([len(x.shares) for x in jobs]), np.int64),
        at(_starts([len(x.bytes) for x in jobs]), np.int64), at(_joined([x.shares for x in jobs])),
        at(_joined([x.bytes for x in jobs])), at(_joined([x.ready for x in jobs])), at([x.compute for x in jobs]),
        at([x.latency for x in jobs]), at([x.local for x in jobs]), at([x.start for x in jobs]),
        at(iterations, np.int64), at(_starts(iterations), np.int64), at(_starts(reduced), np.int64),
        at(found.began), at(found.ended), at(found.was_ready), at(found.was_reduced),
    )  # fmt: skip
    end, events = ctypes.c_double(), ctypes.c_int64()
    failed = _library().sf_flow_run(
        ctypes.byref(n), ctypes.byref(s), ctypes.byref(j), until, ctypes.byref(end), ctypes.byref(events)
    )
    if failed:
        raise MemoryError("the flow level has no memory left")
    return FlowOutcome(**{**vars(found), "end": end.value, "events": events.value})


def rates(
    capacity: Sequence[float], rows: Sequence[Stream], leaving: int = 0
) -> tuple[Reals, NDArray[np.int32]]:
    """Returns the weighted max-min rates of all rows but the first `leaving`, which are added and removed (0); and
    the link that limits each, -2 for its own cap."""
    at = _Arrays()
    rate, bottleneck = np.zeros(len(rows)), np.zeros(len(rows), dtype=np.int32)
    failed = _library().sf_flow_rates(
        len(capacity), at(capacity), len(rows), at(_starts([len(r.links) for r in rows]), np.int64),
        at(_joined([r.links for r in rows]), np.int32), at(_joined([r.coefs for r in rows])),
        at([r.weight for r in rows]), at([r.cap for r in rows]), leaving, at(rate), at(bottleneck, np.int32),
    )  # fmt: skip
    if failed:
        raise MemoryError("the flow level has no memory left")
    return rate, bottleneck


def _starts(lengths: Sequence[int]) -> Numbers:
    return np.concatenate(([0], np.cumsum(lengths, dtype=np.int64))).astype(np.int64)


def _joined(parts: Sequence[Sequence[float]]) -> Reals:
    return np.concatenate([np.asarray(p, dtype=np.float64) for p in parts]) if parts else np.zeros(0)
