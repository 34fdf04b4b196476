# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A fabric without namespaces, interfaces and rights: each switch a softswitch, each link a pair of Unix datagram
sockets, which the processes at its ends inherit.

    with UserlandNetwork(load_fabric("leaf-spine-2x2")) as net:
        net.hosts["h1"].popen(["netfold", "worker", "--job", "digits"])

Workers and parameter servers make their frames themselves (traffic/packets/host_link.py); rates, queues and ECN marks
are those of the switches' ports, and of the link at a host. Other programs have no network: no TCP, no ping, no RoCE.
P4Runtime is served at Unix sockets of the run directory, which is this user's alone.
"""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from netfold.protocol.environment import Variable
from netfold.protocol.runtime import default_name
from netfold.testbed.network.blueprint import DEFAULT_MTU, Blueprint, check_scale
from netfold.testbed.network.errors import NetworkError, NoNamespacesError
from netfold.testbed.network.faults import request
from netfold.testbed.network.handles import HostHandle
from netfold.testbed.network.network import READY_TIMEOUT_S, Network
from netfold.testbed.network.spawner import Spawner
from netfold.testbed.network.targets import Launch, Softswitch, Target, choose_target
from netfold.testbed.network.tools import check_tools
from netfold.topologies.addressing import addresses
from netfold.topologies.fabric import Fabric
from netfold.traffic.packets.host_link import HostLink

MISSING = "TCP (the ring, Gloo), RoCE and programs other than netfold's have no network in it"
"""Beside a network of namespaces."""

_PATH_MAX = 107
"""Bytes of the path of a Unix socket."""


class LinkedHost(HostHandle):
    """A host: processes that inherit its end of the link, one at a time."""

    def __init__(self, name: str, link: HostLink, spawner: Spawner) -> None:
        super().__init__(name, os.getpid(), spawner)
        self.link = link

    def popen(self, command: Sequence[object], **options: Any) -> subprocess.Popen[Any]:
        own = {**self.link.environment(), Variable.HOST: self.name}
        environment = {**(options.pop("env", None) or os.environ), **self._spawner.environment, **own}
        return self._spawner.popen(command, env=environment, pass_fds=(self.link.descriptor,), **options)


class UserlandNetwork(Network):
    """A network of a fabric in processes alone; see `EmulatedNetwork` for the parameters."""

    def __init__(
        self,
        fabric: Fabric,
        *,
        target: str | Target = "softswitch",
        scale: float | None = None,
        name: str | None = None,
        ready_timeout_s: float = READY_TIMEOUT_S,
    ) -> None:
        chosen = choose_target(target) if isinstance(target, str) else target
        if not isinstance(chosen, Softswitch):
            raise NetworkError(
                f"target {chosen.name} needs network interfaces: --network userland has softswitch only"
            )
        scale, name = check_scale(fabric, scale), default_name() if name is None else name
        super().__init__(
            Blueprint(fabric, addresses(fabric), name, scale, DEFAULT_MTU, True, chosen.shapes_links),
            chosen,
            ready_timeout_s,
        )
        self._ends: dict[tuple[str, str], socket.socket] = {}

    def set_link(self, link: str, up: bool) -> None:
        raise NoNamespacesError(self.name)

    def link_bytes(self) -> dict[tuple[str, str], int]:
        """Read the switches' byte counters of their ports."""
        total: dict[tuple[str, str], int] = {}
        for name, switch in self.switches.items():
            [found] = request(switch.control_socket, [{"op": "ports"}])
            ports = {p["port"]: p["link"] for p in found}
            for neighbor, number in self.fabric.ports[name].items():
                total[name, neighbor] = ports[number]["tx_bytes"]
                if self.fabric.is_host(neighbor):
                    total[neighbor, name] = ports[number]["rx_bytes"]
        return total

    def _check(self) -> None:
        check_tools(["setpriv"])
        longest = max(
            (self._p4runtime_socket(s.name) for s in self.fabric.switches), key=lambda p: len(str(p))
        )
        if len(os.fsencode(longest)) > _PATH_MAX:
            raise NetworkError(
                f"{longest} is too long for a Unix socket: set NETFOLD_RUN_DIR to a shorter folder"
            )

    def _build(self) -> None:
        _make_private(self._directory.path)
        for link in self.fabric.links:
            pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
            self._ends[link.a, link.b], self._ends[link.b, link.a] = pair
        for host in self.fabric.hosts:
            self.hosts[host.name] = LinkedHost(host.name, self._host_link(host.name), self._spawner)
        processes = [
            self._add_switch(
                self._launch(s.name), {peer: f"socket{n}" for peer, n in self.fabric.ports[s.name].items()}
            )
            for s in self.fabric.switches
        ]
        for process in processes:
            process.start()
        self._wait_ready()

    def _take_down(self) -> None:
        for end in self._ends.values():
            end.close()
        self._ends.clear()

    def _release(self) -> None:
        pass

    def _host_link(self, host: str) -> HostLink:
        address, switch = self.addressing.hosts[host], self.fabric.attachment(host)
        assert address.gateway_mac is not None
        descriptor, rate = self._ends[host, switch].fileno(), self.rate_bps(host, switch)
        return HostLink(descriptor, str(address.ip), address.mac, address.gateway_mac, rate)

    def _launch(self, switch: str) -> Launch:
        launch = self.blueprint.launch(switch, self._directory.socket(switch), None)
        ports = tuple(replace(p, descriptor=self._ends[switch, p.peer].fileno()) for p in launch.ports)
        return replace(launch, grpc_address=f"unix:{self._p4runtime_socket(switch)}", ports=ports)

    def _p4runtime_socket(self, switch: str) -> Path:
        return self._directory.path / f"{switch}.p4runtime.sock"


def _make_private(folder: Path) -> None:
    """The sockets in it are the right to run code in the switches. Raises NetworkError."""
    status = folder.lstat()
    if status.st_uid != os.geteuid():
        raise NetworkError(f"{folder} belongs to another user: set NETFOLD_RUN_DIR to a folder of your own")
    folder.chmod(0o700)
