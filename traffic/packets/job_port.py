# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's hold on its job's UDP port: what tells it from other processes of its host
(docs/explanation/security.md). `EpochSockets` opens the sockets of each epoch on it."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address

from netfold.traffic.packets.transport import Address, TransportError, UdpEndpoint, check_mtu

_ANY = "0.0.0.0"


class JobPort:
    """`port` at all addresses of this host: as long as this is open, no other process is given it at any of them, not
    even between two epochs. Without it, one could send from the job's port at another address that the host has, of a
    bridge or a second network, and the switch looks at the port alone.

    `local` is where the worker's own sockets are bound. Nothing leaves a host from a loopback address; such a one is
    held by itself, by the sockets, so that several workers may run on one machine's. Raises TransportError if another
    process has the port.
    """

    def __init__(self, local: str, port: int) -> None:
        self.local = Address(local, port)
        self._holder: UdpEndpoint | None = None
        if not IPv4Address(local).is_loopback:
            self._holder = UdpEndpoint(Address(_ANY, port), buffers=1)  # its packets are never read

    def connect(self, peers: Sequence[Address]) -> Sequence[UdpEndpoint]:
        """A socket for each peer, which takes nothing from others. Raises TransportError."""
        bound = [] if self._holder is None else [self._holder]
        before = len(bound)
        try:
            for peer in peers:
                for other in bound:
                    other.share(True)
                bound.append(UdpEndpoint(self.local, peer, ecn=True, shared=bool(bound)))
        except TransportError:
            for endpoint in bound[before:]:
                endpoint.close()
            del bound[before:]
            raise
        finally:
            for other in bound:
                other.share(False)
        return bound[before:]

    def close(self) -> None:
        """The sockets stay open, and theirs alone what they are bound to."""
        if self._holder is not None:
            self._holder.close()


class EpochSockets:
    """The sockets of one epoch after another. The job's port is held from the first epoch until `close`. `local`: IPv4
    address to bind (0.0.0.0: any)."""

    def __init__(self, local: str) -> None:
        self._local = local
        self._port: JobPort | None = None

    def open(self, port: int, roots: Sequence[str], packet_bytes: int) -> list[int]:
        """Descriptors of connected sockets, one for each root, which are the caller's to close. Those of the epoch
        before have to be closed. `packet_bytes`: what the path has to carry whole. Raises TransportError."""
        peers = [Address(root, port) for root in roots]
        for peer in peers:
            check_mtu(peer, packet_bytes)
        return [endpoint.detach() for endpoint in self._bound(port).connect(peers)]

    def _bound(self, port: int) -> JobPort:
        if self._port is not None and self._port.local.port != port:
            self.close()
        if self._port is None:
            self._port = JobPort(self._local, port)
        return self._port

    def close(self) -> None:
        """Open sockets stay open."""
        if self._port is not None:
            self._port.close()
            self._port = None
