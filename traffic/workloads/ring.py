# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The peer that netfold is measured against: a ring all-reduce over TCP, as Gloo and NCCL do it without help.

n workers in a ring; n - 1 steps of reduce-scatter, n - 1 of all-gather. In each, a worker sends one n-th
of the array to its right neighbor while it takes one from its left and adds it up piece by piece. Every
worker sends 2 (n - 1) / n of the array.
"""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import itertools
import os
import select
import socket
import struct
import time
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from netfold.traffic.errors import AllReduceTimeoutError, TrafficError

_GREETING = struct.Struct("!4sII")  # magic, rank, workers
_MAGIC = b"ring"
_SIOCGIFADDR = 0x8915
_CONNECT_RETRY_S = 0.02


class RingError(TrafficError):
    """The ring did not form, or a neighbor went away; the message names it."""


class GlooWorker:
    """The same interface over PyTorch's Gloo (torch is an optional extra), the better-known ring."""

    def __init__(self, hosts: Sequence[str], rank: int, port: int, timeout: float = 30.0) -> None:
        import torch  # noqa: PLC0415
        import torch.distributed as dist  # noqa: PLC0415

        self._torch, self._dist = torch, dist
        # Else Gloo asks for the host's name, and all hosts of one machine have the same.
        os.environ["GLOO_SOCKET_IFNAME"] = interface_of(hosts[rank])
        try:
            dist.init_process_group(
                "gloo",
                init_method=f"tcp://{hosts[0]}:{port}",
                rank=rank,
                world_size=len(hosts),
                timeout=datetime.timedelta(seconds=timeout),
            )
        except RuntimeError as error:
            raise _gloo_error(error) from error

    def all_reduce(self, array: NDArray[Any], timeout: float = 60.0) -> None:
        """Replaces `array` by its sum over all workers, in place. Raises RingError."""
        try:
            self._dist.all_reduce(self._torch.from_numpy(array))
        except RuntimeError as error:
            raise _gloo_error(error) from error

    def close(self) -> None:
        self._dist.destroy_process_group()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _gloo_error(error: Exception) -> RingError:
    return RingError(f"gloo: {str(error).splitlines()[0]}")


def interface_of(address: str) -> str:
    """The network interface that has this IPv4 address. Raises RingError."""
    if address.startswith("127."):
        return "lo"
    wanted = socket.inet_aton(address)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):  # an interface without an address
                request = struct.pack("256s", name.encode())
                if fcntl.ioctl(sock.fileno(), _SIOCGIFADDR, request)[20:24] == wanted:
                    return name
    raise RingError(f"ring: no interface of this host has the address {address}")


class RingWorker:
    """Worker `rank` of a ring; `hosts` are the IPv4 addresses of all, in the order of the ring. A context
    manager.

    The constructor connects to both neighbors, waiting for them up to `timeout` seconds. Raises RingError.
    """

    PIECE_BYTES = 1 << 16

    def __init__(self, hosts: Sequence[str], rank: int, port: int, timeout: float = 30.0) -> None:
        self.workers = len(hosts)
        self._rank = rank
        self._left = self._right = None
        if self.workers == 1:
            return
        deadline = time.monotonic() + timeout
        self._names = (hosts[rank - 1], hosts[(rank + 1) % self.workers])
        with socket.create_server((hosts[rank], port), reuse_port=False) as listener:
            self._right = self._call(self._names[1], port, deadline)
            self._left = self._answer(listener, deadline)
        for sock in (self._left, self._right):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setblocking(False)

    def _call(self, host: str, port: int, deadline: float) -> socket.socket:
        while True:
            try:
                sock = socket.create_connection((host, port), timeout=max(0.01, deadline - time.monotonic()))
            except OSError as error:
                if time.monotonic() >= deadline:
                    raise RingError(f"ring: rank {self._rank} cannot reach {host}:{port}: {error}") from error
                # only a connection attempt shows whether the neighbor listens
                time.sleep(_CONNECT_RETRY_S)
                continue
            sock.sendall(_GREETING.pack(_MAGIC, self._rank, self.workers))
            return sock

    def _answer(self, listener: socket.socket, deadline: float) -> socket.socket:
        expected = _GREETING.pack(_MAGIC, (self._rank - 1) % self.workers, self.workers)
        while True:
            listener.settimeout(max(0.01, deadline - time.monotonic()))
            try:
                sock, _ = listener.accept()
                sock.settimeout(max(0.01, deadline - time.monotonic()))
                greeting = sock.recv(_GREETING.size, socket.MSG_WAITALL)
            except OSError as error:
                raise RingError(
                    f"ring: the left neighbor {self._names[0]} of rank {self._rank} did not call: {error}"
                ) from error
            if greeting == expected:
                return sock
            sock.close()  # a foreign process, or a neighbor of another ring

    def all_reduce(self, array: NDArray[Any], timeout: float = 60.0) -> None:
        """Replaces `array` (any dtype that adds, C order) by its sum over all workers, in place.

        Raises AllReduceTimeoutError, RingError. After an error the ring is of no use any more.
        """
        if self.workers == 1 or array.size == 0:
            return
        deadline = time.monotonic() + timeout
        flat = array.reshape(-1)
        if not np.shares_memory(flat, array):
            raise ValueError("all_reduce writes in place: the array must be contiguous (C order)")
        bounds = [flat.size * part // self.workers for part in range(self.workers + 1)]
        parts = [flat[a:b] for a, b in itertools.pairwise(bounds)]
        n = self.workers
        for step in range(2 * (n - 1)):
            outgoing = parts[(self._rank - step) % n]
            incoming = parts[(self._rank - step - 1) % n]
            self._exchange(outgoing, incoming, step < n - 1, deadline)

    def _exchange(self, outgoing: NDArray[Any], incoming: NDArray[Any], add: bool, deadline: float) -> None:
        """Sends one part to the right while taking one from the left: added to, or in place of, what is
        there."""
        assert self._left is not None
        assert self._right is not None
        sending = outgoing.view(np.uint8).data
        target = np.empty_like(incoming) if add else incoming
        receiving = target.view(np.uint8).data
        sent = received = added = 0
        size = incoming.itemsize
        poll = select.poll()
        while sent < len(sending) or received < len(receiving):
            if sent < len(sending):
                poll.register(self._right, select.POLLOUT)
            if received < len(receiving):
                poll.register(self._left, select.POLLIN)
            ready = dict(poll.poll(max(0.0, (deadline - time.monotonic()) * 1000)))
            if not ready:
                raise AllReduceTimeoutError(
                    f"ring: rank {self._rank} has sent {sent} of {len(sending)} bytes to {self._names[1]} and "
                    f"received {received} of {len(receiving)} from {self._names[0]}"
                )
            try:
                if self._right.fileno() in ready:
                    sent += self._right.send(sending[sent : sent + self.PIECE_BYTES])
                    if sent == len(sending):
                        poll.unregister(self._right)
                if self._left.fileno() in ready:
                    count = self._left.recv_into(receiving[received : received + self.PIECE_BYTES])
                    if count == 0:
                        raise RingError(f"ring: the left neighbor {self._names[0]} of rank {self._rank} left")
                    received += count
                    if received == len(receiving):
                        poll.unregister(self._left)
            except BlockingIOError:
                continue
            except OSError as error:
                raise RingError(f"ring: rank {self._rank} lost a neighbor: {error}") from error
            if add and received // size > added:
                incoming[added : received // size] += target[added : received // size]
                added = received // size

    def close(self) -> None:
        for sock in (self._left, self._right):
            if sock is not None:
                with contextlib.suppress(OSError):
                    sock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
