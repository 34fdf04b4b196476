# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The state of this process, for systemd (sd_notify). Without systemd nothing is sent."""

from __future__ import annotations

import contextlib
import os
import socket


def notify_systemd(state: str) -> None:
    """Never blocks: systemd may be slow."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):  # of the abstract namespace
        address = "\0" + address[1:]
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        sender.sendto(state.encode(), address)


def systemd_watchdog_s() -> float:
    """The unit's WatchdogSec; 0 without one."""
    microseconds = os.environ.get("WATCHDOG_USEC", "")
    return int(microseconds) / 1e6 if microseconds.isdecimal() else 0.0
