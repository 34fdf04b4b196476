# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The functions of packet.h for Python: the tables of a network go in as arrays, results come back as arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netfold.simulator.native import compiled, headers
from netfold.traffic.engine.engine import EngineAssignment

LANES = 9
"""The simulated packets have this many lanes (links.h); their bytes on a wire are given apart."""

NEVER = (1 << 63) - 1
PS = 1e12
VERDICTS = 32


_INPUTS = (
    *(("link", np.float64, 9), ("hop", np.int32, 1), ("arc", np.int64, 6), ("edge", np.int64, 7)),
    *(("node", np.int64, 8), ("job", np.int64, 10), ("worker", np.int64, 4), ("worker_edge", np.int32, 1)),
    *(("bucket", np.int64, 4), ("exchange", np.int64, 9), ("stream", np.float64, 5), ("source", np.int32, 1)),
    *(("exchange_bucket", np.int64, 2), ("flow", np.int64, 6)),
)
_OUTPUTS = (
    *(("link_result", np.float64, "link", 8), ("node_result", np.float64, "node", VERDICTS + 2)),
    *(("job_result", np.int64, "job", 2), ("worker_result", np.int64, "worker", 1)),
    *(("exchange_result", np.int64, "exchange", 1), ("flow_result", np.int64, "flow", 3)),
    *(("time", np.float64, "time", 2), ("sample", np.int64, "sample", 0)),
)


class TcpSettings(ctypes.Structure):
    _fields_ = headers("packet").fields("np_tcp_settings")


class _Setup(ctypes.Structure):
    _fields_ = headers("packet").fields("np_setup", np_tcp_settings=TcpSettings)


@dataclass(frozen=True)
class PacketOutcome:
    """Rows are as in the tables that went in. `time` has pairs of seconds, NaN for an event that did not happen;
    `failed` is the engine's status of a call that failed, or 0; `packets` is the largest number of packets at once.
    `sample` has for each moment the acknowledged segments of each flow."""

    link: NDArray[np.float64]
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
    """Returns the compiled code. Raises CompilerMissingError."""
    return compiled("packet", "np_")


def run(
    tables: dict[str, Sequence[Any]],
    times: int,
    assignments: Sequence[EngineAssignment],
    tcp: TcpSettings,
    seed: int,
    until: int,
    sampling: tuple[int, int] = (0, 0),
) -> PacketOutcome:
    """Runs a network. `tables` has rows by the names of _INPUTS; `sampling` is the interval of the flows' samples,
    and their number. Raises MemoryError."""
    every, samples = sampling
    setup = _Setup(tcp=tcp, seed=seed, until=until, times=times, sample_every=every, samples=samples)
    held: dict[str, NDArray[Any]] = {}
    for name, kind, columns in _INPUTS:
        held[name] = np.ascontiguousarray(tables[name], kind).reshape(-1, columns)
        setattr(setup, f"{name}s", len(held[name]))
        setattr(setup, name, held[name].ctypes.data)
    epochs = (EngineAssignment * max(1, len(assignments)))(*assignments)
    setup.assignment = ctypes.addressof(epochs)
    for name, kind, rows, columns in _OUTPUTS:
        held[name] = np.full(
            (getattr(setup, f"{rows}s"), columns or setup.flows), np.nan if kind is np.float64 else 0, kind
        )
        setattr(setup, name, held[name].ctypes.data)
    if library().np_run(ctypes.byref(setup)):
        raise MemoryError("no memory for the packets in flight")
    results = {name.removesuffix("_result"): held[name] for name, _, _, _ in _OUTPUTS}
    return PacketOutcome(
        **results, events=setup.events, packets=setup.packets, end=setup.end, failed=setup.failed
    )
