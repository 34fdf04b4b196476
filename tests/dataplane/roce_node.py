# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The part of a leaf for workers that speak RoCE, as plain data (see node.py)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address

from netfold.controller.features.roce import tables as roce
from netfold.controller.features.roce.tables import HIDDEN_QPN, NO_PORT
from netfold.controller.switches.entries import Entity
from tests.dataplane.node import TreeAt


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
    floats: bool = False

    def entities(self) -> Iterator[Entity]:
        after = self._connection(self.own, self.successor, self.first_psn)
        root = _ip(self.root_address)
        yield roce.contributions(after, child=self.child, epoch=self.at.epoch, root=root, floats=self.floats)
        yield roce.reserved(after.src, self.own.receiving, NO_PORT, 0)
        yield roce.reserved(after.src, self.own.sending, after.successor_port, after.dst)
        yield roce.sums(self._connection(self.predecessor, self.own, self.expected_psn))

    def _connection(self, source: Peer, target: Peer, first_psn: int) -> roce.RoceConnection:
        return roce.RoceConnection(
            self.at.udp_port,
            self.at.tree,
            self.at.slots,
            source.port,
            _ip(source.address),
            target.port,
            _ip(target.address),
            target.receiving,
            first_psn,
        )


@dataclass(frozen=True)
class RoceHost:
    """A host of such workers: what does not show its QPN does not reach it."""

    address: str

    def entities(self) -> Iterator[Entity]:
        yield roce.reserved(_ip(self.address), HIDDEN_QPN, NO_PORT, 0)


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
