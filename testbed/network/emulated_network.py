# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A fabric as an emulated network: each host a namespace, each switch a process, each link a veth pair.

    with EmulatedNetwork(load_fabric("leaf-spine-2x2")) as net:
        net.run("h1", ["ping", "-c1", net.addressing.hosts["h2"].ip], timeout_s=5)

Addresses are those of topologies/addressing.py. Switches start without program and routes, which the controller adds. A
network cleans up the remains of a crashed one of its name.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from netfold.protocol.runtime import default_name
from netfold.testbed.network import kernel
from netfold.testbed.network.blueprint import Blueprint, check_scale
from netfold.testbed.network.errors import (
    HostCommandError,
    MissingToolError,
    UnknownElementError,
)
from netfold.testbed.network.faults import Faults, apply_faults, read_faults
from netfold.testbed.network.handles import HostHandle, SwitchHandle
from netfold.testbed.network.processes import SwitchProcess, wait_ready
from netfold.testbed.network.program import program_switch
from netfold.testbed.network.signals import TerminationSignals, signals_deferred
from netfold.testbed.network.spawner import Spawner
from netfold.testbed.network.state import (
    HostState,
    RunDirectory,
    State,
    SwitchState,
    end_processes,
    make_folder,
)
from netfold.testbed.network.sudo_user import Recordings, check_root
from netfold.testbed.network.targets import Target, choose_target
from netfold.testbed.network.tools import ADMINISTRATOR, check_tools
from netfold.topologies.addressing import FIRST_GRPC_PORT, addresses
from netfold.topologies.exercise import Exercise
from netfold.topologies.fabric import Fabric

READY_TIMEOUT_S = 120.0
"""Includes compiling softswitch on a busy machine; a switch that ends is noticed at once."""

COMMAND_TIMEOUT_S = 30.0
"""Timeout of a host command of an exercise."""

_TOOLS = ("ip", "tc", "ethtool", "mnexec", "setpriv")


class EmulatedNetwork:
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
        mtu: int = 1500,
        pcap_dir: Path | None = None,
        exercise: Exercise | None = None,
        ready_timeout_s: float = READY_TIMEOUT_S,
    ) -> None:
        self.fabric = fabric
        self.target = choose_target(target) if isinstance(target, str) else target
        own = addresses(fabric, first_grpc_port)
        self.addressing = own if exercise is None else exercise.addressed(own)
        self.exercise = exercise
        self.name = name = default_name() if name is None else name
        self.hosts: dict[str, HostHandle] = {}
        self.switches: dict[str, SwitchHandle] = {}
        self.mininet: Any = None
        shapes_links, scale = self.target.shapes_links, check_scale(fabric, scale)
        self.blueprint = Blueprint(fabric, self.addressing, name, scale, mtu, arp == "static", shapes_links)
        self._recordings = None if pcap_dir is None else self._captures_in(pcap_dir.resolve())
        self._ready_timeout_s = ready_timeout_s
        self._directory = RunDirectory(name)
        self._run = uuid.uuid4().hex
        self._spawner = Spawner(self._run)
        self._faults: dict[tuple[str, str], Faults] = self._delays()
        self._signals = TerminationSignals()
        self._open = False

    # ---- life ----

    def start(self) -> Self:
        """Start the network and wait until every switch answers. Cleans up after an error. Raises NetworkError."""
        check_root()
        check_tools(_TOOLS)
        self.target.check()
        if self._recordings is not None:
            self._recordings.prepare()
        self._directory.acquire()
        self._open = True
        atexit.register(self.close)  # if the `with` block's own call is cut short
        try:
            self._directory.clear()
            self._directory.write(self._state())
            self._build()
            self._directory.write(replace(self._state(), ready=True))
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """End all processes and remove all links. Idempotent; defers signals meanwhile."""
        if not self._open:
            return
        with (
            signals_deferred(),
            contextlib.ExitStack() as steps,
        ):  # last in, first out; each runs despite errors of others
            self._open = False
            atexit.unregister(self.close)
            steps.callback(self._directory.release)
            if self._recordings is not None:
                steps.callback(self._recordings.hand_over)
            steps.callback(self._spawner.close)
            steps.callback(self._directory.clear)
            if self.mininet is not None:
                steps.callback(self.mininet.stop)
            steps.callback(end_processes, self._run)
            for switch in self.switches.values():
                steps.callback(switch._process.end, grace_s=3.0)
            for switch in self.switches.values():
                steps.callback(switch._process.terminate)

    def __enter__(self) -> Self:
        self._signals.install()
        try:
            return self.start()
        except BaseException:
            self._signals.restore()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        finally:
            self._signals.restore()

    # ---- use ----

    @property
    def work(self) -> Path:
        """A folder for files of the network's lifetime."""
        make_folder(self._directory.work)
        return self._directory.work

    def run(
        self, host: str, command: Sequence[object], timeout_s: float, **options: Any
    ) -> subprocess.CompletedProcess[Any]:
        """Run a command in a host; see `HostHandle.run`."""
        if host not in self.hosts:
            raise UnknownElementError("host", host, list(self.hosts))
        return self.hosts[host].run(command, timeout_s, **options)

    def popen(self, command: Sequence[object], **options: Any) -> subprocess.Popen[Any]:
        """Start a command in the switches' namespace; `options`: of subprocess.Popen. It ends with the network at the
        latest, even after a crash."""
        return self._spawner.popen(command, **options)

    def rate_bps(self, a: str, b: str) -> int:
        """Rate of the link from `a` to `b` on the wire."""
        return self.blueprint.rate_bps(a, b)

    def interface(self, switch: str, neighbor: str) -> str:
        """The kernel interface of the switch's port to a neighbor."""
        if switch not in self.switches:
            raise UnknownElementError("switch", switch, list(self.switches))
        interfaces = self.switches[switch].interfaces
        if neighbor not in interfaces:
            raise UnknownElementError(f"neighbor of '{switch}'", neighbor, list(interfaces))
        return interfaces[neighbor]

    def link_down(self, a: str, b: str) -> None:
        """Cut the link: both ends lose their carrier."""
        kernel.set_link(self.blueprint.link(a, b).root_interface, up=False)

    def link_up(self, a: str, b: str) -> None:
        kernel.set_link(self.blueprint.link(a, b).root_interface, up=True)

    def set_faults(self, sender: str, receiver: str, faults: Faults | None) -> None:
        """Sets the faults of frames from `sender` to its neighbor `receiver`; None: no faults. See `apply_faults`."""
        wanted = faults or Faults()
        apply_faults(self._state(), sender, receiver, wanted)
        self._faults[sender, receiver] = wanted

    def clear_faults(self) -> None:
        """Clear all faults."""
        for sender, receiver in list(self._faults):
            self.set_faults(sender, receiver, None)

    def lost_by_faults(self) -> dict[tuple[str, str], int]:
        """Frames lost so far by sender and receiver. Raises NetworkError."""
        return {link: found.counts["lost"] for link, found in read_faults(self._state()).items()}

    def prompt(self) -> None:
        """Run Mininet's prompt on the terminal."""
        from netfold.testbed.network.mininet_nodes import prompt  # noqa: PLC0415 (as in `_new_mininet`)

        prompt(self.mininet)

    # ---- building ----

    def _build(self) -> None:
        self.mininet = _new_mininet()
        pids = self._add_hosts()
        self._directory.write(self._state())
        kernel.create_veth_pairs(self.blueprint.veth_pairs(pids), self.blueprint.mtu)
        self._add_switches()
        self._add_links()
        kernel.set_up_hosts({pids[h.name]: self.blueprint.host_setup(h.name) for h in self.fabric.hosts})
        if not self.target.shapes_links:
            kernel.shape_ports(self.blueprint.shaping())
        self.mininet.built = True
        self.mininet.start()
        wait_ready([s._process for s in self.switches.values()], self._ready_timeout_s)
        self._apply_faults(list(self._faults))
        if self.exercise is not None:
            self._prepare(self.exercise)

    def _prepare(self, exercise: Exercise) -> None:
        """In the order of the tutorials' runner: host commands, then switches."""
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
        for switch in self.fabric.switches:
            socket, log = self._directory.socket(switch.name), self._directory.logs / f"{switch.name}.log"
            folder = None if self._recordings is None else self._recordings.folder
            launch = self.blueprint.launch(switch.name, socket, folder)
            process = SwitchProcess(self.target, launch, log, self._spawner)
            interfaces = {p.peer: p.interface for p in launch.ports}
            self.switches[switch.name] = SwitchHandle(
                process, interfaces, self._ready_timeout_s, self._restore_faults
            )
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

    def _delays(self) -> dict[tuple[str, str], Faults]:
        """Directions of links with a delay, which switches that emulate links apply from the start."""
        if not (self.target.shapes_links and self.target.faults):
            return {}
        slow = [x for x in self.fabric.links if x.delay_ms > 0]
        return {ends: Faults() for x in slow for ends in ((x.a, x.b), (x.b, x.a))}

    def _apply_faults(self, directions: list[tuple[str, str]]) -> None:
        for sender, receiver in directions:
            apply_faults(self._state(), sender, receiver, self._faults[sender, receiver])

    def _restore_faults(self, switch: str) -> None:
        """Restores the faults of the links of a restarted switch."""
        hosts = self.fabric.is_host
        self._apply_faults([(a, b) for a, b in self._faults if switch == (b if hosts(a) else a)])

    def _state(self) -> State:
        def host(handle: HostHandle) -> HostState:
            address = self.addressing.hosts[handle.name]
            return HostState(handle.pid, str(address.ip), address.mac)

        def switch(handle: SwitchHandle) -> SwitchState:
            socket, log = str(handle.control_socket), str(handle.log)
            return SwitchState(handle.name, handle.device_id, handle.grpc_address, socket, log)

        return State(
            name=self.name,
            run=self._run,
            owner=os.getpid(),
            fabric=self.fabric.name,
            target=self.target.name,
            faults=self.target.faults,
            hosts={n: host(h) for n, h in self.hosts.items()},
            switches={n: switch(s) for n, s in self.switches.items()},
            links=self.blueprint.links(),
        )


def _new_mininet() -> Any:
    try:
        from netfold.testbed.network.mininet_nodes import new_mininet  # noqa: PLC0415 (Debian's package, not pip's)
    except ImportError as error:
        raise MissingToolError(f"Mininet's Python module ({error})", "mininet") from error
    return new_mininet()
