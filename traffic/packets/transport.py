# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""UDP sockets for netfold's packets. The engine sends and receives on them (traffic/engine/io/sockets.c)."""

from __future__ import annotations

import errno
import fcntl
import socket
import struct
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netfold.protocol.wire import PORT_FIRST, PORT_LAST, lanes_that_fit

BUFFER_BYTES = 4 << 20
_ECN_ECT0 = 2

_FREED_WITHIN_S, _BIND_PERIOD_S = 3.0, 0.01
"""A worker leaves its job before it closes its sockets: the job's port may be another job's a moment earlier."""

_SO_NO_CHECK = 11  # not in Python's socket module; asm-generic/socket.h
_SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 32, 33
_IP_RECVTOS = 13
_IP_MTU_DISCOVER, _IP_PMTUDISC_PROBE = 10, 3
_NAME_BYTES = 16  # sockaddr_in
_HEADERS_BYTES = 20 + 8  # IPv4, UDP
_IFREQ_BYTES, _IFNAME_BYTES, _SIOCGIFADDR, _SIOCGIFMTU = 40, 16, 0x8915, 0x8921  # netdevice(7)
_MIN_DATAGRAM_BYTES = 512  # of a receive buffer: the kernel counts its own structures, too
_MAX_ICMP_ERRORS = 10_000

_ICMP_ERRORS = frozenset(
    {
        *(errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.ENONET),
        *(errno.ENOPROTOOPT, errno.EPROTO, errno.EMSGSIZE, errno.EOPNOTSUPP),
    }
)
"""Error numbers that Linux makes of ICMP errors (net/ipv4/icmp.c, udp.c), as in traffic/engine/io/udp_batch.c."""


class TransportError(OSError):
    """A socket of the job cannot be opened, or failed; the message names it and the cause."""


@dataclass(frozen=True)
class Address:
    """An IPv4 address and a UDP port."""

    host: str
    port: int

    def name(self) -> NDArray[np.uint8]:
        """As sockaddr_in, 16 bytes."""
        raw = struct.pack("=H", socket.AF_INET) + struct.pack("!H", self.port) + socket.inet_aton(self.host)
        return np.frombuffer(raw.ljust(_NAME_BYTES, b"\0"), np.uint8)


class UdpEndpoint:
    """A UDP socket for netfold packets: not blocking, no checksums, ECT(0) on all packets, `buffers` in bytes.

    With a `peer` it is connected: the kernel drops packets of other senders, and looks the route up once. `shared`:
    processes of the same user may bind further sockets to its address, until `share(False)`. Packets are never
    fragmented, whatever path MTU the kernel has: anyone can forge the ICMP error that lowers it, and switches drop
    fragments. One that is not `shared` waits up to 3 s for an address that is taken. Raises
    TransportError if it stays so, or the address is not this host's.
    """

    def __init__(
        self,
        local: Address,
        peer: Address | None = None,
        ecn: bool = False,
        shared: bool = False,
        buffers: int = BUFFER_BYTES,
    ) -> None:
        if local.port != 0 and not PORT_FIRST <= local.port <= PORT_LAST:
            raise TransportError(
                f"UDP port {local.port} is no netfold port; the range is {PORT_FIRST} to {PORT_LAST}"
            )
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        try:
            sock.setsockopt(socket.SOL_SOCKET, _SO_NO_CHECK, 1)
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, _ECN_ECT0)
            sock.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _IP_PMTUDISC_PROBE)
            if shared:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            if ecn:
                sock.setsockopt(socket.IPPROTO_IP, _IP_RECVTOS, 1)
            _size(sock, buffers)
            _bind(sock, local, 0.0 if shared else _FREED_WITHIN_S)
            if peer is not None:
                sock.connect((peer.host, peer.port))
                drop_pending(sock)
        except OSError as error:
            sock.close()
            raise TransportError(
                error.errno,
                f"no UDP socket at {local.host}:{local.port}: {error.strerror}; is another member of "
                "the job running on this host, or the address not this host's?",
            ) from error
        self._socket = sock
        self.local = Address(*sock.getsockname())

    def fileno(self) -> int:
        return self._socket.fileno()

    def share(self, on: bool) -> None:
        """Whether further sockets may be bound to this one's address. Not SO_REUSEADDR, which admits other users."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, int(on))

    def detach(self) -> int:
        """The descriptor, which the caller has to close."""
        return self._socket.detach()

    def close(self) -> None:
        self._socket.close()


def _bind(sock: socket.socket, local: Address, patience_s: float) -> None:
    """Raises OSError."""
    deadline = time.monotonic() + patience_s
    while True:
        try:
            sock.bind((local.host, local.port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() > deadline:
                raise
            time.sleep(_BIND_PERIOD_S)  # Linux has no event for a port that becomes free
        else:
            return


def check_mtu(peer: Address, payload_bytes: int) -> None:
    """Raises TransportError if a packet of so many bytes of UDP payload exceeds the MTU of the interface to `peer`.

    Sends nothing: an unsent part of a datagram is enough for the kernel to compare. The socket is not connected, so no
    ICMP error can be mistaken for the kernel's own answer.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as probe:
        probe.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _IP_PMTUDISC_PROBE)
        try:
            probe.sendto(bytes(payload_bytes), socket.MSG_MORE, (peer.host, peer.port))
        except OSError as error:
            if error.errno == errno.EMSGSIZE:
                found = _interface_to(peer)
                where, fewer = "the interface", "fewer"
                if found is not None:
                    where = f"interface {found[0]} ({found[1]})"
                    fewer = f"at most {lanes_that_fit(found[1])}"
                raise TransportError(
                    error.errno,
                    f"an IP packet of {_HEADERS_BYTES + payload_bytes} bytes exceeds the MTU of {where} to "
                    f"{peer.host}; raise the MTU, or use switches with {fewer} lanes",
                ) from error


def _interface_to(peer: Address) -> tuple[str, int] | None:
    """Name and MTU of the interface whose first address packets to `peer` have. None: there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as probe:
        probe.connect((peer.host, peer.port))
        own = socket.inet_aton(probe.getsockname()[0])
        for _, name in socket.if_nameindex():
            request = name.encode().ljust(_IFREQ_BYTES, b"\0")
            try:
                address = fcntl.ioctl(probe, _SIOCGIFADDR, request)[20:24]
            except OSError:  # it has none
                continue
            if address == own:
                (mtu,) = struct.unpack_from("=i", fcntl.ioctl(probe, _SIOCGIFMTU, request), _IFNAME_BYTES)
                return name, mtu
    return None


def drop_pending(sock: socket.socket) -> None:
    """Drops the datagrams from before it was connected, which may have any sender, and pending ICMP errors. Ends, even
    if more arrive all the time: no more datagrams than fit the receive buffer are from before. Raises OSError."""
    datagrams = sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) // _MIN_DATAGRAM_BYTES + 1
    icmp_errors = 0
    while datagrams:
        try:
            sock.recv(1)
            datagrams -= 1
        except BlockingIOError:
            return
        except OSError as error:
            icmp_errors += 1
            if error.errno not in _ICMP_ERRORS or icmp_errors > _MAX_ICMP_ERRORS:
                raise


def _size(sock: socket.socket, buffers: int) -> None:
    """Sets both buffers, in bytes: beyond the system's limit where the process may, else up to it."""
    for force, plain in ((_SO_SNDBUFFORCE, socket.SO_SNDBUF), (_SO_RCVBUFFORCE, socket.SO_RCVBUF)):
        try:
            sock.setsockopt(socket.SOL_SOCKET, force, buffers)
        except PermissionError:
            sock.setsockopt(socket.SOL_SOCKET, plain, buffers)
