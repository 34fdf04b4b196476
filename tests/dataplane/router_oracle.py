# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The oracle of a switch as a router, byte for byte: it forwards frames that are no packets of the protocol, answers
ARP, and addresses what it sends to a neighbor."""

from __future__ import annotations

import struct
from ipaddress import IPv4Address, IPv4Network

from netfold.protocol.wire import PORT_FIRST, PORT_LAST
from tests.dataplane.device import Frames
from tests.dataplane.frames import (
    IP_AT,
    IPV4,
    NETFOLD_AT,
    TCP,
    UDP,
    UDP_AT,
    checksum,
    ip,
    looks_like_netfold,
    looks_targeted,
    mac,
)
from tests.dataplane.node import ArpAnswer, Neighbor, Route
from tests.dataplane.roce_oracle import RoceLeaf

ICMP, ICMP_ERRORS = 1, (3, 4, 5, 11, 12)
QUOTED_BYTES = 32
"""An ICMP error quotes as much: it reaches as far as the ports of the quoted packet."""


class Router:
    """`parses_options`: the program reads behind IPv4 options. `roce`: what the switch knows of RoCE."""

    def __init__(self, lanes: int, roce: RoceLeaf, *, parses_options: bool) -> None:
        self._lanes = lanes
        self._roce = roce
        self._parses_options = parses_options
        self._neighbors: dict[int, Neighbor] = {}
        self._routes: dict[IPv4Network, int] = {}
        self._arp: dict[IPv4Network, str] = {}

    def install(self, setting: Neighbor | Route | ArpAnswer) -> None:
        match setting:
            case Neighbor():
                self._neighbors[setting.port] = setting
            case Route():
                (self._routes[IPv4Network(setting.prefix)],) = setting.ports
            case ArpAnswer():
                self._arp[IPv4Network(setting.prefix)] = setting.mac

    def forward(self, frame: bytes) -> Frames:
        """RFC 1812 in short: verify, look up, decrement."""
        version, words, ttl = frame[IP_AT] >> 4, frame[IP_AT] & 15, frame[IP_AT + 8]
        end = IP_AT + 4 * words
        if version != 4 or words < 5 or ttl <= 1:
            return []
        unseen = words > 5 and not self._parses_options
        if not unseen and (len(frame) < end or checksum(frame[IP_AT:end]) != 0):
            return []
        if not unseen and len(frame) < end + self._read_behind_ip(frame, end):
            return []
        to = IPv4Address(frame[IP_AT + 16 : IP_AT + 20])
        matching = [network for network in self._routes if to in network]
        if not matching:
            return []
        port = self._routes[max(matching, key=lambda network: network.prefixlen)]
        out = bytearray(frame)
        out[IP_AT + 8] = ttl - 1
        neighbor = self._neighbors.get(port)
        if neighbor is not None:
            out[:12] = mac(neighbor.dst) + mac(neighbor.src)
        return [(port, _mended(frame, out) if unseen else with_checksum(bytes(out)))]

    def answer_arp(self, frame: bytes) -> bytes | None:
        """None: it is no question for an address that the switch answers for."""
        if len(frame) < 42 or struct.unpack_from(">H", frame, 20)[0] != 1:
            return None
        target = IPv4Address(frame[38:42])
        matching = [network for network in self._arp if target in network]
        if not matching:
            return None
        own = mac(self._arp[max(matching, key=lambda network: network.prefixlen)])
        asker, asked = frame[22:32], frame[38:42]
        return frame[6:12] + own + frame[12:20] + b"\0\2" + own + asked + asker + frame[42:]

    def address(self, port: int, frame: bytes | bytearray) -> bytearray:
        """A packet of the protocol, with the neighbor's addresses and without a UDP checksum."""
        out = bytearray(frame)
        out[UDP_AT + 6 : UDP_AT + 8] = b"\0\0"
        neighbor = self._neighbors.get(port)
        if neighbor is not None:
            out[:12] = mac(neighbor.dst) + mac(neighbor.src)
            if neighbor.address is not None:
                out[IP_AT + 16 : IP_AT + 20] = ip(neighbor.address)
        return out

    def _read_behind_ip(self, frame: bytes, at: int) -> int:
        """How many bytes the switch reads behind the IPv4 header, and so wants to be there: the ports of TCP, of UDP
        its header, of an ICMP error what it quotes, and of what looks like a packet of the protocol until it turns out
        to be none."""
        fragment = struct.unpack_from(">H", frame, IP_AT + 6)[0] & 0x3FFF
        if at > UDP_AT and not self._parses_options:
            return 0
        if frame[IP_AT + 9] == TCP:
            return 0 if fragment else 4
        if frame[IP_AT + 9] == ICMP and self._parses_options and not fragment & 0x1FFF:
            return QUOTED_BYTES if is_icmp_error(frame) else 1
        if frame[IP_AT + 9] != UDP or fragment & 0x1FFF:
            return 0
        if (wanted := self._roce.reads(frame)) is not None:
            return wanted
        if at > UDP_AT or fragment or len(frame) < NETFOLD_AT:
            return 8
        source, destination, length = struct.unpack_from(">HHH", frame, UDP_AT)
        size = length - 8
        in_range = all(PORT_FIRST <= port <= PORT_LAST for port in (source, destination))
        has_lanes = size == 16 + 4 * self._lanes
        has_size = has_lanes or (size == 16 and self._parses_options)
        if not in_range or not has_size or struct.unpack_from(">H", frame, IP_AT + 2)[0] != 28 + size:
            return 8
        is_targeted = self._parses_options and looks_targeted(frame, has_lanes=True)
        return 8 + (size if is_targeted or looks_like_netfold(frame, self._lanes) else 16)


def is_icmp_error(frame: bytes) -> bool:
    """Whole, or its first fragment."""
    words, offset = frame[IP_AT] & 15, struct.unpack_from(">H", frame, IP_AT + 6)[0] & 0x1FFF
    at = IP_AT + 4 * words
    if frame[IP_AT] >> 4 != 4 or words < 5 or frame[IP_AT + 9] != ICMP or offset or len(frame) <= at:
        return False
    return frame[at] in ICMP_ERRORS


def _mended(before: bytes, after: bytearray) -> bytes:
    """Its header checksum changed by what the time to live has (RFC 1624): one that was wrong stays wrong."""
    held, old, new = (
        struct.unpack_from(">H", data, at)[0]
        for data, at in ((before, IP_AT + 10), (before, IP_AT + 8), (after, IP_AT + 8))
    )
    struct.pack_into(">H", after, IP_AT + 10, checksum(struct.pack(">HHH", held ^ 0xFFFF, old ^ 0xFFFF, new)))
    return bytes(after)


def with_checksum(frame: bytes) -> bytes:
    """The IPv4 header checksum put right."""
    if len(frame) < UDP_AT or struct.unpack_from(">H", frame, 12)[0] != IPV4:
        return frame
    end = IP_AT + 4 * (frame[IP_AT] & 15)
    if frame[IP_AT] >> 4 != 4 or not UDP_AT <= end <= len(frame):
        end = UDP_AT  # what the controller sends out broken stays so
    header = frame[IP_AT : IP_AT + 10] + b"\0\0" + frame[IP_AT + 12 : end]
    return frame[: IP_AT + 10] + struct.pack(">H", checksum(header)) + frame[IP_AT + 12 :]
