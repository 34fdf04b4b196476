# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A fabric as a Mininet topology, for Mininet's own commands and API.

    sudo mn --custom testbed/network/mininet_topo.py --topo netfold,leaf-spine-2x2 --switch netfold --controller none
    Mininet(topo=FabricTopo("leaf-spine-2x2"), controller=None)

Names, interfaces (leaf1-eth1) and the prompt are Mininet's. `EmulatedNetwork` makes the same fabric in less time, in
namespaces of its own, with faults and captures.
"""

from __future__ import annotations

import functools
import inspect
import os
import site
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from mininet.node import Host, Switch
from mininet.topo import Topo

if (
    "__file__" not in globals()
):  # `mn --custom` runs this text in the system's Python, without the environment
    _text = inspect.getsourcefile(lambda: None) or ""
    _environment = Path(_text).resolve().parents[2] / ".venv"
    for _packages in _environment.glob("lib/python3*/site-packages"):
        site.addsitedir(str(_packages))
    os.environ["PATH"] = f"{_environment / 'bin'}:{os.environ['PATH']}"

from netfold.testbed.network import kernel
from netfold.testbed.network.blueprint import DEFAULT_MTU, Blueprint, check_scale
from netfold.testbed.network.processes import SwitchProcess, wait_ready
from netfold.testbed.network.spawner import Spawner
from netfold.testbed.network.targets import Launch, choose_target
from netfold.topologies.addressing import addresses
from netfold.topologies.fabric import Fabric
from netfold.topologies.spec import load_fabric

READY_S = 60.0
"""Limit of the wait for a switch's P4Runtime server, on a busy machine."""


class TopoHost(Host):  # type: ignore[misc]
    """A host with the fabric's address, route, rate and delay on its interface. `setup`: see `Blueprint.host_setup`."""

    def config(self, *, setup: kernel.HostSetup, **_: Any) -> dict[str, Any]:
        """Called by Mininet once the host has its link."""
        interface = self.defaultIntf()
        kernel.set_up_hosts({self.pid: replace(setup, interface=interface.name)})
        interface.ip, interface.mac = str(setup.address.ip), setup.address.mac
        return {}


class TopoSwitch(Switch):  # type: ignore[misc]
    """A P4 switch of a FabricTopo: a process of softswitch or BMv2 on Mininet's interfaces.

    launch  what the fabric says of it
    target  "softswitch", "bmv2" or "auto"; `mn --switch netfold,target=bmv2` chooses it too
    """

    def __init__(self, name: str, launch: Launch, target: str = "auto", **params: Any) -> None:
        super().__init__(name, **params)
        self.launch = launch
        self.target = choose_target(target)
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._spawner: Spawner | None = None
        self._process: SwitchProcess | None = None

    @classmethod
    def setup(cls) -> None:
        """Mininet would look for programs of other switches here."""

    def start(self, controllers: list[Any]) -> None:
        """Start the process, and wait for its P4Runtime server. `controllers` are of OpenFlow, and ignored."""
        self._folder = tempfile.TemporaryDirectory(prefix=f"{self.name}-")
        folder = Path(self._folder.name)
        ports = tuple(replace(p, interface=self.intfs[p.number].name) for p in self.launch.ports)
        for port in ports:
            offloads = " ".join(kernel.WITHOUT_OFFLOADS)
            self.cmd(f"ip link set dev {port.interface} arp off; ethtool -K {port.interface} {offloads}")
            self.cmd(f"sysctl -qw net.ipv6.conf.{port.interface}.disable_ipv6=1")
        if not self.target.shapes_links:
            kernel.shape_ports(
                kernel.shape(p.interface, p.rate_bps, p.queue, p.delay_ms, DEFAULT_MTU) for p in ports
            )
        launch = replace(self.launch, ports=ports, control_socket=folder / "control")
        self._spawner = Spawner(self.name)
        self._process = SwitchProcess(self.target, launch, folder / "log", self._spawner)
        self._process.start()
        wait_ready([self._process], READY_S)

    def stop(self, deleteIntfs: bool = True) -> None:
        """End the process; Mininet removes the interfaces."""
        if self._process is not None:
            self._process.stop()
        if self._spawner is not None:
            self._spawner.close()
        if self._folder is not None:
            self._folder.cleanup()
        super().stop(deleteIntfs)


class FabricTopo(Topo):  # type: ignore[misc]
    """The hosts, switches and links of a fabric, with its addresses, port numbers, rates, queues and delays.

    fabric  a Fabric, the name of one of netfold's, or a file
    target  "softswitch", "bmv2" or "auto"; None leaves the class of the switches to `mn --switch`
    scale   factor from the fabric's rates to rates on the wire, as of EmulatedNetwork

    The P4Runtime server of switch i (from 0) listens at 127.0.0.1:9559 + i with device id i + 1. Switches start without
    a program; `netfold controller run FABRIC` gives them one.
    """

    def build(
        self,
        fabric: Fabric | str = "leaf-spine-2x2",
        target: str | None = "auto",
        scale: float | None = None,
    ) -> None:
        """Called by Topo's constructor. Raises FabricError, SpecError or NetworkError."""
        model = fabric if isinstance(fabric, Fabric) else load_fabric(fabric)
        plan = Blueprint(
            model,
            addresses(model),
            name="",
            scale=check_scale(model, scale),
            mtu=DEFAULT_MTU,
            gateways_known=True,
            shapes_links=target != "bmv2",
        )
        for host in model.hosts:
            setup = plan.host_setup(host.name)
            self.addHost(host.name, cls=TopoHost, ip=f"{setup.address.ip}/32", setup=setup)
        chosen = {} if target is None else {"cls": TopoSwitch, "target": target}
        for switch in model.switches:
            launch = plan.launch(switch.name, Path(), None)
            self.addSwitch(switch.name, dpid=f"{launch.device_id:016x}", launch=launch, **chosen)
        for link in plan.links():
            options: dict[str, Any] = {} if link.port_a is None else {"port1": link.port_a}
            if model.is_host(link.a):
                options["addr1"] = plan.addressing.hosts[link.a].mac
            self.addLink(link.a, link.b, port2=link.port_b, **options)


topos = {"netfold": functools.partial(FabricTopo, target=None)}
switches = {"netfold": TopoSwitch}
