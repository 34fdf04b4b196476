# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Packets that no switch may ever send to a neighbor: docs/reference/protocol.md, section 2, read once more, on its
own. The comparison with the oracle would pass what both have wrong."""

from __future__ import annotations

import struct
import zlib

from netfold.protocol.constants import TARGETED, Flag
from tests.dataplane.frames import IP_AT, IPV4, LANES_AT, NETFOLD_AT, UDP, UDP_AT, checksum


def why_illegal(frame: bytes, lanes: int) -> str | None:
    """Returns the fault of a frame of the protocol that a switch sends to a neighbor; None if there is none, or if it
    is other traffic. Bytes behind the IP packet are Ethernet's padding."""
    if frame[12:14] != IPV4.to_bytes(2, "big") or len(frame) < IP_AT + 20:
        return None
    words, fragment = frame[IP_AT] & 15, struct.unpack_from(">H", frame, IP_AT + 6)[0]
    at = IP_AT + 4 * words
    if frame[IP_AT + 9] != UDP or fragment & 0x1FFF or len(frame) < at + 4:
        return None
    source, destination = struct.unpack_from(">HH", frame, at)
    if source != destination or source >> 8 != 0xF0:
        return None
    rules = {
        "has options": words == 5,
        "is a fragment": fragment & 0x2000 == 0,
        "lives no longer": frame[IP_AT + 8] > 0,
        "has a wrong header checksum": checksum(frame[IP_AT:at]) == 0,
        "is cut": len(frame) >= LANES_AT,
    }
    for wrong, right in rules.items():
        if not right:
            return wrong
    field, flags = struct.unpack_from(">H", frame, NETFOLD_AT + 14)[0], frame[NETFOLD_AT + 1]
    is_short = field & TARGETED and len(frame) < LANES_AT + 4 * lanes
    size = 16 if is_short else 16 + 4 * lanes
    total, udp_length, udp_sum = (
        struct.unpack_from(">H", frame, place)[0] for place in (IP_AT + 2, UDP_AT + 4, UDP_AT + 6)
    )
    first, epoch = frame[NETFOLD_AT], struct.unpack_from(">H", frame, NETFOLD_AT + 4)[0] >> 4
    rules = {
        "is cut": len(frame) >= NETFOLD_AT + size,
        f"says {total} bytes of IP": total == 28 + size,
        f"says {udp_length} bytes of UDP": udp_length == 8 + size,
        "has a UDP checksum": udp_sum == 0,
        f"is of version {first >> 4}": first >> 4 == 1,
        f"is of kind {first & 15}": first & 15 in (0, 1),
        "is of epoch 0": epoch > 0,
        "has another number of lanes": field == lanes or field & TARGETED,
        "has the wrong D": not field & TARGETED or bool(flags & Flag.DATA) != is_short or first & 15 == 1,
    }
    return next((wrong for wrong, right in rules.items() if not right), None)


def why_illegal_roce(frame: bytes, lanes: int) -> str | None:
    """Returns the fault of a frame to a QP that receives a job's sums; None if there is none."""
    at, end = UDP_AT + 8, UDP_AT + 8 + 12 + 4 * lanes
    if len(frame) < end + 4:
        return "is cut"
    total, udp_length, udp_sum = (
        struct.unpack_from(">H", frame, place)[0] for place in (IP_AT + 2, UDP_AT + 4, UDP_AT + 6)
    )
    covered = bytearray(b"\xff" * 8 + frame[IP_AT:end])
    for offset in (1, 8, 10, 11, 26, 27, 32):  # counted from the IPv4 header
        covered[8 + offset] = 0xFF
    rules = {
        "has options": frame[IP_AT] == 0x45,
        "is a fragment": not struct.unpack_from(">H", frame, IP_AT + 6)[0] & 0x3FFF,
        "lives no longer": frame[IP_AT + 8] > 0,
        "has a wrong header checksum": checksum(frame[IP_AT:UDP_AT]) == 0,
        f"says {total} bytes of IP": total == end + 4 - IP_AT,
        f"says {udp_length} bytes of UDP": udp_length == end + 4 - UDP_AT,
        "has a UDP checksum": udp_sum == 0,
        "is not to RoCE's port": struct.unpack_from(">H", frame, UDP_AT + 2)[0] == 4791,
        f"is of opcode {frame[at]}": frame[at] in (0, 1, 2, 4),
        "has padding or another version": frame[at + 1] & 0x3F == 0,
        "is of another partition": frame[at + 2 : at + 4] == b"\xff\xff",
        "sets reserved bits": frame[at + 4] == 0 and frame[at + 8] & 0x7F == 0,
        "has a wrong ICRC": struct.unpack_from("<I", frame, end)[0] == zlib.crc32(covered),
    }
    return next((wrong for wrong, right in rules.items() if not right), None)
