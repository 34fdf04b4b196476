# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""TCP senders in the hosts of a running network. The module is also their program:

bulk ADDRESS PORT CONTROL                      sends without pause
short ADDRESS PORT CONTROL SIZE RATE SECONDS   opens connections at random times, RATE a second, and sends SIZE bytes on
                                               each; then prints their durations in seconds, as JSON
"""

from __future__ import annotations

import json
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from netfold.testbed.errors import RunError
from netfold.testbed.network.network import Network

PORT = 7101
CHUNK = 1 << 16
FLOW_TIMEOUT_S = 10.0
PROGRAM = (sys.executable, "-P", "-m", "netfold.evaluation.testbed.fairness.hosts")


def start(net: Network, host: str, *arguments: object) -> subprocess.Popen[str]:
    """The program in a host."""
    process: subprocess.Popen[str] = net.hosts[host].popen(
        [*PROGRAM, *map(str, arguments)], stdout=subprocess.PIPE, text=True
    )
    return process


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()


def set_ecn(net: Network, allowed: bool) -> None:
    """Set whether new connections of the hosts request ECN."""
    for host in net.hosts.values():
        process = host.popen(["sh", "-c", f"echo {int(allowed)} > /proc/sys/net/ipv4/tcp_ecn"])
        if process.wait(FLOW_TIMEOUT_S):
            raise RunError("TCP's ECN cannot be set in a host: tcp_ecn is not writable")


def available() -> list[str]:
    """The kernel's congestion controls."""
    return Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()


# ---- the program in a host -----------------------------------------------------------------------------------------


def _socket(control: str) -> socket.socket:
    one = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
    return one


def _bulk(address: str, port: int, control: str) -> None:
    with _socket(control) as one:
        one.connect((address, port))
        while True:
            one.sendall(bytes(CHUNK))


def _transfer(address: str, port: int, control: str, size: int, found: list[float]) -> None:
    began = time.monotonic()
    with _socket(control) as one:
        one.connect((address, port))
        one.sendall(bytes(size))
        one.shutdown(socket.SHUT_WR)
        one.recv(1)
    found.append(time.monotonic() - began)


def _short(address: str, port: int, control: str, size: int, rate: float, seconds: float) -> None:
    rng, over = random.Random(1), time.monotonic() + seconds
    found: list[float] = []
    threads = []
    while time.monotonic() < over:
        thread = threading.Thread(target=_transfer, args=(address, port, control, size, found), daemon=True)
        thread.start()
        threads.append(thread)
        # the pace of the flows is the experiment
        time.sleep(min(rng.expovariate(rate), 10 / rate))
    last = time.monotonic() + FLOW_TIMEOUT_S
    for thread in threads:
        thread.join(max(0.0, last - time.monotonic()))
    sys.stdout.write(json.dumps({"seconds": found, "unfinished": len(threads) - len(found)}) + "\n")


def main(arguments: Sequence[str]) -> None:
    """The program in a host."""
    what, address, port, *rest = arguments
    if what == "bulk":
        _bulk(address, int(port), rest[0])
    else:
        _short(address, int(port), rest[0], int(rest[1]), float(rest[2]), float(rest[3]))


if __name__ == "__main__":
    main(sys.argv[1:])
