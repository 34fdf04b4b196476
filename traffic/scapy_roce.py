# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A packet in RoCE's form (docs/reference/roce.md, section 4) as scapy layers: for tests, dissection and
crafting. The base transport header and its ICRC are scapy.contrib.roce's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scapy.contrib.roce import BTH
from scapy.fields import FieldListField, SignedIntField
from scapy.packet import Packet

from netfold.protocol.wire import LANES_MAX

SUMMANDS = (0, 1, 2, 4)
"""The opcodes that are added up are SEND first, middle, last and only."""


class Lanes(Packet):  # type: ignore[misc]  # scapy has no types
    """The payload of a SEND: big-endian int32."""

    name = "netfold lanes"
    fields_desc = [  # noqa: RUF012 (scapy's way)
        FieldListField(
            "lane",
            [],
            SignedIntField("", 0),
            length_from=lambda packet: len(packet.original),
            max_count=LANES_MAX,
        )
    ]


def send(
    qpn: int, first_psn: int, chunk: int, lane: Sequence[int], opcode: int = 4, ack_request: bool = False
) -> Any:
    """Returns chunk `chunk` of a connection, behind UDP to port 4791; scapy computes the ICRC."""
    psn = (first_psn + chunk) % (1 << 24)
    return BTH(opcode=opcode, migreq=1, dqpn=qpn, ackreq=int(ack_request), psn=psn) / Lanes(lane=list(lane))


def lanes_of(packet: Packet) -> tuple[int, ...] | None:
    """Returns the lanes of a packet that was read, or None if it is no SEND that is added up."""
    if not packet.haslayer(BTH) or packet[BTH].opcode not in SUMMANDS:
        return None
    return tuple(Lanes(bytes(packet[BTH].payload)).lane)
