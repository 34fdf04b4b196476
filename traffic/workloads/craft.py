# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Hand-made packets out, and what comes back in words: `netfold host send`."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Sequence
from typing import Any

from netfold.protocol.wire import Packet, WireError
from netfold.traffic.packets.transport import TransportError


def exchange(destination: str, port: int, packets: Sequence[Any], seconds: float) -> Iterator[str]:
    """Sends scapy packets (from the netfold layer up) with the job's port at both ends; gives a line for
    each, and for each that comes back within `seconds`. Raises TransportError."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.bind(("0.0.0.0", port))
            sock.connect((destination, port))
        except OSError as error:
            raise TransportError(
                error.errno, f"no socket from port {port} to {destination}: {error.strerror}"
            ) from error
        for packet in packets:
            payload = bytes(packet)
            sock.send(payload)
            yield "sent      " + describe(payload)
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            sock.settimeout(left)
            try:
                yield "received  " + describe(sock.recv(65535))
            except TimeoutError:
                return
            except ConnectionRefusedError:
                yield f"refused   no process listens at {destination}:{port}"


def describe(payload: bytes) -> str:
    """One packet in one line, or why it is none."""
    try:
        packet = Packet.parse(payload)
    except WireError as error:
        return f"{len(payload)} bytes that are no netfold packet: {error}"
    lanes = ", ".join(map(str, packet.lane[:4])) + (", ..." if len(packet.lane) > 4 else "")
    marks = "".join(f" {flag.name.lower()}" for flag in packet.flags if flag.name)
    return (
        f"{packet.kind.name} tree {packet.tree} epoch {packet.epoch} round {packet.round} slot {packet.slot} "
        f"child {packet.child} exponent {packet.exponent}{marks} lanes [{lanes}]"
    )
