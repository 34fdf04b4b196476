# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""RoCE workers' connections as messages of protocol/netfold.proto."""

from __future__ import annotations

from netfold.controller.jobs.records import ConnectionRecord, JobRecord, QueuePairs
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.controller.switches.roce_feature import ring_of
from netfold.protocol import netfold_pb2 as pb


def ends_from(message: pb.MemberUpdate) -> QueuePairs:
    told = message.queue_pairs
    connections = tuple(
        ConnectionRecord(tree=c.tree, send_qpn=c.send_qpn, recv_qpn=c.recv_qpn, first_psn=c.first_psn)
        for c in told.connections
    )
    return QueuePairs(host=message.host, epoch=told.epoch, calls=told.calls, connections=connections)


def ring_message(setting: FabricConfig, job: JobRecord, host: str) -> pb.RoceRing:
    """Of a job whose connections are all registered."""
    assert job.placement is not None
    calls = [job.registered[w].calls for w in job.workers]
    trees = []
    for planned, tree in zip(job.placement.trees, job.placement.plan.trees, strict=True):
        ring = ring_of(setting.fabric, job, tree)
        following = ring[host]
        before = next(a for a, b in ring.items() if b == host)
        theirs = job.registered[following].of(planned.tree)
        before_ends = job.registered[before].of(planned.tree)
        assert theirs is not None
        assert before_ends is not None
        trees.append(
            pb.RoceNeighbors(
                tree=planned.tree,
                successor=str(setting.addresses.ip(following)),
                successor_qpn=theirs.recv_qpn,
                predecessor=str(setting.addresses.ip(before)),
                predecessor_qpn=before_ends.send_qpn,
                predecessor_psn=before_ends.first_psn,
            )
        )
    return pb.RoceRing(
        epoch=job.epoch,
        min_calls=min(calls),
        max_calls=max(calls),
        source_rank=calls.index(max(calls)),
        trees=trees,
    )
