# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Reads the limits of the program of a switch from its P4Info: children of a node (a bit of a bitmap for each) and
lanes of a packet (32 bits of registers for each)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from finsy.p4schema import P4BitsType, P4Register

from netfold.controller.switches.devices import Device
from netfold.controller.switches.endpoint import Pipeline
from netfold.controller.switches.p4info import read_schema
from netfold.topologies.fabric import Fabric, FabricError

_BITMAP = re.compile(r"bitmaps(_low|_high)?")
_LANES = re.compile(r"lanes?_[0-9a-f]+")
"""A register of one lane (`lane_ff`), or of a word of lanes (`lanes_3`)."""


@cache
def max_children(p4info: Path) -> int:
    """The width of a program's bitmap (bits), which is two registers on a chip. Raises FabricError if it has none."""
    if most := _bits(p4info, _BITMAP):
        return most
    raise FabricError(f"{p4info}: the program has no register 'bitmaps'; expected a program of netfold")


@cache
def lanes_of(p4info: Path) -> int:
    """The lanes of a program's packets."""
    return _bits(p4info, _LANES) // 32


def _bits(p4info: Path, names: re.Pattern[str]) -> int:
    """Count the bits of a slot in the registers with these names."""
    return sum(
        register.type_spec.bitwidth
        for register in read_schema(p4info).registers
        if names.fullmatch(_name(register)) and isinstance(register.type_spec, P4BitsType)
    )


def _name(register: P4Register) -> str:
    return register.alias.rsplit(".", 1)[-1]


def check_lanes(p4infos: Mapping[str, Path], lanes: int) -> None:
    """Check that all switches run programs of the lanes that packets have: a tree has one lane count, and a program
    accepts no other one. Raises FabricError, which names the switch."""
    for switch, p4info in p4infos.items():
        if (own := lanes_of(p4info)) != lanes:
            raise FabricError(
                f"switch '{switch}' runs a program of {own} lanes ({p4info.name}), and packets have {lanes}; expected "
                f"a program of {lanes} lanes, or --lanes {own} and such programs at all switches"
            )


def program_of(fabric: Fabric, default: Pipeline, devices: Mapping[str, Device]) -> dict[str, Path]:
    """The P4Info of every switch's program."""
    own = {s.name: devices.get(s.name, Device()).pipeline or default for s in fabric.switches}
    return {name: pipeline.p4info for name, pipeline in own.items()}


def limit_children(fabric: Fabric, p4infos: Mapping[str, Path]) -> Fabric:
    """The fabric with the maximum children of switches limited to those of their programs, or fewer if its file says
    so. Raises FabricError, which names the switch, if the file claims more than its program has."""
    switches = []
    for switch in fabric.switches:
        most = max_children(p4infos[switch.name])
        if switch.children is not None and switch.children > most:
            raise FabricError(
                f"{fabric.name}: switch '{switch.name}' is said to take {switch.children} children, and its program "
                f"({p4infos[switch.name].name}) takes {most}; expected 'children' of at most {most}"
            )
        switches.append(replace(switch, children=switch.children or most))
    return replace(fabric, switches=tuple(switches))
