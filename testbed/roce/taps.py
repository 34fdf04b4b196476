# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Tests whether this process can make taps, which link machines to their leaves."""

from __future__ import annotations

import os
from pathlib import Path

TUN = Path("/dev/net/tun")


def find_obstacle() -> str | None:
    """Why taps cannot be made, and what root has to do; None if they can, as far as the device's file shows."""
    if not TUN.exists():
        container = f"a container needs --device {TUN}"
        return f"{TUN} is missing: root has to load its module (modprobe tun); {container}"
    if not os.access(TUN, os.R_OK | os.W_OK):
        return f"{TUN} is closed for this user: root has to open it (chmod 0666 {TUN})"
    return None
