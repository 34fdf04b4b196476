# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The functions of io/engine.h for Python. No call holds the interpreter's lock while it waits or runs the I/O
loop."""

from __future__ import annotations

import ctypes
import os
import secrets
import threading
import time
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netfold.protocol.wire import FRAME_OVERHEAD_BYTES, ROUNDS, packet_bytes
from netfold.traffic.congestion import Congestion
from netfold.traffic.engine.blocks import Blocks, CallForm
from netfold.traffic.engine.call_log import CALLS_MAX, CallKind, RawCallRecord, record_of
from netfold.traffic.engine.native import HEADERS, library
from netfold.traffic.errors import InvalidAssignmentError
from netfold.traffic.membership.assignment import Assignment
from netfold.traffic.membership.base import TreeStats
from netfold.traffic.membership.calls import CallProgress, CallRecord, PresentCall
from netfold.traffic.numerics import (
    DTYPES,
    BlockFloat,
    Fixed,
    Float32Sum,
    IntegerSum,
    PackedHalf,
    ReduceOp,
    RotatedQuarter,
    Scheme,
    scheme_for,
)
from netfold.traffic.packets.host_link import HostLink
from netfold.traffic.packets.transport import Address, TransportError

TREES_MAX = 64
_DTYPES = {dtype: number for number, dtype in enumerate(DTYPES)}  # enum nf_dtype of numerics/dtypes.h
_OPS = {op: number for number, op in enumerate(ReduceOp)}  # enum nf_op of call/request.h
SCHEMES = {  # enum nf_scheme of numerics/codec.h
    scheme: number
    for number, scheme in enumerate((BlockFloat, Fixed, IntegerSum, PackedHalf, Float32Sum, RotatedQuarter))
}
NEVER = 1e300
_KINDS = {
    None: CallKind.ALL_REDUCE,
    CallForm.TO_ALL: CallKind.ALL_REDUCE,
    CallForm.SCATTER: CallKind.REDUCE_SCATTER,
    CallForm.GATHER: CallKind.ALL_GATHER,
}


class Status(IntEnum):
    """The members are those of `enum nf_status` in call/request.h."""

    PENDING = 0
    DONE = 1
    TIMEOUT = 2
    MISMATCH = 3
    CALL_DESYNC = 4
    EXHAUSTED = 5
    SUM_OVERFLOW = 6
    SCALE_OVERFLOW = 7
    ABORTED = 8
    NO_MEMORY = 9
    STRAGGLED = 10
    FLOATS_UNSUPPORTED = 11
    WORKERS_LEFT = 12


class TreeSpec(ctypes.Structure):
    _fields_ = HEADERS.fields("nf_tree_spec")


class EngineTiming(ctypes.Structure):
    """Has the fields of protocol.congestion.Timing, in the same order."""

    _fields_ = HEADERS.fields("nf_timing")


class EngineDepartures(ctypes.Structure):
    _fields_ = HEADERS.fields("nf_departures")


class EngineAssignment(ctypes.Structure):
    _fields_ = HEADERS.fields(
        "nf_assignment", nf_timing=EngineTiming, nf_departures=EngineDepartures, nf_tree_spec=TreeSpec
    )


class LinkEnd(ctypes.Structure):
    _fields_ = HEADERS.fields("nf_link_end")


class Request(ctypes.Structure):
    _fields_ = HEADERS.fields("nf_request")


class CallOutcome(ctypes.Structure):
    _fields_ = HEADERS.fields("nf_outcome")

    @property
    def text(self) -> str:
        return bytes(self.message).decode()

    @property
    def sum(self) -> int:
        """Returns the sum that does not fit."""
        return int(self.total_high) << 64 | int(self.total) & (1 << 64) - 1


class Totals(ctypes.Structure):
    _fields_ = HEADERS.fields("nf_totals")


class TreeReport(ctypes.Structure):
    _fields_ = HEADERS.fields("nf_tree_report")


@dataclass(frozen=True)
class Call:
    """A submitted call. Its arrays must live until the call is finished."""

    handle: int
    array: NDArray[Any]
    remainder: NDArray[np.float32] | None = None


NONCE_BITS = 30
"""A lane of the resume chunk has this many bits of a nonce (docs/reference/protocol.md, E8)."""


def to_engine_assignment(
    assignment: Assignment, endpoints: Sequence[str], congestion: Congestion
) -> EngineAssignment:
    """Returns the assignment in C. `endpoints`: the destinations, in the order of the sockets. Raises
    InvalidAssignmentError if the shares do not add up to 1, or if there are more than TREES_MAX trees."""
    if len(assignment.trees) > TREES_MAX:
        raise InvalidAssignmentError(
            f"assignment: {len(assignment.trees)} trees; the engine takes {TREES_MAX}"
        )
    epoch = EngineAssignment(
        epoch=assignment.epoch,
        lanes=assignment.lanes,
        workers=assignment.workers,
        rank=assignment.rank,
        nonce=secrets.randbits(NONCE_BITS),
        rounds=ROUNDS,
        congestion=list(Congestion).index(congestion),
        wire_bytes=FRAME_OVERHEAD_BYTES + packet_bytes(assignment.lanes),
        tree_count=len(assignment.trees),
        quorum=assignment.quorum,
        allow_newcomers=assignment.allow_newcomers,
        targets=assignment.targets,
        rate_mbps=assignment.rate_mbps,
        quorum_deadline=assignment.quorum_deadline_s,
        timing=EngineTiming(*astuple(assignment.timing)),
        departures=departures_of(assignment),
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
            cumulative_share=bounds[number],
            destination=part.destination.encode(),
        )
    return epoch


def to_link_end(link: HostLink) -> LinkEnd:
    return LinkEnd(
        fd=link.descriptor,
        address=link.address_number,
        mac=link.mac_number,
        gateway_mac=link.gateway_mac_number,
        rate_bps=link.rate_bps,
    )


def departures_of(assignment: Assignment) -> EngineDepartures:
    left = assignment.workers_left
    if left is None:
        return EngineDepartures()
    return EngineDepartures(
        is_limited=1,
        call_limit=left.call_limit,
        in_epoch=left.epoch == assignment.epoch,
        is_final=left.is_final,
    )


def stats_of(report: TreeReport) -> TreeStats:
    return TreeStats(
        report.tree,
        report.results,
        report.marked,
        report.retransmits,
        report.srtt * 1e3,
        report.min_rtt * 1e3,
        report.window,
        report.open_slot,
    )


def request_of(
    array: NDArray[Any],
    op: ReduceOp,
    scheme: Scheme,
    deadline: float,
    context: int = 0,
    lossy: bool = False,
    follows_all: bool = False,
    warm_up: bool = False,
    remainder: NDArray[np.float32] | None = None,
    blocks: Blocks | None = None,
    kind: CallKind | None = None,
) -> Request:
    """Returns the request of a call. `context`, `lossy`, `follows_all`, `warm_up`, `remainder`: see
    `Worker.submit`. `blocks`: the call is a scatter or a gather. `kind`: the collective of the
    program; None: that of its form."""
    scheme = scheme_for(scheme, array.dtype, lossy)
    request = Request(
        array=array.ctypes.data,
        elements=array.size,
        dtype=_DTYPES[array.dtype],
        op=_OPS[op],
        scheme=SCHEMES[type(scheme)],
        bits=scheme.bits if isinstance(scheme, Fixed) else 0,
        remainder=None if remainder is None else remainder.ctypes.data,
        follows_all=follows_all,
        is_warm_up=warm_up,
        context=context,
        kind=_KINDS[None if blocks is None else blocks.form] if kind is None else kind,
        deadline=deadline,
        submitted=time.monotonic(),
    )
    if blocks is not None:
        request.table = np.array([blocks.elements, blocks.owners], np.int64).T.copy()  # must live as long
        request.form, request.block_count = blocks.form, len(blocks.elements)
        request.blocks = request.table.ctypes.data
    return request


def progress_of(totals: Totals) -> CallProgress:
    if not totals.has_call:
        return CallProgress(totals.next_call)
    kind = CallKind(totals.call_kind).label
    return CallProgress(totals.next_call, PresentCall(kind, totals.call_bytes, totals.call_submitted))


class Engine:
    """Runs the calls of one worker. Thread-safe. Times are those of time.monotonic."""

    def __init__(self) -> None:
        self._code = library()
        self._engine = self._code.nf_engine_create()
        self._last: tuple[Totals, list[TreeReport], int] | None = None  # of a closed engine
        self._closing = threading.Lock()  # reports may be read meanwhile
        if not self._engine:
            raise MemoryError("no memory or no file descriptors for the engine")

    def assign(self, epoch: EngineAssignment, sockets: Sequence[int]) -> None:
        """Starts an epoch; takes ownership of the sockets. Raises OSError."""
        fds = np.array(sockets, np.int32)
        error = self._code.nf_engine_assign(self._engine, ctypes.byref(epoch), fds.ctypes.data, len(fds))
        if error:
            raise OSError(error, os.strerror(error))

    def assign_link(
        self, epoch: EngineAssignment, link: HostLink, port: int, peers: Sequence[Address]
    ) -> None:
        """Starts an epoch over a link, on UDP port `port`; its descriptor stays the caller's. Raises OSError."""
        names = np.array([peer.name() for peer in peers], np.uint8)
        error = self._code.nf_engine_assign_link(
            self._engine,
            ctypes.byref(epoch),
            ctypes.byref(to_link_end(link)),
            port,
            names.ctypes.data,
            len(peers),
        )
        if error:
            raise OSError(error, os.strerror(error))

    def set_departures(self, epoch: int, departures: EngineDepartures) -> None:
        """Notes that workers have left the job in this epoch. Has no effect in another one."""
        self._code.nf_engine_set_departures(self._engine, epoch, ctypes.byref(departures))

    def close_sockets(self) -> None:
        """Closes the sockets."""
        self._code.nf_engine_close_sockets(self._engine)

    def submit(
        self,
        array: NDArray[Any],
        request: Request,
        background: bool,
        remainder: NDArray[np.float32] | None = None,
    ) -> Call:
        """Submits a call. `remainder`: of the request."""
        handle = self._code.nf_engine_submit(self._engine, ctypes.byref(request), int(background))
        if not handle:
            raise MemoryError(f"no memory for a copy of {array.nbytes} bytes")
        return Call(handle, array, remainder)

    def wait(self, call: Call, until: float) -> Status:
        """Runs the I/O loop until the call is finished. Returns PENDING if it is `until`, a signal arrived, or
        another epoch is needed."""
        return Status(self._code.nf_engine_wait(self._engine, call.handle, until))

    def next_completed(self, until: float = NEVER) -> int | None:
        """Returns the handle of a finished background call, or None if it is `until`, the engine was stopped, or
        another epoch is needed."""
        handle: int | None = self._code.nf_engine_next_completed(self._engine, until)
        return handle

    def release(self, handle: int) -> CallOutcome:
        """Forgets a finished call; returns its outcome."""
        outcome = CallOutcome()
        self._code.nf_engine_release(self._engine, handle, ctypes.byref(outcome))
        return outcome

    def abort(self) -> None:
        """Ends all calls."""
        self._code.nf_engine_abort(self._engine)

    def fail_epoch_waiters(self) -> None:
        """Ends the calls that wait for another epoch."""
        self._code.nf_engine_fail_epoch_waiters(self._engine)

    def totals(self) -> Totals:
        with self._closing:
            return self._last[0] if self._last else self._totals()

    def reports(self) -> list[TreeReport]:
        with self._closing:
            return self._last[1] if self._last else self._reports()

    def socket_errors(self) -> int:
        """Counts ICMP errors at the job's sockets, and packets that the kernel dropped, in all epochs."""
        with self._closing:
            return self._last[2] if self._last else self._socket_errors()

    def call_log(self, count: int = CALLS_MAX) -> list[CallRecord]:
        """Returns the records of the last calls, in the order of submission; none of a closed engine."""
        records = (RawCallRecord * count)()
        with self._closing:
            found = 0 if self._last else self._code.nf_engine_call_log(self._engine, records, count)
        return [record_of(raw, Status) for raw in records[:found]]

    def error(self) -> TransportError | None:
        """Returns why the sockets failed, if they did."""
        error = self._code.nf_engine_error(self._engine)
        return TransportError(error, f"a socket of the job failed: {os.strerror(error)}") if error else None

    def stop(self) -> None:
        """Ends all calls; waiting threads return."""
        self._code.nf_engine_stop(self._engine)

    def close(self) -> None:
        """Frees the engine. Only `totals`, `reports` and `socket_errors` may be called then; they return their last
        values."""
        with self._closing:
            self._last = self._totals(), self._reports(), self._socket_errors()
            self._code.nf_engine_destroy(self._engine)

    def _totals(self) -> Totals:
        totals = Totals()
        self._code.nf_engine_totals(self._engine, ctypes.byref(totals))
        return totals

    def _reports(self) -> list[TreeReport]:
        reports = (TreeReport * TREES_MAX)()
        return list(reports[: self._code.nf_engine_reports(self._engine, reports, TREES_MAX)])

    def _socket_errors(self) -> int:
        return int(self._code.nf_engine_socket_errors(self._engine))
