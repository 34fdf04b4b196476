# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Networks of stand-in switches, under names and ports of their own, and what their tests share."""

from __future__ import annotations

import os
import random
import shutil
import socket
import string
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import networkx as nx
import pytest

from netfold.testbed.network.emulated_network import EmulatedNetwork
from netfold.testbed.network.state import RunDirectory, interfaces_of, processes_of
from netfold.testbed.network.targets import Launch, Target
from netfold.topologies import generators
from netfold.topologies.addressing import addresses
from netfold.topologies.fabric import Fabric

FAKE = Path(__file__).with_name("fake_switch.py")
FABRIC = generators.leaf_spine(2, 1, 2, parameter_servers=1, rate=50, delay_ms=0)
PING = ["ping", "-n", "-c", "1", "-W", "5"]


@dataclass(frozen=True)
class FakeTarget:
    """Runs `fake_switch.py` with the fabric's shortest routes; `trouble` is its option at the switch
    `troubled`."""

    fabric: Fabric
    shapes_links: bool = True
    trouble: str | None = None
    troubled: str | None = None
    name: str = "fake"
    faults: bool = False
    takes_bursts: bool = False

    def device_id(self, launch: Launch) -> int:
        return launch.device_id

    def check(self) -> None:
        pass

    def command(self, launch: Launch) -> list[str]:
        plan = addresses(self.fabric)
        command = [
            sys.executable,
            "-S",
            str(FAKE),
            "--grpc",
            launch.grpc_address,
            "--mac",
            plan.switches[launch.name].mac,
        ]
        if self.trouble and launch.name == self.troubled:
            command.append(self.trouble)
        for port in launch.ports:
            command += ["-i", f"{port.number}@{port.interface}"]
        for name, host in plan.hosts.items():
            hop = nx.shortest_path(self.fabric.graph, launch.name, name)[1]
            mac = f"@{host.mac}" if hop == name else ""
            command += ["--route", f"{host.ip}={self.fabric.ports[launch.name][hop]}{mac}"]
        return command


@dataclass(frozen=True)
class Place:
    """Where a test's network lives, apart from all others on this machine."""

    name: str
    first_grpc_port: int

    @property
    def directory(self) -> RunDirectory:
        return RunDirectory(self.name)

    def leftovers(self, run: str | None = None) -> list[str]:
        """Whatever is there still: interfaces, files, processes."""
        files = [p.name for p in self.directory.path.glob("*") if p.name not in ("lock", "logs")]
        return interfaces_of(self.name) + files + [str(p) for p in (processes_of(run) if run else [])]


def new_place(ports: int = 8) -> Place:
    name = "t" + "".join(random.SystemRandom().choices(string.ascii_lowercase, k=5))
    for first in random.SystemRandom().sample(range(20000, 30000, ports), 200):
        if all(_free(first + i) for i in range(ports)):
            return Place(name, first)
    raise RuntimeError("no free ports")


def _free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


@pytest.fixture
def place() -> Place:
    return new_place()


def network(place: Place, target: Target | None = None, **options: object) -> EmulatedNetwork:
    """Not up yet, of `FABRIC`."""
    return EmulatedNetwork(
        FABRIC,
        target=target or FakeTarget(FABRIC),
        name=place.name,
        first_grpc_port=place.first_grpc_port,
        **options,  # type: ignore[arg-type]
    )


def ping(net: EmulatedNetwork, source: str, destination: str) -> int:
    return net.run(source, [*PING, net.addressing.hosts[destination].ip], 10).returncode


@pytest.fixture(autouse=True, scope="package")
def _run_directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Programs that the tests start find it in the environment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NETFOLD_RUN_DIR", str(tmp_path_factory.mktemp("run")))
        yield


def needs_network(function: object) -> object:
    """Marks a test that brings up a network; it is skipped, saying why, where that cannot be."""
    missing = [t for t in ("mnexec", "ip", "tc", "ethtool", "setpriv") if shutil.which(t) is None]
    reason = "needs root" if os.geteuid() else f"needs {', '.join(missing)}"
    for mark in (
        pytest.mark.root,
        pytest.mark.mininet,
        pytest.mark.skipif(bool(os.geteuid() or missing), reason=reason),
    ):
        function = mark(function)  # type: ignore[operator]
    return function
