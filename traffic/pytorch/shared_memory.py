# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Memory that two ranks of a host share, and the messages about it on a socket between them. A rank that dies closes
its socket."""

from __future__ import annotations

import logging
import mmap
import os
import select
import socket
import struct
import time
from dataclasses import dataclass
from typing import Self

import torch

from netfold.traffic.errors import TrafficError
from netfold.traffic.numerics import ReduceOp
from netfold.traffic.pytorch.tensor_call import SUPPORTED_DTYPES

log = logging.getLogger("netfold.torch")

_MESSAGE = struct.Struct("<qBB?xIqq")
_TEXT_MAX = 4096
_HELLO = struct.Struct("<q")
_MIN_BYTES = 1 << 16
_CREDENTIALS = struct.Struct("3i")  # of SO_PEERCRED: process, user, group


class RankLostError(TrafficError):
    """Another rank of this host has closed its connection."""


@dataclass(frozen=True)
class RankMessage:
    """About call `number`. To the host's first rank: the input is in buffer `buffer`, whose descriptor is attached
    when it is new (`fd`). From it: the result is in the buffer, or the call ended with `error`, and `can_continue`
    says whether further calls are possible."""

    number: int
    op: ReduceOp
    dtype: torch.dtype
    buffer: int
    elements: int
    context: int = 0
    error: str = ""
    can_continue: bool = True
    fd: int = -1

    def send(self, sock: socket.socket) -> None:
        """Raises OSError."""
        fixed = (
            list(ReduceOp).index(self.op),
            SUPPORTED_DTYPES.index(self.dtype),
            self.can_continue,
            self.buffer,
            self.elements,
            self.context,
        )
        text = self.error.encode()[:_TEXT_MAX]
        message = _MESSAGE.pack(self.number, *fixed) + text
        socket.send_fds(sock, [message], [self.fd] if self.fd >= 0 else [], socket.MSG_NOSIGNAL)

    @classmethod
    def receive(cls, sock: socket.socket) -> Self | None:
        """None: the other side has closed. Raises OSError."""
        message, fds, _, _ = socket.recv_fds(sock, _MESSAGE.size + _TEXT_MAX, 1)
        if not message:
            return None
        number, op, dtype, can_continue, buffer, elements, context = _MESSAGE.unpack_from(message)
        text = message[_MESSAGE.size :].decode(errors="replace")
        return cls(
            number,
            list(ReduceOp)[op],
            SUPPORTED_DTYPES[dtype],
            buffer,
            elements,
            context,
            text,
            can_continue,
            fds[0] if fds else -1,
        )


def readable(sock: socket.socket, seconds: float) -> bool:
    """Waits until a message is there, or the other side has closed; False after `seconds`."""
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


class SharedBuffer:
    """Shared memory; `number` identifies it between the two ranks."""

    def __init__(self, number: int, fd: int) -> None:
        self.number = number
        self.fd = fd
        self.size = os.fstat(fd).st_size
        self._memory = mmap.mmap(fd, self.size)

    @classmethod
    def create(cls, number: int, nbytes: int) -> Self:
        fd = os.memfd_create("netfold", os.MFD_CLOEXEC)
        os.ftruncate(fd, max(_MIN_BYTES, 1 << (nbytes - 1).bit_length()))
        return cls(number, fd)

    def tensor(self, dtype: torch.dtype, elements: int) -> torch.Tensor:
        if elements == 0:  # frombuffer refuses that
            return torch.empty(0, dtype=dtype)
        return torch.frombuffer(self._memory, dtype=dtype, count=elements)

    def close_fd(self) -> None:
        """The mapping stays."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def listen(name: str) -> socket.socket:
    """At an abstract address, which only processes of this network namespace can reach."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sock.bind("\0" + name)
    sock.listen(64)
    return sock


def connect_leader(name: str, rank: int) -> socket.socket:
    """Raises RankLostError."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        sock.connect("\0" + name)
        _check(sock)
        sock.send(_HELLO.pack(rank))
    except (RankLostError, OSError) as error:
        sock.close()
        raise RankLostError(f"the first rank of this host cannot be reached: {error}") from error
    return sock


def accept_rank(listener: socket.socket, deadline: float) -> tuple[int, socket.socket]:
    """The next rank that connects until `deadline` (of time.monotonic()), and its connection. Any local process can
    connect: those that are no rank are refused. Raises RankLostError."""
    while (remaining := deadline - time.monotonic()) > 0:
        try:
            listener.settimeout(remaining)
            sock, _ = listener.accept()
        except OSError as error:
            raise RankLostError(f"not all ranks of this host connected: {error}") from error
        try:
            _check(sock)
            sock.settimeout(remaining)
            (rank,) = _HELLO.unpack(sock.recv(_HELLO.size))
        except (RankLostError, OSError, struct.error) as error:
            sock.close()
            log.warning("refused a process that connected as a rank of this host: %s", error)
            continue
        sock.settimeout(None)
        return rank, sock
    raise RankLostError("not all ranks of this host connected: timed out")


def _check(sock: socket.socket) -> None:
    """Raises RankLostError if the other side belongs to another user."""
    peer = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    process, user, _ = _CREDENTIALS.unpack(peer)
    if user != os.geteuid():
        raise RankLostError(
            f"process {process} at the other end belongs to user {user}; expected {os.geteuid()}"
        )
