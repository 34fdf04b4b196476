# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""RoCE v2 frames as bytes, field by field, so that any of them can be wrong on purpose."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.dataplane.frames import IP_AT, UDP_AT, Ip, ethernet, udp

ROCE_PORT = 4791
FIRST, MIDDLE, LAST, LAST_IMMEDIATE, ONLY, ONLY_IMMEDIATE = range(6)
WRITE_ONLY, READ_REQUEST, ACKNOWLEDGE, LAST_INVALIDATE, CNP = 0x0A, 0x0C, 0x11, 0x16, 0x81
SUMMANDS = (FIRST, MIDDLE, LAST, ONLY)
"""Opcodes of the packets that are added up."""

# Where fields lie in an Ethernet, IPv4 (no options), UDP, BTH frame.
BTH_AT = 42
QPN_AT, PSN_AT, PAYLOAD_AT = BTH_AT + 5, BTH_AT + 9, BTH_AT + 12


@dataclass(frozen=True)
class Rc:
    """A base transport header and what is behind it; None stands for the right value. `lanes` are big-endian."""

    opcode: int = ONLY
    qpn: int = 0x11
    psn: int = 0
    lanes: Sequence[int] = field(default_factory=tuple)
    payload: bytes = b""  # behind the lanes
    ack_request: bool = False
    solicited: bool = False
    migrated: bool = True
    pad: int = 0
    version: int = 0
    partition: int = 0xFFFF
    congestion: int = 0
    reserved: int = 0
    source_port: int = 0xC000
    length: int | None = None  # of UDP
    udp_sum: int = 0
    icrc: int | None = None

    def bytes(self) -> bytes:
        first = self.solicited << 7 | self.migrated << 6 | self.pad << 4 | self.version
        return struct.pack(
            f">BBHII{len(self.lanes)}i",
            self.opcode,
            first,
            self.partition,
            self.congestion << 24 | self.qpn,
            self.ack_request << 31 | self.reserved << 24 | self.psn,
            *self.lanes,
        ) + self.payload  # fmt: skip


def roce(packet: Rc, ip: Ip) -> bytes:
    """The whole frame."""
    data = packet.bytes() + bytes(4)
    whole = ethernet(ip.pack(udp(data, packet.source_port, ROCE_PORT, packet.length, packet.udp_sum)))
    return with_icrc(whole, packet.icrc)


def with_icrc(frame: bytes, value: int | None = None) -> bytes:
    """Its last four bytes put right, or set to a value."""
    return frame[:-4] + struct.pack("<I", icrc(frame[:-4]) if value is None else value)


def icrc(frame: bytes) -> int:
    """Over the frame without its own ICRC: InfiniBand specification, annex A17.5.3.3; there are no options."""
    covered = bytearray(b"\xff" * 8 + frame[IP_AT:])
    for place in (1, 8, 10, 11, UDP_AT - IP_AT + 6, UDP_AT - IP_AT + 7, BTH_AT - IP_AT + 4):
        covered[8 + place] = 0xFF  # type of service, time to live, both checksums, the byte of FECN and BECN
    return zlib.crc32(covered)


def acknowledgment(qpn: int, psn: int, ip: Ip, syndrome: int = 0) -> bytes:
    """An ACK, or with syndrome 0x60 a NAK."""
    return roce(Rc(ACKNOWLEDGE, qpn, psn, payload=struct.pack(">I", syndrome << 24)), ip)
