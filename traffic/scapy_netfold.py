# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The packet as a scapy layer, for tests, dissection and crafting: 1 to 3 thousand packets a second, no fast
path.

Importing this module binds the layer to UDP ports 61440 ... 61695.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scapy.fields import (
    BitEnumField,
    BitField,
    ByteField,
    FieldLenField,
    FieldListField,
    ShortField,
    SignedIntField,
)
from scapy.layers.inet import UDP
from scapy.packet import Packet, bind_layers

from netfold.protocol.constants import HEADER_BYTES, LANES_MAX, PORT_FIRST, PORT_LAST, TARGETED, VERSION, Kind


def _lane_count(packet: Any) -> int:
    """The UDP length alone says how many lanes a targeted packet has."""
    if packet.lanes & TARGETED and isinstance(packet.underlayer, UDP):
        return int(packet.underlayer.len - 8 - HEADER_BYTES) // 4
    return 0 if packet.lanes & TARGETED else int(packet.lanes)


class Netfold(Packet):  # type: ignore[misc]  # scapy has no types
    """The netfold header and its lanes (docs/reference/protocol.md, section 2). `lanes`: their number, or a target's
    field (protocol/target.py)."""

    name = "netfold"
    fields_desc = [  # noqa: RUF012 (scapy's way)
        BitField("version", VERSION, 4),
        BitEnumField("kind", 0, 4, {kind.value: kind.name for kind in Kind}),
        BitField("overflow", 0, 1),
        BitField("congestion", 0, 1),
        BitField("quorum", 0, 1),
        BitField("seal", 0, 1),
        BitField("slot_reused", 0, 1),
        BitField("floats", 0, 1),
        BitField("data", 0, 1),
        BitField("reserved", 0, 1),
        ShortField("tree", 0),
        BitField("epoch", 1, 12),
        BitField("round", 0, 20),
        ShortField("slot", 0),
        ShortField("child", 0),
        ByteField("exponent", 0),
        BitField("roce", 0, 1),
        BitField("ack_request", 0, 1),
        BitField("solicited", 0, 1),
        BitField("opcode", 0, 5),
        FieldLenField("lanes", None, count_of="lane", fmt="H"),
        FieldListField("lane", [], SignedIntField("", 0), count_from=_lane_count, max_count=LANES_MAX),
    ]

    def mysummary(self) -> str:
        summary: str = self.sprintf(
            "netfold %kind% tree=%tree% epoch=%epoch% round=%round% slot=%slot% child=%child%"
        )
        return summary


for _port in range(PORT_FIRST, PORT_LAST + 1):
    bind_layers(UDP, Netfold, sport=_port, dport=_port)


def gradient(
    tree: int,
    child: int,
    chunk: int,
    slots: int,
    epoch: int,
    lane: Sequence[int],
    exponent: int = 0,
    overflow: bool = False,
) -> Any:
    """Returns a GRADIENT with chunk `chunk` of a tree with `slots` slots."""
    return Netfold(
        kind=Kind.GRADIENT,
        overflow=int(overflow),
        tree=tree,
        epoch=epoch,
        round=chunk // slots,
        slot=chunk % slots,
        child=child,
        exponent=exponent,
        lane=list(lane),
    )
