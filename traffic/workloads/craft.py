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

NO_ANSWER = (
    "no answer  the sum waits for other children, or a switch refused the packet without a word: `netfold job slot` "
    "shows whose contributions a slot has, `netfold controller top` counts what switches refuse, by verdict, and "
    "`netfold job show NAME --packets` has the fields that they take"
)


def exchange(destination: str, port: int, packets: Sequence[Any], seconds: float) -> Iterator[str]:
    """Sends scapy packets (from the netfold layer up) with the job's port at both ends; gives a line for each, for each
    that comes back within `seconds`, and for the reasons if none does. Raises TransportError."""
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
        is_answered = False
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            sock.settimeout(left)
            try:
                yield "received  " + describe(sock.recv(65535))
            except TimeoutError:
                break
            except ConnectionRefusedError:
                yield f"refused   no process listens at {destination}:{port}"
            is_answered = True
        if not is_answered:
            yield NO_ANSWER


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
