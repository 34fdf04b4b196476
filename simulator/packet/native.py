# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""packet.h for Python: the tables of a network go in as arrays, and what came of them comes back as arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netfold.simulator.native import CompilerMissing, compiled
from netfold.traffic.engine import native as engine
from netfold.traffic.engine.engine import Epoch
from netfold.traffic.errors import EngineMissing

LANES = 9
"""Of the simulated packets (lines.h): what they weigh on a wire is given apart."""

NEVER = (1 << 63) - 1
PS = 1e12
VERDICTS = 32

_P, _N = ctypes.c_void_p, ctypes.c_int64

_INPUTS = (
    *(("line", np.float64, 9), ("hop", np.int32, 1), ("arc", np.int64, 4), ("edge", np.int64, 6)),
    *(("node", np.int64, 7), ("job", np.int64, 10), ("worker", np.int64, 4), ("worker_edge", np.int32, 1)),
    *(("bucket", np.int64, 3), ("exchange", np.int64, 9), ("stream", np.float64, 5), ("source", np.int32, 1)),
    *(("portion", np.int64, 2), ("flow", np.int64, 6)),
)
_COUNTS = (
    *("line", "hop", "arc", "edge", "node", "job", "worker", "worker_edge", "bucket", "time"),
    *("exchange", "stream", "source", "portion", "flow"),
)
_OUTPUTS = (
    *(("line_result", np.float64, "line", 8), ("node_result", np.float64, "node", VERDICTS + 2)),
    *(("job_result", np.int64, "job", 2), ("worker_result", np.int64, "worker", 1)),
    *(("exchange_result", np.int64, "exchange", 1), ("flow_result", np.int64, "flow", 3)),
    *(("time", np.float64, "time", 2), ("sample", np.int64, "sample", 0)),
)


class TcpSettings(ctypes.Structure):
    """struct np_tcp_settings."""

    _fields_ = tuple(
        (name, ctypes.c_int64)
        for name in (
            "segment_bytes",
            "header_bytes",
            "initial",
            "delayed",
            "handshake",
            "delay",
            "least_timeout",
            "first_timeout",
        )
    )


class _Setup(ctypes.Structure):
    _fields_ = (
        *((f"{name}s", ctypes.c_int64) for name in _COUNTS),
        *((name, ctypes.c_void_p) for name, _, _ in _INPUTS),
        ("assignment", ctypes.c_void_p),
        ("tcp", TcpSettings),
        ("seed", ctypes.c_uint64),
        ("until", ctypes.c_int64),
        ("sample_every", ctypes.c_int64),
        ("samples", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name, _, _, _ in _OUTPUTS),
        *((name, ctypes.c_int64) for name in ("events", "packets", "end", "failed")),
    )


@dataclass(frozen=True)
class Outcome:
    """Rows as in the tables that went in. `time` has pairs of seconds, NaN where it did not come to that; `failed` is
    the engine's status of a call that failed, or 0; `packets` how many there was room for at once. `sample` has for
    each moment what each flow's segments had come to."""

    line: NDArray[np.float64]
    node: NDArray[np.float64]
    job: NDArray[np.int64]
    worker: NDArray[np.int64]
    exchange: NDArray[np.int64]
    flow: NDArray[np.int64]
    time: NDArray[np.float64]
    sample: NDArray[np.int64]
    events: int
    packets: int
    end: int
    failed: int


@cache
def library() -> ctypes.CDLL:
    """The compiled code; what it calls of the workers' engine is theirs, whose symbols it finds in the process. Raises
    CompilerMissing."""
    try:
        ctypes.CDLL(engine.library()._name, ctypes.RTLD_GLOBAL)
    except EngineMissing as error:
        raise CompilerMissing(str(error)) from error
    signatures: dict[str, tuple[object, ...]] = {
        "np_run": (ctypes.c_int, _P),
        "np_pool_trace": (ctypes.c_int, _N, _N, _N, ctypes.c_int, _N, *(_P,) * 10),
    }
    return compiled("packet", signatures)


def run(
    tables: dict[str, Sequence[Any]],
    times: int,
    assignments: Sequence[Epoch],
    tcp: TcpSettings,
    seed: int,
    until: int,
    sampling: tuple[int, int] = (0, 0),
) -> Outcome:
    """`tables` has rows by the names of _INPUTS; `sampling` is how often to look at flows, and how many times. Raises
    MemoryError."""
    every, samples = sampling
    setup = _Setup(tcp=tcp, seed=seed, until=until, times=times, sample_every=every, samples=samples)
    held: dict[str, NDArray[Any]] = {}
    for name, kind, columns in _INPUTS:
        held[name] = np.ascontiguousarray(tables[name], kind).reshape(-1, columns)
        setattr(setup, f"{name}s", len(held[name]))
        setattr(setup, name, held[name].ctypes.data)
    epochs = (Epoch * max(1, len(assignments)))(*assignments)
    setup.assignment = ctypes.addressof(epochs)
    for name, kind, rows, columns in _OUTPUTS:
        held[name] = np.full(
            (getattr(setup, f"{rows}s"), columns or setup.flows), np.nan if kind is np.float64 else 0, kind
        )
        setattr(setup, name, held[name].ctypes.data)
    if library().np_run(ctypes.byref(setup)):
        raise MemoryError("no memory for the packets that are under way")
    results = {name.removesuffix("_result"): held[name] for name, _, _, _ in _OUTPUTS}
    return Outcome(**results, events=setup.events, packets=setup.packets, end=setup.end, failed=setup.failed)


@dataclass(frozen=True)
class Trace:
    """GRADIENTs for one pool of slots: arrays of shape (n,), `lanes` (n, L)."""

    tags: NDArray[np.uint32]
    slots: NDArray[np.int64]
    bits: NDArray[np.int64]
    flags: NDArray[np.uint8]
    exponents: NDArray[np.uint8]
    lanes: NDArray[np.int32]


def judge(
    trace: Trace, slots: int, children: int, root: bool
) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8], NDArray[np.int32]]:
    """What a node of the simulator makes of the packets, one by one: verdicts, and flags, exponents and lanes of
    what leaves (zeros where nothing does)."""
    count, width = trace.lanes.shape
    arrays = [
        np.ascontiguousarray(a) for a in (trace.tags, trace.slots, trace.bits, trace.flags, trace.exponents)
    ]
    arrays.append(np.ascontiguousarray(trace.lanes))
    out = (np.zeros(count, np.uint8), np.zeros(count, np.uint8), np.zeros(count, np.uint8))
    sums = np.zeros((count, width), np.int32)
    pointers = [a.ctypes.data for a in (*arrays, *out, sums)]
    if library().np_pool_trace(slots, width, children, int(root), count, *pointers):
        raise MemoryError("no memory for the slots")
    return (*out, sums)
