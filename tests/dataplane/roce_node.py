# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What a leaf is to workers that speak RoCE, as plain data (see node.py)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address

from netfold.controller.switches.entries import Entity, action, entry
from tests.dataplane.node import TreeAt

ROCE_SIDE = 256  # admission sees what came as RoCE by port p as if by port 256 + p
NOBODY = (511, 0)  # no neighbor is at this port
HIDDEN = 0  # the QPN of what does not show one


@dataclass(frozen=True)
class Peer:
    """A worker: where it is, the QP that it sends with, and the one its predecessor sends to."""

    port: int
    address: str
    sending: int
    receiving: int


@dataclass(frozen=True)
class RoceWorker:
    """A worker of a tree between its neighbors in the ring of its leaf. `first_psn` of the connection to the successor,
    `expected_psn` of that from the predecessor. One worker of a tree at a port."""

    at: TreeAt
    root_address: str
    child: int
    own: Peer
    predecessor: Peer
    successor: Peer
    first_psn: int
    expected_psn: int
    source_port: int = 0xC000  # of what it is sent

    def entities(self) -> Iterator[Entity]:
        at, slots = self.at, self.at.slots.bit_length() - 1
        own, successor, predecessor = (_ip(p.address) for p in (self.own, self.successor, self.predecessor))
        yield entry(
            "connections",
            {
                "ingress_port": self.own.port,
                "src": own,
                "dst": successor,
                "qpn": self.successor.receiving,
            },
            action(
                "contribute",
                udp_port=at.udp_port,
                tree=at.tree,
                child=self.child,
                epoch=at.epoch,
                root=_ip(self.root_address),
                first_psn=self.first_psn,
                log2_slots=slots,
                successor_port=self.successor.port,
            ),
        )
        yield _end(own, self.own.receiving, *NOBODY)
        yield _end(own, self.own.sending, self.successor.port, successor)
        yield entry(
            "workers",
            {"port": self.own.port, "udp_port": at.udp_port, "tree": at.tree},
            action(
                "deliver",
                src=predecessor,
                dst=own,
                udp_src_port=self.source_port,
                qpn=self.own.receiving,
                first_psn=self.expected_psn,
                log2_slots=slots,
            ),
        )


@dataclass(frozen=True)
class RoceHost:
    """A host of such workers: what does not show its QPN does not reach it."""

    address: str

    def entities(self) -> Iterator[Entity]:
        yield _end(_ip(self.address), HIDDEN, *NOBODY)


def _end(address: int, qpn: int, port: int, source: int) -> Entity:
    return entry("ends", {"dst": address, "qpn": qpn}, action("reserve", port=port, src=source))


def _ip(text: str) -> int:
    return int(IPv4Address(text))


def ring(
    at: TreeAt, root_address: str, peers: dict[int, Peer], first_psns: dict[int, int]
) -> list[RoceWorker]:
    """The workers by child number, each sending to the next one; `first_psns` are of what each sends."""
    children = list(peers)
    found = []
    for place, child in enumerate(children):
        before, after = children[place - 1], children[(place + 1) % len(children)]
        found.append(
            RoceWorker(
                at,
                root_address,
                child,
                peers[child],
                peers[before],
                peers[after],
                first_psns[child],
                first_psns[before],
            )
        )
    return found
