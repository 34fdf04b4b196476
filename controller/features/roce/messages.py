# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Converts the connections of RoCE workers to messages of protocol/netfold.proto."""

from __future__ import annotations

from netfold.controller.features.roce.entries import ring_of
from netfold.controller.jobs.records import ConnectionRecord, JobRecord, QueuePairs
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.protocol import netfold_pb2 as pb


def queue_pairs_from(host: str, registered: pb.RoceQueuePairs) -> QueuePairs:
    connections = tuple(
        ConnectionRecord(tree=c.tree, send_qpn=c.send_qpn, recv_qpn=c.recv_qpn, first_psn=c.first_psn)
        for c in registered.connections
    )
    return QueuePairs(host=host, epoch=registered.epoch, calls=registered.calls, connections=connections)


def ring_message(config: FabricConfig, job: JobRecord, host: str) -> pb.RoceRing:
    """The host's neighbors in the ring of each tree. All connections of the job have to be registered."""
    assert job.placement is not None
    calls = [job.registered[w].calls for w in job.workers]
    trees = []
    for planned, tree in zip(job.placement.trees, job.placement.plan.trees, strict=True):
        ring = ring_of(config.fabric, job, tree)
        successor = ring[host]
        predecessor = next(a for a, b in ring.items() if b == host)
        successor_ends = job.registered[successor].of(planned.tree)
        predecessor_ends = job.registered[predecessor].of(planned.tree)
        assert successor_ends is not None
        assert predecessor_ends is not None
        trees.append(
            pb.RoceNeighbors(
                tree=planned.tree,
                successor=str(config.addresses.ip(successor)),
                successor_qpn=successor_ends.recv_qpn,
                predecessor=str(config.addresses.ip(predecessor)),
                predecessor_qpn=predecessor_ends.send_qpn,
                predecessor_psn=predecessor_ends.first_psn,
            )
        )
    return pb.RoceRing(
        epoch=job.epoch,
        min_calls=min(calls),
        max_calls=max(calls),
        source_rank=calls.index(max(calls)),
        trees=trees,
    )
