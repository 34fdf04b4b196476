# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The tables `connections`, `ends` (p4src/v1model/roce_in.p4) and `workers` (roce_out.p4): what a leaf knows of the RC
connections of a job's workers. All else of a RoCE job is in switches as of any other.

Worker k sends to s(k), the next of its leaf's ring. k's packets on that connection are its contributions; what s(k)
receives on it are the sums.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from netfold.controller.jobs.records import JobRecord, PlannedTree
from netfold.controller.jobs.rings import successors
from netfold.controller.planning.plan import Tree
from netfold.controller.switches.entries import Entity, Field, TableEntry, action, entry
from netfold.topologies.addressing import Addressing
from netfold.topologies.fabric import Fabric
from netfold.traffic.packets.wire import NO_FLAGS, Flag

CONNECTIONS, ENDS, WORKERS = "connections", "ends", "workers"

ROCE_SIDE = 0x100
"""Added to the port of a RoCE worker where its contributions are admitted, so that nobody on its host sends them
otherwise."""

NOBODY = 511
"""A port that no packet comes from."""

NO_RINGS: Mapping[str, str] = MappingProxyType({})
HIDDEN_QPN = 0
"""Of fragments and the like, whose queue pair cannot be seen."""

SOURCE_PORT = 0xC000
"""Of the UDP datagrams that sums are in."""


@dataclass(frozen=True)
class Connection:
    """Of a worker to the next of its ring, as their leaf sees it: ports, addresses, the queue pair where it ends,
    its first PSN. `slots` are the tree's."""

    udp_port: int
    tree: int
    slots: int
    port: int
    src: int
    next_port: int
    dst: int
    qpn: int
    first_psn: int


def contributions(
    connection: Connection, *, child: int, epoch: int, root: int, floats: bool = False
) -> TableEntry:
    """What comes in on it is the child's; `root` is the address of the tree's root; `floats`: its lanes
    are float32."""
    match: dict[str, Field] = {
        "ingress_port": connection.port,
        "src": connection.src,
        "dst": connection.dst,
        "qpn": connection.qpn,
    }
    contribute = action(
        "contribute",
        udp_port=connection.udp_port,
        tree=connection.tree,
        child=child,
        epoch=epoch,
        root=root,
        first_psn=connection.first_psn,
        log2_slots=connection.slots.bit_length() - 1,
        successor_port=connection.next_port,
        flags=int(Flag.FLOATS if floats else NO_FLAGS),
    )
    return entry(CONNECTIONS, match, contribute)


def sums(connection: Connection) -> TableEntry:
    """What goes out on it."""
    match: dict[str, Field] = {
        "port": connection.next_port,
        "udp_port": connection.udp_port,
        "tree": connection.tree,
    }
    deliver = action(
        "deliver",
        src=connection.src,
        dst=connection.dst,
        udp_src_port=SOURCE_PORT,
        qpn=connection.qpn,
        first_psn=connection.first_psn,
        log2_slots=connection.slots.bit_length() - 1,
    )
    return entry(WORKERS, match, deliver)


def reserved(dst: int, qpn: int, port: int, src: int) -> TableEntry:
    """RoCE to this queue pair comes by this port from this address, or is dropped."""
    return entry(ENDS, {"dst": dst, "qpn": qpn}, action("reserve", port=port, src=src))


def ring_of(fabric: Fabric, job: JobRecord, tree: Tree) -> Mapping[str, str]:
    """By worker of a tree the next in its ring; nothing for a job of another transport."""
    if not job.roce:
        return NO_RINGS
    below = set(tree.workers_below(tree.root))
    return successors(fabric, [m.host for m in job.members if m.host in below])


def connection_entities(
    fabric: Fabric, addresses: Addressing, jobs: Iterable[JobRecord]
) -> Iterator[tuple[str, Entity]]:
    """What leaves hold of all installed jobs' connections. Those of an older epoch are closed, not forgotten: until
    their worker has made new ones nothing gets through to them that was not added up; unless the device has handed
    their queue pair out again."""
    live = [j for j in jobs if j.placements and j.roce]
    known: set[tuple[str, int]] = set()
    for job in live:
        known.update((e.host, q) for e in job.registered.values() for q in e.pairs)
        yield from _current(fabric, addresses, job)
    for job in live:
        for ends in job.ends:
            leaf, address = fabric.attachment(ends.host), int(addresses.ip(ends.host))
            yield leaf, reserved(address, HIDDEN_QPN, NOBODY, 0)
            for pair in ends.pairs:
                if (ends.host, pair) not in known:
                    known.add((ends.host, pair))
                    yield leaf, reserved(address, pair, NOBODY, 0)


def _current(fabric: Fabric, addresses: Addressing, job: JobRecord) -> Iterator[tuple[str, Entity]]:
    """Of the newest epoch."""
    for ends in job.registered.values():
        leaf, address = fabric.attachment(ends.host), int(addresses.ip(ends.host))
        for connection in ends.connections:
            yield leaf, reserved(address, connection.in_qpn, NOBODY, 0)
    placement = job.placement
    if placement is None or not is_complete(job):
        return
    for planned, tree in zip(placement.trees, placement.plan.trees, strict=True):
        for worker, following in ring_of(fabric, job, tree).items():
            yield from _connected(fabric, addresses, job, planned, tree, worker, following)


def is_complete(job: JobRecord) -> bool:
    """All workers have registered connections of the newest epoch, for each of its trees."""
    known = job.registered
    trees = [] if job.placement is None else [t.tree for t in job.placement.trees]
    return all(w in known and all(known[w].of(t) for t in trees) for w in job.workers)


def _connected(
    fabric: Fabric,
    addresses: Addressing,
    job: JobRecord,
    planned: PlannedTree,
    tree: Tree,
    worker: str,
    following: str,
) -> Iterator[tuple[str, Entity]]:
    leaf = fabric.attachment(worker)
    own, theirs = job.registered[worker].of(planned.tree), job.registered[following].of(planned.tree)
    assert own is not None
    assert theirs is not None
    connection = Connection(
        udp_port=job.udp_port,
        tree=planned.tree,
        slots=planned.slots,
        port=fabric.ports[leaf][worker],
        src=int(addresses.ip(worker)),
        next_port=fabric.ports[leaf][following],
        dst=int(addresses.ip(following)),
        qpn=theirs.in_qpn,
        first_psn=own.first_psn,
    )
    child = next(n for n, e in enumerate(tree.edges) if e.child == worker)
    root = int(addresses.ip(tree.root))
    yield leaf, contributions(connection, child=child, epoch=job.epoch, root=root, floats=job.floats)
    yield leaf, sums(connection)
    yield leaf, reserved(connection.src, own.out_qpn, connection.next_port, connection.dst)
