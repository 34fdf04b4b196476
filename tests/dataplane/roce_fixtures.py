# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The switch of fixtures.py with RoCE workers at ports 1, 2, ...: each sends to the next one's QP."""

from __future__ import annotations

from dataclasses import replace

from netfold.controller.features.roce.tables import ROCE_SIDE
from tests.dataplane.fixtures import EPOCH, ROOT_ADDRESS, SETTINGS, TREE, UPLINK
from tests.dataplane.frames import ECT0, Ip
from tests.dataplane.node import Child, Neighbor, Route, Setting, TreeAt
from tests.dataplane.roce_frames import Rc, roce
from tests.dataplane.roce_node import Peer, RoceHost, RoceWorker, ring

SLOTS = 8
FIRST_PSN = {
    1: 0xFFFFFE,
    2: 0,
    3: 0x123456,
    6: 0x800000,
}  # of what a worker sends; that of 1 begins anew soon
PORTS = (1, 2, 3, 6)
PEERS = {p: Peer(p, f"10.0.0.{p}", sending=0x100 + p, receiving=0x200 + p) for p in PORTS}
MORE = (
    Neighbor(6, "02:00:00:00:01:06", "02:00:00:00:00:06", "10.0.0.6"),
    Route("10.0.0.6/32", (6,)),
)


def at_root(workers: int = 2) -> TreeAt:
    return TreeAt(TREE, EPOCH, SLOTS, root=True, children=_children(workers), down=PORTS[:workers])


def at_inner(workers: int = 2) -> TreeAt:
    return TreeAt(
        TREE,
        EPOCH,
        SLOTS,
        children=_children(workers),
        up=(UPLINK, 40),
        results_from=UPLINK,
        down=PORTS[:workers],
    )


def _children(workers: int) -> tuple[Child, ...]:
    return tuple(Child(ROCE_SIDE | port, port) for port in PORTS[:workers])


def settings(at: TreeAt, workers: int = 2) -> list[Setting | RoceWorker | RoceHost]:
    peers = {p: PEERS[p] for p in PORTS[:workers]}
    hosts = [RoceHost(peer.address) for peer in peers.values()]
    return [*SETTINGS, *MORE, at, *ring(at, ROOT_ADDRESS, peers, FIRST_PSN), *hosts]


def successor(worker: int, workers: int) -> Peer:
    return PEERS[PORTS[(PORTS.index(worker) + 1) % workers]]


def sent(worker: int, chunk: int, rc: Rc, workers: int = 2, **fields: int) -> bytes:
    """A worker's packet to its successor, at a place of its connection."""
    peer = successor(worker, workers)
    psn = (FIRST_PSN[worker] + chunk) % (1 << 24)
    packet = Ip(**{"src": PEERS[worker].address, "dst": peer.address, "ecn": ECT0, **fields})
    return roce(replace(rc, psn=psn, qpn=peer.receiving), packet)
