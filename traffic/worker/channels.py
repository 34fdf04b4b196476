# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The channels of a flow: which chunk each waits for, whether it is under way, and its packet.

`Channels` says it in numpy. `NativeChannels` does the same with one call into C for each step
(channels.c), where a compiler is at hand, and moves the elements of flat works itself (spans.c): a turn of a
worker's loop then costs two calls in place of 60 small ones.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from netfold.traffic.packets.transport import BATCH, Inbox, Rows
from netfold.traffic.packets.wire import (
    FLAGS,
    HEADER_BYTES,
    ROUNDS,
    VERSION,
    Flag,
    Kind,
    Records,
    Words,
    wellformed,
)
from netfold.traffic.worker import turns
from netfold.traffic.worker.native import library
from netfold.traffic.worker.work import Chunks, Filled, FlatWork, Span, Work

_FLAGS, _CONGESTION = np.uint8(FLAGS), np.uint8(Flag.CONGESTION)
_ROUND_BITS = 20
_NONE: NDArray[np.int64] = np.empty(0, np.int64)
NEVER = 1e300


class Taken(NamedTuple):
    """How many results were waited for; how many of them were marked; of those that went only once, how many,
    the sum and the latest of when they went."""

    results: int
    marked: int
    fresh: int
    sent_sum: float
    sent_max: float


class Emitted(NamedTuple):
    """The channels (valid until the next call) whose packets are to go, in order, as `rows` points at them;
    whether the allowance held others back; and one more than the highest chunk that ever went."""

    channels: NDArray[np.int64]
    held_back: bool
    highest: int


@dataclass(frozen=True)
class Matched:
    """The results that were waited for, valid until the next match: absolute chunk numbers, lanes,
    exponents and flags."""

    chunks: Chunks
    lanes: Words
    exponents: NDArray[np.uint8]
    flags: NDArray[np.uint8]
    taken: Taken


class Channels:
    """`slots / 2` channels, each with a row for its packet; child and tree are those of all packets."""

    def __init__(self, slots: int, lanes: int, epoch: int, tree: int, child: int) -> None:
        self.count = slots // 2
        self.slots = slots
        self.epoch = epoch
        self.tree = tree
        self.lanes = lanes
        self.rows = Rows(self.count, lanes)
        records = self.rows.records
        records["version_kind"] = VERSION << 4 | Kind.GRADIENT
        records["tree"] = tree
        records["child"] = child
        records["lanes"] = lanes
        self.due = np.arange(self.count, dtype=np.int64)
        self.busy = np.zeros(self.count, np.bool_)
        self.sent_at = np.zeros(self.count)
        self.resent = np.zeros(self.count, np.bool_)
        self._work: Work | None = None
        self._base = 0

    def begin(self, work: Work, base: int) -> None:
        """From now on chunk `base + c` is chunk c of `work`."""
        self._work, self._base = work, base

    def take(self, inbox: Inbox, count: int) -> Taken:
        """Gives the work its results among the first `count` packets that came."""
        assert self._work is not None
        found = self.match(inbox, count)
        if found.taken.results:
            self._work.take(found.chunks - self._base, found.lanes, found.exponents, found.flags)
        return found.taken

    def emit(self, end: int, highest: int, room: int, allowance: int, now: float) -> Emitted:
        """Makes the packets of the chunks that are `ready`, at most `allowance` of them, to be sent `now`."""
        assert self._work is not None
        ready = self.ready(end, highest, room)
        chunks = ready[:allowance]
        if not len(chunks):
            return Emitted(_NONE, len(ready) > 0, highest)
        channels = self.put(chunks, self._work.fill(chunks - self._base))
        self.sent_at[channels] = now
        self.rows.point(channels)
        return Emitted(channels, len(chunks) < len(ready), max(highest, int(chunks[-1]) + 1))

    def match(self, inbox: Inbox, count: int) -> Matched:
        """Takes the well-formed results of the tree, among the first `count` that came, that channels wait
        for; of two equal ones, one."""
        records, congested = inbox.records[:count], inbox.congested(count)
        good = wellformed(records, inbox.sizes(count), self.lanes) & (records["tree"] == self.tree)
        good &= records["version_kind"] == (VERSION << 4 | Kind.RESULT)
        if not good.all():
            records, congested = records[good], congested[good]
        tags = records["tag"].astype(np.int64)
        chunks = (tags & (ROUNDS - 1)) * self.slots + records["slot"]
        channels = chunks & (self.count - 1)
        new = self.busy[channels] & (self.due[channels] == chunks) & (tags >> _ROUND_BITS == self.epoch)
        index = np.flatnonzero(new)
        if len(index) > 1:
            _, first = np.unique(chunks[index], return_index=True)
            index = index[np.sort(first)]
        records, chunks, channels, congested = (
            records[index],
            chunks[index],
            channels[index],
            congested[index],
        )
        sent_at = self.sent_at[channels[~self.resent[channels]]]
        self.busy[channels] = False
        self.due[channels] += self.count
        flags = records["flags"] & _FLAGS
        return Matched(
            chunks,
            _native_lanes(records),
            records["exponent"].copy(),
            flags,
            Taken(
                len(chunks),
                int(np.count_nonzero(congested | (flags & _CONGESTION != 0))),
                len(sent_at),
                float(sent_at.sum()),
                float(sent_at.max(initial=0.0)),
            ),
        )

    def ready(self, end: int, highest: int, room: int) -> Chunks:
        """The chunks below `end` that may go now, ascending: all below `highest`, others while there is
        room."""
        ready = np.sort(self.due[~self.busy & (self.due < end)])
        return ready[: max(room, int(np.searchsorted(ready, highest)))]

    def put(self, chunks: Chunks, filled: Filled) -> NDArray[np.int64]:
        """Writes the packets of chunks that are to go; gives their channels."""
        channels = chunks & (self.count - 1)
        records = self.rows.records
        records["tag"][channels] = self.epoch << _ROUND_BITS | chunks // self.slots
        records["slot"][channels] = chunks & (self.slots - 1)
        records["exponent"][channels] = filled.exponents
        records["flags"][channels] = 0 if filled.flags is None else filled.flags
        records["lane"][channels] = filled.lanes
        self.busy[channels] = True
        self.resent[channels] = False
        return channels

    def lend(self, state: turns.FlowState) -> bool:
        """Tells turns.c of the channels and the work that has begun; False: it cannot move these."""
        return False

    def listed(self, first: int, last: int) -> NDArray[np.int64]:
        """The channels that the last stretch of turns put into order [first, last)."""
        raise NotImplementedError

    def check_overflow(self) -> None:
        """Raises what the work says of a float sum that overflowed."""

    def overdue(self, limit: float) -> tuple[NDArray[np.int64], float]:
        """The channels under way that went last before `limit`, and when the oldest of all went (NEVER:
        none)."""
        busy = np.flatnonzero(self.busy)
        sent_at = self.sent_at[busy]
        return busy[sent_at < limit], float(sent_at.min(initial=NEVER))


class _State(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("due", "busy", "sent_at", "resent", "rows")),
        *((name, ctypes.c_int64) for name in ("count", "slots", "epoch", "tree", "stride", "lanes")),
    )


class _Batch(ctypes.Structure):
    _fields_ = (
        ("records", ctypes.c_void_p),
        ("count", ctypes.c_int64),
        ("messages", ctypes.c_void_p),
        ("control", ctypes.c_void_p),
    )


class _Emitted(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_int64) for name in ("count", "held_back", "highest"))


class _Span(ctypes.Structure):
    _fields_ = (
        ("input", ctypes.c_void_p),
        ("output", ctypes.c_void_p),
        ("elements", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("own", "agreed", "overflowed")),
        *((name, ctypes.c_int64) for name in ("first", "last", "base", "sum_bits", "divisor")),
    )

    @classmethod
    def of(cls, span: Span, base: int) -> _Span:
        return cls(
            span.input.ctypes.data,
            span.output.ctypes.data,
            span.output.size,
            *(array.ctypes.data for array in (span.own, span.agreed, span.overflowed)),
            span.first,
            span.last,
            base,
            -1 if span.sum_bits is None else span.sum_bits,
            span.divisor,
        )


class NativeChannels(Channels):
    """The same with channels.c. `code` is what `native.library` gives."""

    def __init__(self, code: ctypes.CDLL, slots: int, lanes: int, epoch: int, tree: int, child: int) -> None:
        super().__init__(slots, lanes, epoch, tree, child)
        self._code = code
        self._state = _State(
            self.due.ctypes.data,
            self.busy.ctypes.data,
            self.sent_at.ctypes.data,
            self.resent.ctypes.data,
            self.rows.records.ctypes.data,
            self.count,
            slots,
            epoch,
            tree,
            self.rows.stride,
            lanes,
        )
        self._list = np.zeros(self.count, np.int64)
        self._oldest = ctypes.c_double()
        self._batch, self._matched, self._emitted = _Batch(), turns.Matched(), _Emitted()
        self._chunks = np.zeros(BATCH, np.int64)
        self._lanes = np.zeros((BATCH, lanes), np.int32)
        self._exponents = np.zeros(BATCH, np.uint8)
        self._flags = np.zeros(BATCH, np.uint8)
        self._no_flags = np.zeros(self.count, np.uint8)
        # Addresses are asked for once: to look one up costs as much as a call.
        self._at = ctypes.addressof(self._state)
        self._batch_at = ctypes.addressof(self._batch)
        self._matched_at = ctypes.addressof(self._matched)
        self._emitted_at = ctypes.addressof(self._emitted)
        self._list_at = self._list.ctypes.data
        self._results = tuple(
            array.ctypes.data for array in (self._chunks, self._lanes, self._exponents, self._flags)
        )
        self._span: Span | None = None
        self._span_at: int | None = None

    def begin(self, work: Work, base: int) -> None:
        super().begin(work, base)
        self._span = work.span() if isinstance(work, FlatWork) else None
        if self._span is not None:
            self._span_state = _Span.of(self._span, base)
            self._span_at = ctypes.addressof(self._span_state)

    def take(self, inbox: Inbox, count: int) -> Taken:
        if self._span is None:
            return super().take(inbox, count)
        self._code.nf_take(self._at, self._span_at, self._came(inbox, count), self._matched_at)
        if self._matched.overflowed:
            self.check_overflow()
        return self._taken()

    def lend(self, state: turns.FlowState) -> bool:
        if self._span is None:
            return False
        state.channels, state.span = self._at, self._span_at
        state.out, state.pieces, state.order = self.rows.pointer(0), self.rows.pieces_at, self._list_at
        return True

    def listed(self, first: int, last: int) -> NDArray[np.int64]:
        return self._list[first:last].copy()

    def check_overflow(self) -> None:
        if self._span is not None and self._span.sum_bits is not None:
            raise self._span.impossible()

    def emit(self, end: int, highest: int, room: int, allowance: int, now: float) -> Emitted:
        if self._span is None:
            return super().emit(end, highest, room, allowance, now)
        self._code.nf_emit(
            self._at, self._span_at, end, highest, room, allowance, now,
            self.rows.pieces_at, self._list_at, self._emitted_at,
        )  # fmt: skip
        out = self._emitted
        return Emitted(self._list[: out.count], bool(out.held_back), out.highest)

    def match(self, inbox: Inbox, count: int) -> Matched:
        self._code.nf_match(self._at, self._came(inbox, count), *self._results, self._matched_at)
        n = self._matched.count
        return Matched(self._chunks[:n], self._lanes[:n], self._exponents[:n], self._flags[:n], self._taken())

    def _came(self, inbox: Inbox, count: int) -> int:
        batch = self._batch
        batch.records, batch.count = inbox.first_row, count
        batch.messages, batch.control = inbox.pointer(0), inbox.control_pointer
        return self._batch_at

    def _taken(self) -> Taken:
        found = self._matched
        return Taken(found.count, found.marked, found.fresh, found.sent_sum, found.sent_max)

    def ready(self, end: int, highest: int, room: int) -> Chunks:
        return self._list[: self._code.nf_ready(self._at, end, highest, room, self._list_at)].copy()

    def put(self, chunks: Chunks, filled: Filled) -> NDArray[np.int64]:
        lanes = np.ascontiguousarray(filled.lanes, np.int32)
        exponents = np.ascontiguousarray(filled.exponents, np.uint8)
        flags = self._no_flags if filled.flags is None else np.ascontiguousarray(filled.flags, np.uint8)
        self._code.nf_put(
            self._at,
            chunks.ctypes.data,
            len(chunks),
            lanes.ctypes.data,
            exponents.ctypes.data,
            flags.ctypes.data,
        )
        return chunks & (self.count - 1)

    def overdue(self, limit: float) -> tuple[NDArray[np.int64], float]:
        count = self._code.nf_overdue(self._at, limit, self._list_at, ctypes.byref(self._oldest))
        return self._list[:count].copy(), self._oldest.value


def make_channels(slots: int, lanes: int, epoch: int, tree: int, child: int) -> Channels:
    """The fastest kind that this machine has."""
    code = library()
    if code is None:
        return Channels(slots, lanes, epoch, tree, child)
    return NativeChannels(code, slots, lanes, epoch, tree, child)


def _native_lanes(records: Records) -> Words:
    words = records.dtype.itemsize // 4
    lanes = records.view(np.int32).reshape(len(records), words)[:, HEADER_BYTES // 4 :]
    return lanes.byteswap() if np.little_endian else lanes.copy()
