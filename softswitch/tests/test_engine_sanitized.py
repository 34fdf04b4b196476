# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The engine under AddressSanitizer and ThreadSanitizer: frames both ways while ports, faults and links come and go."""

from __future__ import annotations

import contextlib
import os
import random
import socket
import subprocess
from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from softswitch.engine.dpdk import eal
from testnet import DEADLINE_S, Namespace, dpdk_problem, ethernet, of_kind

HERE = Path(__file__).parent
ENGINE = HERE.parent / "softswitch" / "engine"
SECONDS = 3


SANITIZERS = ["address,undefined", "thread"]


@pytest.fixture(scope="module", params=SANITIZERS)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[object]:
    """The command of the stress program, without its arguments."""
    sanitizer: str = request.param
    program = tmp_path_factory.mktemp("stress") / "stress"
    flags = ["-std=gnu11", "-g", "-O1", f"-fsanitize={sanitizer}", "-fno-omit-frame-pointer", "-pthread"]
    includes = [f"-I{ENGINE}", f"-I{ENGINE.parent / 'runtime'}"]
    sources = [HERE / "engine_stress.c", *ENGINE.glob("*.c")]
    libraries: list[str] = []
    if not dpdk_problem():
        includes += ["-DSS_DPDK", *eal.compiler_flags()]
        sources += (ENGINE / "dpdk").glob("*.c")
        libraries = eal.linker_flags()
    command = ["gcc", *flags, *includes, "-o", program, *sources, *libraries]
    subprocess.run(command, check=True, timeout=DEADLINE_S * 5)
    # ThreadSanitizer wants the address space laid out as it is used to.
    return [*(["setarch", "-R"] if sanitizer == "thread" else []), program]


def started(command: list[object], *pass_fds: int) -> subprocess.Popen[str]:
    stress = subprocess.Popen(
        list(map(str, command)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        pass_fds=pass_fds,
    )
    assert stress.stdout is not None
    assert stress.stdout.readline() == "ready\n"
    return stress


def check_end(stress: subprocess.Popen[str]) -> None:
    assert stress.stdout is not None
    said = stress.stdout.read()
    assert stress.wait(DEADLINE_S) == 0, said
    assert "Sanitizer" not in said
    assert "runtime error" not in said
    assert "done" in said


def frame(chance: random.Random) -> bytes:
    return ethernet(0x88B5, bytes(chance.choice((0, 1, 46, 50, 100, 498, 1000, 1500))))


def datagram(size: int) -> bytes:
    """A datagram of one flow: several of them form a run."""
    packet = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP(
        src="10.0.0.1", dst="10.0.0.2", flags="DF"
    )
    return bytes(packet / UDP(sport=7, dport=9, chksum=0) / bytes(size))


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
def test_nothing_is_misused_while_ports_on_sockets_come_and_go(
    tmp_path: Path, program: list[object], threads: int
) -> None:
    pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(2)]
    descriptors = [switch.fileno() for _, switch in pairs]
    command = [*program, SECONDS, threads, tmp_path]
    stress = started([*command, *(f"fd{d}" for d in descriptors)], *descriptors)
    chance = random.Random(1)
    try:
        while stress.poll() is None:
            with contextlib.suppress(BlockingIOError):  # the port was removed
                chance.choice(pairs)[0].send(frame(chance), socket.MSG_DONTWAIT)
            with contextlib.suppress(BlockingIOError):
                chance.choice(pairs)[0].recv(65536, socket.MSG_DONTWAIT)
        check_end(stress)
    finally:
        for ends in pairs:
            for end in ends:
                end.close()


@pytest.mark.slow
@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="SKIPPED: needs root for network namespaces and packet sockets")
@pytest.mark.parametrize("threads", [1, 2])
def test_nothing_is_misused_while_everything_changes(
    tmp_path: Path, program: list[object], threads: int, kind: str
) -> None:
    command = [*program, SECONDS, threads, tmp_path]
    namespace = Namespace(2, queues=threads)
    ports = [port.removeprefix("@") for port in of_kind(kind, ("@sw1", "@sw2"), threads)]
    try:
        stress = started(["ip", "netns", "exec", namespace.name, *command, *ports])
        hosts = [namespace.host(1), namespace.host(2)]
        chance = random.Random(1)
        run = [datagram(1000), datagram(1000), datagram(1000), datagram(999)]
        while stress.poll() is None:
            for _ in range(50):
                chance.choice(hosts).send(chance.choice(run) if chance.random() < 0.5 else frame(chance))
            if chance.random() < 0.02:
                namespace.remove_link(2)
                namespace.add_link(2)
                hosts[1].close()
                hosts[1] = namespace.host(2)
        for host in hosts:
            host.close()
        check_end(stress)
    finally:
        namespace.close()
