# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Implements RoCE as a feature of a job: workers contribute by RC connections to others at their leaf."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from netfold.controller.features.feature import EpochRequest, Feature
from netfold.controller.features.roce import linking, requirements
from netfold.controller.features.roce.entries import RoceTree, connection_entities, ring_of
from netfold.controller.jobs.file import JobFile, ResolvedJob
from netfold.controller.jobs.records import MISMATCHED, ConnectionRecord, JobRecord, QueuePairs, Transport
from netfold.controller.jobs.rings import rings, unpaired_worker
from netfold.controller.planning.plan import Plan, Tree
from netfold.controller.switches.entries import Entity
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.controller.switches.tree_feature import InstalledTree, TreeFeature
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol.listing import listing
from netfold.topologies.fabric import Fabric

MIN_WINDOW, MAX_WINDOW = 8, 512
"""Window of a tree in packets: at most three messages of 170, as NetReduce has them, where a switch has the slots."""


class RoceFeature(Feature):
    pending_entries = "RoCE connections"

    def is_in(self, file: JobFile) -> bool:
        return file.transport is Transport.ROCE

    def is_used_by(self, job: JobRecord) -> bool:
        return job.transport is Transport.ROCE

    # ---- checks and placement ----------------------------------------------------------------------------

    def workers_problem(self, fabric: Fabric, workers: Sequence[str]) -> str:
        return unpaired_worker(fabric, workers)

    def refusals(
        self, fabric: Fabric, lanes: int, resolved: ResolvedJob, plan: Plan, installed: Iterable[JobRecord]
    ) -> Iterator[str]:
        return requirements.refusals(fabric, lanes, resolved, plan, installed)

    def numerics_nodes(self, tree: Tree) -> set[str]:
        """All nodes on the paths."""
        return {n for edge in tree.edges for n in edge.path}

    def window(self, fabric: Fabric, plan: Plan, tree: Tree) -> int:
        """Half of the shortest queue on the upstream paths, divided by the plan's trees, as a power of two. RC slows
        down only when a queue overflows, and then all workers retransmit what is in flight."""
        queues = [fabric.link(a, b).queue for e in tree.edges for a, b in pairwise(e.path)]
        room = max(MIN_WINDOW, min(queues) // 2 // len(plan.trees))
        return min(1 << (room.bit_length() - 1), MAX_WINDOW)

    # ---- entries -----------------------------------------------------------------------------------------

    def tree_feature(self, installed: InstalledTree) -> TreeFeature | None:
        if installed.job is None or not installed.job.roce:
            return None
        return RoceTree(ring_of(installed.fabric, installed.job, installed.tree))

    def job_entities(self, config: FabricConfig, jobs: Iterable[JobRecord]) -> Iterator[tuple[str, Entity]]:
        return connection_entities(config, jobs)

    # ---- members -----------------------------------------------------------------------------------------

    def newcomer_problem(self, job: JobRecord, workers: int) -> str:
        return f"job '{job.name}' speaks RoCE, whose rings are closed; submit it again with more workers"

    def on_member_update(
        self, job: JobRecord, host: str, update: pb.MemberUpdate, jobs: Iterable[JobRecord]
    ) -> JobRecord | EpochRequest | None:
        if not update.HasField("queue_pairs"):
            return None
        return linking.register(job, queue_pairs_from(host, update.queue_pairs), jobs)

    def has_controller_update(self, job: JobRecord, host: str) -> bool:
        return host in job.roce and linking.is_linked(job)

    def controller_update(self, config: FabricConfig, job: JobRecord, host: str) -> pb.ControllerUpdate:
        return pb.ControllerUpdate(ring=ring_message(config, job, host))

    def has_pending_entries(self, job: JobRecord) -> bool:
        return linking.has_pending_connections(job)

    def with_entries_installed(self, job: JobRecord) -> JobRecord:
        return job.model_copy(update={"roce_installed_epoch": job.epoch})

    def explain(self, fabric: Fabric, job: JobRecord) -> Iterator[str]:
        """Rings of the job and the state of its connections."""
        for leaf, ring in rings(fabric, job.workers).items():
            yield f"RoCE ring at {leaf}: {' -> '.join([*ring, ring[0]])}."
        absent = [w for w in job.workers if w not in job.registered]
        if absent:
            yield f"No connections of job epoch {job.epoch} are registered by {listing(absent)}; workers wait for all."
        elif job.roce_installed_epoch != job.epoch:
            yield "All workers have registered their connections; the leaves do not have all of them yet."
        else:
            calls = [job.registered[w].calls for w in job.workers]
            if max(calls) >= MISMATCHED:
                yield f"Epoch {job.epoch} began because workers called with different arrays, or one skipped a call."
                return
            yield f"All connections of job epoch {job.epoch} are installed; it began after call {max(calls)}."


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
