# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Writes the numbers of a fabric into the text of its file, and leaves all else there as it is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import yaml

from netfold.topologies.address_assignment import Numbers
from netfold.topologies.fabric import Fabric, FabricError, Switch
from netfold.topologies.spec import parse_fabric
from netfold.topologies.yaml_locations import parse_document


def pinned_text(text: str, source: str, full: Fabric) -> str:
    """The text of a file of switches, hosts and links with all numbers of `full`, which is its fabric. Raises
    FabricError for a file that lists no switches."""
    values = parse_document(text, source).value
    if not isinstance(values, dict) or not isinstance(values.get("switches"), dict):
        raise FabricError(f"{source}: lists no 'switches', so there is no place for their numbers")
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    places = dict(_places(root))
    edits: dict[int, str] = {}
    for place, added in _missing(values, full):
        node = places[place]
        at, inserted = _insertion(text, node, added)
        if at in edits:
            raise FabricError(f"{source}: '{'.'.join(place)}' is an alias (*NAME); write its values out")
        edits[at] = inserted
    for at in sorted(edits, reverse=True):
        text = text[:at] + edits[at] + text[at:]
    if not _gives(text, source, Numbers.of(full)):
        raise FabricError(f"{source}: its form does not take the numbers; give them by hand")
    return text


def _gives(text: str, source: str, numbers: Numbers) -> bool:
    """Whether the file alone has these numbers. Its text may be none of a fabric, as where a key is there as null."""
    try:
        return Numbers.of(parse_fabric(text, source)) == numbers
    except FabricError:
        return False


def _places(root: Any) -> Iterator[tuple[tuple[str, str], yaml.MappingNode]]:
    """The mapping of each switch and host."""
    for kind, elements in root.value:
        if kind.value in ("switches", "hosts"):
            for name, node in elements.value:
                yield (kind.value, name.value), node


def _missing(values: dict[Any, Any], full: Fabric) -> Iterator[tuple[tuple[str, str], dict[str, Any]]]:
    """The numbers of each switch and host that the file does not give."""
    for switch in full.switches:
        given = values["switches"][switch.name]
        if added := {key: value for key, value in _numbers(switch).items() if not given.get(key)}:
            yield ("switches", switch.name), added
    for host in full.hosts:
        if not values["hosts"][host.name].get("address"):
            yield ("hosts", host.name), {"address": str(host.address)}


def _numbers(switch: Switch) -> dict[str, Any]:
    prefix = {} if switch.prefix is None else {"prefix": str(switch.prefix)}
    ports = {"ports": dict(switch.ports)} if switch.ports else {}
    return {"loopback": str(switch.loopback), "device_id": switch.device_id, **prefix, **ports}


def _insertion(text: str, node: yaml.MappingNode, added: dict[str, Any]) -> tuple[int, str]:
    """Where entries are inserted into a mapping, and their text: JSON, which is YAML, too. A mapping starts with its
    anchor or tag where it has one."""
    key_text = json.dumps if node.flow_style else str
    entries = [f"{key_text(key)}: {json.dumps(value)}" for key, value in added.items()]
    if node.flow_style and not node.value:
        return node.end_mark.index - 1, ", ".join(entries)
    start = node.start_mark
    if node.flow_style or text[start.index] in "&!":
        start = node.value[0][0].start_mark
    if node.flow_style:
        return start.index, "".join(f"{entry}, " for entry in entries)
    indent = " " * start.column
    return start.index, "".join(f"{entry}\n{indent}" for entry in entries)
