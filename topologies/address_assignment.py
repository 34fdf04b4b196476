# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Assigns the numbers of hosts and switches: addresses, prefixes, loopbacks, device ids and ports.

A fabric's file may give them. The others are unused ones, in the fabric's order:

host           the next address in the prefix of its rack: 10.R.0.1, 10.R.0.2, ...
rack           10.R.0.0/16 of a switch with hosts (R = 1, 2, ...)
switch         loopback 10.255.0.1, 10.255.0.2, ...; P4Runtime device id 1, 2, ...
port           1, 2, ... in the order of the links

A name keeps its numbers in a later fabric if those known before are given. The numbers of a name that is gone are not
given to another name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address, IPv4Network
from itertools import count
from typing import TypeVar

from netfold.topologies.fabric import Fabric, FabricError
from netfold.topologies.ports import LAST_PORT

MAX_RACKS = 254
MAX_LOOPBACKS = 0xFFFE
_LOOPBACKS = IPv4Network("10.255.0.0/16")

Number = TypeVar("Number", int, IPv4Address, IPv4Network)


@dataclass(frozen=True)
class Numbers:
    """Numbers by name: of switches, of hosts by switch, of ports by switch and neighbor."""

    prefixes: Mapping[str, IPv4Network] = field(default_factory=dict)
    loopbacks: Mapping[str, IPv4Address] = field(default_factory=dict)
    device_ids: Mapping[str, int] = field(default_factory=dict)
    hosts: Mapping[str, Mapping[str, IPv4Address]] = field(default_factory=dict)
    ports: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, fabric: Fabric) -> Numbers:
        """The numbers that the fabric gives."""
        hosts: dict[str, dict[str, IPv4Address]] = {}
        for host in fabric.hosts:
            if host.address is not None:
                hosts.setdefault(fabric.attachment(host.name), {})[host.name] = host.address
        return cls(
            {s.name: s.prefix for s in fabric.switches if s.prefix is not None},
            {s.name: s.loopback for s in fabric.switches if s.loopback is not None},
            {s.name: s.device_id for s in fabric.switches if s.device_id is not None},
            hosts,
            {s.name: dict(s.ports) for s in fabric.switches if s.ports},
        )

    @classmethod
    def from_text(cls, text: str) -> Numbers:
        """Read what `text` has written."""
        found = json.loads(text)
        return cls(
            {name: IPv4Network(value) for name, value in found["prefixes"].items()},
            {name: IPv4Address(value) for name, value in found["loopbacks"].items()},
            found["device_ids"],
            {s: {h: IPv4Address(ip) for h, ip in hosts.items()} for s, hosts in found["hosts"].items()},
            found["ports"],
        )

    @property
    def text(self) -> str:
        return json.dumps(vars(self), default=str)

    def __or__(self, later: Numbers) -> Numbers:
        """These, and later ones, which count where both have a name."""
        return Numbers(
            {**self.prefixes, **later.prefixes},
            {**self.loopbacks, **later.loopbacks},
            {**self.device_ids, **later.device_ids},
            _joined(self.hosts, later.hosts),
            _joined(self.ports, later.ports),
        )


def numbered(fabric: Fabric, known: Numbers | None = None) -> Fabric:
    """The fabric with all numbers: those that it gives, then those `known` for its names, then unused ones. Raises
    FabricError if there are not enough, or if the known ones do not fit those that the fabric gives."""
    known, given = known or Numbers(), Numbers.of(fabric)
    names = [s.name for s in fabric.switches]
    racks: dict[str, list[str]] = {}
    for host in fabric.hosts:
        racks.setdefault(fabric.attachment(host.name), []).append(host.name)

    places = [name for name in names if name in racks]
    prefixes = _assign(places, given.prefixes, known.prefixes, _free_prefixes(fabric, places, given, known))
    loopbacks = _assign(names, given.loopbacks, known.loopbacks, _free_loopbacks(fabric, prefixes, known))
    device_ids = _assign(names, given.device_ids, known.device_ids, iter(count(1)))
    hosts: dict[str, IPv4Address] = {}
    for rack in places:
        hosts |= _addresses(fabric, rack, racks[rack], prefixes[rack], given, known)
    switches = tuple(
        replace(
            s,
            prefix=s.prefix or prefixes.get(s.name),
            loopback=loopbacks[s.name],
            device_id=device_ids[s.name],
            ports=s.ports or tuple(_ports(fabric, s.name, known).items()),
        )
        for s in fabric.switches
    )
    return replace(
        fabric, hosts=tuple(replace(h, address=hosts[h.name]) for h in fabric.hosts), switches=switches
    )


def _joined(
    first: Mapping[str, Mapping[str, Number]], later: Mapping[str, Mapping[str, Number]]
) -> dict[str, dict[str, Number]]:
    return {name: {**first.get(name, {}), **later.get(name, {})} for name in {**first, **later}}


def _assign(
    names: Iterable[str],
    given: Mapping[str, Number],
    known: Mapping[str, Number],
    unused: Iterator[Number],
) -> dict[str, Number]:
    """A number for each name. `unused`: candidates for names without one; those that any name has had are skipped."""
    names = list(names)
    chosen = {name: given[name] for name in names if name in given}
    taken = set(given.values())
    for name in names:
        if name not in chosen and name in known and known[name] not in taken:
            chosen[name] = known[name]
            taken.add(known[name])
    taken.update(known.values())
    return {
        name: chosen[name] if name in chosen else next(n for n in unused if n not in taken) for name in names
    }


def _free_prefixes(fabric: Fabric, racks: list[str], given: Numbers, known: Numbers) -> Iterator[IPv4Network]:
    used = [*given.prefixes.values(), *known.prefixes.values()]
    fixed = [*given.loopbacks.values(), *known.loopbacks.values()]
    for number in range(1, MAX_RACKS + 1):
        prefix = IPv4Network((f"10.{number}.0.0", 16))
        if not any(prefix.overlaps(other) for other in used) and not any(ip in prefix for ip in fixed):
            yield prefix
    raise FabricError(
        f"{fabric.name}: {len(racks)} switches have hosts; at most {MAX_RACKS} have addresses without a "
        "'prefix' of their own"
    )


def _free_loopbacks(
    fabric: Fabric, prefixes: Mapping[str, IPv4Network], known: Numbers
) -> Iterator[IPv4Address]:
    used = [p for p in (*prefixes.values(), *known.prefixes.values()) if p.overlaps(_LOOPBACKS)]
    for number in range(1, MAX_LOOPBACKS + 1):
        loopback = _LOOPBACKS[number]
        if not any(loopback in prefix for prefix in used):
            yield loopback
    raise FabricError(f"{fabric.name}: {_LOOPBACKS} has no loopback for all {len(fabric.switches)} switches")


def _addresses(
    fabric: Fabric, rack: str, hosts: list[str], prefix: IPv4Network, given: Numbers, known: Numbers
) -> dict[str, IPv4Address]:
    def unused() -> Iterator[IPv4Address]:
        for number in range(1, prefix.num_addresses - 2):
            yield prefix[number]
        raise FabricError(f"{fabric.name}: {len(hosts)} hosts on '{rack}'; {prefix} has not enough addresses")

    before = {name: ip for name, ip in known.hosts.get(rack, {}).items() if ip in prefix}
    return _assign(hosts, given.hosts.get(rack, {}), before, unused())


def _ports(fabric: Fabric, switch: str, known: Numbers) -> dict[str, int]:
    """Ports of all neighbors; none for a switch with more of them than ports, which exists in simulations alone."""
    neighbors = fabric.neighbors[switch]
    if len(neighbors) > LAST_PORT:
        return {}

    def unused() -> Iterator[int]:
        yield from range(1, LAST_PORT + 1)
        raise FabricError(
            f"{fabric.name}: '{switch}' has no unused port for a neighbor; give the 'ports' of all of them"
        )

    return _assign(neighbors, {}, known.ports.get(switch, {}), unused())
