# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A fabric as an emulated network: each host a namespace, each switch a process, each link a veth pair.

with EmulatedNetwork(load_fabric("leaf-spine-2x2")) as net:
    net.run("h1", ["ping", "-c1", net.addressing.hosts["h2"].ip], timeout_s=5)
"""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from netfold.protocol.runtime import DEFAULT_NAME, default_name
from netfold.testbed.network import kernel, offload_probe
from netfold.testbed.network.blueprint import DEFAULT_MTU, Blueprint, check_scale
from netfold.testbed.network.errors import (
    HostCommandError,
    MissingToolError,
    UnknownElementError,
)
from netfold.testbed.network.handles import HostHandle
from netfold.testbed.network.isolation import is_isolated
from netfold.testbed.network.network import READY_TIMEOUT_S, Network
from netfold.testbed.network.program import program_switch
from netfold.testbed.network.sudo_user import Recordings, check_root
from netfold.testbed.network.targets import Target, choose_target
from netfold.testbed.network.tools import ADMINISTRATOR, check_tools
from netfold.topologies.addressing import FIRST_GRPC_PORT, addresses
from netfold.topologies.fabric import Fabric
from netfold.topologies.tutorials import Exercise

log = logging.getLogger(__name__)

COMMAND_TIMEOUT_S = 30.0
"""Timeout of a host command of an exercise."""

_TOOLS = ("ip", "tc", "ethtool", "mnexec", "setpriv")


class EmulatedNetwork(Network):
    """An emulated network of a fabric; a context manager, or `start` and `close`.

    target           "softswitch", "bmv2", "auto" (softswitch if it can run), or a Target
    scale            factor from the fabric's rates to rates on the wire: 0.01 makes 30 Mbit/s of 3 Gbit/s. Required, in
                     Mbit/s, for a fabric without a unit
    name             1 to 6 lower-case letters, default $NETFOLD_NAME or nf; networks of different
                     names and ports coexist in one network namespace
    first_grpc_port  P4Runtime port of the first switch, on loopback; the others follow
    arp              "static": hosts have an ARP entry of their gateway; "fabric": switches must answer ARP
    mtu              of all interfaces
    pcap_dir         folder of the switches' captures
    exercise         of p4lang/tutorials: addresses, host commands, programs and entries
    """

    def __init__(
        self,
        fabric: Fabric,
        *,
        target: str | Target = "auto",
        scale: float | None = None,
        name: str | None = None,
        first_grpc_port: int = FIRST_GRPC_PORT,
        arp: Literal["static", "fabric"] = "static",
        mtu: int = DEFAULT_MTU,
        pcap_dir: Path | None = None,
        exercise: Exercise | None = None,
        ready_timeout_s: float = READY_TIMEOUT_S,
    ) -> None:
        target = choose_target(target) if isinstance(target, str) else target
        own = addresses(fabric, first_grpc_port)
        addressing = own if exercise is None else exercise.addressed(own)
        scale, name = check_scale(fabric, scale), default_name() if name is None else name
        super().__init__(
            Blueprint(
                fabric,
                addressing,
                name,
                scale,
                mtu,
                gateways_known=arp == "static",
                shapes_links=target.shapes_links,
                alone=name == DEFAULT_NAME and is_isolated(),
            ),
            target,
            ready_timeout_s,
        )
        self.exercise = exercise
        self.mininet: Any = None
        self._recordings = None if pcap_dir is None else self._captures_in(pcap_dir.resolve())

    # ---- use ----

    def interface(self, switch: str, neighbor: str) -> str:
        """The kernel interface of the switch's port to a neighbor."""
        interfaces = self.switch(switch).interfaces
        if neighbor not in interfaces:
            raise UnknownElementError(f"neighbor of '{switch}'", neighbor, list(interfaces))
        return interfaces[neighbor]

    def set_link(self, link: str, up: bool) -> None:
        kernel.set_link(self.link(link).root_interface, up)

    def link_bytes(self) -> dict[tuple[str, str], int]:
        """Read the kernel's byte counters of the switches' interfaces."""
        total: dict[tuple[str, str], int] = {}
        counts = kernel.byte_counts()
        for name, switch in self.switches.items():
            for neighbor, interface in switch.interfaces.items():
                received, total[name, neighbor] = counts[interface]
                if self.fabric.is_host(neighbor):
                    total[neighbor, name] = received
        return total

    def prompt(self) -> None:
        """Run Mininet's prompt on the terminal."""
        from netfold.testbed.network.mininet_nodes import prompt  # noqa: PLC0415 (as in `_new_mininet`)

        prompt(self.mininet)

    # ---- building ----

    def _check(self) -> None:
        check_root()
        check_tools(_TOOLS)
        if self._recordings is not None:
            self._recordings.prepare()

    def _take_down(self) -> None:
        if self.mininet is not None:
            self.mininet.stop()

    def _release(self) -> None:
        if self._recordings is not None:
            self._recordings.hand_over()

    def _build(self) -> None:
        self.mininet = _new_mininet()
        pids = self._add_hosts()
        self._directory.write(self.state())
        self.blueprint = replace(self.blueprint, bursts=self._carries_bursts())
        kernel.create_veth_pairs(self.blueprint.veth_pairs(pids), self.blueprint.mtu)
        self._add_switches()
        self._add_links()
        kernel.set_up_hosts({pids[h.name]: self.blueprint.host_setup(h.name) for h in self.fabric.hosts})
        if not self.target.shapes_links:
            kernel.shape_ports(self.blueprint.shaping())
        self.mininet.built = True
        self.mininet.start()
        self._wait_ready()
        if self.exercise is not None:
            self._prepare(self.exercise)

    def _carries_bursts(self) -> bool:
        """Whether links carry bursts of packets whole. Those of an exercise do not: its hosts' programs read frames."""
        if not self.target.takes_bursts or self.exercise is not None:
            return False
        reason = offload_probe.refusal(self.name)
        if reason is not None:
            log.warning("links carry packets one by one, with offloads off: %s", reason)
        return reason is None

    def _prepare(self, exercise: Exercise) -> None:
        """Run the host commands, then configure the switches, in the order of the tutorials' runner."""
        for name, host in exercise.hosts.items():
            for command in host.commands:
                words = ["sh", "-c", f'PATH="$PATH:{ADMINISTRATOR}"; {command}']
                done = self.hosts[name].run(words, COMMAND_TIMEOUT_S)
                if done.returncode != 0 and "File exists" not in done.stderr:  # the route exists
                    raise HostCommandError(name, command, done.stderr)
        for name, runtime in exercise.runtimes.items():
            switch = self.switches[name]
            program_switch(name, switch.grpc_address, switch.device_id, runtime)

    def _add_hosts(self) -> dict[str, int]:
        for host in self.fabric.hosts:
            address = self.addressing.hosts[host.name]
            node = self.mininet.addHost(host.name, ip=f"{address.ip}/32", mac=address.mac, run=self._run)
            self.hosts[host.name] = HostHandle(host.name, node.pid, self._spawner)
        return {name: handle.pid for name, handle in self.hosts.items()}

    def _add_switches(self) -> None:
        folder = None if self._recordings is None else self._recordings.folder
        for switch in self.fabric.switches:
            launch = self.blueprint.launch(switch.name, self._directory.socket(switch.name), folder)
            process = self._add_switch(launch, {p.peer: p.interface for p in launch.ports})
            self.mininet.addSwitch(switch.name, run=self._run, process=process)

    def _add_links(self) -> None:
        """Register the links with Mininet, for its commands."""
        for link in self.blueprint.links():
            self.mininet.addLink(
                link.a,
                link.b,
                port1=self.fabric.ports[link.a][link.b],
                port2=self.fabric.ports[link.b][link.a],
                intfName1=link.interface_a or kernel.HOST_INTERFACE,
                intfName2=link.interface_b,
                addr1=self.addressing.hosts[link.a].mac if self.fabric.is_host(link.a) else None,
                addr2=None,
            )
        for name, address in self.addressing.hosts.items():
            self.mininet[name].defaultIntf().ip = str(address.ip)  # for Mininet's `h1 ping h2`

    def _captures_in(self, folder: Path) -> Recordings:
        """All targets name a capture by interface and direction."""
        interfaces = [
            i for x in self.blueprint.links() for i in (x.interface_a, x.interface_b) if i is not None
        ]
        return Recordings(folder, [f"{i}_{way}.pcap" for i in interfaces for way in ("in", "out")])


def _new_mininet() -> Any:
    try:
        from netfold.testbed.network.mininet_nodes import new_mininet  # noqa: PLC0415 (Debian's package, not pip's)
    except ImportError as error:
        raise MissingToolError(f"Mininet's Python module ({error})", "mininet") from error
    return new_mininet()
