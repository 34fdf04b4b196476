# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A hand-made packet out, and the RESULT that comes back: `netfold host send`."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

from netfold.protocol.wire import Kind, Packet, WireError
from netfold.traffic.packets.transport import Address, TransportError


@contextmanager
def packet_socket(port: int, root: str) -> Iterator[socket.socket]:
    """A UDP socket from the job's port to the same port of the root's address. Raises TransportError."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.bind(("0.0.0.0", port))
            sock.connect((root, port))
        except OSError as error:
            raise TransportError(
                error.errno,
                f"no socket from UDP port {port} to {root}: {error.strerror}; another `netfold host send` on this host "
                "may wait for a RESULT",
            ) from error
        yield sock


def receive_result(sock: socket.socket, sent: Packet, seconds: float) -> Packet | None:
    """The RESULT of the chunk that `sent` is of; None if none comes within `seconds`. Raises TransportError if no
    process listens at the root, which is a parameter server then."""
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        sock.settimeout(left)
        try:
            packet = Packet.parse(sock.recv(65535))
        except TimeoutError:
            return None
        except WireError:
            continue
        except ConnectionRefusedError as error:
            peer = Address(*sock.getpeername())
            raise TransportError(
                error.errno, f"no process listens at {peer.host}:{peer.port}, the root of the tree"
            ) from error
        if packet.kind is Kind.RESULT and _chunk(packet) == _chunk(sent):
            return packet
    return None


def _chunk(packet: Packet) -> tuple[int, int, int, int]:
    return packet.tree, packet.epoch, packet.round, packet.slot


def shown_lanes(lanes: tuple[int, ...], shown: int = 4) -> str:
    """The first lanes, and the number of all."""
    more = ", ..." if len(lanes) > shown else ""
    return f"{len(lanes)} lanes [{', '.join(map(str, lanes[:shown]))}{more}]"
