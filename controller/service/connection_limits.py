# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Limits the connections of the service: any process may open one, so a flood of them must leave file descriptors for
switches and the store."""

from __future__ import annotations

import resource
from dataclasses import dataclass

HANDSHAKE_S = 10.0
MAX_CONNECTIONS = 1 << 20


@dataclass(frozen=True)
class ConnectionLimits:
    """Limits of connections. `connections`: maximum open at once, further ones are closed. `handshake_s`: an open one
    without TLS and HTTP/2 is closed after that."""

    connections: int
    handshake_s: float = HANDSHAKE_S

    def options(self) -> list[tuple[str, int]]:
        """The options for the server of gRPC."""
        return [
            ("grpc.max_allowed_incoming_connections", self.connections),
            ("grpc.server_handshake_timeout_ms", round(1000 * self.handshake_s)),
        ]


def raise_file_limit() -> None:
    """Let this process open the maximum number of files that it may."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def limits_of_process() -> ConnectionLimits:
    """The limits of this process: half of the files that it may open are for connections."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = 2 * MAX_CONNECTIONS if soft == resource.RLIM_INFINITY else soft
    return ConnectionLimits(min(files // 2, MAX_CONNECTIONS))
