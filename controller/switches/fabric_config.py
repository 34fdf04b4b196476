# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Holds the configuration that all switches of a deployment share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from netfold.controller.switches.devices import V1MODEL_LANES, Device
from netfold.protocol.congestion import MARK_FRACTION
from netfold.protocol.wire import FRAME_OVERHEAD_BYTES, packet_bytes
from netfold.topologies.addressing import Addressing
from netfold.topologies.fabric import Fabric

_V1MODEL = Device()


@dataclass(frozen=True)
class FabricConfig:
    """Configuration common to all switches.

    management_tree  tree number of management packets, above those of jobs; each store has its own, so that its entries
                     identify the switches that this store's controllers wrote
    mark_fraction    fraction of a port's queue from which packets get an ECN mark
    packet_bits      bits of a full packet, for links whose rates are those of the fabric's file
    devices          switches that differ from v1model switches, by name
    """

    fabric: Fabric
    addresses: Addressing
    management_tree: int
    mark_fraction: float = MARK_FRACTION
    devices: Mapping[str, Device] = field(default_factory=dict)
    packet_bits: float = 8.0 * (FRAME_OVERHEAD_BYTES + packet_bytes(V1MODEL_LANES))

    def device(self, switch: str) -> Device:
        return self.devices.get(switch, _V1MODEL)
