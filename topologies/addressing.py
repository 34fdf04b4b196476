# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The addresses of hosts and switches, from the numbers that the fabric gives and address_assignment.py adds. All
components compute the same ones.

gateway        the last address but one of the rack's prefix: its switch
switch         P4Runtime port 9558 + its device id
MAC addresses  02:00 (locally administered) and the IPv4 address; a gateway has its switch's
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

from netfold.topologies.address_assignment import numbered
from netfold.topologies.address_faults import gateway_of
from netfold.topologies.fabric import Fabric, Host, Switch

FIRST_GRPC_PORT = 9559


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
    """The addresses of all hosts and switches. Raises FabricError if there are not enough."""
    full = numbered(fabric)
    switches = {s.name: _switch(s, i, first_grpc_port) for i, s in enumerate(full.switches)}
    hosts = {h.name: _host(full, h, switches[full.attachment(h.name)]) for h in full.hosts}
    return Addressing(hosts, switches)


def mac_of(ip: IPv4Address) -> str:
    return ":".join(f"{b:02x}" for b in b"\x02\x00" + ip.packed)


def _switch(switch: Switch, index: int, first_grpc_port: int) -> SwitchAddress:
    number, loopback, prefix = switch.device_id, switch.loopback, switch.prefix
    assert number is not None
    assert loopback is not None
    gateway = None if prefix is None else gateway_of(prefix)
    grpc_port = first_grpc_port + number - 1
    return SwitchAddress(switch.name, index, number, grpc_port, loopback, mac_of(loopback), prefix, gateway)


def _host(fabric: Fabric, host: Host, switch: SwitchAddress) -> HostAddress:
    assert host.address is not None
    assert switch.prefix is not None
    port = fabric.ports[switch.name][host.name]
    ip, prefix = host.address, switch.prefix
    gateway = switch.gateway_ip, switch.mac
    return HostAddress(host.name, ip, mac_of(ip), prefix, *gateway, switch.name, port)
