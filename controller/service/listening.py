# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Says why nothing can listen at an address: what holds it, and what to do."""

from __future__ import annotations

import errno
import os
import socket
from contextlib import suppress
from pathlib import Path

_LISTENS = "0A"
"""State of a socket in /proc/net/tcp."""


class ListenError(Exception):
    """The service or its metrics cannot listen; the message has the address, the reason and a remedy."""


def reason(error: OSError, port: int, option: str) -> str:
    """The reason of an error at binding a TCP port, and a remedy. `option`: chooses another port."""
    if error.errno == errno.EADDRINUSE:
        return f"{_holder(port)} listens there; end it, or choose another port by {option}"
    return f"{error.strerror or error}; choose another address by {option}"


def tcp_reason(listen: str, option: str) -> str:
    """The reason why HOST:PORT cannot be bound, which gRPC leaves out; "" if it can."""
    host, _, port = listen.rpartition(":")
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        socket.create_server(address, family=family).close()
    except OSError as error:
        return reason(error, int(port) if port.isdecimal() else 0, option)
    return ""


def _holder(port: int) -> str:
    """The process that listens at a TCP port, if this user may see it."""
    sockets = set()
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            rows = [row.split() for row in Path(f"/proc/net/{table}").read_text().splitlines()[1:]]
            sockets |= {
                f"socket:[{row[9]}]"
                for row in rows
                if row[3] == _LISTENS and int(row[1].rpartition(":")[2], 16) == port
            }
    for descriptor in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):  # it has ended
            if str(descriptor.readlink()) in sockets:
                process = descriptor.parts[2]
                name = Path("/proc", process, "comm").read_text().strip()
                return "this process" if int(process) == os.getpid() else f"process {process} ({name})"
    return "another process"
