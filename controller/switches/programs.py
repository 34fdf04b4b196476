# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Finds the compiled program that a fabric needs, and limits a fabric to what the programs of its switches can do. The
manifest beside a program says that (p4src/manifest.py)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from netfold.controller.switches.devices import Device
from netfold.controller.switches.endpoint import Pipeline
from netfold.p4src.manifest import (
    COMPILED,
    P4INFO_SUFFIX,
    Form,
    ManifestError,
    Program,
    check_sources,
    own_programs,
    program_of,
)
from netfold.topologies.fabric import Fabric, FabricError, Switch


def program_for(switches: Sequence[Switch], lanes: int, *, form: Form = Form.V1MODEL) -> Pipeline:
    """The program of `lanes` whose nodes have room for the children that the file of the fabric gives these switches,
    with the fewest spare ones, and of `form` if there is one. Raises FabricError, which names the switch with the most
    children and the available programs, or a source that has changed since they were compiled."""
    try:
        check_sources()
    except ManifestError as error:
        raise FabricError(str(error)) from error
    children = _children_needed(switches)
    ordinary = {name: p for name, p in _programs_of(Form.V1MODEL).items() if p.lanes == lanes}
    own = {name: p for name, p in _programs_of(form).items() if p.lanes == lanes and p.children >= children}
    if not ordinary:
        known = {p.lanes for p in _programs_of(Form.V1MODEL).values()}
        raise FabricError(f"no program has {lanes} lanes; there are programs for {_joined(known)} lanes")
    fitting = {name: p.children for name, p in (ordinary | own).items() if p.children >= children}
    if not fitting:
        widest = next(s.name for s in switches if s.children == children)
        known = {p.children for p in ordinary.values()}
        raise FabricError(
            f"switch '{widest}' is said to take {children} children, and programs of {lanes} lanes take "
            f"{_joined(known)}; expected 'children' of at most {max(known)}{_elsewhere(max(known))}"
        )
    name = min(fitting, key=lambda name: (fitting[name], name not in own))
    return Pipeline(COMPILED / f"{name}{P4INFO_SUFFIX}", COMPILED / f"{name}.json")


def lanes_for(switches: Sequence[Switch], most: int) -> int:
    """The largest lane count of at most `most` with a program whose nodes have room for the children of these switches;
    `most` if there is none."""
    children = _children_needed(switches)
    known = _programs_of(Form.V1MODEL).values()
    return max((p.lanes for p in known if p.lanes <= most and p.children >= children), default=most)


def _children_needed(switches: Sequence[Switch]) -> int:
    return max((switch.children or 0 for switch in switches), default=0)


def _programs_of(form: Form) -> dict[str, Program]:
    return {name: program for name, program in own_programs().items() if program.form is form}


def _elsewhere(children: int) -> str:
    """A sentence about programs of other lanes that allow more children; empty if there are none."""
    wider: dict[int, int] = {}
    for program in _programs_of(Form.V1MODEL).values():
        if program.children > children:
            wider[program.lanes] = max(program.children, wider.get(program.lanes, 0))
    return "".join(f", or --lanes {lanes} for at most {most}" for lanes, most in sorted(wider.items()))


def _joined(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(numbers)))


def programs_of(fabric: Fabric, default: Pipeline, devices: Mapping[str, Device]) -> dict[str, Program]:
    """The program of every switch. Raises FabricError, which names the switch, if a manifest does not describe it."""
    found = {}
    for switch in fabric.switches:
        pipeline = devices.get(switch.name, Device()).pipeline or default
        found[switch.name] = read_program(pipeline.p4info, switch.name)
    return found


def read_program(p4info: Path, switch: str) -> Program:
    """The program of a P4Info file that `switch` runs. Raises FabricError."""
    try:
        return program_of(p4info)
    except ManifestError as error:
        raise FabricError(f"the program of switch '{switch}': {error}") from error


def check_lanes(programs: Mapping[str, Program], lanes: int) -> None:
    """Check that all switches run programs of the lanes that packets have: a tree has one lane count, and a program
    accepts no other one. Raises FabricError, which names the switch."""
    for switch, program in programs.items():
        if program.lanes != lanes:
            raise FabricError(
                f"switch '{switch}' runs a program of {program.lanes} lanes, and packets have {lanes}; expected a "
                f"program of {lanes} lanes, or --lanes {program.lanes} and such programs at all switches"
            )


def with_programs(fabric: Fabric, programs: Mapping[str, Program]) -> Fabric:
    """The fabric with the programs of its switches and the children that these take, or fewer if its file says so.
    Raises FabricError, which names the switch, if the file claims more than its program has."""
    switches = []
    for switch in fabric.switches:
        most = programs[switch.name].children
        if switch.children is not None and switch.children > most:
            raise FabricError(
                f"{fabric.name}: switch '{switch.name}' is said to take {switch.children} children, and its program "
                f"takes {most}; expected 'children' of at most {most}"
            )
        switches.append(replace(switch, children=switch.children or most, program=programs[switch.name]))
    return replace(fabric, switches=tuple(switches))
