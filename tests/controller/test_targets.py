# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The same controller on switches that are not fakes: the embedded one, and BMv2 where it is installed."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from softswitch.testing import simple_switch
from softswitch.testing.simple_switch import free_port

from netfold.controller.switches.session import SwitchUnreachableError
from netfold.protocol.wire import Kind
from netfold.testbed.network.targets import installed_command
from netfold.topologies.generators import single_switch
from netfold.traffic.scapy_netfold import Netfold, gradient
from tests.controller.deployment import TIMEOUTS, Deployment

SLOW = dataclasses.replace(TIMEOUTS, restart=60.0, install=60.0)
"""A process that has to start may take its time."""
SPEC = "name: {}\nworkers: {}\nscheme: {}\nrate: 20\n"


@contextlib.contextmanager
def _process(
    target: str, port: int, folder: Path, links: Sequence[str] = ()
) -> Iterator[subprocess.Popen[bytes]]:
    """`links[n]` becomes port n + 1."""
    address = f"127.0.0.1:{port}"
    interfaces = [part for n, name in enumerate(links, 1) for part in ("-i", f"{n}@{name}")]
    if target == "softswitch":
        command = [
            installed_command("softswitch"),
            "--grpc-server-addr",
            address,
            "--device-id",
            "1",
            *interfaces,
        ]
    else:
        command = simple_switch.command(
            address, dict(enumerate(links, 1)), target_options=("--cpu-port", "510")
        )
    with (folder / "switch.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


@pytest.fixture(
    params=["softswitch", pytest.param("bmv2", marks=pytest.mark.bmv2)],
)
def target(request) -> str:
    needed = {"softswitch": "gcc", "bmv2": "simple_switch_grpc"}[request.param]
    if shutil.which(needed) is None:
        pytest.skip(f"{needed} is not on PATH")
    return request.param


async def _repaired(deployment: Deployment) -> int:
    """After one more audit."""
    health = deployment.controller.switches.fleet.health("s1")
    seen = health.audits
    await deployment.until(lambda: health.audits > seen + 1, "audited")
    return health.repaired


async def _slot(deployment: Deployment, slot: int):
    """A READ; the controller may have reconnected just now."""
    async with asyncio.timeout(10):
        while True:
            with contextlib.suppress(SwitchUnreachableError):
                return await deployment.controller.switches.slots.manage("s1", Kind.READ, slot)
            await deployment.controller.state.changes.wait()


async def test_install_audit_take_over_and_restart(target, tmp_path):
    deployment = Deployment(single_switch(4, parameter_servers=1), tmp_path, audit_s=0.2, timeouts=SLOW)
    port = deployment.switches["s1"].port = free_port()
    with _process(target, port, tmp_path):
        deployment.start()
        await deployment.settled()
        await deployment.controller.requests.submit(SPEC.format("a", "[h1, h2, h3]", "switchml"), queue=False)
        await deployment.controller.requests.submit(SPEC.format("b", "[h3, h4]", "none"), queue=False)
        await deployment.settled()
        assert await _repaired(deployment) == 0, "an audit finds another entry than was written"
        view = await _slot(deployment, 3)
        assert (view.epoch, view.bitmap, view.slot) == (0, 0, 3)
        await deployment.kill()

        deployment.start()
        await deployment.settled()
        assert await _repaired(deployment) == 0, "nothing had to be written again"
        assert deployment.job("a").epoch == 1
        deployment.controller.requests.cancel("b")
        await deployment.settled()
        assert await _repaired(deployment) == 0
    with _process(target, port, tmp_path):
        await deployment.until(lambda: deployment.job("a").epoch == 2, "a new epoch")
        await deployment.settled()
        assert await _repaired(deployment) == 0
        assert len(await deployment.controller.switches.fleet.sessions["s1"].read_counters([0, 33])) == 2
    await deployment.kill()


async def test_another_stores_switch_is_emptied_and_taken_over(target, tmp_path):
    port = free_port()
    with _process(target, port, tmp_path):
        for folder in ("first", "second"):
            (tmp_path / folder).mkdir()
            deployment = Deployment(single_switch(4), tmp_path / folder, audit_s=0.2)
            deployment.switches["s1"].port = port
            deployment.start()
            await deployment.settled()
            await deployment.controller.requests.submit(
                SPEC.format(folder, "[h1, h2]", "switchml"), queue=False
            )
            await deployment.settled()
            assert await _repaired(deployment) == 0
            reset = await deployment.controller.switches.slots.manage("s1", Kind.RESET, 5)
            assert (reset.epoch, reset.slot) == (0, 5)
            await deployment.kill()


@contextlib.contextmanager
def _links(count: int) -> Iterator[tuple[list[str], list[socket.socket]]]:
    """The switch's ends by name, and the hosts' ends as sockets."""
    names = [f"nfct{os.getpid()}.{n}" for n in range(count)]
    hosts: list[socket.socket] = []
    try:
        for name in names:
            _ip("link", "add", name, "type", "veth", "peer", "name", f"{name}h")
            for end in (name, f"{name}h"):
                _ip("link", "set", end, "up")
            hosts.append(socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)))
            hosts[-1].bind((f"{name}h", 0))
            hosts[-1].settimeout(20)
        yield names, hosts
    finally:
        for host in hosts:
            host.close()
        for name in names:
            subprocess.run(["ip", "link", "del", name], check=False, capture_output=True, timeout=20)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, timeout=20)


def _add_up(deployment: Deployment, hosts: Sequence[socket.socket], chunk: int) -> None:
    """Both workers of the job send a chunk."""
    job = deployment.job("job")
    tree, edges = job.placement.trees[0], job.placement.plan.trees[0].edges
    known = deployment.controller.state.config.addresses
    for child, edge in enumerate(edges):
        source = known.hosts[edge.child]
        packet = (
            Ether(dst=known.switches["s1"].mac, src=source.mac)
            / IP(src=str(source.ip), dst=str(known.ip("s1")), flags="DF")
            / UDP(sport=job.udp_port, dport=job.udp_port, chksum=0)
            / gradient(tree.tree, child, chunk, tree.slots, job.epoch, [1] * 32)
        )
        hosts[int(edge.child.removeprefix("h")) - 1].send(bytes(packet))


def _results_before(host: socket.socket, chunk: int) -> int:
    """How many results of chunk 0 come before the first one of `chunk`, at a host."""
    results = 0
    while True:
        packet = Ether(host.recv(4096))
        if Netfold in packet and packet[Netfold].kind == 1:
            if packet[Netfold].slot == chunk:
                return results
            results += 1


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="SKIPPED: needs root for links and packet sockets")
async def test_after_another_stores_groups_each_result_comes_once(target, tmp_path):
    """Both stores give their job tree number 1 and so the same group, which BMv2 keeps over the push."""
    port = free_port()
    with _links(2) as (names, hosts), _process(target, port, tmp_path, names):
        for folder in ("first", "second"):
            (tmp_path / folder).mkdir()
            deployment = Deployment(single_switch(2), tmp_path / folder)
            deployment.switches["s1"].port = port
            deployment.start()
            try:
                await deployment.settled()
                await deployment.controller.requests.submit(
                    SPEC.format("job", "[h1, h2]", "switchml"), queue=False
                )
                await deployment.settled()
                for chunk in (0, 1):
                    _add_up(deployment, hosts, chunk)
                for host in hosts:
                    assert await asyncio.to_thread(_results_before, host, 1) == 1
            finally:
                await deployment.kill()
