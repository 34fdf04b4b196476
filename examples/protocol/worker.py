# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A worker of one tree: sections 5.1 to 5.3 of docs/reference/protocol.md for int32 and float32 arrays (scheme block),
one call at a time, in one epoch. Left out, as section 11 allows: congestion control, stripes, handover, quorum, other
schemes."""

from __future__ import annotations

import secrets
import select
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import numbers
from .node import DATAGRAM_BYTES, Address
from .packet import NO_FLAGS, Flag, Kind, Lanes, Packet, parse, tag_of

ECT0 = 2
INITIAL_RTO_S, MAX_RTO_S, REORDER_S = 0.05, 1.0, 0.005
CLOSING_BYTES = 2 << 20
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


@dataclass(frozen=True)
class Payload:
    """Contents of a chunk."""

    lanes: Lanes
    exponent: int = 0
    flags: Flag = NO_FLAGS


@dataclass
class Stream:
    """S1: the channels `first` ... `first + channels - 1`, and the next free place."""

    first: int
    channels: int
    end: int = 0


@dataclass
class InFlight:
    packet: bytes
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
        control = 0 if channels == 1 else max(1, channels // 8)
        self._main = Stream(0, channels - control)
        self._control = Stream(channels - control, control) if control else self._main
        self._most = min(4, (assignment.lanes - 1) // 2)
        self._depth = 1 if channels == 1 else self._most  # C1
        self._call = 0
        self._profiles: dict[int, numbers.Profile] = {}
        self._has_resumed = False

    def close(self) -> None:
        self._link.close()

    def all_reduce(self, array: NDArray[Any], timeout_s: float = 30.0) -> NDArray[Any]:
        """The sum over all workers. Raises MismatchError, SumOverflowError, TimeoutError."""
        deadline = time.monotonic() + timeout_s
        if not self._has_resumed:
            self._resume(deadline)
        lanes = self._a.lanes
        rows = np.zeros((-(-array.size // lanes), lanes), array.dtype)
        rows.reshape(-1)[: array.size] = array.reshape(-1)
        call = IntegerCall(self, rows) if array.dtype == np.int32 else BlockCall(self, rows)
        call.run(numbers.mix(0, (array.size, DTYPES[array.dtype], 0, 0, 0, 0)), deadline)
        if array.nbytes > CLOSING_BYTES:
            self.exchange(self._control, 1, lambda i: Payload(self.zeros()), lambda i, p: None, deadline)
        self._call += 1
        call.check()
        return call.sums.reshape(-1)[: array.size].reshape(array.shape)

    # ---- what calls use ----

    @property
    def workers(self) -> int:
        return self._a.workers

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
                in_flight[i] = InFlight(self._packet(self._chunk(stream, base + i), payload), now)
                self._link.send(in_flight[i].packet)
            if in_flight and now - last > rto:  # the timeout of section 5.2
                self._send_again(min(in_flight.values(), key=lambda f: f.sent), now)
                rto, last = min(2 * rto, MAX_RTO_S), now
            for packet in self._receive(rto):
                i = places.get(packet.tag % (1 << 20) * self._a.slots + packet.slot, -1)
                if i not in in_flight:  # N14
                    continue
                sent = in_flight.pop(i)
                done.add(i)
                rto, last = INITIAL_RTO_S, time.monotonic()
                take(i, packet)
                for other in in_flight.values():
                    if not sent.again and other.sent < sent.sent - REORDER_S:  # overtaken
                        self._send_again(other, last)

    # ---- inside ----

    def _resume(self, deadline: float) -> None:
        """E2, E3, E8: in the first epoch every worker has started no call."""
        half_lane = end = 2 * self._most + 1
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
        return Packet(
            Kind.GRADIENT,
            self._a.tree,
            tag,
            slot,
            self._a.child,
            payload.lanes,
            payload.flags,
            payload.exponent,
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


class IntegerCall:
    """F17."""

    def __init__(self, worker: Worker, rows: NDArray[np.int32]) -> None:
        self._worker, self._rows = worker, rows
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
            lambda i: Payload(rows[i - 1]) if i else worker.opening(fingerprint, 0),
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
            if (self.sums[row] != exact).any() and self._excess is None:
                self._excess = row * rows.shape[1] + int(np.argmax(self.sums[row] != exact))

    def check(self) -> None:
        if self._excess is not None:
            raise SumOverflowError(f"the sum of element {self._excess} does not fit into int32")


class BlockCall:
    """F5 to F11."""

    def __init__(self, worker: Worker, rows: NDArray[np.float32]) -> None:
        self._worker, self._rows = worker, rows
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
            return self._fill(i - 1)

        def take(i: int, result: Packet) -> None:
            if i:
                self._take(i - 1, result)
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
