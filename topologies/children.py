# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Compares the children that a fabric's file gives its switches with those that netfold's programs take."""

from __future__ import annotations

from netfold.p4src.manifest import most_children
from netfold.topologies.fabric import Fabric, Switch


def beyond_programs(fabric: Fabric) -> str:
    """A sentence if a switch is given more children than any program of its kind takes: planners obey the file, and no
    controller installs such a plan. Else empty."""
    for switch in fabric.switches:
        most = most_children(switch.chip)
        if switch.max_children > most:
            return (
                f"switch '{switch.name}' of {fabric.name} is said to take {switch.max_children} children, and programs "
                f"take at most {most}: no controller installs such a plan; expected 'children' of at most {most}"
            )
    return ""


def child_limit(switch: Switch) -> str:
    """A sentence about the most children of a node in this switch, and what lifts it."""
    most, own = most_children(switch.chip), switch.max_children
    where = f"switch {switch.name} takes {own} children, and a tree has as many there"
    if own >= most:
        return f"{where}: no program takes more"
    return f"{where}: 'children' in the fabric's file may be up to {most}"
