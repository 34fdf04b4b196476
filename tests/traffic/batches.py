# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Batches of UDP datagrams to and from preallocated numpy records: one system call for up to 256 packets.

sendmmsg and recvmmsg are called through ctypes with message vectors that are themselves numpy records, so
that no Python runs per packet: peers in Python that keep up with the engine.
"""

from __future__ import annotations

import ctypes
import errno
import os
import select
import socket
import struct
import sys
import threading
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from netfold.traffic.packets.transport import TransportError, UdpEndpoint
from netfold.traffic.packets.wire import Records, packet, packet_bytes

BATCH = 256
_ECN_CE, _ECN = 3, 3
_CONTROL_BYTES = 32  # one cmsghdr (16 bytes) with a byte of TOS, aligned
_NAME_BYTES = 16  # sockaddr_in
# Answers of an ICMP error to an earlier packet, or a full queue of the interface: as good as a loss.
LOSSES = {
    errno.ECONNREFUSED,
    errno.EHOSTUNREACH,
    errno.ENETUNREACH,
    errno.ENOBUFS,
    errno.EPERM,
    errno.EHOSTDOWN,
}


_IOVEC = np.dtype([("base", "u8"), ("length", "u8")])
_SOCKADDR = np.dtype([("family", "u2"), ("port", ">u2"), ("address", ">u4"), ("pad", "u8")])
_MMSGHDR = np.dtype(
    [
        ("name", "u8"),
        ("name_length", "u4"),
        ("pad0", "u4"),
        ("iov", "u8"),
        ("iov_length", "u8"),
        ("control", "u8"),
        ("control_length", "u8"),
        ("flags", "i4"),
        ("pad1", "u4"),
        ("length", "u4"),
        ("pad2", "u4"),
    ]
)


def _libc() -> ctypes.CDLL:
    if not sys.platform.startswith("linux") or struct.calcsize("P") != 8:
        raise TransportError("the batched transport needs 64-bit Linux (sendmmsg, recvmmsg)")
    libc = ctypes.CDLL(None, use_errno=True)
    for call in (libc.sendmmsg, libc.recvmmsg):
        call.restype = ctypes.c_int
    libc.sendmmsg.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_uint, ctypes.c_int]
    libc.recvmmsg.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_uint, ctypes.c_int, ctypes.c_void_p]
    return libc


_LIBC = _libc()


class Rows:
    """`capacity` packets in memory and the message vector that points at them.

    `records` is the structured view (see `wire.packet`), `lanes` the (capacity, L) int32 view of the same
    bytes, in network byte order as they lie there: `byteswap` before use on a little-endian host.
    """

    def __init__(self, capacity: int, lanes: int) -> None:
        self.capacity = capacity
        self.stride = packet_bytes(lanes)
        words = np.zeros((capacity, self.stride // 4), np.int32)
        self.records: Records = words.view(packet(lanes)).reshape(capacity)
        self.lanes = words[:, 4:]
        self._base = words.ctypes.data
        self._iov = np.zeros(capacity, _IOVEC)
        self._iov["length"] = self.stride
        self._messages = np.zeros(capacity, _MMSGHDR)
        self._messages["iov"] = self._iov.ctypes.data + _IOVEC.itemsize * np.arange(capacity)
        self._messages["iov_length"] = 1
        self._names = np.zeros((capacity, _NAME_BYTES), np.uint8)
        self._name_addresses = self._names.ctypes.data + _NAME_BYTES * np.arange(capacity)
        self._pointer = self._messages.ctypes.data
        self.point(np.arange(capacity))

    def point(self, rows: NDArray[np.integer]) -> None:
        """Lets message i be row `rows[i]`."""
        self._iov["base"][: len(rows)] = self._base + self.stride * rows

    def address(self, names: NDArray[np.uint8]) -> None:
        """Gives message i the destination `names[i]`, a sockaddr_in of 16 bytes."""
        count = len(names)
        self._names[:count] = names
        self._messages["name"][:count] = self._name_addresses[:count]
        self._messages["name_length"][:count] = _NAME_BYTES

    def payload(self, message: int) -> bytes:
        """A copy of what message `message` carries."""
        return ctypes.string_at(int(self._iov["base"][message]), self.stride)

    def destination(self, message: int) -> bytes:
        """Where message `message` goes, a sockaddr_in; empty where the socket is connected."""
        return self._names[message].tobytes() if self._messages["name"][message] else b""

    def pointer(self, message: int) -> int:
        return self._pointer + _MMSGHDR.itemsize * message


class Inbox(Rows):
    """Rows to receive into. After `Endpoint.receive` the first `count` hold what came: their `sizes` in
    bytes (a longer datagram shows as one byte too many), the senders' `names`, and with `ecn` whether each
    met congestion."""

    def __init__(self, capacity: int, lanes: int, ecn: bool = False) -> None:
        super().__init__(capacity, lanes)
        self._ecn = ecn
        # A second, one byte long buffer behind each row catches the first byte too many.
        spill = np.zeros(capacity, np.uint8)
        iov = np.zeros((capacity, 2), _IOVEC)
        iov["base"][:, 0] = self._iov["base"]
        iov["length"][:, 0] = self.stride
        iov["base"][:, 1] = spill.ctypes.data + np.arange(capacity)
        iov["length"][:, 1] = 1
        self._iov_pairs, self._spill = iov, spill
        self._messages["iov"] = iov.ctypes.data + 2 * _IOVEC.itemsize * np.arange(capacity)
        self._messages["iov_length"] = 2
        self._messages["name"] = self._name_addresses
        self._control = np.zeros((capacity, _CONTROL_BYTES), np.uint8)
        if ecn:
            self._messages["control"] = self._control.ctypes.data + _CONTROL_BYTES * np.arange(capacity)
        self._renewed = (self._messages["name_length"], self._messages["control_length"])
        self.renew(capacity)

    def renew(self, count: int) -> None:
        """Undoes what the kernel wrote into the first `count` messages."""
        name_lengths, control_lengths = self._renewed
        name_lengths[:count] = _NAME_BYTES
        if self._ecn:
            control_lengths[:count] = _CONTROL_BYTES

    def sizes(self, count: int) -> NDArray[np.uint32]:
        return self._messages["length"][:count]

    def names(self, count: int) -> NDArray[np.uint8]:
        """The senders' addresses as sockaddr_in bytes, shape (count, 16)."""
        return self._names[:count]

    def congested(self, count: int) -> NDArray[np.bool_]:
        """Whether each packet's ECN field is CE (RFC 3168)."""
        if not self._ecn:
            return np.zeros(count, np.bool_)
        has = self._messages["control_length"][:count] > 16
        met: NDArray[np.bool_] = has & ((self._control[:count, 16] & _ECN) == _ECN_CE)
        return met


def senders(names: NDArray[np.uint8]) -> tuple[NDArray[np.uint16], NDArray[np.uint32]]:
    """The UDP ports and IPv4 addresses in sockaddr_in bytes of shape (n, 16); both of shape (n,)."""
    found = np.ascontiguousarray(names).view(_SOCKADDR)[:, 0]
    return found["port"].astype(np.uint16), found["address"].astype(np.uint32)


class Endpoint(Protocol):
    """What workers and parameter servers send and receive through: a socket, or a stand-in of the tests."""

    def fileno(self) -> int: ...

    def send(self, rows: Rows, count: int) -> int:
        """Sends the first `count` messages; gives how many the socket took (the rest: its buffer is full)."""

    def receive(self, inbox: Inbox) -> int:
        """Fills the inbox with what has come, without waiting; gives how many."""

    def close(self) -> None: ...


class BatchEndpoint(UdpEndpoint):
    """A socket for whole batches."""

    def send(self, rows: Rows, count: int) -> int:
        sent = 0
        while sent < count:
            took = _LIBC.sendmmsg(self.fileno(), rows.pointer(sent), count - sent, 0)
            if took >= 0:
                sent += took
                continue
            error = ctypes.get_errno()
            if error in LOSSES:
                sent += 1
            elif error in (errno.EAGAIN, errno.EWOULDBLOCK):
                break
            elif error != errno.EINTR:
                raise TransportError(error, f"sendmmsg at {self.local}: {os.strerror(error)}")
        return sent

    def receive(self, inbox: Inbox) -> int:
        while True:
            count: int = _LIBC.recvmmsg(
                self.fileno(), inbox.pointer(0), inbox.capacity, socket.MSG_DONTWAIT, None
            )
            if count >= 0:
                inbox.renew(count)
                return count
            error = ctypes.get_errno()
            if error in (errno.EAGAIN, errno.EWOULDBLOCK):
                return 0
            if error not in LOSSES and error != errno.EINTR:
                raise TransportError(error, f"recvmmsg at {self.local}: {os.strerror(error)}")


class Waiter:
    """Waits until one of some endpoints can be read, or another thread calls `wake`."""

    def __init__(self, endpoints: tuple[Endpoint, ...]) -> None:
        self._event = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._lock = (
            threading.Lock()
        )  # `wake` may come from another thread while `close` gives the descriptor back
        self._closed = False
        self._poll = select.poll()
        self._poll.register(self._event, select.POLLIN)
        for endpoint in endpoints:
            self._poll.register(endpoint.fileno(), select.POLLIN)

    def wait(self, seconds: float) -> None:
        """Returns when there is something to read, after `wake`, or after `seconds`."""
        for fd, _ in self._poll.poll(max(0.0, seconds * 1000)):
            if fd == self._event:
                os.eventfd_read(self._event)

    def wake(self) -> None:
        with self._lock:
            if not self._closed:
                os.eventfd_write(self._event, 1)

    def close(self) -> None:
        with self._lock:
            if not self._closed:
                self._closed = True
                os.close(self._event)
