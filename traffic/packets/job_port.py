# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's hold on its job's UDP port: what tells it from other processes of its host
(docs/explanation/security.md)."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address

from netfold.traffic.packets.transport import Address, TransportError, UdpEndpoint

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
