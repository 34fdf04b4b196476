# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The contents of a `topology.json` of p4lang/tutorials besides the fabric: hosts' addresses and commands, and program
and entries of each switch (`runtime_json`)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Interface
from pathlib import Path
from typing import Any

from netfold.topologies.addressing import Addressing, HostAddress
from netfold.topologies.fabric import FabricError
from netfold.topologies.faults import Place
from netfold.topologies.yaml_locations import Document

_MAC = re.compile(r"^([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}$")
_LISTS = ("table_entries", "multicast_group_entries", "clone_session_entries")


@dataclass(frozen=True)
class ExerciseHost:
    """A host of the file; None: not given. `commands`: shell commands to run once the network is up."""

    interface: IPv4Interface | None = None
    mac: str | None = None
    commands: tuple[str, ...] = ()


@dataclass(frozen=True)
class Runtime:
    """A `runtime_json`: the compiled program of a switch (P4Info as text, BMv2's JSON) and its entries, in the
    tutorials' form."""

    file: Path
    p4info: Path
    program: Path
    table_entries: Sequence[Mapping[str, Any]] = ()
    multicast_group_entries: Sequence[Mapping[str, Any]] = ()
    clone_session_entries: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True)
class Exercise:
    hosts: Mapping[str, ExerciseHost]
    runtimes: Mapping[str, Runtime]
    """The runtime file of each switch that has one; the others wait for a controller."""

    def addressed(self, own: Addressing) -> Addressing:
        """The file's addresses where given, otherwise netfold's. A host with an address of the file has no gateway
        except by its commands."""
        return replace(own, hosts={name: self._address(host) for name, host in own.hosts.items()})

    def _address(self, own: HostAddress) -> HostAddress:
        given = self.hosts.get(own.name, ExerciseHost())
        changed = replace(own, mac=own.mac if given.mac is None else given.mac)
        if given.interface is None:
            return changed
        ip, prefix = given.interface.ip, given.interface.network
        return replace(changed, ip=ip, prefix=prefix, gateway_ip=None, gateway_mac=None)


def read_exercise(document: Document) -> Exercise:
    """Reads a file in the tutorials' form. Searches its paths in the working directory, like the tutorials, then
    beside and above the file. Raises SpecError, FabricError."""
    hosts, switches = (document.value.get(key) for key in ("hosts", "switches"))
    return Exercise(
        {name: _host(document, ("hosts", name), h) for name, h in _members(hosts)},
        {
            name: _runtime(document, ("switches", name, "runtime_json"), str(s["runtime_json"]))
            for name, s in _members(switches)
            if _checked(document, ("switches", name), s).get("runtime_json")
        },
    )


def _members(value: Any) -> list[tuple[str, Mapping[str, Any]]]:
    """Members of a mapping; a list has names only."""
    members = value.items() if isinstance(value, dict) else []
    return [(str(name), member if isinstance(member, dict) else {}) for name, member in members]


def _host(document: Document, place: Place, host: Mapping[str, Any]) -> ExerciseHost:
    ip, mac, commands = host.get("ip"), host.get("mac"), host.get("commands", [])
    try:
        interface = None if ip is None else IPv4Interface(str(ip))
    except ValueError:
        raise document.error(
            (*place, "ip"), f"'{ip}': expected an IPv4 address with prefix, for example 10.0.1.1/24"
        ) from None
    if mac is not None and not _MAC.match(str(mac)):
        raise document.error(
            (*place, "mac"), f"'{mac}': expected a MAC address, for example 08:00:00:00:01:11"
        )
    if not isinstance(commands, list) or not all(isinstance(c, str) for c in commands):
        raise document.error((*place, "commands"), "commands: expected a list of shell commands")
    return ExerciseHost(interface, None if mac is None else str(mac).lower(), tuple(commands))


def _checked(document: Document, place: Place, switch: Mapping[str, Any]) -> Mapping[str, Any]:
    if "cli_input" in switch and "runtime_json" not in switch:
        raise document.error(
            (*place, "cli_input"),
            "cli_input needs Thrift, netfold uses P4Runtime: expected the entries as runtime_json",
        )
    return switch


def _runtime(document: Document, place: Place, name: str) -> Runtime:
    beside = Path(document.file).parent
    for folder in (Path.cwd(), beside, beside.parent):
        if (folder / name).is_file():
            return _read_runtime(folder.resolve(), name)
    raise document.error(place, f"no file '{name}' here, beside or above {document.file}")


def _read_runtime(folder: Path, name: str) -> Runtime:
    """Its paths are relative to `folder`, like its own."""
    file = folder / name
    try:
        value = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise FabricError(f"{file}: {error}") from error
    if not isinstance(value, dict) or not all(isinstance(value.get(k), str) for k in ("p4info", "bmv2_json")):
        raise FabricError(f"{file}: expected 'p4info' and 'bmv2_json', the files of a compiled program")
    entries = {key: value.get(key, []) for key in _LISTS}
    for key, given in entries.items():
        if not isinstance(given, list) or not all(isinstance(e, dict) for e in given):
            raise FabricError(f"{file}: '{key}': expected a list of entries")
    paths = [folder / value["p4info"], folder / value["bmv2_json"]]
    for path in paths:
        if not path.is_file():
            raise FabricError(f"{file}: {path} is missing: compile the P4 program first (`make build`)")
    return Runtime(file, *paths, **entries)
