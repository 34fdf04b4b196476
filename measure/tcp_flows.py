# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Foreign TCP traffic over a chosen spine. Flows are spread by their ports, so each sender opens several connections,
and what the links count says which of them take which way; only such as take the chosen one are used.

The module is also the program that runs in the sending hosts, `ADDRESS PORT CONNECTIONS`, which is told what to do by
lines on its standard input.
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

from netfold.measure.tcp_sink import listening
from netfold.testbed.counters import read_link_bytes
from netfold.testbed.errors import RunError
from netfold.topologies.network.builder import Network

PORT = 7001
CONNECTIONS = 12
TRIAL_BYTES = 30_000
CHUNK = 4096
LISTENING_S = 10.0
BEHIND_S = 0.2


class Flow:
    """One sender and where its connection goes."""

    def __init__(self, net: Network, sender: str, receiver: str) -> None:
        self.sender, self.receiver = sender, receiver
        address = str(net.addressing.hosts[receiver].ip)
        self._process = net.hosts[sender].popen(
            [*PROGRAM, address, PORT, CONNECTIONS],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.expect()
        self.chosen: int | None = None

    def say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def expect(self) -> None:
        """The sender's answer. Raises RunError."""
        assert self._process.stdout is not None
        if not self._process.stdout.readline():
            raise RunError(f"the TCP sender on {self.sender} did not reach {self.receiver}")

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


class Foreign:
    """Flows between pairs of hosts over the links of `spine`; a context manager."""

    def __init__(self, net: Network, pairs: Sequence[tuple[str, str]], spine: str) -> None:
        self._net, self._pairs, self._spine = net, pairs, spine
        self._open = ExitStack()
        self.flows: list[Flow] = []

    def __enter__(self) -> Self:
        net = self._net
        try:
            for receiver in sorted({r for _, r in self._pairs}):
                self._open.enter_context(listening(net, receiver, PORT))
            for sender, receiver in self._pairs:
                flow = Flow(net, sender, receiver)
                self._open.callback(flow.close)
                self.flows.append(flow)
            for flow in self.flows:
                flow.chosen = self._way(flow)
        except BaseException:
            self._open.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def go(self, mbps: float) -> None:
        """Every flow sends at so much of payload, from now on."""
        for flow in self.flows:
            flow.say(f"go {flow.chosen} {mbps}")

    def stop(self) -> None:
        for flow in self.flows:
            flow.say("stop")

    def _way(self, flow: Flow) -> int:
        """The connection of a flow that goes over the spine. Raises RunError if there is none."""
        leaf = self._net.fabric.attachment(flow.sender)
        for i in range(CONNECTIONS):
            before = read_link_bytes(self._net)[leaf, self._spine]
            flow.say(f"try {i}")
            flow.expect()
            if read_link_bytes(self._net)[leaf, self._spine] - before > TRIAL_BYTES / 2:
                return i
        raise RunError(f"none of {CONNECTIONS} connections from {flow.sender} goes over {self._spine}")


PROGRAM = (sys.executable, "-P", "-m", "netfold.measure.tcp_flows")


# ---- in the hosts -----------------------------------------------------------------------------------------


def _send(address: str, port: int, count: int) -> None:
    sockets = [socket.create_connection((address, port), timeout=LISTENING_S) for _ in range(count)]
    _say("open")
    going: socket.socket | None = None
    rate, sent, since = 0.0, 0, 0.0
    while True:
        due = (time.monotonic() - since) * rate * 1e6 / 8
        wait = None if going is None else 0.0 if sent < due else 0.002
        if select.select([sys.stdin], [], [], wait)[0]:
            line = sys.stdin.readline()
            if not line:
                return
            word, *rest = line.split()
            if word == "try":
                sockets[int(rest[0])].sendall(bytes(TRIAL_BYTES))
                _wait_acknowledged(sockets[int(rest[0])])
                _say("sent")
            elif word == "go":
                going, rate, sent, since = sockets[int(rest[0])], float(rest[1]), 0, time.monotonic()
                going.settimeout(0.05)
            else:
                going = None
        elif going is not None and sent < due:
            with suppress(TimeoutError):
                sent += going.send(bytes(CHUNK))
            if due - sent > rate * 1e6 / 8 * BEHIND_S:  # what could not be sent is not made up for
                sent, since = 0, time.monotonic()


def _wait_acknowledged(one: socket.socket) -> None:
    """Until all that was sent has arrived, so that every link on the way has counted it."""
    while int.from_bytes(fcntl.ioctl(one, termios.TIOCOUTQ, bytes(4)), sys.byteorder):
        time.sleep(0.005)  # a socket tells nobody that its queue is empty


def _say(word: str) -> None:
    sys.stdout.write(word + "\n")
    sys.stdout.flush()


def main(arguments: Sequence[str]) -> None:
    """What a host runs."""
    address, port, count = arguments
    _send(address, int(port), int(count))


if __name__ == "__main__":
    main(sys.argv[1:])
