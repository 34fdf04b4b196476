# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""How many children a node takes, which the program of its switch says: a bit of its bitmap for each (P4Info)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import finsy as fy
from finsy.p4schema import P4BitsType

from netfold.controller.switches.devices import Device
from netfold.controller.switches.endpoint import Pipeline
from netfold.topologies.fabric import Fabric, FabricError

_BITMAPS = "bitmaps"


@cache
def max_children(p4info: Path) -> int:
    """The width of a program's bitmap (bits). Raises FabricError if it has none."""
    for register in fy.P4Schema(p4info).registers:
        if register.alias.rsplit(".", 1)[-1] == _BITMAPS and isinstance(register.type_spec, P4BitsType):
            return register.type_spec.bitwidth
    raise FabricError(f"{p4info}: the program has no register '{_BITMAPS}'; expected a program of netfold")


def program_of(fabric: Fabric, default: Pipeline, devices: Mapping[str, Device]) -> dict[str, Path]:
    """The P4Info of every switch's program."""
    own = {s.name: devices.get(s.name, Device()).pipeline or default for s in fabric.switches}
    return {name: pipeline.p4info for name, pipeline in own.items()}


def limit_children(fabric: Fabric, p4infos: Mapping[str, Path]) -> Fabric:
    """The fabric whose switches take as many children as their programs, or fewer if its file says so. Raises
    FabricError, which names the switch, if the file claims more than its program takes."""
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
