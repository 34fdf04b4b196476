# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Sends the state of this process to systemd (sd_notify). Without systemd nothing is sent."""

from __future__ import annotations

import contextlib
import os
import socket


class SystemdNotifier:
    """Notifies without blocking: systemd may be slow, and a message lost. Each beat repeats the announcement. Its
    socket is opened once, as a process may run out of descriptors."""

    def __init__(self) -> None:
        address = os.environ.get("NOTIFY_SOCKET", "")
        # "@" stands for the first byte of a name in the abstract namespace (sd_notify(3)).
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) if address else None
        if self._socket is not None:
            self._socket.setblocking(False)
        self._announced = ""

    def announce(self, status: str) -> None:
        """Announce that the process serves."""
        self._announced = f"READY=1\nSTATUS={status}\n"
        self.beat()

    def beat(self) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.sendto(f"{self._announced}WATCHDOG=1".encode(), self._address)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()


def systemd_watchdog_s() -> float:
    """WatchdogSec of the unit; 0 without one."""
    microseconds = os.environ.get("WATCHDOG_USEC", "")
    return int(microseconds) / 1e6 if microseconds.isdecimal() else 0.0
