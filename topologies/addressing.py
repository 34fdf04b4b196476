# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Addresses derived from positions in the fabric: all components compute the same ones, so none are stored.

host           10.R.x.y in the /16 of its rack R (1, 2, ...: the switches with hosts, in the fabric's order);
               host n of the rack (1, 2, ...) is x = n div 256, y = n mod 256
gateway        10.R.255.254, the rack's switch
switch i       loopback 10.255.x.y with x.y = i + 1; P4Runtime device id i + 1, port 9559 + i
MAC addresses  02:00 (locally administered) and the IPv4 address; a gateway has its switch's
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

from netfold.topologies.fabric import Fabric, FabricError

FIRST_GRPC_PORT = 9559
MAX_RACKS = 254
MAX_HOSTS_OF_RACK = 0xFF00
_GATEWAY = 0xFFFE
_LOOPBACKS = int(IPv4Address("10.255.0.0"))


@dataclass(frozen=True)
class HostAddress:
    """A host on `port` of `switch`. `prefix`: its subnet, that of the rack with a gateway; otherwise the addresses it
    reaches directly."""

    name: str
    ip: IPv4Address
    mac: str
    prefix: IPv4Network
    gateway_ip: IPv4Address | None
    gateway_mac: str | None
    switch: str
    port: int


@dataclass(frozen=True)
class SwitchAddress:
    """A switch; `prefix` and `gateway_ip` only with attached hosts. `mac`: destination MAC of packets to be routed."""

    name: str
    index: int
    device_id: int
    grpc_port: int
    loopback: IPv4Address
    mac: str
    prefix: IPv4Network | None
    gateway_ip: IPv4Address | None

    @property
    def grpc_address(self) -> str:
        return f"127.0.0.1:{self.grpc_port}"


@dataclass(frozen=True)
class Addressing:
    hosts: Mapping[str, HostAddress]
    switches: Mapping[str, SwitchAddress]

    def ip(self, name: str) -> IPv4Address:
        """The address of a tree's root: of a host its own, of a switch its loopback."""
        return self.hosts[name].ip if name in self.hosts else self.switches[name].loopback


def addresses(fabric: Fabric, first_grpc_port: int = FIRST_GRPC_PORT) -> Addressing:
    """The addresses of all hosts and switches. Raises FabricError if the fabric is too large for 10.0.0.0/8."""
    members: dict[str, list[str]] = {s.name: [] for s in fabric.switches}
    for host in fabric.hosts:
        members[fabric.attachment(host.name)].append(host.name)
    racks = [s.name for s in fabric.switches if members[s.name]]
    _check_sizes(fabric, racks, members)

    prefixes = {name: IPv4Network((f"10.{r}.0.0", 16)) for r, name in enumerate(racks, 1)}
    switches = {s.name: _switch(s.name, i, prefixes, first_grpc_port) for i, s in enumerate(fabric.switches)}
    hosts = {
        name: _host(fabric, name, n, switches[rack])
        for rack in racks
        for n, name in enumerate(members[rack], 1)
    }
    return Addressing(hosts, switches)


def mac_of(ip: IPv4Address) -> str:
    return ":".join(f"{b:02x}" for b in b"\x02\x00" + ip.packed)


def _switch(
    name: str, index: int, prefixes: Mapping[str, IPv4Network], first_grpc_port: int
) -> SwitchAddress:
    loopback = IPv4Address(_LOOPBACKS + index + 1)
    prefix = prefixes.get(name)
    gateway = None if prefix is None else prefix[_GATEWAY]
    return SwitchAddress(
        name, index, index + 1, first_grpc_port + index, loopback, mac_of(loopback), prefix, gateway
    )


def _host(fabric: Fabric, name: str, number: int, switch: SwitchAddress) -> HostAddress:
    assert switch.prefix is not None
    assert switch.gateway_ip is not None
    ip = switch.prefix[number]
    port = fabric.ports[switch.name][name]
    return HostAddress(name, ip, mac_of(ip), switch.prefix, switch.gateway_ip, switch.mac, switch.name, port)


def _check_sizes(fabric: Fabric, racks: list[str], members: Mapping[str, list[str]]) -> None:
    if len(racks) > MAX_RACKS:
        raise FabricError(
            f"{fabric.name}: {len(racks)} switches have hosts; at most {MAX_RACKS} have addresses"
        )
    for rack in racks:
        if len(members[rack]) > MAX_HOSTS_OF_RACK:
            raise FabricError(
                f"{fabric.name}: {len(members[rack])} hosts on '{rack}'; "
                f"at most {MAX_HOSTS_OF_RACK} have addresses"
            )
