# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A parameter server made of the slot oracle and a socket that loses, duplicates and delays packets."""

from __future__ import annotations

import os
import random
import select
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from netfold.protocol.wire import Kind, Packet, Verdict, WireError, make_tag
from netfold.traffic.membership.assignment import Assignment
from netfold.traffic.packets.transport import Address
from tests.slot_oracle import SlotPool

_DATAGRAM_BYTES = 4096
_BUFFER_BYTES = 1 << 22


@dataclass(frozen=True)
class Faults:
    """Chances of a packet to be lost, duplicated, or delayed until after the next ones."""

    loss: float = 0.0
    duplicate: float = 0.0
    delay: float = 0.0


class LossySocket:
    """A UDP socket at `local` that loses packets in both directions, and duplicates and delays what it sends."""

    def __init__(self, local: Address, faults: Faults, seed: int) -> None:
        self.drop_all = False
        self.sent = 0
        self.on_send: Callable[[int], None] = lambda sent: None
        self._faults = faults
        self._random = random.Random(seed)
        self._delayed: list[tuple[bytes, tuple[str, int]]] = []
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
        self._socket.bind((local.host, local.port))

    def fileno(self) -> int:
        return self._socket.fileno()

    def receive(self) -> tuple[bytes, tuple[str, int]] | None:
        """None: no packet is there, or the packet was lost."""
        try:
            received = self._socket.recvfrom(_DATAGRAM_BYTES)
        except (BlockingIOError, ConnectionRefusedError):
            return None
        return None if self._random.random() < self._faults.loss else received

    def send(self, payload: bytes, to: tuple[str, int]) -> None:
        faults, packet, delayed = self._faults, (payload, to), self._delayed
        out: list[tuple[bytes, tuple[str, int]]] = []
        self._delayed = []
        if not self.drop_all and self._random.random() >= faults.loss:
            is_late = self._random.random() < faults.delay
            (self._delayed if is_late else out).append(packet)
            if self._random.random() < faults.duplicate:
                (out if is_late else self._delayed).append(packet)
        for data, destination in out + delayed:
            try:
                self._socket.sendto(data, destination)
            except (BlockingIOError, ConnectionRefusedError):
                continue
        self.sent += 1
        self.on_send(self.sent)

    def close(self) -> None:
        self._socket.close()


class OracleServer:
    """The root of the trees of an assignment that name their `children`; results go to all of `reply_to`. `serve` runs
    until `stop`, from another thread."""

    def __init__(self, assignment: Assignment, link: LossySocket, reply_to: Sequence[Address]) -> None:
        self._link = link
        self._reply_to = [(address.host, address.port) for address in reply_to]
        self._next: Assignment | None = None
        self._wake = os.eventfd(0, os.EFD_NONBLOCK)
        self._stopped = threading.Event()
        self._start_epoch(assignment)

    def assign(self, assignment: Assignment) -> None:
        """Starts a new epoch (same job, port and lanes); from any thread."""
        self._next = assignment
        os.eventfd_write(self._wake, 1)

    def stop(self) -> None:
        """Ends `serve`; from any thread."""
        self._stopped.set()
        os.eventfd_write(self._wake, 1)

    def serve(self) -> None:
        poll = select.poll()
        poll.register(self._link.fileno(), select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        while not self._stopped.is_set():
            ready = dict(poll.poll())
            if self._wake in ready:
                os.eventfd_read(self._wake)
            if self._next is not None:
                self._start_epoch(self._next)
            received = self._link.receive()
            if received is not None:
                self._on_packet(*received)

    def close(self) -> None:
        """After `serve`."""
        self._link.close()
        os.close(self._wake)

    def _start_epoch(self, assignment: Assignment) -> None:
        self._assignment, self._next = assignment, None
        self._trees = {
            part.tree: (part, SlotPool(part.slots, assignment.lanes, len(part.children), root=True))
            for part in assignment.trees
            if part.children
        }

    def _on_packet(self, payload: bytes, source: tuple[str, int]) -> None:
        try:
            packet = Packet.parse(payload)
        except WireError:
            return
        part, pool = self._trees.get(packet.tree, (None, None))
        if (
            packet.kind != Kind.GRADIENT
            or packet.epoch != self._assignment.epoch
            or part is None
            or pool is None
            or packet.child not in part.children
        ):
            return
        bit, tag = part.children.index(packet.child), make_tag(packet.epoch, packet.round)
        outcome = pool.gradient(tag, packet.slot, bit, payload[1], packet.exponent, packet.lane)
        if outcome.packet is None:
            return
        left = outcome.packet
        result = replace(packet, kind=Kind.RESULT, flags=left.flags, exponent=left.exponent)
        reply = replace(result, lane=tuple(left.lanes.tolist())).pack()
        is_first = outcome.verdict is Verdict.RESULT_SENT
        for destination in self._reply_to if is_first else [source]:
            self._link.send(reply, destination)
