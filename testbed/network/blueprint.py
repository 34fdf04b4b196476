# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Names, rates and commands of a network, computed from its fabric without side effects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from netfold.testbed.network import kernel
from netfold.testbed.network.errors import NetworkError
from netfold.testbed.network.state import LinkState
from netfold.testbed.network.targets import Launch, Port
from netfold.topologies.addressing import Addressing
from netfold.topologies.fabric import Fabric, Link

CPU_PORT = 510
DEFAULT_MTU = 1500
"""Ethernet's."""
LONGEST_INTERFACE = 15
"""Characters of an interface's name, by Linux."""


@dataclass(frozen=True)
class Blueprint:
    """`name`: prefix of the interfaces; `scale`: factor from the fabric's rates to rates on the wire. `shapes_links`:
    the switches enforce rates, queues and delays, those of frames from hosts included. `bursts`: links carry bursts of
    packets whole. `alone`: no other network shares its network namespace."""

    fabric: Fabric
    addressing: Addressing
    name: str
    scale: float
    mtu: int
    gateways_known: bool
    shapes_links: bool
    bursts: bool = False
    alone: bool = False

    def rate_bps(self, a: str, b: str) -> int:
        """Rate of the link from `a` to `b`; to a parameter server at most its capacity."""
        rate = self.fabric.link(a, b).rate
        if self.fabric.is_host(b) and self.fabric.host(b).parameter_server:
            rate = self.fabric.ingress_capacity(b)
        return max(1, round(rate * self.fabric.unit.bits_per_second * self.scale))

    def links(self) -> tuple[LinkState, ...]:
        return tuple(self._link(x) for x in self.fabric.links)

    def veth_pairs(self, host_pids: Mapping[str, int]) -> list[kernel.VethPair]:
        """The veth pairs; `host_pids`: a process in each host's namespace."""
        return [self._veth_pair(x, host_pids) for x in self.links()]

    def host_setup(self, host: str) -> kernel.HostSetup:
        switch = self.fabric.attachment(host)
        delay_ms = 0.0 if self.shapes_links else self.fabric.link(host, switch).delay_ms
        rate = self.rate_bps(host, switch)
        address = self.addressing.hosts[host]
        return kernel.HostSetup(address, rate, delay_ms, self.mtu, self.gateways_known, self.bursts)

    def launch(self, switch: str, control_socket: Path, pcap_dir: Path | None) -> Launch:
        address = self.addressing.switches[switch]
        ports = tuple(self._port(switch, peer) for peer in self.fabric.ports[switch])
        return Launch(
            switch,
            address.device_id,
            address.grpc_address,
            ports,
            CPU_PORT,
            control_socket,
            pcap_dir,
            self.bursts,
            self.fabric.switch(switch).chip,
        )

    def shaping(self) -> Iterator[str]:
        """The tc commands for all switch ports."""
        for switch in self.fabric.switches:
            for peer in self.fabric.ports[switch.name]:
                p = self._port(switch.name, peer)
                yield kernel.shape(p.interface, p.rate_bps, p.queue, p.delay_ms, self.mtu)

    def interface(self, switch: str, port: int) -> str:
        """Return Mininet's name where that is free and fits, else one that no other network has."""
        mininets = f"{switch}-eth{port}"
        if self.alone and len(mininets) <= LONGEST_INTERFACE:
            return mininets
        return f"{self.name}{self.addressing.switches[switch].index + 1}-{port}"

    def _port(self, switch: str, peer: str) -> Port:
        number, link = self.fabric.ports[switch][peer], self.fabric.link(switch, peer)
        interface, rate = self.interface(switch, number), self.rate_bps(switch, peer)
        return Port(number, interface, peer, rate, link.queue, link.delay_ms)

    def _link(self, link: Link) -> LinkState:
        """End b is a switch; a host is end a."""
        a, b = (link.b, link.a) if self.fabric.is_host(link.b) else (link.a, link.b)
        ports = self.fabric.ports
        port_a, port_b = None if self.fabric.is_host(a) else ports[a][b], ports[b][a]
        inside_a = None if port_a is None else self.interface(a, port_a)
        return LinkState(a, b, inside_a, self.interface(b, port_b), port_a, port_b, link.delay_ms)

    def _veth_pair(self, link: LinkState, pids: Mapping[str, int]) -> kernel.VethPair:
        if link.interface_a is not None:
            return kernel.VethPair(link.interface_a, link.interface_b)
        mac = self.addressing.hosts[link.a].mac
        return kernel.VethPair(kernel.HOST_INTERFACE, link.interface_b, pids[link.a], mac)


def check_scale(fabric: Fabric, scale: float | None) -> float:
    """The scale, default 1. Raises NetworkError if it is not positive, or missing for a fabric without a unit."""
    if scale is None and fabric.unit.name == "none":
        raise NetworkError(f"fabric '{fabric.name}' has no unit: expected a scale, in Mbit/s")
    if scale is not None and not 0 < scale < float("inf"):
        raise NetworkError(f"scale {scale}: expected a number above 0")
    return 1.0 if scale is None else scale
