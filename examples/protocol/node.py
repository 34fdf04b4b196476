# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A node of one tree, root or inner: section 3 of docs/reference/protocol.md, over a UDP socket of a host in place of a
switch's ports. `Node.receive` is the state machine and does no I/O."""

from __future__ import annotations

import select
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from .packet import NO_FLAGS, ROUND_BITS, Flag, Kind, Lanes, Packet, parse, wants_lanes

LANE_MAX, LANE_MIN = 2**31 - 1, -(2**31)
ONE_NAN = 0x7FC00000
DATAGRAM_BYTES = 4096

Address = tuple[str, int]
Outgoing = tuple[Address, bytes]


@dataclass(frozen=True)
class Child:
    """`bit`: its place in the bitmap. Contributions come from `address`."""

    bit: int
    address: Address


@dataclass(frozen=True)
class TreeEntry:
    """Assignment of a node by a controller. `children` by number. `receivers`: where results go. An inner node has a
    `parent`, and `own_child`, its number there. `ranks`: of the workers below a receiver, whose copies are cut."""

    tree: int
    epoch: int
    slots: int
    lanes: int
    children: Mapping[int, Child]
    receivers: tuple[Address, ...]
    parent: Address | None = None
    own_child: int = 0
    ranks: Mapping[Address, Sequence[int]] = field(default_factory=dict)


@dataclass
class Slot:
    """Section 3.1."""

    lanes: Lanes
    tag: int = 0
    bitmap: int = 0
    flags: Flag = NO_FLAGS
    exponent: int = 0


@dataclass
class Node:
    entry: TreeEntry
    slots: dict[int, Slot] = field(default_factory=dict)

    def receive(self, data: bytes, source: Address) -> list[Outgoing]:
        """Datagrams that leave because of one datagram."""
        packet = parse(data, self.entry.lanes)
        if packet is None or packet.tree != self.entry.tree or packet.slot >= self.entry.slots:
            return []
        if packet.tag >> ROUND_BITS != self.entry.epoch:
            return []
        if packet.kind is Kind.RESULT:
            return self._relay(packet, source)
        child = self.entry.children.get(packet.child)
        if child is None or child.address != source:  # N2
            return []
        return self._gradient(packet, child)

    def _relay(self, packet: Packet, source: Address) -> list[Outgoing]:
        """N13: a result comes from the parent alone, and touches no slot."""
        if source != self.entry.parent:
            return []
        return self._copies(packet)

    def _copies(self, packet: Packet) -> list[Outgoing]:
        """N19: a copy is cut where no worker below wants its lanes."""
        found = []
        for address in self.entry.receivers:
            ranks = self.entry.ranks.get(address)
            is_cut = ranks is not None and not any(wants_lanes(packet.target, rank) for rank in ranks)
            found.append((address, replace(packet, is_short=packet.is_short or is_cut).pack()))
        return found

    def _gradient(self, packet: Packet, child: Child) -> list[Outgoing]:
        """N3, the table of section 3.2."""
        slot = self.slots.setdefault(packet.slot, Slot(np.zeros(self.entry.lanes, np.int32)))
        bit = 1 << child.bit
        if packet.tag < slot.tag:
            return []
        is_duplicate = packet.tag == slot.tag and bool(slot.bitmap & bit)
        if packet.tag > slot.tag:  # claim: N4
            slot.tag, slot.bitmap, slot.lanes = packet.tag, bit, packet.lanes
            slot.flags, slot.exponent = packet.flags, packet.exponent
        else:
            slot.flags |= packet.flags
            slot.exponent = max(slot.exponent, packet.exponent)
            if not is_duplicate:
                slot.bitmap |= bit
            if not is_duplicate and not packet.is_short:  # N17
                slot.lanes = add(slot.lanes, packet.lanes, bool(slot.flags & Flag.FLOATS))
        if slot.bitmap != (1 << len(self.entry.children)) - 1:
            return []
        return self._complete(packet, slot, child if is_duplicate else None)

    def _complete(self, packet: Packet, slot: Slot, requested_by: Child | None) -> list[Outgoing]:
        """N6: a result down, or a partial sum up. N18: a targeted one is whole if a contribution was."""
        flags = slot.flags
        if not flags & Flag.FLOATS and np.isin(slot.lanes, (LANE_MAX, LANE_MIN)).any():  # N9
            flags |= Flag.OVERFLOW
        is_short = packet.target is not None and not flags & Flag.DATA
        total = replace(packet, lanes=slot.lanes, flags=flags, exponent=slot.exponent, is_short=is_short)
        if self.entry.parent is not None:
            return [(self.entry.parent, replace(total, child=self.entry.own_child).pack())]
        answer = replace(total, kind=Kind.RESULT)
        if requested_by is not None:  # N20
            return [(requested_by.address, answer.pack())]
        return self._copies(answer)


def add(a: Lanes, b: Lanes, are_floats: bool) -> Lanes:
    """N8 and N11."""
    if are_floats:
        with np.errstate(all="ignore"):
            total = a.view(np.float32) + b.view(np.float32)
        return np.where(np.isnan(total), np.int32(ONE_NAN), total.view(np.int32)).astype(np.int32)
    exact = np.clip(a.astype(np.int64) + b, LANE_MIN, LANE_MAX)
    return np.where((a == LANE_MAX) | (a == LANE_MIN), a, exact).astype(np.int32)


def serve(node: Node, link: socket.socket, stop: socket.socket) -> None:
    """Serves a non-blocking UDP socket until `stop` can be read."""
    while True:
        ready, _, _ = select.select([link, stop], [], [])
        if stop in ready:
            return
        try:
            data, source = link.recvfrom(DATAGRAM_BYTES)
        except (BlockingIOError, ConnectionRefusedError):
            continue
        for address, packet in node.receive(data, source):
            link.sendto(packet, address)
