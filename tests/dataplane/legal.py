# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What no switch may ever send to a neighbor: docs/protocol.md, section 2, read once more, on its own. The comparison
with the oracle would pass what both have wrong."""

from __future__ import annotations

import struct

from tests.dataplane.frames import IP_AT, IPV4, LANES_AT, NETFOLD_AT, UDP, UDP_AT, checksum


def why_illegal(frame: bytes, lanes: int) -> str | None:
    """What is wrong with a frame of the protocol that a switch sends to a neighbor; None if nothing is, or if it is
    other traffic. What comes behind the IP packet is Ethernet's padding."""
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
        "is cut": len(frame) >= LANES_AT + 4 * lanes,
    }
    for wrong, right in rules.items():
        if not right:
            return wrong
    size = 16 + 4 * lanes
    total, udp_length, udp_sum = (
        struct.unpack_from(">H", frame, place)[0] for place in (IP_AT + 2, UDP_AT + 4, UDP_AT + 6)
    )
    first, epoch = frame[NETFOLD_AT], struct.unpack_from(">H", frame, NETFOLD_AT + 4)[0] >> 4
    rules = {
        f"says {total} bytes of IP": total == 28 + size,
        f"says {udp_length} bytes of UDP": udp_length == 8 + size,
        "has a UDP checksum": udp_sum == 0,
        f"is of version {first >> 4}": first >> 4 == 1,
        f"is of kind {first & 15}": first & 15 in (0, 1),
        "is of epoch 0": epoch > 0,
        "has another number of lanes": struct.unpack_from(">H", frame, NETFOLD_AT + 14)[0] == lanes,
    }
    return next((wrong for wrong, right in rules.items() if not right), None)
