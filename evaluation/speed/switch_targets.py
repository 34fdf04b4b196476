# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Targets of switch_pps: softswitch, BMv2, two plain forwarders in C and one of DPDK, on a network of veth links."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import grpc

from netfold.evaluation.speed.switch_loads import WORKERS, SwitchLoad
from netfold.testbed.network.blueprint import DEFAULT_MTU
from netfold.testbed.network.processes import open_channel, wait_or_kill
from netfold.testbed.network.program import write_program

COMMAND_TIMEOUT_S = 60
ENGINE_PARTS = ("checksum.c", "packet_ring.c", "segments.c", "xdp_program.c", "xsk.c")
"""Files of softswitch's engine that this folder's programs use."""
SOFTSWITCH = "from softswitch.cli import main; main()"
TESTPMD = "dpdk-testpmd"
PORTS = range(1, WORKERS + 1)

Target = Callable[[str, SwitchLoad, Path], AbstractContextManager[subprocess.Popen[str]]]
"""Starts a switch in a network namespace with the program and entries of a load; a folder for its files."""


@dataclass(frozen=True)
class Bmv2Version:
    """The simple_switch_grpc on PATH. `has_logging_macros`: log statements are compiled in, which makes BMv2 several
    times slower at any log level."""

    version: str
    command: str
    has_logging_macros: bool


OFFLOADS = ("rx", "tx", "sg", "tso", "gso", "tx-udp-segmentation")


@contextmanager
def namespace(name: str, runs: bool = False, mtu: int = DEFAULT_MTU) -> Iterator[str]:
    """`runs`: the links carry runs of frames whole. `mtu`: theirs."""
    run("ip", "netns", "add", name)
    try:
        run("ip", "netns", "exec", name, "sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1")
        for port in PORTS:
            run("ip", "-n", name, "link", "add", f"sw{port}", "type", "veth", "peer", "name", f"h{port}")
            for end in ("sw", "h"):
                run("ip", "-n", name, "link", "set", f"{end}{port}", "mtu", mtu, "up")
                if runs:
                    states = [word for offload in OFFLOADS for word in (offload, "on")]
                    run("ip", "netns", "exec", name, "ethtool", "-K", f"{end}{port}", *states, "gro", "off")
        yield name
    finally:
        subprocess.run(["ip", "netns", "del", name], check=False, timeout=COMMAND_TIMEOUT_S)


def run(*command: object) -> None:
    subprocess.run(
        [str(part) for part in command], check=True, stdout=subprocess.DEVNULL, timeout=COMMAND_TIMEOUT_S
    )


@contextmanager
def process(*command: object, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Ends the process at the exit. `options`: of subprocess.Popen."""
    started: subprocess.Popen[str] = subprocess.Popen([str(part) for part in command], text=True, **options)
    try:
        yield started
    finally:
        started.terminate()
        wait_or_kill(started, 10.0)


def compiled(name: str, folder: Path, flags: Sequence[str] = ("-O2", "-march=native")) -> Path:
    """The program of a C file of this folder, compiled into `folder` once."""
    target = folder / name
    if not target.exists():
        engine = find_spec("softswitch.engine")
        assert engine is not None
        assert engine.origin is not None
        own, folder_of_engine = Path(__file__).with_name(f"{name}.c"), Path(engine.origin).parent
        parts = (folder_of_engine / part for part in ENGINE_PARTS)
        run("gcc", *flags, f"-I{folder_of_engine}", "-o", target, own, *parts)
    return target


# ---- the targets ---------------------------------------------------------------------------------


@contextmanager
def forwarder(space: str, load: SwitchLoad, folder: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    ports = [f"sw{port}" for port in PORTS]
    command = ("ip", "netns", "exec", space, compiled("forwarder", folder), *options, *ports)
    with process(*command, stdout=subprocess.PIPE) as started:
        assert started.stdout is not None
        assert started.stdout.readline() == "ready\n", "the forwarder did not start"
        yield started


def forwarder_xdp(
    space: str, load: SwitchLoad, folder: Path
) -> AbstractContextManager[subprocess.Popen[str]]:
    return forwarder(space, load, folder, "-x")


def forwarder_af_xdp(
    space: str, load: SwitchLoad, folder: Path
) -> AbstractContextManager[subprocess.Popen[str]]:
    return forwarder(space, load, folder, "-X")


def interfaces(kind: str = "") -> list[str]:
    return [part for port in PORTS for part in ("-i", f"{port}@{kind}sw{port}")]


def softswitch_xdp(
    space: str, load: SwitchLoad, folder: Path
) -> AbstractContextManager[subprocess.Popen[str]]:
    return softswitch(space, load, folder, ports=interfaces("xdp:"))


def dpdk_device(port: int) -> str:
    """The device of DPDK over a packet socket at the port's interface."""
    return f"net_af_packet{port},iface=sw{port}"


def softswitch_dpdk(
    space: str, load: SwitchLoad, folder: Path
) -> AbstractContextManager[subprocess.Popen[str]]:
    devices = [part for port in PORTS for part in ("-i", f"{port}@dpdk:{dpdk_device(port)}")]
    return softswitch(space, load, folder, ports=devices)


@contextmanager
def testpmd(space: str, load: SwitchLoad, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Start DPDK's own forwarder, which swaps a frame's MAC addresses and sends it out of the next port. Its thread
    polls, so it takes all of a processor."""
    eal = ("--no-huge", "-m", "512", "--no-pci", "--no-telemetry", "--lcores", "0,1", "--file-prefix", space)
    devices = [f"--vdev={dpdk_device(port)}" for port in PORTS]
    forwarding = (
        "--forward-mode=macswap",
        "--port-topology=chained",
        "--total-num-mbufs=16384",
        "--auto-start",
    )
    # Its input stays open, or it ends; its output goes by lines, or none comes before the end.
    command = ("ip", "netns", "exec", space, "stdbuf", "-oL", TESTPMD, *eal, *devices, "--", *forwarding)
    with process(
        *command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as started:
        assert started.stdout is not None
        assert any("packet forwarding - ports" in line for line in started.stdout), "testpmd did not start"
        yield started


def softswitch_runs(
    space: str, load: SwitchLoad, folder: Path
) -> AbstractContextManager[subprocess.Popen[str]]:
    return softswitch(space, load, folder, "--gso")


def softswitch_threads(
    space: str, load: SwitchLoad, folder: Path
) -> AbstractContextManager[subprocess.Popen[str]]:
    return softswitch(space, load, folder, "--gso", "--threads", "2")


@contextmanager
def softswitch(
    space: str, load: SwitchLoad, folder: Path, *options: str, ports: Sequence[str] = ()
) -> Iterator[subprocess.Popen[str]]:
    address = f"unix:{folder}/softswitch.sock"
    reader, writer = os.pipe()
    command = [
        "ip",
        "netns",
        "exec",
        space,
        sys.executable,
        "-c",
        SOFTSWITCH,
        *(ports or interfaces()),
        *options,
    ]
    command += [
        "--grpc-server-addr",
        address,
        "--device-id",
        "1",
        "--ready-fd",
        str(writer),
        "--log-level",
        "warn",
    ]
    with os.fdopen(reader) as ready, process(*command, pass_fds=[writer]) as started:
        os.close(writer)
        assert ready.readline().startswith("ready"), "softswitch did not start"
        push(address, load)
        yield started


def bmv2_command(address: str) -> list[str]:
    command = ["simple_switch_grpc", "--no-p4", "--device-id", "1", "--log-level", "warn", *interfaces()]
    return [*command, "--", "--grpc-server-addr", address]


def find_bmv2(folder: Path) -> Bmv2Version | None:
    """The BMv2 on PATH; None if there is none, or if it is a link to softswitch."""
    found = shutil.which("simple_switch_grpc")
    if found is None or Path(found).resolve().name == "softswitch":
        return None
    printed = subprocess.run(
        [found, "--version"], capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S, check=False
    )
    # With logging on, its first lines show whether log statements are compiled in.
    started = subprocess.run(
        [found, "--no-p4", "--log-file", folder / "bmv2", "--log-level", "trace", "--", "--cpu-port", "0"],
        capture_output=True,
        text=True,
        timeout=COMMAND_TIMEOUT_S,
        check=False,
    )
    macros = "disabled logging macros" not in started.stdout + started.stderr
    return Bmv2Version(printed.stdout.strip(), " ".join(bmv2_command("ADDRESS")), macros)


def bmv2(space: str, load: SwitchLoad, folder: Path) -> AbstractContextManager[subprocess.Popen[str]]:
    """Start BMv2 with the load's program in BMv2's own form, if there is one."""
    return bmv2_v1model(space, replace(load, config=load.bmv2 or load.config), folder)


@contextmanager
def bmv2_v1model(space: str, load: SwitchLoad, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Start BMv2 with the same program as softswitch."""
    address = f"unix:{folder}/bmv2.sock"
    command = ["ip", "netns", "exec", space, *bmv2_command(address)]
    with process(*command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as started:
        push(address, load)
        yield started


def push(address: str, load: SwitchLoad) -> None:
    """Sends the program and its entries, once the switch answers."""
    with open_channel(address) as channel:
        grpc.channel_ready_future(channel).result(timeout=COMMAND_TIMEOUT_S)
    write_program(address, 1, load.config, load.updates, COMMAND_TIMEOUT_S)
