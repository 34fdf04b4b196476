# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Memory that two ranks of a host share, and the words that they exchange about it over a socket between them: the
kernel wakes who waits, and a rank that dies closes its socket."""

from __future__ import annotations

import mmap
import os
import select
import socket
import struct
from dataclasses import dataclass
from typing import Self

import torch

from netfold.traffic.errors import TrafficError
from netfold.traffic.numerics import ReduceOp
from netfold.traffic.pytorch.call import KINDS

_WORD = struct.Struct("<qBB?xIq")
_TEXT_MAX = 4096
_HELLO = struct.Struct("<q")
_LEAST = 1 << 16
_PEER = struct.Struct("3i")  # of SO_PEERCRED: process, user, group


class SiblingLost(TrafficError):
    """Another rank of this host is gone."""


@dataclass(frozen=True)
class Word:
    """About call `number`. From a member: its numbers lie in `block`, which comes along when it is new (`fd`). From the
    leader: the sums are there, or `error` says why not, and `in_step` whether the ranks can go on after it."""

    number: int
    op: ReduceOp
    dtype: torch.dtype
    block: int
    elements: int
    error: str = ""
    in_step: bool = True
    fd: int = -1

    def send(self, sock: socket.socket) -> None:
        """Raises OSError."""
        fixed = (
            list(ReduceOp).index(self.op),
            KINDS.index(self.dtype),
            self.in_step,
            self.block,
            self.elements,
        )
        text = self.error.encode()[:_TEXT_MAX]
        message = _WORD.pack(self.number, *fixed) + text
        socket.send_fds(sock, [message], [self.fd] if self.fd >= 0 else [], socket.MSG_NOSIGNAL)

    @classmethod
    def receive(cls, sock: socket.socket) -> Self | None:
        """None: the other side has closed. Raises OSError."""
        message, fds, _, _ = socket.recv_fds(sock, _WORD.size + _TEXT_MAX, 1)
        if not message:
            return None
        number, op, dtype, in_step, block, elements = _WORD.unpack_from(message)
        text = message[_WORD.size :].decode(errors="replace")
        return cls(
            number, list(ReduceOp)[op], KINDS[dtype], block, elements, text, in_step, fds[0] if fds else -1
        )


def readable(sock: socket.socket, seconds: float) -> bool:
    """Whether something comes (or the other side closes) within so long."""
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


class Block:
    """Shared memory; `number` is its name between the two."""

    def __init__(self, number: int, fd: int) -> None:
        self.number = number
        self.fd = fd
        self.size = os.fstat(fd).st_size
        self._memory = mmap.mmap(fd, self.size)

    @classmethod
    def create(cls, number: int, nbytes: int) -> Self:
        fd = os.memfd_create("netfold", os.MFD_CLOEXEC)
        os.ftruncate(fd, max(_LEAST, 1 << (nbytes - 1).bit_length()))
        return cls(number, fd)

    def tensor(self, dtype: torch.dtype, elements: int) -> torch.Tensor:
        return torch.frombuffer(self._memory, dtype=dtype, count=elements)

    def forget_fd(self) -> None:
        """The memory stays."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def listen(name: str) -> socket.socket:
    """At an abstract address, which this network namespace alone can reach."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sock.bind("\0" + name)
    sock.listen(64)
    return sock


def call_leader(name: str, rank: int) -> socket.socket:
    """Raises SiblingLost."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        sock.connect("\0" + name)
        _check(sock)
        sock.send(_HELLO.pack(rank))
    except OSError as error:
        sock.close()
        raise SiblingLost(f"the leader of this host cannot be reached: {error}") from error
    return sock


def take_sibling(listener: socket.socket, seconds: float) -> tuple[int, socket.socket]:
    """The next one that calls, and its rank. Raises SiblingLost."""
    try:
        listener.settimeout(seconds)
        sock, _ = listener.accept()
        sock.settimeout(seconds)
        _check(sock)
        (rank,) = _HELLO.unpack(sock.recv(_HELLO.size))
        sock.settimeout(None)
    except (OSError, struct.error) as error:
        raise SiblingLost(f"not all ranks of this host came: {error}") from error
    return rank, sock


def _check(sock: socket.socket) -> None:
    """Closes the socket and raises SiblingLost unless the other side is the same user's."""
    peer = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
    if _PEER.unpack(peer)[1] != os.geteuid():
        sock.close()
        raise SiblingLost("a process of another user took the place of a rank of this host")
