# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Common part of all networks of a fabric on this machine: their life, switches, faults and files.

Addresses are those of topologies/addressing.py. Switches start without program and routes, which the controller adds. A
network cleans up the remains of a crashed one of its name.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from netfold.testbed.network.blueprint import Blueprint
from netfold.testbed.network.errors import UnknownElementError
from netfold.testbed.network.faults import Faults, apply_faults, read_faults
from netfold.testbed.network.handles import HostHandle, SwitchHandle
from netfold.testbed.network.processes import SwitchProcess, wait_ready
from netfold.testbed.network.signals import TerminationSignals, signals_deferred
from netfold.testbed.network.spawner import Spawner
from netfold.testbed.network.state import (
    HostState,
    LinkState,
    RunDirectory,
    State,
    SwitchState,
    end_processes,
    make_folder,
)
from netfold.testbed.network.targets import Launch, Target

READY_TIMEOUT_S = 120.0
"""Includes compiling softswitch on a busy machine; a switch that ends is noticed at once."""


class Network(ABC):
    """A network of a fabric; a context manager, or `start` and `close`. `ready_timeout_s`: of the switches' start."""

    def __init__(self, blueprint: Blueprint, target: Target, ready_timeout_s: float) -> None:
        self.fabric = blueprint.fabric
        self.addressing = blueprint.addressing
        self.name = blueprint.name
        self.blueprint = blueprint
        self.target = target
        self.hosts: dict[str, HostHandle] = {}
        self.switches: dict[str, SwitchHandle] = {}
        self._ready_timeout_s = ready_timeout_s
        self._directory = RunDirectory(blueprint.name)
        self._run = uuid.uuid4().hex
        self._spawner = Spawner(self._run)
        self._faults: dict[tuple[str, str], Faults] = self._delays()
        self._signals = TerminationSignals()
        self._open = False

    # ---- life ----

    def start(self) -> Self:
        """Start the network and wait until every switch answers. Cleans up after an error. Raises NetworkError."""
        self._check()
        self.target.check()
        self._directory.acquire()
        self._open = True
        atexit.register(self.close)  # if the `with` block's own call is cut short
        try:
            self._directory.clear()
            self._directory.write(self.state())
            self._build()
            self._directory.write(replace(self.state(), ready=True))
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
            steps.callback(self._release)
            steps.callback(self._spawner.close)
            steps.callback(self._directory.clear)
            steps.callback(self._take_down)
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

    def __exit__(self, *_: object) -> None:
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

    @property
    def environment(self) -> dict[str, str]:
        """Variables added to the environment of all processes that start from now on."""
        return self._spawner.environment

    def host(self, name: str) -> HostHandle:
        """Raises UnknownElementError."""
        if name not in self.hosts:
            raise UnknownElementError("host", name, list(self.hosts))
        return self.hosts[name]

    def switch(self, name: str) -> SwitchHandle:
        """Raises UnknownElementError."""
        if name not in self.switches:
            raise UnknownElementError("switch", name, list(self.switches))
        return self.switches[name]

    def link(self, name: str) -> LinkState:
        """The link of this name, as "leaf1-spine1". Raises UnknownElementError."""
        return self.state().link(name)

    def run(
        self, host: str, command: Sequence[object], timeout_s: float, **options: Any
    ) -> subprocess.CompletedProcess[Any]:
        """Run a command in a host; see `HostHandle.run`."""
        return self.host(host).run(command, timeout_s, **options)

    def popen(self, command: Sequence[object], **options: Any) -> subprocess.Popen[Any]:
        """Start a command in the switches' namespace; `options`: of subprocess.Popen. It ends with the network at the
        latest, even after a crash."""
        return self._spawner.popen(command, **options)

    def rate_bps(self, a: str, b: str) -> int:
        """Rate of the link from `a` to `b` on the wire."""
        return self.blueprint.rate_bps(a, b)

    def set_faults(self, sender: str, receiver: str, faults: Faults | None) -> None:
        """Sets the faults of frames from `sender` to its neighbor `receiver`; None: no faults. See `apply_faults`."""
        wanted = faults or Faults()
        apply_faults(self.state(), sender, receiver, wanted)
        self._faults[sender, receiver] = wanted

    def clear_faults(self) -> None:
        """Clear all faults."""
        for sender, receiver in list(self._faults):
            self.set_faults(sender, receiver, None)

    def lost_by_faults(self) -> dict[tuple[str, str], int]:
        """Frames lost so far by sender and receiver. Raises NetworkError."""
        return {link: found.counts["lost"] for link, found in read_faults(self.state()).items()}

    @abstractmethod
    def set_link(self, link: str, up: bool) -> None:
        """Cuts or restores the link of this name: without it both ends lose their carrier. Raises NetworkError."""

    @abstractmethod
    def link_bytes(self) -> dict[tuple[str, str], int]:
        """Bytes so far on each directed link."""

    # ---- what kinds of networks differ in ----

    @abstractmethod
    def _check(self) -> None:
        """Raises NetworkError if it cannot run here."""

    @abstractmethod
    def _build(self) -> None:
        """Starts hosts, switches and links. Raises NetworkError."""

    @abstractmethod
    def _take_down(self) -> None:
        """Before files are removed; the processes have ended."""

    @abstractmethod
    def _release(self) -> None:
        """At the end."""

    def _add_switch(self, launch: Launch, interfaces: Mapping[str, str]) -> SwitchProcess:
        """A switch that is not started yet; `interfaces`: by neighbor."""
        log = self._directory.logs / f"{launch.name}.log"
        process = SwitchProcess(self.target, launch, log, self._spawner)
        self.switches[launch.name] = SwitchHandle(
            process, interfaces, self._ready_timeout_s, self._restore_faults
        )
        return process

    def _wait_ready(self) -> None:
        """Until all switches answer; applies delays."""
        wait_ready([s._process for s in self.switches.values()], self._ready_timeout_s)
        self._apply_faults(list(self._faults))

    def _delays(self) -> dict[tuple[str, str], Faults]:
        """Directions of links with a delay, which switches that emulate links apply from the start."""
        if not (self.target.shapes_links and self.target.faults):
            return {}
        slow = [x for x in self.fabric.links if x.delay_ms > 0]
        return {ends: Faults() for x in slow for ends in ((x.a, x.b), (x.b, x.a))}

    def _apply_faults(self, directions: list[tuple[str, str]]) -> None:
        for sender, receiver in directions:
            apply_faults(self.state(), sender, receiver, self._faults[sender, receiver])

    def _restore_faults(self, switch: str) -> None:
        """Restores the faults of the links of a restarted switch."""
        hosts = self.fabric.is_host
        self._apply_faults([(a, b) for a, b in self._faults if switch == (b if hosts(a) else a)])

    def state(self) -> State:
        """The network as `netfold network` sees it."""

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
