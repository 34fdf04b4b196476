# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The switch targets, and the choice among them.

A target defines the command of a switch process and its capabilities. `softswitch` enforces rates, queues and delays in
its ports; for `bmv2` the network adds token buckets to the links.
"""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from netfold.p4src.manifest import Form
from netfold.testbed.network import tofino_model
from netfold.testbed.network.errors import MissingToolError, NetworkError
from netfold.topologies.ports import Chip

_BMV2 = "simple_switch_grpc"


@dataclass(frozen=True)
class Port:
    """A switch port: its kernel interface, and the egress direction of its link. `peer`: a host or switch.
    `descriptor`: an inherited Unix datagram socket in place of the interface."""

    number: int
    interface: str
    peer: str
    rate_bps: int
    queue: int
    delay_ms: float
    descriptor: int | None = None


@dataclass(frozen=True)
class Launch:
    """Parameters of a switch process."""

    name: str
    device_id: int
    grpc_address: str
    ports: tuple[Port, ...]
    cpu_port: int
    control_socket: Path
    pcap_dir: Path | None = None
    bursts: bool = False
    """Links carry bursts of packets whole."""
    chip: Chip | None = None
    """The chip that the fabric's spec names."""

    @property
    def grpc_port(self) -> int | None:
        """None of a Unix socket."""
        port = self.grpc_address.rpartition(":")[2]
        return int(port) if port.isdecimal() else None

    @property
    def descriptors(self) -> tuple[int, ...]:
        """Those that the process inherits."""
        return tuple(p.descriptor for p in self.ports if p.descriptor is not None)


class Target(Protocol):
    """A kind of switch process."""

    @property
    def name(self) -> str: ...

    @property
    def shapes_links(self) -> bool:
        """Its ports enforce rate, queue and delay."""

    @property
    def faults(self) -> bool:
        """It has a control socket for fault injection on its ports."""

    @property
    def takes_bursts(self) -> bool:
        """Its ports take frames of the kernel that hold several packets (GSO)."""

    @property
    def program_form(self) -> Form:
        """Form of its program."""

    def device_id(self, launch: Launch) -> int:
        """Its P4Runtime device id."""

    def check(self) -> None:
        """Raises MissingToolError if it cannot run here."""

    def command(self, launch: Launch) -> list[str]:
        """The command; the process is ready when its gRPC server answers."""


class Softswitch:
    """The P4 switch of softswitch/."""

    name = "softswitch"
    shapes_links = True
    faults = True
    takes_bursts = True
    program_form = Form.V1MODEL

    def device_id(self, launch: Launch) -> int:
        return launch.device_id

    def check(self) -> None:
        if _compiler() is None:
            raise MissingToolError("a C compiler", "gcc libc6-dev")

    def command(self, launch: Launch) -> list[str]:
        command = [installed_command("softswitch"), "--no-p4"]
        command += ["--device-id", str(launch.device_id), "--grpc-server-addr", launch.grpc_address]
        command += ["--cpu-port", str(launch.cpu_port), "--control-socket", str(launch.control_socket)]
        for port in launch.ports:
            if port.descriptor is None:
                command += ["-i", f"{port.number}@{port.interface}"]
            else:
                command += ["--socket", f"{port.number}={port.descriptor}"]
            command += ["--port-rate", f"{port.number}={port.rate_bps}bit"]
            command += ["--port-queue", f"{port.number}={port.queue}"]
        if launch.bursts:
            command += ["--gso"]
        if launch.pcap_dir is not None:
            command += ["--pcap", str(launch.pcap_dir)]
        return command


class Bmv2:
    """p4lang's simple_switch_grpc."""

    name = "bmv2"
    shapes_links = False
    faults = False
    takes_bursts = False
    program_form = Form.BMV2

    def device_id(self, launch: Launch) -> int:
        return launch.device_id

    def check(self) -> None:
        if shutil.which(_BMV2) is None:
            raise MissingToolError(_BMV2, "p4lang-bmv2, from p4lang's packages")

    def command(self, launch: Launch) -> list[str]:
        command = [_BMV2, "--no-p4", "--device-id", str(launch.device_id)]
        command += ["--log-console", "--log-level", "warn"]
        for port in launch.ports:
            command += ["-i", f"{port.number}@{port.interface}"]
        if launch.pcap_dir is not None:
            command += [f"--pcap={launch.pcap_dir}"]
        if _bmv2_has_thrift():
            command += ["--thrift-port", str(9090 + launch.device_id)]
        return [*command, "--", "--grpc-server-addr", launch.grpc_address, "--cpu-port", str(launch.cpu_port)]


class TofinoModel:
    """A register-accurate model of a Tofino or Tofino 2 with the chip's drivers, which serve P4Runtime."""

    name = "tofino-model"
    shapes_links = False
    faults = False
    takes_bursts = False
    program_form = Form.V1MODEL

    def device_id(self, launch: Launch) -> int:
        return tofino_model.DEVICE_ID

    def check(self) -> None:
        tofino_model.check()

    def command(self, launch: Launch) -> list[str]:
        folder = launch.control_socket.parent / f"{launch.name}.tofino"
        command = [sys.executable, "-m", tofino_model.__name__, "--grpc", launch.grpc_address]
        command += ["--folder", str(folder)]
        if launch.chip is not None:
            command += ["--chip", launch.chip]
        for port in launch.ports:
            command += ["-i", f"{port.number}@{port.interface}"]
        return command


TARGETS: dict[str, type[Target]] = {"softswitch": Softswitch, "bmv2": Bmv2, "tofino-model": TofinoModel}


def choose_target(wanted: str = "auto") -> Target:
    """The target of that name; `auto`: softswitch, or bmv2 where only that can run (docs/decisions).

    Raises NetworkError for an unknown name, MissingToolError if it cannot run here.
    """
    if wanted == "auto":
        wanted = "softswitch" if _compiler() or shutil.which(_BMV2) is None else "bmv2"
    if wanted not in TARGETS:
        raise NetworkError(f"'{wanted}' is no switch target; expected auto, {', '.join(TARGETS)}")
    target = TARGETS[wanted]()
    target.check()
    return target


def target_reason(wanted: str, target: Target) -> str:
    """The choice of `choose_target(wanted)` and its reason, for the user."""
    if wanted != "auto":
        return f"{target.name}, as requested"
    if target.name == "bmv2":
        return "bmv2: softswitch needs a C compiler (apt-get install gcc libc6-dev)"
    bmv2 = shutil.which(_BMV2)
    slower = f"; --target bmv2 selects {bmv2}, which is much slower" if bmv2 else ""
    return f"{target.name}, the default{slower}"


def _compiler() -> str | None:
    return shutil.which("gcc") or shutil.which("cc")


def installed_command(name: str) -> str:
    """The script `name` (netfold, softswitch) of the running Python, else the one on PATH."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        raise NetworkError(f"no {name} command beside {sys.executable}: install the project with pip")
    return found


@functools.cache
def _bmv2_has_thrift() -> bool:
    """A build with Thrift listens on port 9090 in every process by default."""
    command = [_BMV2, "--help"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    return "--thrift-port" in result.stdout + result.stderr
