# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Makes the entries of RoCE.

Worker k has an RC connection to s(k), its successor in the ring of its leaf. k's packets on that connection are its
contributions; the packets that s(k) receives on it are the sums. The leaf converts between both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from netfold.controller.features.roce import tables
from netfold.controller.features.roce.linking import is_complete
from netfold.controller.features.roce.tables import RoceConnection
from netfold.controller.jobs.records import AllocatedTree, JobRecord
from netfold.controller.jobs.rings import successors
from netfold.controller.planning.plan import Tree
from netfold.controller.switches.entries import Entity
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.controller.switches.tree_feature import TreeFeature
from netfold.topologies.fabric import Fabric


class RoceTree(TreeFeature):
    """RoCE in one tree. Contributions of the workers enter only by their connections. A worker that retransmits is not
    the one without the result: its successor lacks it and gets it."""

    def __init__(self, successor: Mapping[str, str]) -> None:
        self._successor = successor

    def entry_port(self, host: str, port: int) -> int:
        return port + tables.ROCE_SIDE if host in self._successor else port

    def resend_receiver(self, host: str) -> str:
        return self._successor.get(host, host)


def ring_of(fabric: Fabric, job: JobRecord, tree: Tree) -> Mapping[str, str]:
    """The successor of each worker of a tree."""
    below = set(tree.workers_below(tree.root))
    return successors(fabric, [m.host for m in job.members if m.host in below])


def connection_entities(config: FabricConfig, jobs: Iterable[JobRecord]) -> Iterator[tuple[str, Entity]]:
    """Entities of the connections of all installed jobs, each with its leaf.

    Queue pairs of an older epoch stay closed: until the worker has connected new ones, no packet reaches them that a
    switch has not accumulated. A pair number that the device assigned again belongs to its newest connection."""
    installed = [j for j in jobs if j.placements and j.roce]
    known: set[tuple[str, int]] = set()
    for job in installed:
        known.update((e.host, q) for e in job.registered.values() for q in e.pairs)
        yield from _current_connections(config, job)
    for job in installed:
        for ends in job.queue_pairs:
            leaf, address = config.fabric.attachment(ends.host), int(config.addresses.ip(ends.host))
            yield leaf, tables.reserved(address, tables.HIDDEN_QPN, tables.NO_PORT, 0)
            for pair in ends.pairs:
                if (ends.host, pair) not in known:
                    known.add((ends.host, pair))
                    yield leaf, tables.reserved(address, pair, tables.NO_PORT, 0)


def _current_connections(config: FabricConfig, job: JobRecord) -> Iterator[tuple[str, Entity]]:
    """Entities of the newest epoch: queue pairs closed until all workers have registered, then open to their peers."""
    for ends in job.registered.values():
        leaf, address = config.fabric.attachment(ends.host), int(config.addresses.ip(ends.host))
        for connection in ends.connections:
            yield leaf, tables.reserved(address, connection.recv_qpn, tables.NO_PORT, 0)
    placement = job.placement
    if placement is None or not is_complete(job):
        return
    for numbers, tree in zip(placement.trees, placement.plan.trees, strict=True):
        for worker, successor in ring_of(config.fabric, job, tree).items():
            yield from _connection(config, job, numbers, tree, worker, successor)


def _connection(
    config: FabricConfig, job: JobRecord, numbers: AllocatedTree, tree: Tree, worker: str, successor: str
) -> Iterator[tuple[str, Entity]]:
    fabric, addresses = config.fabric, config.addresses
    leaf = fabric.attachment(worker)
    own, theirs = job.registered[worker].of(numbers.tree), job.registered[successor].of(numbers.tree)
    assert own is not None
    assert theirs is not None
    connection = RoceConnection(
        udp_port=job.udp_port,
        tree=numbers.tree,
        slots=numbers.slots,
        port=fabric.ports[leaf][worker],
        src=int(addresses.ip(worker)),
        successor_port=fabric.ports[leaf][successor],
        dst=int(addresses.ip(successor)),
        qpn=theirs.recv_qpn,
        first_psn=own.first_psn,
    )
    child = next(n for n, e in enumerate(tree.edges) if e.child == worker)
    root = int(addresses.ip(tree.root))
    yield leaf, tables.contributions(connection, child=child, epoch=job.epoch, root=root, floats=job.floats)
    yield leaf, tables.sums(connection)
    yield leaf, tables.reserved(connection.src, own.send_qpn, connection.successor_port, connection.dst)
