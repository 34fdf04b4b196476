# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The receiver of TCP cross traffic. The module is also the program in a host, `ADDRESS PORT`: it reads and discards
what it receives, and closes a connection that its peer closes."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from netfold.testbed.errors import RunError
from netfold.testbed.network.network import Network

PROGRAM = (sys.executable, "-P", "-m", "netfold.evaluation.testbed.tcp_sink")
CHUNK = 1 << 16


@contextmanager
def listening(net: Network, host: str, port: int) -> Iterator[None]:
    """Within, the host accepts connections. Raises RunError."""
    address = str(net.addressing.hosts[host].ip)
    process = net.hosts[host].popen([*PROGRAM, address, port], stdout=subprocess.PIPE)
    try:
        if not process.stdout or not process.stdout.readline():
            raise RunError(f"no TCP sink on {host}")
        yield
    finally:
        process.kill()
        process.wait()


# ---- the program in a host ------------------------------------------------------------------------------------------


def _drain(connection: socket.socket) -> None:
    with connection:
        while connection.recv(CHUNK):
            continue


def main(arguments: Sequence[str]) -> None:
    """The program in a host."""
    address, port = arguments
    with socket.create_server((address, int(port)), backlog=64) as listener:
        sys.stdout.write("listening\n")
        sys.stdout.flush()
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=_drain, args=(connection,), daemon=True).start()


if __name__ == "__main__":
    main(sys.argv[1:])
