# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Background flows: the other users of the links, at a given rate over UDP, or as fast as TCP goes."""

from __future__ import annotations

import socket
import time
from enum import StrEnum


class Protocol(StrEnum):
    UDP = "udp"
    TCP = "tcp"


def send_flow(
    host: str, port: int, protocol: Protocol, rate_mbps: float, seconds: float, size: int
) -> dict[str, float]:
    """Sends for `seconds` in writes of `size` bytes at `rate_mbps` of payload (0: as fast as it goes).
    Gives bytes, seconds and Mbit/s. Raises OSError if the port is closed (TCP)."""
    kind = socket.SOCK_DGRAM if protocol is Protocol.UDP else socket.SOCK_STREAM
    payload = bytes(size)
    sent = 0
    with socket.socket(socket.AF_INET, kind) as sock:
        sock.settimeout(seconds)
        sock.connect((host, port))
        started = now = time.monotonic()
        while (now := time.monotonic()) < started + seconds:
            due = (now - started) * rate_mbps * 1e6 / 8 if rate_mbps else float("inf")
            if sent > due:
                # the rate is what is asked for
                time.sleep(max(0.001, (sent - due) * 8 / (rate_mbps * 1e6)))
                continue
            try:
                sent += sock.send(payload)
            except (
                ConnectionRefusedError
            ):  # UDP: an ICMP error for a closed port; the load counts nevertheless
                continue
            except TimeoutError:
                break
    return _rates(sent, now - started)


def sink_flow(host: str, port: int, protocol: Protocol, seconds: float) -> dict[str, float]:
    """Takes all that comes to `host`:`port` for `seconds`. Gives bytes, seconds and Mbit/s."""
    deadline = time.monotonic() + seconds
    taken = 0
    if protocol is Protocol.UDP:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.bind((host, port))
            taken = _drain(sock, deadline)
    else:
        with socket.create_server((host, port)) as listener:
            listener.settimeout(seconds)
            try:
                sock, _ = listener.accept()
            except TimeoutError:
                return _rates(0, seconds)
            with sock:
                taken = _drain(sock, deadline)
    return _rates(taken, seconds)


def _drain(sock: socket.socket, deadline: float) -> int:
    taken = 0
    while (left := deadline - time.monotonic()) > 0:
        sock.settimeout(left)
        try:
            count = len(sock.recv(1 << 16))
        except TimeoutError:
            break
        if count == 0 and sock.type == socket.SOCK_STREAM:
            break
        taken += count
    return taken


def _rates(nbytes: int, seconds: float) -> dict[str, float]:
    return {
        "bytes": nbytes,
        "seconds": round(seconds, 3),
        "mbps": round(nbytes * 8e-6 / max(seconds, 1e-9), 3),
    }
