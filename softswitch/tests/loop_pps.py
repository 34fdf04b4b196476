# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Processor time of a packet by the kind of port, beside testpmd: two ports in a loop, where the same frames go round.

python softswitch/tests/loop_pps.py [ROUNDS] [SECONDS]

The program is a wire. Links are a veth pair between the two ports, or rings of DPDK (net_ring), with no driver and no
kernel behind them. testpmd swaps addresses on the same rings. Needs root, libdpdk-dev and dpdk-dev."""

from __future__ import annotations

import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testnet import Namespace, SwitchProcess, ethernet, ip, of_kind

SIZE, IN_FLIGHT, BURST = 1082, 64, 32
VETH = ("-i", "1@sw1", "-i", "2@sw2")
RINGS = ("-i", "1@dpdk:net_ring0", "-i", "2@dpdk:net_ring1")
TESTPMD = (
    "stdbuf -oL dpdk-testpmd --lcores=(0,1)@({}) --no-huge --no-shconf -m 256 --no-pci --no-telemetry "
    "--vdev=net_ring0 --vdev=net_ring1 -- -i --forward-mode=macswap --total-num-mbufs=8192 "
    f"--burst={BURST} --txpkts={SIZE}"
)


WARM_UP_S = 0.5


def cpu_ns(pid: int) -> int:
    """Processor time of all threads of a process, user and system."""
    return sum(int((t / "schedstat").read_text().split()[0]) for t in Path(f"/proc/{pid}/task").iterdir())


@contextmanager
def links() -> Iterator[Namespace]:
    namespace = Namespace(0)
    try:
        ip("-n", namespace.name, "link", "add", "sw1", "type", "veth", "peer", "name", "sw2")
        for end in ("sw1", "sw2"):
            ip("-n", namespace.name, "link", "set", end, "up")
        yield namespace
    finally:
        namespace.close()


def softswitch(seconds: float, *ports: str) -> float:
    """Nanoseconds of a packet."""
    host, end = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with links() as namespace, tempfile.TemporaryDirectory() as folder:
        descriptors = ("--socket", f"3={end.fileno()}")
        switch = SwitchProcess(
            namespace, Path(folder), *ports, *descriptors, program="wire", pass_fds=[end.fileno()]
        )
        try:
            for _ in range(IN_FLIGHT):
                host.send(ethernet(0x88B5, bytes(SIZE - 14)))

            def seen() -> int:
                return sum(int(switch.port(number)["link"]["rx_packets"]) for number in (1, 2))

            time.sleep(WARM_UP_S)  # caches and clock rates settle
            packets, used = seen(), cpu_ns(switch.process.pid)
            time.sleep(seconds)  # the frames go round by themselves
            used, packets = cpu_ns(switch.process.pid) - used, seen() - packets
        finally:
            switch.kill()
            host.close()
            end.close()
    return used / packets


def testpmd(seconds: float) -> float:
    """Nanoseconds of a packet."""
    words = TESTPMD.format(",".join(map(str, os.sched_getaffinity(0)))).split()
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def command(text: str) -> None:
            process.stdin.write(f"{text}\n")
            process.stdin.flush()

        def seen() -> int:
            command("show port stats all")
            found: list[int] = []
            while len(found) < 2:
                found += map(int, re.findall(r"RX-packets: (\d+)", process.stdout.readline()))
            return sum(found)

        command("start tx_first")
        seen()
        time.sleep(WARM_UP_S)  # caches and clock rates settle
        packets, used = seen(), cpu_ns(process.pid)
        time.sleep(seconds)  # testpmd needs nothing meanwhile
        used, packets = cpu_ns(process.pid) - used, seen() - packets
        command("quit")
        process.stdout.read()
    return used / packets


def main(rounds: int = 5, seconds: float = 2.0) -> None:
    targets = {
        "packet": lambda: softswitch(seconds, *VETH),
        "xdp": lambda: softswitch(seconds, *of_kind("xdp", VETH)),
        "dpdk": lambda: softswitch(seconds, *RINGS),
        "testpmd": lambda: testpmd(seconds),
    }
    measured: dict[str, list[float]] = {name: [] for name in targets}
    for _ in range(rounds):
        for name, measure in targets.items():
            measured[name].append(measure())
    for name, times in measured.items():
        ratios = [own / peer for own, peer in zip(times, measured["dpdk"], strict=True)]
        row = {"port": name, "ns": round(statistics.median(times)), "least": round(min(times))}
        row |= {"pps_per_cpu_s": round(1e9 / statistics.median(times))}
        spread = [round(value, 2) for value in (min(ratios), statistics.median(ratios), max(ratios))]
        sys.stdout.write(json.dumps({**row, "to_dpdk": spread, "load": os.getloadavg()[0]}) + "\n")


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:3]))
