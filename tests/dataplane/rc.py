# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's two ends of reliable connections as InfiniBand has them (volume 1, 9.7). It sends messages to its
successor under a credit, resends from where it is told or from the oldest message that is not acknowledged, and takes
its predecessor's packets in their order."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from tests.dataplane.frames import Ip
from tests.dataplane.roce_frames import (
    ACKNOWLEDGE,
    BTH_AT,
    FIRST,
    LAST,
    MIDDLE,
    ONLY,
    PAYLOAD_AT,
    PSN_AT,
    QPN_AT,
    Rc,
    acknowledgment,
    roce,
)
from tests.dataplane.roce_node import RoceWorker

PSNS = 1 << 24
NAK = 0x60  # syndrome: a PSN was left out
Words = NDArray[np.int64]


@dataclass(frozen=True)
class Messages:
    """The messages of an epoch, the same for all workers: `ends[m]` is the chunk behind message m."""

    ends: tuple[int, ...]

    @classmethod
    def of(cls, lengths: Sequence[int]) -> Messages:
        return cls(tuple(accumulate(lengths)))

    @property
    def chunks(self) -> int:
        return self.ends[-1]

    def number(self, chunk: int) -> int:
        return next(m for m, end in enumerate(self.ends) if chunk < end)

    def begin(self, chunk: int) -> int:
        """Return the message that the chunk is in."""
        return ([0, *self.ends])[self.number(chunk)]

    def opcode(self, chunk: int) -> int:
        first, last = chunk == self.begin(chunk), chunk + 1 in self.ends
        return ONLY if first and last else FIRST if first else LAST if last else MIDDLE


def contribution(lanes: int, epoch: int, child: int, chunk: int) -> Words:
    return np.random.default_rng([epoch, child, chunk]).integers(-(10**6), 10**6, lanes)


@dataclass
class Endpoint:
    """`credit`: chunks that may lie between the first one not acknowledged and the end of what is sent."""

    at: RoceWorker
    lanes: int
    messages: Messages
    credit: int
    acknowledged: int = 0  # chunks
    next: int = 0
    highest: int = 0  # sent so far
    expected: int = 0  # of the predecessor's
    told: bool = False  # the predecessor was told what is missing
    out: list[bytes] = field(default_factory=list)

    @property
    def done(self) -> bool:
        return self.acknowledged == self.expected == self.messages.chunks

    def may_send(self) -> bool:
        if self.next >= self.messages.chunks:
            return False
        return self.messages.ends[self.messages.number(self.next)] <= self.acknowledged + self.credit

    def send(self) -> bytes:
        chunk, at = self.next, self.at
        opcode = self.messages.opcode(chunk)
        packet = Rc(
            opcode,
            at.successor.receiving,
            (at.first_psn + chunk) % PSNS,
            contribution(self.lanes, at.at.epoch, at.child, chunk).tolist(),
            ack_request=opcode in (LAST, ONLY),
            udp_sum=chunk,
        )
        self.next += 1
        self.highest = max(self.highest, self.next)
        ip = Ip(src=at.own.address, dst=at.successor.address, ttl=64, dscp=chunk % 64, identification=chunk)
        return roce(packet, ip)

    def time_out(self) -> None:
        """Resends from the first packet of the oldest message that is not acknowledged."""
        if self.acknowledged < self.messages.chunks:
            self.next = min(self.next, self.messages.begin(self.acknowledged))

    def take(self, frame: bytes, exact: Words) -> bool:
        """Takes a frame that came to this host by UDP port 4791, and returns whether the chunk expected was in it.
        `exact` is the sum of that."""
        qpn, psn = (int.from_bytes(frame[at : at + 3], "big") for at in (QPN_AT, PSN_AT))
        if qpn == self.at.own.sending and frame[BTH_AT] == ACKNOWLEDGE:
            self._acknowledge(psn, frame[PAYLOAD_AT])
            return False
        if qpn != self.at.own.receiving:
            return False
        ahead = (psn - self.at.expected_psn - self.expected) % PSNS
        if ahead == 0 and self.expected < self.messages.chunks:
            lanes = struct.unpack_from(f">{self.lanes}i", frame, PAYLOAD_AT)
            assert lanes == tuple(exact.tolist()), f"chunk {self.expected}: a wrong sum"
            assert frame[BTH_AT] == self.messages.opcode(self.expected)
            self.expected, self.told = self.expected + 1, False
            if frame[PSN_AT - 1] & 0x80:
                self._answer(0)
            return True
        if ahead >= PSNS // 2:
            self._answer(0)  # a duplicate: all up to here is there
        elif not self.told and self.expected < self.messages.chunks:
            self.told = True
            self._answer(NAK)
        return False

    def _answer(self, syndrome: int) -> None:
        psn = (self.at.expected_psn + self.expected - (syndrome == 0)) % PSNS
        to = self.at.predecessor
        ip = Ip(src=self.at.own.address, dst=to.address)
        self.out.append(acknowledgment(to.sending, psn, ip, syndrome))

    def _acknowledge(self, psn: int, syndrome: int) -> None:
        missing = (psn - self.at.first_psn + (syndrome == 0)) % PSNS
        if missing > self.highest:
            return  # of another epoch
        self.acknowledged = max(self.acknowledged, missing)
        self.next = max(self.next, self.acknowledged)
        if syndrome == NAK and missing >= self.acknowledged:
            self.next = missing
