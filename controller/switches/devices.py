# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Describes the differences between switches: address, and differences of their target from v1model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from netfold.controller.switches.endpoint import Pipeline, Tls
from netfold.controller.switches.tables import CPU_PORT
from netfold.p4src.manifest import most_lanes
from netfold.topologies.fabric import Fabric
from netfold.topologies.ports import Chip

CELL_BYTES = {Chip.TOFINO: 80, Chip.TOFINO2: 176}
"""Bytes of the unit of the queue depth of a traffic manager."""

TOFINO_CPU_PORTS = {Chip.TOFINO: 192, Chip.TOFINO2: 0}
"""PCIe port for which programs are compiled by default (p4src/tna/arch.p4); a Tofino with four pipes has 320."""

V1MODEL_LANES = 256
"""Lanes that fit into Ethernet's ordinary MTU of 1,500 bytes."""
_HEADERS_BYTES = 14 + 20 + 8 + 16
_CHECK_SEQUENCE_BYTES = 4


class SwitchTarget(StrEnum):
    """Target of the program. softswitch and BMv2 are the same for the controller."""

    V1MODEL = "v1model"
    TOFINO = "tofino"


class TofinoServer(StrEnum):
    """P4Runtime server of a Tofino: Stratum, or the drivers (`bf_switchd --p4rt-server`)."""

    STRATUM = "stratum"
    DRIVERS = "drivers"


@dataclass(frozen=True)
class Device:
    """A switch. None means the default of its place in the fabric, or that of all switches.

    server        P4Runtime server of the target tofino
    cpu_port      port of the controller in the program
    packet_cells  queue depth of a full packet, in the queue's unit
    tls           None: plain text
    """

    target: SwitchTarget = SwitchTarget.V1MODEL
    address: str | None = None
    device_id: int | None = None
    pipeline: Pipeline | None = None
    cpu_port: int = CPU_PORT
    packet_cells: int = 1
    tls: Tls | None = None
    server: TofinoServer = TofinoServer.STRATUM

    @property
    def one_shot(self) -> bool:
        """Whether ECMP sets are written with their route (P4Runtime spec 9.2.3). Stratum on Tofino needs members and
        groups."""
        return self.target is SwitchTarget.V1MODEL or self.server is TofinoServer.DRIVERS

    @property
    def full_width(self) -> bool:
        """Whether numbers are written with leading zeros (server_forms.py)."""
        return self.target is SwitchTarget.TOFINO and self.server is TofinoServer.DRIVERS


def best_lanes(fabric: Fabric, devices: Mapping[str, Device]) -> int:
    """The largest lane count for which every switch has a program (README of p4src), because it has the fewest headers
    per gradient."""
    known = (devices.get(s.name, Device()) for s in fabric.switches)
    pairs = zip(fabric.switches, known, strict=True)
    return min(
        V1MODEL_LANES if d.target is SwitchTarget.V1MODEL or s.chip is None else most_lanes(s.chip)
        for s, d in pairs
    )


def packet_cells(chip: Chip, lanes: int) -> int:
    """Cells of a packet in a traffic manager's buffer."""
    return math.ceil((_HEADERS_BYTES + 4 * lanes + _CHECK_SEQUENCE_BYTES) / CELL_BYTES[chip])


def programs(fabric: Fabric, devices: Mapping[str, Device]) -> list[str]:
    """The switches that are software, with one pipe, independently of the chip that the fabric gives them."""
    names = (s.name for s in fabric.switches)
    return [n for n in names if devices.get(n, Device()).target is SwitchTarget.V1MODEL]
