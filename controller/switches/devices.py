# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What is particular to one switch: how it is reached, and what its target does otherwise than v1model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from netfold.controller.switches.admission_table import CPU_PORT
from netfold.controller.switches.endpoint import Pipeline, Tls
from netfold.topologies.fabric import Fabric
from netfold.topologies.ports import Chip

CELL_BYTES = {Chip.TOFINO: 80, Chip.TOFINO2: 176}
"""What a traffic manager counts its queues in."""

TOFINO_CPU_PORTS = {Chip.TOFINO: 192, Chip.TOFINO2: 0}
"""The PCIe port that programs are compiled for unless told otherwise (p4src/tna/arch.p4); a Tofino with four
pipes has 320."""

V1MODEL_LANES = 256
CHIP_LANES = {Chip.TOFINO: 32, Chip.TOFINO2: 64}
"""What fits into the stages of a pipe."""

_HEADERS_BYTES = 14 + 20 + 8 + 16
_CHECK_SEQUENCE_BYTES = 4


class SwitchTarget(StrEnum):
    """What runs the program: softswitch and BMv2 look alike from here."""

    V1MODEL = "v1model"
    TOFINO = "tofino"


class TofinoServer(StrEnum):
    """Who speaks P4Runtime for a Tofino: Stratum, or the drivers themselves (`bf_switchd --p4rt-server`)."""

    STRATUM = "stratum"
    DRIVERS = "drivers"


@dataclass(frozen=True)
class Device:
    """A switch. What is None follows from its place in the fabric, or is the same for all.

    server        counts for the target tofino
    cpu_port      the port that the program takes for the controller's
    packet_cells  what a full packet takes of a queue, in the unit of the queue's depth
    tls           how its server is trusted; None: it is spoken to in the clear
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
        """ECMP sets are written with their route (P4Runtime spec 9.2.3); Stratum on Tofino wants members and
        groups."""
        return self.target is SwitchTarget.V1MODEL or self.server is TofinoServer.DRIVERS

    @property
    def full_width(self) -> bool:
        """Numbers bear the leading zeros of their field (widths.py)."""
        return self.target is SwitchTarget.TOFINO and self.server is TofinoServer.DRIVERS


def best_lanes(fabric: Fabric, devices: Mapping[str, Device]) -> int:
    """The most lanes that every switch has a program for (README of p4src): the fewest headers for each gradient."""
    known = (devices.get(s.name, Device()) for s in fabric.switches)
    pairs = zip(fabric.switches, known, strict=True)
    return min(
        V1MODEL_LANES if d.target is SwitchTarget.V1MODEL or s.chip is None else CHIP_LANES[s.chip]
        for s, d in pairs
    )


def packet_cells(chip: Chip, lanes: int) -> int:
    """Cells of a traffic manager's buffer that a packet takes."""
    return math.ceil((_HEADERS_BYTES + 4 * lanes + _CHECK_SEQUENCE_BYTES) / CELL_BYTES[chip])


def programs(fabric: Fabric, devices: Mapping[str, Device]) -> list[str]:
    """The switches that are programs, which have one pipe, whatever chip the fabric gives them."""
    names = (s.name for s in fabric.switches)
    return [n for n in names if devices.get(n, Device()).target is SwitchTarget.V1MODEL]
