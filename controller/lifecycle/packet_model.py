# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Converts the rates of a plan into packets."""

from __future__ import annotations

from dataclasses import dataclass

from netfold.protocol.wire import FRAME_OVERHEAD_BYTES, FRAMING_BYTES, packet_bytes
from netfold.topologies.fabric import Fabric


@dataclass(frozen=True)
class PacketModel:
    """Converts the rates of a plan into packets. `scale`: bits on the wire for one bit of the fabric's rates.
    `host_rtt_s`: time that hosts and switches add to a round trip beyond the delays of the links.
    `min_rto_margin_s`: minimum time beyond the round trip after which a packet counts as lost; 0: that of the
    switches' target."""

    lanes: int
    scale: float = 1.0
    host_rtt_s: float = 0.002
    min_rto_margin_s: float = 0.0

    @property
    def frame_bits(self) -> int:
        """Bits of a packet as ports count them."""
        return 8 * (FRAME_OVERHEAD_BYTES + packet_bytes(self.lanes))

    @property
    def packet_bits(self) -> int:
        """Bits for which a packet occupies an Ethernet link."""
        return self.frame_bits + 8 * FRAMING_BYTES

    def bits_per_second(self, fabric: Fabric, rate: float) -> float:
        return rate * fabric.unit.bits_per_second * self.scale
