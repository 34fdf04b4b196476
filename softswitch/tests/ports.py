# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""TCP ports for servers that tests start."""

from __future__ import annotations

import socket


def free_port() -> int:
    """One that nobody on this machine listens at just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
