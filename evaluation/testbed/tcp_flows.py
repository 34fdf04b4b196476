# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Cross traffic by TCP over a chosen spine. ECMP spreads flows by their ports, so each sender opens several
connections; the links' counters show which path each takes, and one over the chosen spine is used.

The module is also the program in the sending hosts, `ADDRESS PORT CONNECTIONS`, which reads commands, one a line, from
its standard input.
"""

from __future__ import annotations

import fcntl
import select
import socket
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import Self

from netfold.evaluation.testbed.tcp_sink import listening
from netfold.testbed.errors import RunError
from netfold.testbed.network.network import Network

PORT = 7001
CONNECTIONS = 12
TRIAL_BYTES = 30_000
CHUNK = 4096
CONNECT_TIMEOUT_S = 10.0
ACKNOWLEDGED_TIMEOUT_S = 10.0
MAX_BACKLOG_S = 0.2


class TcpSender:
    """A process in a host with connections to one receiver."""

    def __init__(self, net: Network, sender: str, receiver: str) -> None:
        self.sender, self.receiver = sender, receiver
        address = str(net.addressing.hosts[receiver].ip)
        self._process = net.hosts[sender].popen(
            [*PROGRAM, address, PORT, CONNECTIONS],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.read_answer()
        self.chosen: int | None = None

    def command(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def read_answer(self) -> None:
        """Reads the sender's answer. Raises RunError."""
        assert self._process.stdout is not None
        if not self._process.stdout.readline():
            raise RunError(f"the TCP sender on {self.sender} does not reach {self.receiver}")

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


class CrossTraffic:
    """Flows between pairs of hosts over the links of `spine`; a context manager."""

    def __init__(self, net: Network, pairs: Sequence[tuple[str, str]], spine: str) -> None:
        self._net, self._pairs, self._spine = net, pairs, spine
        self._open = ExitStack()
        self.flows: list[TcpSender] = []

    def __enter__(self) -> Self:
        net = self._net
        try:
            for receiver in sorted({r for _, r in self._pairs}):
                self._open.enter_context(listening(net, receiver, PORT))
            for sender, receiver in self._pairs:
                flow = TcpSender(net, sender, receiver)
                self._open.callback(flow.close)
                self.flows.append(flow)
            for flow in self.flows:
                flow.chosen = self._connection_over_spine(flow)
        except BaseException:
            self._open.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def start(self, mbps: float) -> None:
        """Every sender starts to send `mbps` of payload."""
        for flow in self.flows:
            flow.command(f"start {flow.chosen} {mbps}")

    def stop(self) -> None:
        for flow in self.flows:
            flow.command("stop")

    def _connection_over_spine(self, flow: TcpSender) -> int:
        """The number of a sender's connection over the spine. Raises RunError if there is none."""
        leaf = self._net.fabric.attachment(flow.sender)
        for i in range(CONNECTIONS):
            before = self._net.link_bytes()[leaf, self._spine]
            flow.command(f"try {i}")
            flow.read_answer()
            if self._net.link_bytes()[leaf, self._spine] - before > TRIAL_BYTES / 2:
                return i
        raise RunError(f"none of {CONNECTIONS} connections from {flow.sender} goes over {self._spine}")


PROGRAM = (sys.executable, "-P", "-m", "netfold.evaluation.testbed.tcp_flows")


# ---- the program in a host -----------------------------------------------------------------------------------------


def _send(address: str, port: int, count: int) -> None:
    sockets = [socket.create_connection((address, port), timeout=CONNECT_TIMEOUT_S) for _ in range(count)]
    _print("open")
    active: socket.socket | None = None
    rate, sent, since = 0.0, 0, 0.0
    while True:
        due = (time.monotonic() - since) * rate * 1e6 / 8
        wait = None if active is None else 0.0 if sent < due else 0.002
        if select.select([sys.stdin], [], [], wait)[0]:
            line = sys.stdin.readline()
            if not line:
                return
            word, *rest = line.split()
            if word == "try":
                sockets[int(rest[0])].sendall(bytes(TRIAL_BYTES))
                _wait_acknowledged(sockets[int(rest[0])])
                _print("sent")
            elif word == "start":
                active, rate, sent, since = sockets[int(rest[0])], float(rest[1]), 0, time.monotonic()
                active.settimeout(0.05)
            else:
                active = None
        elif active is not None and sent < due:
            with suppress(TimeoutError):
                sent += active.send(bytes(CHUNK))
            if (
                due - sent > rate * 1e6 / 8 * MAX_BACKLOG_S
            ):  # bytes that could not be sent are not made up for
                sent, since = 0, time.monotonic()


def _wait_acknowledged(one: socket.socket) -> None:
    """Waits until all sent bytes are acknowledged: then every link of the path has counted them. Raises
    TimeoutError."""
    deadline = time.monotonic() + ACKNOWLEDGED_TIMEOUT_S
    while int.from_bytes(fcntl.ioctl(one, termios.TIOCOUTQ, bytes(4)), sys.byteorder):
        if time.monotonic() > deadline:
            raise TimeoutError(f"bytes are not acknowledged within {ACKNOWLEDGED_TIMEOUT_S:g} s")
        time.sleep(0.005)  # Linux has no event for an empty send queue


def _print(word: str) -> None:
    sys.stdout.write(word + "\n")
    sys.stdout.flush()


def main(arguments: Sequence[str]) -> None:
    """The program in a host."""
    address, port, count = arguments
    _send(address, int(port), int(count))


if __name__ == "__main__":
    main(sys.argv[1:])
