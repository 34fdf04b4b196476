# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Foreign TCP traffic over a chosen spine. Flows are spread by their ports, so each sender opens several connections,
and what the links count says which of them take which way; only such as take the chosen one are used.

The module is also the program that runs in the hosts: `sink ADDRESS PORT`, and `send ADDRESS PORT CONNECTIONS`, which
is told what to do by lines on its standard input.
"""

from __future__ import annotations

import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import Self

from netfold.testbed.counters import read_link_bytes
from netfold.testbed.errors import RunError
from netfold.topologies.network.builder import Network

PORT = 7001
CONNECTIONS = 12
TRIAL_BYTES = 30_000
LOOKS, LOOK_S = 6, 0.05
CHUNK = 4096
LISTENING_S = 10.0
BEHIND_S = 0.2


class Flow:
    """One sender and where its connection goes."""

    def __init__(self, net: Network, sender: str, receiver: str) -> None:
        self.sender, self.receiver = sender, receiver
        address = str(net.addressing.hosts[receiver].ip)
        self._process = net.hosts[sender].popen(
            [*PROGRAM, "send", address, PORT, CONNECTIONS],
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
                address = str(net.addressing.hosts[receiver].ip)
                sink = net.hosts[receiver].popen([*PROGRAM, "sink", address, PORT], stdout=subprocess.PIPE)
                self._open.callback(_end, sink)
                if sink.stdout is None or not sink.stdout.readline():
                    raise RunError(f"no TCP sink on {receiver}")
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
            for _ in range(LOOKS):
                time.sleep(LOOK_S)
                if read_link_bytes(self._net)[leaf, self._spine] - before > TRIAL_BYTES / 2:
                    return i
        raise RunError(f"none of {CONNECTIONS} connections from {flow.sender} goes over {self._spine}")


PROGRAM = (sys.executable, "-P", "-m", "netfold.measure.tcp_flows")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


# ---- in the hosts -----------------------------------------------------------------------------------------


def _sink(address: str, port: int) -> None:
    with socket.create_server((address, port), backlog=64) as listener:
        sys.stdout.write("listening\n")
        sys.stdout.flush()
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=_drain, args=(connection,), daemon=True).start()


def _drain(connection: socket.socket) -> None:
    with connection:
        while connection.recv(1 << 16):
            continue


def _send(address: str, port: int, count: int) -> None:
    sockets = [socket.create_connection((address, port), timeout=LISTENING_S) for _ in range(count)]
    for one in sockets:
        one.settimeout(0.05)
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
                _say("sent")
            elif word == "go":
                going, rate, sent, since = sockets[int(rest[0])], float(rest[1]), 0, time.monotonic()
            else:
                going = None
        elif going is not None and sent < due:
            with suppress(TimeoutError):
                sent += going.send(bytes(CHUNK))
            if due - sent > rate * 1e6 / 8 * BEHIND_S:  # what could not be sent is not made up for
                sent, since = 0, time.monotonic()


def _say(word: str) -> None:
    sys.stdout.write(word + "\n")
    sys.stdout.flush()


def main(arguments: Sequence[str]) -> None:
    """What a host runs."""
    if arguments[0] == "sink":
        _sink(arguments[1], int(arguments[2]))
    else:
        _send(arguments[1], int(arguments[2]), int(arguments[3]))


if __name__ == "__main__":
    main(sys.argv[1:])
