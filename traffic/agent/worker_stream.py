# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""An agent's end of the stream to its worker, and the news of the agent's membership as something to wait for."""

from __future__ import annotations

import contextlib
import ctypes
import select
import socket
import time
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from netfold.traffic.agent.messages import BODY_BYTES, Header, MessageType
from netfold.traffic.membership.base import Membership

_HEADER_BYTES = ctypes.sizeof(Header)
_READ_BYTES = 1 << 16
S = TypeVar("S", bound=ctypes.Structure)


class WorkerLostError(Exception):
    """The worker's process has ended, is silent, or cannot take part in an epoch."""


class WorkerEndedError(WorkerLostError):
    """The worker has closed its stream."""


class WorkerMessageError(WorkerLostError):
    """The worker sent what is no message of this version."""


class Message(NamedTuple):
    kind: MessageType
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode(errors="replace")

    def to(self, structure: type[S]) -> S:
        """Raises WorkerMessageError."""
        if len(self.body) != ctypes.sizeof(structure):
            raise WorkerMessageError(
                f"{self.kind.name} of {len(self.body)} bytes; expected {ctypes.sizeof(structure)}"
            )
        return structure.from_buffer_copy(self.body)


class WorkerStream:
    """The worker at the other end of `sock`. `received_at`: time.monotonic() of its last bytes."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._received = b""
        self.received_at = time.monotonic()

    def fileno(self) -> int:
        return self._sock.fileno()

    def silence_s(self) -> float:
        return time.monotonic() - self.received_at

    def receive(self, timeout_s: float) -> Message | None:
        """The next message; None after `timeout_s`. Raises WorkerEndedError and WorkerMessageError."""
        until = time.monotonic() + timeout_s
        while (message := self._take()) is None:
            if not select.select([self._sock], [], [], max(0.0, until - time.monotonic()))[0]:
                return None
            try:
                received = self._sock.recv(_READ_BYTES)
            except OSError as error:
                raise WorkerEndedError(f"{error}") from error
            if not received:
                raise WorkerEndedError("the worker has closed its stream")
            self._received += received
            self.received_at = time.monotonic()
        return message

    def _take(self) -> Message | None:
        if len(self._received) < _HEADER_BYTES:
            return None
        header = Header.from_buffer_copy(self._received)
        if header.size > BODY_BYTES or header.type not in MessageType._value2member_map_:
            raise WorkerMessageError(f"a message of type {header.type} and {header.size} bytes")
        end = _HEADER_BYTES + header.size
        if len(self._received) < end:
            return None
        message = Message(MessageType(header.type), self._received[_HEADER_BYTES:end])
        self._received = self._received[end:]
        return message

    def send(self, kind: MessageType, body: bytes = b"", sockets: Sequence[int] = ()) -> None:
        """Raises OSError."""
        message = bytes(Header(type=kind, size=len(body))) + body
        sent = socket.send_fds(self._sock, [message], sockets) if sockets else 0
        self._sock.sendall(message[sent:])

    def send_text(self, kind: MessageType, text: str) -> None:
        self.send(kind, text.encode()[:BODY_BYTES])


class MembershipNews:
    """Readable when the membership has changed since `take`; so it is at first."""

    def __init__(self, membership: Membership) -> None:
        self._membership = membership
        self._readable, self._written = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._written.setblocking(False)
        membership.on_change(self._announce)
        self._announce()

    def fileno(self) -> int:
        return self._readable.fileno()

    def _announce(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._written.send(b"1")

    def take(self) -> None:
        self._readable.recv(1)

    def close(self) -> None:
        self._membership.on_change(None)
        self._readable.close()
        self._written.close()
