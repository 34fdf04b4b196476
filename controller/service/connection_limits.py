# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""How many connections the service takes: any process may open one, so that a flood of them must leave file descriptors
for switches and the store."""

from __future__ import annotations

import resource
from dataclasses import dataclass

HANDSHAKE_S = 10.0
MAX_CONNECTIONS = 1 << 20


@dataclass(frozen=True)
class ConnectionLimits:
    """`connections`: open at once, further ones are closed. `handshake_s`: an open one without TLS and HTTP/2 is closed
    after that."""

    connections: int
    handshake_s: float = HANDSHAKE_S

    def options(self) -> list[tuple[str, int]]:
        """Of gRPC's server."""
        return [
            ("grpc.max_allowed_incoming_connections", self.connections),
            ("grpc.server_handshake_timeout_ms", round(1000 * self.handshake_s)),
        ]


def raise_file_limit() -> None:
    """Lets this process open as many files as it may."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def limits_of_process() -> ConnectionLimits:
    """Half of the files that this process may open are for connections."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = 2 * MAX_CONNECTIONS if soft == resource.RLIM_INFINITY else soft
    return ConnectionLimits(min(files // 2, MAX_CONNECTIONS))
