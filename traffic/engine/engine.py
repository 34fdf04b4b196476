# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""engine.h for Python. None of these calls holds the interpreter's lock while it waits or moves packets."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netfold.traffic.congestion import Congestion
from netfold.traffic.engine.native import library
from netfold.traffic.errors import BadAssignment
from netfold.traffic.membership.assignment import Assignment
from netfold.traffic.numerics import (
    DTYPES,
    Fixed,
    Floats,
    Half,
    ReduceOp,
    Scheme,
    SharedExponent,
    WholeNumbers,
    scheme_for,
)
from netfold.traffic.packets.transport import TransportError
from netfold.traffic.packets.wire import FRAME_OVERHEAD_BYTES, ROUNDS, packet_bytes

TREES_MAX = 64
_DTYPES = {dtype: number for number, dtype in enumerate(DTYPES)}  # enum nf_dtype of dtypes.h
_OPS = {op: number for number, op in enumerate(ReduceOp)}  # enum nf_op of core.h
_SCHEMES = {  # enum nf_scheme of codec.h
    scheme: number for number, scheme in enumerate((SharedExponent, Fixed, WholeNumbers, Half, Floats))
}
NEVER = 1e300
_MESSAGE_BYTES = 480


class Status(IntEnum):
    """enum nf_status of core.h."""

    PENDING = 0
    DONE = 1
    TIMEOUT = 2
    MISMATCH = 3
    OUT_OF_STEP = 4
    EXHAUSTED = 5
    SUM_OVERFLOW = 6
    BEYOND_SCALE = 7
    ABORTED = 8
    NO_MEMORY = 9
    STRAGGLED = 10
    NOT_FLOATS = 11


class TreeSpec(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int64) for name in ("tree", "child", "slots", "window", "endpoint")),
        ("share", ctypes.c_double),
        ("upto", ctypes.c_double),
        ("destination", ctypes.c_char * 16),
    )


class Timing(ctypes.Structure):
    """membership.assignment.Timing, in the same order."""

    _fields_ = tuple(
        (name, ctypes.c_double)
        for name in (
            "first_timeout",
            "least_variance",
            "longest_timeout",
            "least_reordering",
            "late",
            "burst",
            "gather",
        )
    )


class Epoch(ctypes.Structure):
    """struct nf_assignment."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("epoch", "lanes", "workers", "rounds")),
        *(
            (name, ctypes.c_int64)
            for name in ("congestion", "wire_bytes", "tree_count", "quorum", "newcomers")
        ),
        ("rate_mbps", ctypes.c_double),
        ("quorum_deadline", ctypes.c_double),
        ("timing", Timing),
        ("trees", TreeSpec * TREES_MAX),
    )


class Request(ctypes.Structure):
    _fields_ = (
        ("array", ctypes.c_void_p),
        *((name, ctypes.c_int64) for name in ("elements", "dtype", "op", "scheme", "bits")),
        ("deadline", ctypes.c_double),
    )


class Outcome(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int64) for name in ("status", "number", "index", "total", "total_high")),
        *((name, ctypes.c_int64) for name in ("least", "most", "sums", "contributions")),
        ("message", ctypes.c_char * _MESSAGE_BYTES),
    )

    @property
    def text(self) -> str:
        return bytes(self.message).decode()

    @property
    def sum(self) -> int:
        """The one that does not fit."""
        return int(self.total_high) << 64 | int(self.total) & (1 << 64) - 1


class Totals(ctypes.Structure):
    """`pending`: calls that are not over. `worn`: the epoch that is of no more use to a call, 0: none. `broken`: a call
    was given up in this epoch. `owing`: other workers may need this one. `late`: contributions that came after their
    sums were sealed."""

    _fields_ = tuple(
        (name, ctypes.c_int64)
        for name in ("retransmits", "restarts", "overflows", "pending", "worn", "broken", "owing", "late")
    )


class TreeReport(ctypes.Structure):
    _fields_ = (
        *(
            (name, ctypes.c_int64)
            for name in ("tree", "window", "limit", "retransmits", "probes", "results", "marked")
        ),
        ("rtt", ctypes.c_double),
        ("rtt_least", ctypes.c_double),
    )


@dataclass(frozen=True)
class Call:
    """A call that was submitted. The array must not go away before it is over."""

    handle: int
    array: NDArray[Any]


def epoch_of(assignment: Assignment, endpoints: Sequence[str], congestion: Congestion) -> Epoch:
    """`endpoints`: the destinations, in the order of the sockets. Raises BadAssignment for shares that do not add up
    to 1, or more trees than the engine takes."""
    if len(assignment.trees) > TREES_MAX:
        raise BadAssignment(
            f"assignment: {len(assignment.trees)} trees; the engine of workers takes {TREES_MAX}"
        )
    epoch = Epoch(
        epoch=assignment.epoch,
        lanes=assignment.lanes,
        workers=assignment.workers,
        rounds=ROUNDS,
        congestion=list(Congestion).index(congestion),
        wire_bytes=FRAME_OVERHEAD_BYTES + packet_bytes(assignment.lanes),
        tree_count=len(assignment.trees),
        quorum=assignment.quorum,
        newcomers=assignment.newcomers,
        rate_mbps=assignment.rate_mbps,
        quorum_deadline=assignment.quorum_deadline_s,
        timing=Timing(*astuple(assignment.timing)),
    )
    bounds = assignment.bounds()
    for number, part in enumerate(assignment.trees):
        epoch.trees[number] = TreeSpec(
            tree=part.tree,
            child=part.child,
            slots=part.slots,
            window=part.window,
            endpoint=endpoints.index(part.destination),
            share=part.share,
            upto=bounds[number],
            destination=part.destination.encode(),
        )
    return epoch


def request_of(array: NDArray[Any], op: ReduceOp, scheme: Scheme, deadline: float) -> Request:
    scheme = scheme_for(scheme, array.dtype)
    return Request(
        array=array.ctypes.data,
        elements=array.size,
        dtype=_DTYPES[array.dtype],
        op=_OPS[op],
        scheme=_SCHEMES[type(scheme)],
        bits=scheme.bits if isinstance(scheme, Fixed) else 0,
        deadline=deadline,
    )


class Engine:
    """Calls of one worker. Thread-safe. Times are those of time.monotonic."""

    def __init__(self) -> None:
        self._code = library()
        self._engine = self._code.nf_engine_create()
        self._last: tuple[Totals, list[TreeReport]] | None = None  # of an engine that is closed
        self._closing = threading.Lock()  # whoever may be asking meanwhile
        if not self._engine:
            raise MemoryError("no memory or no file descriptor for the engine of a worker")

    def assign(self, epoch: Epoch, sockets: Sequence[int]) -> None:
        """A new epoch; takes the sockets over. Raises OSError."""
        fds = np.array(sockets, np.int32)
        error = self._code.nf_engine_assign(self._engine, ctypes.byref(epoch), fds.ctypes.data, len(fds))
        if error:
            raise OSError(error, os.strerror(error))

    def retire(self) -> None:
        """Closes the sockets."""
        self._code.nf_engine_retire(self._engine)

    def submit(self, array: NDArray[Any], request: Request, background: bool) -> Call:
        handle = self._code.nf_engine_submit(self._engine, ctypes.byref(request), int(background))
        if not handle:
            raise MemoryError(f"no memory for a copy of {array.nbytes} bytes")
        return Call(handle, array)

    def wait(self, call: Call, until: float) -> Status:
        """Moves packets until the call is over, or PENDING: it is `until`, a signal came, or the epoch is worn."""
        return Status(self._code.nf_engine_wait(self._engine, call.handle, until))

    def next(self, until: float = NEVER) -> int | None:
        """The handle of a call in the background that is over. None: it is `until`, the engine stopped, or the epoch is
        worn."""
        handle: int | None = self._code.nf_engine_next(self._engine, until)
        return handle

    def release(self, handle: int) -> Outcome:
        """The outcome of a call that is over; the call is forgotten."""
        outcome = Outcome()
        self._code.nf_engine_release(self._engine, handle, ctypes.byref(outcome))
        return outcome

    def abort(self) -> None:
        """Ends all calls."""
        self._code.nf_engine_abort(self._engine)

    def no_epoch(self) -> None:
        """Ends the calls that wait for another epoch."""
        self._code.nf_engine_no_epoch(self._engine)

    def totals(self) -> Totals:
        with self._closing:
            return self._last[0] if self._last else self._totals()

    def reports(self) -> list[TreeReport]:
        with self._closing:
            return self._last[1] if self._last else self._reports()

    def error(self) -> TransportError | None:
        """Why the sockets failed, if they did."""
        error = self._code.nf_engine_error(self._engine)
        return TransportError(error, f"a socket of the job failed: {os.strerror(error)}") if error else None

    def stop(self) -> None:
        """Ends all calls and lets go whoever waits."""
        self._code.nf_engine_stop(self._engine)

    def close(self) -> None:
        """Nobody may use it any more; `totals` and `reports` go on saying what they said last."""
        with self._closing:
            self._last = self._totals(), self._reports()
            self._code.nf_engine_destroy(self._engine)

    def _totals(self) -> Totals:
        totals = Totals()
        self._code.nf_engine_totals(self._engine, ctypes.byref(totals))
        return totals

    def _reports(self) -> list[TreeReport]:
        found = (TreeReport * TREES_MAX)()
        return list(found[: self._code.nf_engine_reports(self._engine, found, TREES_MAX)])
