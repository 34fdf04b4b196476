# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Import of the `topology.json` of p4lang/tutorials: hosts, switches, and links `[end, end, latency, bandwidth]`; the
hosts' addresses and commands; program and entries of each switch (`runtime_json`).

A switch's end is `s1-p3` (port 3), latency is a text such as "5ms" or a number of ms, bandwidth is in Mbit/s. Switches
have the port numbers of the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Interface
from pathlib import Path
from typing import Any

from netfold.topologies.addressing import Addressing, HostAddress
from netfold.topologies.fabric import Fabric, FabricError, Host, Link, Switch
from netfold.topologies.faults import Place
from netfold.topologies.yaml_locations import Document

DEFAULT_RATE = 100.0
"""Mbit/s of a link without a bandwidth (unlimited in Mininet)."""

_END = re.compile(r"^(?P<switch>[A-Za-z0-9_.]+)-p(?P<port>[1-9][0-9]{0,2})$")
_LATENCY = re.compile(r"^(?P<number>[0-9]+(\.[0-9]+)?)(?P<unit>us|ms|s)?$")
_MS = {"us": 1e-3, "ms": 1.0, "s": 1e3, None: 1.0}

_MAC = re.compile(r"^([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}$")

_LISTS = ("table_entries", "multicast_group_entries", "clone_session_entries")


@dataclass(frozen=True)
class _PortedLink:
    link: Link
    ports: tuple[tuple[str, int], ...]
    """The switch ports of its ends."""


def is_tutorials_form(value: Any) -> bool:
    """Links as lists distinguish this form from netfold's."""
    links = value.get("links") if isinstance(value, dict) else None
    return isinstance(links, list) and bool(links) and all(isinstance(x, list) for x in links)


def tutorials_fabric(document: Document, name: str) -> Fabric:
    """The fabric of a tutorials file. Raises SpecError with the line of the error. The form has no capacities: switches
    aggregate the rate of all their links."""
    hosts = _names(document, "hosts")
    switches = _names(document, "switches")
    links_with_ports = [
        _ported_link(document, ("links", i), entry, hosts, switches)
        for i, entry in enumerate(document.value["links"])
    ]
    ports: dict[str, dict[str, int]] = {s: {} for s in switches}
    for ported in links_with_ports:
        link = ported.link
        for switch, port in ported.ports:
            ports[switch][link.b if switch == link.a else link.a] = port
    links = tuple(ported.link for ported in links_with_ports)
    carried = {s: sum(x.rate for x in links if s in (x.a, x.b)) for s in switches}
    try:
        return Fabric(
            name,
            tuple(Host(h) for h in hosts),
            tuple(Switch(s, capacity=carried[s], ports=tuple(ports[s].items())) for s in switches),
            links,
        )
    except FabricError as error:
        raise document.with_lines(error, lambda place: _place_in_file(links, place)) from None


def _place_in_file(links: Sequence[Link], place: Place) -> Place:
    """The place in the file of a place in the fabric: the port of a switch to a neighbor is at their link."""
    match place:
        case ("switches", switch, "ports", neighbor):
            return ("links", next(i for i, x in enumerate(links) if {x.a, x.b} == {switch, neighbor}))
    return place


def _names(document: Document, key: str) -> list[str]:
    value = document.value.get(key)
    if not isinstance(value, dict | list) or not value:
        raise document.error((key,), f"'{key}' must name the {key}, as in p4lang/tutorials' topology.json")
    return [str(v) for v in value]


def _ported_link(
    document: Document, place: Place, entry: Any, hosts: list[str], switches: list[str]
) -> _PortedLink:
    if not 2 <= len(entry) <= 4:
        raise document.error(
            place, f"a link is [end, end, latency, bandwidth]; this one has {len(entry)} members"
        )
    ends, ports = [], []
    for i in range(2):
        end = str(entry[i])
        match = _END.match(end)
        if end in hosts:
            ends.append(end)
        elif match and match["switch"] in switches:
            ends.append(match["switch"])
            ports.append((match["switch"], int(match["port"])))
        else:
            raise document.error(
                (*place, i), f"'{end}' is no host, and no switch port such as '{switches[0]}-p1'"
            )
    delay = _latency(document, (*place, 2), entry[2]) if len(entry) > 2 else 0.0
    rate = _bandwidth(document, (*place, 3), entry[3]) if len(entry) > 3 else DEFAULT_RATE
    return _PortedLink(Link(ends[0], ends[1], rate, delay_ms=delay), tuple(ports))


def _latency(document: Document, place: Place, value: Any) -> float:
    match = _LATENCY.match(str(value))
    if not match or isinstance(value, bool):
        raise document.error(place, f"latency '{value}' must be a number of ms, or a text such as '5ms'")
    return float(match["number"]) * _MS[match["unit"]]


def _bandwidth(document: Document, place: Place, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise document.error(place, f"bandwidth '{value}' must be a number of Mbit/s above 0")
    return float(value)


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
