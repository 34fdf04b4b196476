# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Frames as bytes, field by field, so that any of them can be wrong on purpose."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from netfold.protocol.target import LaneTarget
from netfold.protocol.wire import VERSION, Flag, Kind, make_tag

LANES = 32  # of the program under test, unless a test says otherwise
JOB_PORT = 0xF001
IPV4, ARP = 0x0800, 0x0806
UDP, TCP = 17, 6
NOT_ECT, ECT1, ECT0, CE = 0, 1, 2, 3

# Where fields lie in an Ethernet, IPv4 (no options), UDP, netfold frame.
IP_AT, UDP_AT, NETFOLD_AT, LANES_AT = 14, 34, 42, 58


def mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


def ip(text: str) -> bytes:
    return bytes(map(int, text.split(".")))


def checksum(header: bytes) -> int:
    """RFC 1071, over an even number of bytes."""
    total = sum(struct.unpack(f">{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~int(total) & 0xFFFF


def looks_like_netfold(frame: bytes, lanes: int) -> bool:
    """Version, kind and lanes are those of a packet; False where they are cut off."""
    if len(frame) < LANES_AT:
        return False
    first, count = frame[NETFOLD_AT], struct.unpack_from(">H", frame, NETFOLD_AT + 14)[0]
    return first >> 4 == VERSION and first & 15 <= Kind.RESET and count == lanes


def target_of(frame: bytes | bytearray) -> LaneTarget | None:
    return LaneTarget.of_field(int.from_bytes(frame[NETFOLD_AT + 14 : LANES_AT], "big"))


def looks_targeted(frame: bytes, *, has_lanes: bool) -> bool:
    """Version, kind, flags and lanes are those of a targeted packet with lanes, or of one without."""
    if len(frame) < LANES_AT or target_of(frame) is None:
        return False
    first, flags = frame[NETFOLD_AT], frame[NETFOLD_AT + 1]
    is_cut = first & 15 == Kind.RESULT and not has_lanes
    has_form = has_lanes == bool(flags & Flag.DATA) or is_cut
    return first >> 4 == VERSION and first & 15 <= Kind.RESULT and not flags & Flag.QUORUM and has_form


@dataclass(frozen=True)
class Ip:
    """An IPv4 header; None stands for the right value."""

    src: str = "10.0.0.1"
    dst: str = "10.0.0.100"
    protocol: int = UDP
    ttl: int = 64
    dscp: int = 0
    ecn: int = ECT0
    identification: int = 0
    flags_and_offset: int = 0x4000
    version: int = 4
    options: bytes = b""
    ihl: int | None = None
    total_length: int | None = None
    checksum: int | None = None

    def pack(self, payload: bytes) -> bytes:
        size = 20 + len(self.options)
        ihl = size // 4 if self.ihl is None else self.ihl
        length = size + len(payload) if self.total_length is None else self.total_length
        header = struct.pack(
            ">BBHHHBBH4s4s",
            self.version << 4 | ihl,
            self.dscp << 2 | self.ecn,
            length,
            self.identification,
            self.flags_and_offset,
            self.ttl,
            self.protocol,
            0,
            ip(self.src),
            ip(self.dst),
        )
        header += self.options
        found = checksum(header) if self.checksum is None else self.checksum
        return header[:10] + struct.pack(">H", found) + header[12:] + payload


@dataclass(frozen=True)
class Netfold:
    """The header of docs/reference/protocol.md, section 2, and its lanes."""

    kind: int = Kind.GRADIENT
    tree: int = 1
    epoch: int = 1
    round: int = 0
    slot: int = 0
    child: int = 0
    lanes: Sequence[int] = field(default_factory=lambda: [0] * LANES)
    flags: int = 0
    exponent: int = 0
    version: int = VERSION
    reserved: int = 0
    lane_count: int | None = None

    def pack(self) -> bytes:
        count = len(self.lanes) if self.lane_count is None else self.lane_count
        return struct.pack(
            f">BBHIHHBBH{len(self.lanes)}i",
            self.version << 4 | self.kind,
            self.flags,
            self.tree,
            make_tag(self.epoch, self.round),
            self.slot,
            self.child,
            self.exponent,
            self.reserved,
            count,
            *self.lanes,
        )


def ethernet(
    payload: bytes, kind: int = IPV4, src: str = "02:00:00:00:00:01", dst: str = "02:00:00:00:01:00"
) -> bytes:
    return mac(dst) + mac(src) + struct.pack(">H", kind) + payload


def udp(
    payload: bytes, src: int = JOB_PORT, dst: int = JOB_PORT, length: int | None = None, sum_: int = 0
) -> bytes:
    return struct.pack(">HHHH", src, dst, 8 + len(payload) if length is None else length, sum_) + payload


def gradient(
    header: Netfold, packet: Ip | None = None, *, port: int = JOB_PORT, trailer: bytes = b"", udp_sum: int = 0
) -> bytes:
    """A whole frame of any kind of netfold packet; `trailer` lies behind the IP packet."""
    return ethernet((packet or Ip()).pack(udp(header.pack(), port, port, sum_=udp_sum))) + trailer


def arp_request(
    target: str, sender: str = "10.0.0.1", sender_mac: str = "02:00:00:00:00:01", operation: int = 1
) -> bytes:
    body = struct.pack(">HHBBH", 1, IPV4, 6, 4, operation)
    body += mac(sender_mac) + ip(sender) + bytes(6) + ip(target)
    return ethernet(body, ARP, src=sender_mac, dst="ff:ff:ff:ff:ff:ff")
