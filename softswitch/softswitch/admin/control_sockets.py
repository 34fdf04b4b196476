# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Default paths of control sockets."""

from __future__ import annotations

import os
from pathlib import Path


def thrift_socket(port: int) -> Path:
    """The control socket of the switch with --thrift-port `port`: one per number, user and machine."""
    user = os.geteuid()
    folder = "/run" if user == 0 else os.environ.get("XDG_RUNTIME_DIR", f"/tmp/softswitch-{user}")
    return Path(folder) / "softswitch" / f"{port}.sock"
