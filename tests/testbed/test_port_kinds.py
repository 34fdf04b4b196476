# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Workers aggregate over switches whose ports are AF_XDP's or DPDK's, end to end."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from softswitch.build.native import default_cache_dir
from softswitch.engine import xdp
from softswitch.engine.dpdk import eal
from softswitch.engine.dpdk.device import DpdkError
from softswitch.engine.xdp import XdpError

from netfold.testbed import Testbed
from netfold.testbed.network.targets import Launch, Port, Softswitch
from tests.testbed.test_testbed_runs import SUM

pytestmark = [pytest.mark.root, pytest.mark.mininet, pytest.mark.slow]

Interface = Callable[[Launch, Port, Path], str]
AFTER = "for socket in {sockets}; do until [ -S $socket ]; do sleep 0.1; done; done; exec "
"""DPDK opens the client's end of a link only after the server's. The network's own deadline ends the wait."""


def of_xdp(launch: Launch, port: Port, folder: Path) -> str:
    return f"xdp:{port.interface}"


def of_packet_sockets(launch: Launch, port: Port, folder: Path) -> str:
    """Return DPDK's device. Those of two switches may have the same group in the kernel, so there is one switch."""
    return f"dpdk:net_af_packet{port.number},iface={port.interface}"


def of_shared_memory(launch: Launch, port: Port, folder: Path) -> str:
    """Return a device of shared memory where the link's other end is a switch."""
    if not port.peer.startswith(("leaf", "spine")):
        return port.interface
    ends = sorted((launch.name, port.peer))
    role = "server" if launch.name == ends[0] else "client"
    socket = folder / f"{'-'.join(ends)}.sock"
    return f"dpdk:net_memif{port.number},socket={socket},socket-abstract=no,role={role}"


def problem(interface: Interface) -> str:
    """Return why this machine has no such ports, or "" if it has them."""
    try:
        if interface is of_xdp:
            xdp.load(default_cache_dir(), 1, "a port").close()
        else:
            eal.compiler_flags()
    except (XdpError, DpdkError) as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("interface", "fabric"),
    [(of_xdp, "single"), (of_packet_sockets, "single"), (of_shared_memory, "leaf-spine-2x2")],
)
def test_workers_get_right_sums(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, interface: Interface, fabric: str
) -> None:
    """Links carry frames one by one: these ports take no runs of the kernel."""
    if lacks := problem(interface):
        pytest.skip(f"SKIPPED: needs such ports: {lacks}")
    command = Softswitch.command

    def with_devices(self: Softswitch, launch: Launch) -> list[str]:
        words = command(self, launch)
        for port in launch.ports:
            at = words.index(f"{port.number}@{port.interface}")
            words[at] = f"{port.number}@{interface(launch, port, tmp_path)}"
        sockets = re.findall(r"socket=([^,]+),\S+role=client", " ".join(words))
        return ["sh", "-c", AFTER.format(sockets=" ".join(sockets)) + shlex.join(words)]

    monkeypatch.setattr(Softswitch, "command", with_devices)
    monkeypatch.setattr(Softswitch, "takes_bursts", False)
    with Testbed(fabric, target="softswitch", lanes=64, name="dpd", first_grpc_port=9680) as testbed:
        results = testbed.submit("sums", SUM, scheme="switchml").result()
        assert set(results) == set(testbed.workers)
    assert sum(r["wrong_elements"] for r in results.values()) == 0
