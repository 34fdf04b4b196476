# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""RoCE workers' connections as messages of api/netfold.proto."""

from __future__ import annotations

from netfold.api import netfold_pb2 as pb
from netfold.controller.jobs.records import Connection, Ends, JobRecord
from netfold.controller.switches.desired import Setting
from netfold.controller.switches.roce import ring_of


def ends_from(message: pb.Attendance) -> Ends:
    told = message.ends
    connections = tuple(
        Connection(tree=c.tree, out_qpn=c.out_qpn, in_qpn=c.in_qpn, first_psn=c.first_psn)
        for c in told.connections
    )
    return Ends(host=message.host, epoch=told.epoch, calls=told.calls, connections=connections)


def ring_message(setting: Setting, job: JobRecord, host: str) -> pb.RoceRing:
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
                next=str(setting.addresses.ip(following)),
                next_qpn=theirs.in_qpn,
                before=str(setting.addresses.ip(before)),
                before_qpn=before_ends.out_qpn,
                before_psn=before_ends.first_psn,
            )
        )
    return pb.RoceRing(
        epoch=job.epoch,
        least_calls=min(calls),
        most_calls=max(calls),
        giver=calls.index(max(calls)),
        trees=trees,
    )
