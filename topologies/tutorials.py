# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Import of the `topology.json` of p4lang/tutorials: hosts, switches, and links `[end, end, latency,
bandwidth]`.

A switch's end is `s1-p3` (port 3), latency is a text such as "5ms" or a number of ms, bandwidth is in
Mbit/s. Switches have the port numbers of the file. `exercise` reads addresses, host commands and table entries.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from netfold.topologies.fabric import Fabric, FabricError, Host, Link, Switch
from netfold.topologies.faults import Place
from netfold.topologies.yaml_locations import Document

DEFAULT_RATE = 100.0
"""Mbit/s of a link without a bandwidth (unlimited in Mininet)."""

_END = re.compile(r"^(?P<switch>[A-Za-z0-9_.]+)-p(?P<port>[1-9][0-9]{0,2})$")
_LATENCY = re.compile(r"^(?P<number>[0-9]+(\.[0-9]+)?)(?P<unit>us|ms|s)?$")
_MS = {"us": 1e-3, "ms": 1.0, "s": 1e3, None: 1.0}


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
