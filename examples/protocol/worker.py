# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A worker of one tree: sections 5.1 to 5.3 and 5.8 of docs/reference/protocol.md for int32 and float32 arrays (scheme
block), one call at a time, in one epoch. Left out, as section 11 allows: congestion control, stripes, handover, quorum,
other schemes."""

from __future__ import annotations

import secrets
import select
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from . import numbers
from .node import DATAGRAM_BYTES, Address
from .packet import NO_FLAGS, NO_OWNER, Flag, Kind, Lanes, Packet, parse, tag_of, target_of, wants_lanes

ECT0 = 2
INITIAL_RTO_S, MAX_RTO_S, REORDER_S = 0.05, 1.0, 0.005
CLOSING_BYTES = 2 << 20
MIN_BLOCK_ROWS, MIN_BLOCK_BYTES = 4, 2048
GATHER_CHANNELS = 16
NONCE_BITS = 30
DTYPES = {np.dtype(np.float32): 0, np.dtype(np.int32): 2}


class MismatchError(Exception):
    """The workers are in different calls, or called with different arrays."""


class SumOverflowError(Exception):
    """A sum of int32 does not fit."""


@dataclass(frozen=True)
class Assignment:
    """A worker's part of an epoch. `window`: chunks in flight, at most half the slots."""

    epoch: int
    workers: int
    lanes: int
    tree: int
    slots: int
    window: int
    rank: int
    child: int
    local: Address
    root: Address
    has_targets: bool = False


class Form(IntEnum):
    """C15."""

    TO_ALL = 0
    SCATTER = 1
    GATHER = 2


@dataclass(frozen=True)
class Row:
    """`first`, `count`: its elements in the array. `owner`: of its block, where the call has targets."""

    first: int
    count: int
    owner: int | None = None


@dataclass(frozen=True)
class Payload:
    """Contents of a chunk."""

    lanes: Lanes
    exponent: int = 0
    flags: Flag = NO_FLAGS
    target: int | None = None
    is_short: bool = False


@dataclass
class Stream:
    """S1: the channels `first` ... `first + channels - 1`, and the next free place."""

    first: int
    channels: int
    end: int = 0


@dataclass
class InFlight:
    packet: bytes
    target: int | None
    sent: float
    again: bool = False


class Worker:
    def __init__(self, assignment: Assignment) -> None:
        self._a = assignment
        self._link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._link.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, ECT0)  # W6
        self._link.bind(assignment.local)
        self._link.connect(assignment.root)
        channels = assignment.slots // 2
        gather = channels // 2 if assignment.has_targets and channels >= GATHER_CHANNELS else 0
        others = channels - gather
        control = 0 if others == 1 else max(1, others // 8)
        self._main = Stream(0, others - control)
        self._control = Stream(others - control, control) if control else self._main
        self._gather = Stream(others, gather) if gather else self._main
        self._most = min(4, (assignment.lanes - 1) // 2)
        self._depth = 1 if channels == 1 else self._most  # C1
        self._call = 0
        self._profiles: dict[int, numbers.Profile] = {}
        self._has_resumed = False

    def close(self) -> None:
        self._link.close()

    def all_reduce(self, array: NDArray[Any], timeout_s: float = 30.0) -> NDArray[Any]:
        """The sum over all workers. Raises MismatchError, SumOverflowError, TimeoutError."""
        return self._run(array, Form.TO_ALL, (), timeout_s)

    def reduce_scatter(
        self, array: NDArray[Any], sizes: Sequence[int], timeout_s: float = 30.0
    ) -> NDArray[Any]:
        """This worker's block of the sum. `sizes`: elements of each worker's. Raises as `all_reduce`."""
        return self._own_block(self._run(array, Form.SCATTER, sizes, timeout_s), sizes)

    def all_gather(
        self, block: NDArray[np.int32], sizes: Sequence[int], timeout_s: float = 30.0
    ) -> NDArray[np.int32]:
        """The blocks of all workers, behind each other. Raises MismatchError, TimeoutError."""
        array = np.zeros(sum(sizes), np.int32)
        self._own_block(array, sizes)[:] = block
        return self._run(array, Form.GATHER, sizes, timeout_s)

    def _own_block(self, array: NDArray[Any], sizes: Sequence[int]) -> NDArray[Any]:
        first = sum(sizes[: self._a.rank])
        return array[first : first + sizes[self._a.rank]]

    def _run(self, array: NDArray[Any], form: Form, sizes: Sequence[int], timeout_s: float) -> NDArray[Any]:
        deadline = time.monotonic() + timeout_s
        if not self._has_resumed:
            self._resume(deadline)
        profile = numbers.mix(0, (array.size, DTYPES[array.dtype], 0, 0, 0, 0))
        if form is not Form.TO_ALL:
            profile = numbers.mix(
                profile, (form, *(n for owner, size in enumerate(sizes) for n in (size, owner)))
            )
        places = self._rows_of(array, sizes)
        if not places or places[0].owner is None:
            form = Form.TO_ALL
        rows = np.zeros((len(places), self._a.lanes), array.dtype)
        for row, place in zip(rows, places, strict=True):
            row[: place.count] = array.reshape(-1)[place.first : place.first + place.count]
        targets = [
            None if p.owner is None else target_of(p.owner, is_gather=form is Form.GATHER) for p in places
        ]
        call: Call
        if form is Form.GATHER:
            call = GatherCall(self, rows, targets)
        else:
            call = (IntegerCall if array.dtype == np.int32 else BlockCall)(self, rows, targets)
        call.run(profile, deadline)
        if array.nbytes > CLOSING_BYTES or form is Form.SCATTER:
            closing = Payload(self.zeros())
            if form is not Form.TO_ALL:  # C18
                closing = Payload(self.zeros(), target=target_of(NO_OWNER, is_gather=False), is_short=True)
            self.exchange(self._control, 1, lambda i: closing, lambda i, p: None, deadline)
        self._call += 1
        call.check()
        result = np.zeros(array.size, array.dtype)
        for row, place in zip(call.sums, places, strict=True):
            result[place.first : place.first + place.count] = row[: place.count]
        return result.reshape(array.shape)

    def _rows_of(self, array: NDArray[Any], sizes: Sequence[int]) -> list[Row]:
        """C16: the rows of the owners take turns. C19: some calls have those of a sum."""
        lanes = self._a.lanes
        most = max((-(-size // lanes) for size in sizes), default=0)
        rows = [
            Row(sum(sizes[:owner]) + at, min(lanes, size - at), owner)
            for at in range(0, most * lanes, lanes)
            for owner, size in enumerate(sizes)
            if at < size
        ]
        is_small = len(rows) < MIN_BLOCK_ROWS * len(sizes) or array.nbytes < MIN_BLOCK_BYTES * len(sizes)
        if sizes and self._a.has_targets and not is_small:
            return rows
        return [Row(at, min(lanes, array.size - at)) for at in range(0, array.size, lanes)]

    # ---- what calls use ----

    @property
    def workers(self) -> int:
        return self._a.workers

    @property
    def rank(self) -> int:
        return self._a.rank

    @property
    def call(self) -> int:
        return self._call

    @property
    def depth(self) -> int:
        return self._depth

    @property
    def main(self) -> Stream:
        return self._main

    @property
    def control(self) -> Stream:
        return self._control

    @property
    def gather(self) -> Stream:
        return self._gather

    def owns(self, target: int | None) -> bool:
        return target is not None and target & NO_OWNER == self._a.rank

    def profile(self, key: int, rows: int) -> numbers.Profile:
        return self._profiles.setdefault(key, numbers.Profile(rows))

    def zeros(self) -> Lanes:
        return np.zeros(self._a.lanes, np.int32)

    def opening(self, fingerprint: int, exponent: int) -> Payload:
        """C5."""
        lanes = self.zeros()
        lanes[:3] = [fingerprint >> 16 * i & 0xFFFF for i in range(3)]
        return Payload(lanes, exponent)

    def check_opening(self, fingerprint: int, result: Packet) -> None:
        """C6."""
        expected = self.opening(fingerprint, 0).lanes[:3] * self.workers
        if (result.lanes[:3] != expected).any():
            raise MismatchError(f"call {self._call}: the workers' calls differ")

    def exchange(
        self,
        stream: Stream,
        count: int,
        fill: Callable[[int], Payload | None],
        take: Callable[[int, Packet], None],
        deadline: float,
    ) -> None:
        """Sends `count` chunks at the stream's next places, takes their results. `fill` gives the payload of a chunk,
        or None: it depends on a result that is not here yet."""
        base, stream.end = stream.end, stream.end + count
        waiting, in_flight, done = list(range(count)), dict[int, InFlight](), set[int]()
        rto, last = INITIAL_RTO_S, time.monotonic()
        places = {self._chunk(stream, base + i): i for i in range(count)}
        while len(done) < count:
            now = time.monotonic()
            if now > deadline:
                raise TimeoutError(f"call {self._call}: {count - len(done)} of {count} results are missing")
            for i in list(waiting):
                before = i - stream.channels
                if len(in_flight) >= self._a.window or (before >= 0 and before not in done):  # S3, S2
                    break
                payload = fill(i)
                if payload is None:
                    break
                waiting.remove(i)
                packet = self._packet(self._chunk(stream, base + i), payload)
                in_flight[i] = InFlight(packet, payload.target, now)
                self._link.send(in_flight[i].packet)
            if in_flight and now - last > rto:  # the timeout of section 5.2
                self._send_again(min(in_flight.values(), key=lambda f: f.sent), now)
                rto, last = min(2 * rto, MAX_RTO_S), now
            for result in self._receive(rto):
                i = places.get(result.tag % (1 << 20) * self._a.slots + result.slot, -1)
                if i not in in_flight or not self._answers(result, in_flight[i].target):  # N14
                    continue
                sent = in_flight.pop(i)
                done.add(i)
                rto, last = INITIAL_RTO_S, time.monotonic()
                take(i, result)
                for other in in_flight.values():
                    if not sent.again and other.sent < sent.sent - REORDER_S:  # overtaken
                        self._send_again(other, last)

    # ---- inside ----

    def _answers(self, result: Packet, target: int | None) -> bool:
        """W12, S10, S11."""
        is_cut = result.is_short and bool(result.flags & Flag.DATA)
        return result.target == target and not (is_cut and wants_lanes(target, self._a.rank))

    def _resume(self, deadline: float) -> None:
        """E2, E3, E8: in the first epoch every worker has started no call."""
        half_lane = 2 * self._most + 1
        end = (3 * half_lane + 1) // 2 if self._a.has_targets else half_lane
        votes = self.zeros()
        votes[half_lane // 2] = 1 << 16 * (half_lane % 2)
        mask = self._nonce_mask(end)
        nonce = mask & secrets.randbits(NONCE_BITS)

        def take(_: int, result: Packet) -> None:
            if ((result.lanes & mask) != nonce).any():
                raise MismatchError("another process of this worker has taken part in the epoch")
            if (result.lanes[:end] != votes[:end] * self.workers).any():
                raise MismatchError("a worker has made calls in an earlier epoch")

        self.exchange(self._control, 1, lambda i: Payload(votes + nonce), take, deadline)
        self._has_resumed = True

    def _nonce_mask(self, end: int) -> Lanes:
        """E8: the bits behind lane `end` to which this worker alone adds."""
        mask = self.zeros()
        free = self._a.lanes - end
        in_lane = -(-self.workers // free) if free > 0 else NONCE_BITS + 1
        bits = NONCE_BITS // in_lane
        if bits:
            lane, field = divmod(self._a.rank, in_lane)
            mask[end + lane] = ((1 << bits) - 1) << field * bits
        return mask

    def _chunk(self, stream: Stream, place: int) -> int:
        """S1."""
        return place // stream.channels * (self._a.slots // 2) + stream.first + place % stream.channels

    def _packet(self, chunk: int, payload: Payload) -> bytes:
        """W7."""
        tag = tag_of(self._a.epoch, chunk // self._a.slots)
        slot = chunk % self._a.slots
        has_data = payload.target is not None and not payload.is_short
        return Packet(
            Kind.GRADIENT,
            self._a.tree,
            tag,
            slot,
            self._a.child,
            payload.lanes,
            payload.flags | (Flag.DATA if has_data else NO_FLAGS),
            payload.exponent,
            payload.target,
            payload.is_short,
        ).pack()

    def _send_again(self, chunk: InFlight, now: float) -> None:
        """S6."""
        chunk.again, chunk.sent = True, now
        self._link.send(chunk.packet)

    def _receive(self, seconds: float) -> list[Packet]:
        """Results that are here, after a wait of at most so long."""
        found: list[Packet] = []
        select.select([self._link], [], [], seconds)
        while True:
            try:
                data = self._link.recv(DATAGRAM_BYTES)
            except (BlockingIOError, ConnectionRefusedError):
                return found
            packet = parse(data, self._a.lanes)
            if packet and packet.kind is Kind.RESULT and packet.tree == self._a.tree:
                found += [packet] if packet.tag >> 20 == self._a.epoch else []


class Call(Protocol):
    """`sums`: rows of the result."""

    sums: NDArray[Any]

    def run(self, profile: int, deadline: float) -> None: ...

    def check(self) -> None: ...


class GatherCall:
    """C17: each row is its owner's. F27: O has no meaning."""

    def __init__(self, worker: Worker, rows: NDArray[np.int32], targets: Sequence[int | None]) -> None:
        self._worker, self._rows, self._targets = worker, rows, targets
        self.sums = rows.copy()

    def run(self, profile: int, deadline: float) -> None:
        worker, fingerprint = self._worker, numbers.mix(profile, [self._worker.call])
        opening = worker.opening(fingerprint, 0)

        def fill(row: int) -> Payload:
            target = self._targets[row]
            return Payload(self._rows[row], target=target, is_short=not worker.owns(target))

        def take(row: int, result: Packet) -> None:
            if not worker.owns(self._targets[row]):
                self.sums[row] = result.lanes

        worker.exchange(
            worker.main, 1, lambda i: opening, lambda i, r: worker.check_opening(fingerprint, r), deadline
        )
        worker.exchange(worker.gather, len(self._rows), fill, take, deadline)

    def check(self) -> None:
        """One contribution always fits."""


class IntegerCall:
    """F17. All send lanes, also of a scatter's block of their own."""

    def __init__(self, worker: Worker, rows: NDArray[np.int32], targets: Sequence[int | None]) -> None:
        self._worker, self._rows, self._targets = worker, rows, targets
        self.sums = np.zeros(rows.shape, np.int32)
        self._again: list[int] = []
        self._excess: int | None = None

    def run(self, profile: int, deadline: float) -> None:
        worker, rows = self._worker, self._rows
        fingerprint = numbers.mix(profile, [worker.call])

        def take(i: int, result: Packet) -> None:
            if i == 0:
                worker.check_opening(fingerprint, result)
                return
            self.sums[i - 1] = result.lanes
            if result.flags & Flag.OVERFLOW:
                self._again.append(i - 1)

        worker.exchange(
            worker.main,
            1 + len(rows),
            lambda i: (
                Payload(rows[i - 1], target=self._targets[i - 1]) if i else worker.opening(fingerprint, 0)
            ),
            take,
            deadline,
        )
        self._reencode(deadline)

    def _reencode(self, deadline: float) -> None:
        again, rows = sorted(self._again), self._rows
        halves = np.zeros((2 * len(again), rows.shape[1]), np.int64)

        def fill(i: int) -> Payload:
            row = rows[again[i // 2]]
            return Payload((row & 0xFFFF if i % 2 else row >> 16).astype(np.int32))

        def take(i: int, result: Packet) -> None:
            halves[i] = result.lanes

        self._worker.exchange(self._worker.control, len(halves), fill, take, deadline)
        for place, row in enumerate(again):
            exact = halves[2 * place] * 65536 + halves[2 * place + 1]
            self.sums[row] = exact.astype(np.int32)
            is_wanted = wants_lanes(self._targets[row], self._worker.rank)  # F28
            if is_wanted and (self.sums[row] != exact).any() and self._excess is None:
                self._excess = row * rows.shape[1] + int(np.argmax(self.sums[row] != exact))

    def check(self) -> None:
        if self._excess is not None:
            raise SumOverflowError(f"the sum of element {self._excess} does not fit into int32")


class BlockCall:
    """F5 to F11. C17: of a scatter's block the owner keeps its lanes."""

    def __init__(self, worker: Worker, rows: NDArray[np.float32], targets: Sequence[int | None]) -> None:
        self._worker, self._rows, self._targets = worker, rows, targets
        self._kept: dict[int, Lanes] = {}
        self.sums = np.zeros(rows.shape, np.float32)
        self._own = [numbers.exponent_byte(row) for row in rows]
        self._agreed: list[int | None] = [None] * len(rows)
        self._again: set[int] = set()
        self._first = min(len(rows), worker.main.channels)

    def run(self, profile: int, deadline: float) -> None:
        worker = self._worker
        history = worker.profile(profile, self._first)
        before = history.start(worker.call, worker.depth)
        self._observed = history.started[-1][1]
        predicted = [numbers.predicted_byte(b) for b in before] if before else []
        self._agreed[: len(predicted)] = predicted
        self._is_predicted = bool(predicted)
        fingerprint = numbers.mix(profile, [worker.call, *predicted])

        def fill(i: int) -> Payload | None:
            if i == 0:
                return worker.opening(fingerprint, max(self._own[: self._first]))
            payload, target = self._fill(i - 1), self._targets[i - 1]
            if payload is None or target is None:
                return payload
            if not worker.owns(target):
                return replace(payload, target=target)
            self._kept[i - 1] = payload.lanes
            return replace(payload, lanes=worker.zeros(), target=target, is_short=True)

        def take(i: int, result: Packet) -> None:
            if i:
                kept = self._kept.get(i - 1)
                self._take(i - 1, result if kept is None else replace(result, lanes=result.lanes + kept))
                return
            worker.check_opening(fingerprint, result)
            if not self._is_predicted:  # F7
                self._agreed[: self._first] = [result.exponent] * self._first

        worker.exchange(worker.main, 1 + len(self._rows), fill, take, deadline)
        self._reencode(deadline)

    def _next(self, row: int) -> int | None:
        """The next row of the channel."""
        after = row + self._worker.main.channels
        return after if after < len(self._rows) else None

    def _fill(self, row: int) -> Payload | None:
        agreed, after = self._agreed[row], self._next(row)
        if agreed is None:
            return None
        exponent = self._own[after] if after is not None else 0  # F6
        if row < self._first:  # F8
            exponent = max(exponent, self._own[row])
            if self._is_predicted and self._own[row] > agreed:
                return Payload(self._worker.zeros(), exponent, Flag.OVERFLOW)
        if agreed == numbers.NOT_FINITE:  # F11
            return Payload(self._worker.zeros(), exponent)
        return Payload(numbers.quantize(self._rows[row], agreed, self._worker.workers), exponent)

    def _take(self, row: int, result: Packet) -> None:
        agreed, after, observed = self._agreed[row] or 0, self._next(row), result.exponent
        if row < self._first and self._is_predicted:
            must = bool(result.flags & Flag.OVERFLOW) or numbers.is_mispredicted(agreed, observed)
            self._agreed[row] = observed
        else:
            must = agreed == numbers.NOT_FINITE
        if row < self._first and observed not in (0, numbers.NOT_FINITE):
            self._observed[row] = observed
        if after is not None:
            self._agreed[after] = observed
        if must:
            self._again.add(row)
        else:
            self.sums[row] = numbers.dequantize(result.lanes, agreed, self._worker.workers)

    def _reencode(self, deadline: float) -> None:
        """F11, then F8's rows and these."""
        worker, rows = self._worker, self._rows
        again = sorted(self._again)
        special = [row for row in again if self._agreed[row] == numbers.NOT_FINITE]
        codes = {row: worker.zeros() for row in again}

        def fill_special(i: int) -> Payload:
            row = rows[special[i]]
            finite = np.where(np.isfinite(row), row, np.float32(0))
            return Payload(numbers.special_codes(row), numbers.exponent_byte(finite))

        def take_special(i: int, result: Packet) -> None:
            codes[special[i]] = result.lanes
            self._agreed[special[i]] = result.exponent

        def fill(i: int) -> Payload:
            return Payload(numbers.quantize(rows[again[i]], self._agreed[again[i]] or 0, worker.workers))

        def take(i: int, result: Packet) -> None:
            row = again[i]
            sums = numbers.dequantize(result.lanes, self._agreed[row] or 0, worker.workers)
            self.sums[row] = numbers.with_special(sums, codes[row])

        worker.exchange(worker.control, len(special), fill_special, take_special, deadline)
        worker.exchange(worker.control, len(again), fill, take, deadline)

    def check(self) -> None:
        """Floats always fit."""
