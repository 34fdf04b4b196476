# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Makes and parses the packets READ and RESET (docs/reference/protocol.md, section 3.6), as P4Runtime on BMv2 has no
register access. The switch answers only to the controller, with tag, slot attributes and lanes in the packet and the
bitmap as metadata."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from ipaddress import IPv4Address

import finsy as fy

from netfold.controller.switches.fabric_config import FabricConfig
from netfold.controller.switches.tables import MANAGEMENT_PORT
from netfold.protocol.wire import VERSION, Flag, Kind

_ETHERNET = struct.Struct("!6s6sH")
_IPV4 = struct.Struct("!BBHHHBBH4s4s")
_UDP = struct.Struct("!HHHH")
_NETFOLD = struct.Struct("!BBHIHHBBH")


@dataclass(frozen=True)
class SlotView:
    """Contents of a slot; `request` and `sender` are those of the READ or RESET."""

    ingress_port: int
    tree: int
    slot: int
    request: int
    sender: IPv4Address
    epoch: int
    round: int
    bitmap: int
    overflow: bool
    congestion: bool
    exponent: int
    lanes: tuple[int, ...]


def slot_packet(kind: Kind, *, tree: int, slot: int, request: int, sender: IPv4Address, lanes: int) -> bytes:
    """A READ or RESET; `tree` is the management tree, `request` (16 bits) identifies the answer."""
    payload = 16 + 4 * lanes
    header = _IPV4.pack(0x45, 0, 28 + payload, 0, 0, 64, 17, 0, sender.packed, sender.packed)
    checked = header[:10] + struct.pack("!H", _checksum(header)) + header[12:]
    netfold = _NETFOLD.pack(VERSION << 4 | kind, 0, tree, 0, slot, request, 0, 0, lanes)
    return (
        _ETHERNET.pack(bytes(6), b"\x02\x00" + sender.packed, 0x0800)
        + checked
        + _UDP.pack(MANAGEMENT_PORT, MANAGEMENT_PORT, 8 + payload, 0)
        + netfold
        + bytes(4 * lanes)
    )


def management_packet(
    config: FabricConfig, lanes: int, switch: str, kind: Kind, slot: int, request: int
) -> bytes:
    """A READ or RESET that `switch` sends or executes."""
    own = config.addresses.switches[switch].loopback
    tree = config.management_tree
    return slot_packet(kind, tree=tree, slot=slot, request=request, sender=own, lanes=lanes)


def is_reset(payload: bytes) -> bool:
    """Whether a packet of `slot_packet` changes the switch."""
    return payload[_ETHERNET.size + _IPV4.size + _UDP.size] & 0xF == Kind.RESET


def slot_view(packet: fy.P4PacketIn) -> SlotView | None:
    """The answer in a packet-in; None for any other packet."""
    data = packet.payload
    first = _ETHERNET.size + _IPV4.size + _UDP.size
    has_metadata = {"ingress_port", "bitmap"} <= packet.metadata.keys()
    if not has_metadata or len(data) < first + _NETFOLD.size or data[first] >> 4 != VERSION:
        return None
    kind, flags, tree, tag, slot, request, exponent, _, lanes = _NETFOLD.unpack_from(data, first)
    first += _NETFOLD.size
    if kind & 0xF not in (Kind.READ, Kind.RESET) or len(data) < first + 4 * lanes:
        return None
    return SlotView(
        ingress_port=packet["ingress_port"],
        tree=tree,
        slot=slot,
        request=request,
        sender=IPv4Address(data[26:30]),
        epoch=tag >> 20,
        round=tag & 0xFFFFF,
        bitmap=packet["bitmap"],
        overflow=bool(flags & Flag.OVERFLOW),
        congestion=bool(flags & Flag.CONGESTION),
        exponent=exponent,
        lanes=struct.unpack_from(f"!{lanes}i", data, first),
    )


def _checksum(header: bytes) -> int:
    """The checksum of RFC 1071 over a header whose checksum field is 0."""
    total: int = sum(struct.unpack("!10H", header))
    total = (total & 0xFFFF) + (total >> 16)
    return ~(total + (total >> 16)) & 0xFFFF
