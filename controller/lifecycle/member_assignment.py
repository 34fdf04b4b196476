# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A member's part of a job in one epoch, from the job's record, its file and its placement."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address

from netfold.controller.jobs.file import ResolvedJob
from netfold.controller.jobs.records import AllocatedTree, JobRecord
from netfold.controller.lifecycle.job_admission import PacketModel
from netfold.controller.lifecycle.timing import link_rate_of, pace_of, timing_of
from netfold.controller.planning.plan import Tree
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.controller.switches.quorum_feature import indirect_senders
from netfold.traffic.membership.assignment import Timing


@dataclass(frozen=True)
class MemberTree:
    """One tree of a member. `children`, their `sources` and `direct_children` are for a parameter server, the root."""

    tree: int
    share: float
    slots: int
    window: int
    child: int
    destination: IPv4Address
    children: tuple[int, ...]
    sources: tuple[tuple[IPv4Address, ...], ...]
    direct_children: int


@dataclass(frozen=True)
class MemberAssignment:
    """`rank` is 0 for a parameter server; `rate_bps` and `link_bps` count whole frames."""

    rank: int
    workers: int
    rate_bps: float
    link_bps: float
    timing: Timing
    address: IPv4Address
    trees: tuple[MemberTree, ...]


def assignment_of(
    config: FabricConfig, wire: PacketModel, job: JobRecord, order: ResolvedJob, host: str
) -> MemberAssignment:
    """Of a member of an installed job."""
    assert job.placement is not None
    plan = job.placement.plan
    workers = [w for w in order.workers if w not in job.excluded]
    serves = host not in workers
    trees = [
        _tree(config, allocated, tree, host, serves)
        for allocated, tree in zip(job.placement.trees, plan.trees, strict=True)
        if not serves or tree.root == host
    ]
    return MemberAssignment(
        rank=0 if serves else workers.index(host),
        workers=len(workers),
        rate_bps=pace_of(config, plan, wire),
        link_bps=link_rate_of(config, plan, wire, host),
        timing=timing_of(config, plan, wire),
        address=config.addresses.ip(host),
        trees=tuple(trees),
    )


def _tree(config: FabricConfig, allocated: AllocatedTree, tree: Tree, host: str, serves: bool) -> MemberTree:
    numbers = {e.child: n for n, e in enumerate(tree.edges)}
    direct = list(tree.children(host)) if serves else []
    indirect = [tree.edges[n].child for n in indirect_senders(tree)] if serves and allocated.quorum else []
    senders = direct + indirect
    return MemberTree(
        tree=allocated.tree,
        share=tree.share,
        slots=allocated.slots,
        window=allocated.window,
        child=numbers.get(host, 0),
        destination=config.addresses.ip(tree.root),
        children=tuple(numbers[s] for s in senders),
        sources=tuple(tuple(config.addresses.ip(w) for w in tree.workers_below(s)) for s in senders),
        direct_children=len(direct) if serves and allocated.quorum else 0,
    )
