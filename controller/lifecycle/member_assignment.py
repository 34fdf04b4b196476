# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Computes the assignment of a member in one epoch from the job's record, its file and its placement.

Timeouts and sending rate follow from the kinds of the job's switches, and from the time that links hold packets
(docs/reference/protocol.md, sections 5.2 and 5.4)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from ipaddress import IPv4Address
from itertools import pairwise

from netfold.controller.features.registry import features_of
from netfold.controller.jobs.file import ResolvedJob
from netfold.controller.jobs.records import JobRecord
from netfold.controller.lifecycle.allocation import longest_delay_s
from netfold.controller.lifecycle.job_registry import JobRegistry
from netfold.controller.lifecycle.packet_model import PacketModel
from netfold.controller.planning.plan import Plan, Tree
from netfold.controller.switches.devices import SwitchTarget
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.protocol.congestion import DATA_CENTER, SHARED_PROCESSORS, Timing
from netfold.topologies.fabric import Link

_PACKETS = 16
"""Extra packets that a timeout allows for, so that a slow software switch is not mistaken for a silent one."""

_BURST_OF_QUEUE = 0.75
"""Part of the shortest queue on the paths that a burst may fill; the rest is for the burst of another sender."""


@dataclass(frozen=True)
class MemberTree:
    """One tree of a member. `children`, their `sources` and `direct_children` are for a parameter server that is the
    root."""

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
    """The assignment of one member. `rank` is 0 for a parameter server; `rate_bps` and `link_bps` count whole
    frames."""

    rank: int
    workers: int
    rate_bps: float
    link_bps: float
    timing: Timing
    address: IPv4Address
    trees: tuple[MemberTree, ...]


class EpochAssignments:
    """The assignments of all members of an installed job in one epoch. What members have in common is computed once,
    because a thousand of them request it within a second."""

    def __init__(
        self, config: FabricConfig, packet_model: PacketModel, job: JobRecord, resolved: ResolvedJob
    ) -> None:
        assert job.placement is not None
        self._config, self._packet_model = config, packet_model
        self._placement, self._plan = job.placement, job.placement.plan
        self._features = features_of(job)
        self._key = self._key_of(job, resolved)
        planned = {e.child for tree in self._plan.trees for e in tree.edges}
        workers = [w for w in resolved.workers if w in planned]
        self._ranks = {worker: rank for rank, worker in enumerate(workers)}
        self._numbers = [{e.child: n for n, e in enumerate(tree.edges)} for tree in self._plan.trees]
        self._timing = timing_of(config, self._plan, packet_model)
        self._rate_bps = pace_of(config, self._plan, packet_model)
        self._frame_part = frame_part(config, self._plan, packet_model)

    def is_of(self, job: JobRecord, resolved: ResolvedJob) -> bool:
        """Whether the job is still in this epoch with these members."""
        return self._key == self._key_of(job, resolved)

    def of(self, host: str) -> MemberAssignment:
        """The assignment of a worker or parameter server of the job."""
        serves = host not in self._ranks
        trees = [
            self._tree(number, host, serves=serves)
            for number, tree in enumerate(self._plan.trees)
            if not serves or tree.root == host
        ]
        return MemberAssignment(
            rank=0 if serves else self._ranks[host],
            workers=len(self._ranks),
            rate_bps=self._rate_bps,
            link_bps=link_rate_of(self._config, self._packet_model, host) * self._frame_part,
            timing=self._timing,
            address=self._config.addresses.ip(host),
            trees=tuple(trees),
        )

    @staticmethod
    def _key_of(job: JobRecord, resolved: ResolvedJob) -> tuple[object, ...]:
        return job.seq, job.epoch, resolved.workers

    def _tree(self, number: int, host: str, *, serves: bool) -> MemberTree:
        allocated, tree = self._placement.trees[number], self._plan.trees[number]
        numbers, ip = self._numbers[number], self._config.addresses.ip
        direct = list(tree.children(host)) if serves else []
        late = [s for f in self._features for s in f.late_senders(allocated, tree)] if serves else []
        senders = direct + late
        return MemberTree(
            tree=allocated.tree,
            share=tree.share,
            slots=allocated.slots,
            window=allocated.window,
            child=numbers.get(host, 0),
            destination=ip(tree.root),
            children=tuple(numbers[s] for s in senders),
            sources=tuple(tuple(ip(w) for w in tree.workers_below(s)) for s in senders),
            direct_children=len(direct) if late else 0,
        )


class Assignments:
    """The assignments of members of all jobs; those of the present epoch of a job are kept."""

    def __init__(self, config: FabricConfig, packet_model: PacketModel, registry: JobRegistry) -> None:
        self._config = config
        self._packet_model = packet_model
        self._registry = registry
        self._kept: dict[str, EpochAssignments] = {}

    def of(self, job: JobRecord, host: str) -> MemberAssignment:
        """The assignment of a worker or parameter server of an installed job in its present epoch."""
        resolved = self._registry.resolved_job(job.name)
        found = self._kept.get(job.name)
        if found is None or not found.is_of(job, resolved):
            self._kept = {n: a for n, a in self._kept.items() if self._registry.has_live(n)}
            found = EpochAssignments(self._config, self._packet_model, job, resolved)
            self._kept[job.name] = found
        return found.of(host)


def timing_of(config: FabricConfig, plan: Plan, packet_model: PacketModel) -> Timing:
    """The timing of a job, the same for all its workers. A switch that is a program shares a processor with others."""
    links = [link for tree in plan.trees for link in _links(config, tree)]
    switches = {node for tree in plan.trees for node in _switches(config, tree)}
    chips = all(config.device(s).target is not SwitchTarget.V1MODEL for s in switches)
    base = DATA_CENTER if chips else SHARED_PROCESSORS
    packet = packet_model.packet_bits / packet_model.bits_per_second(config.fabric, plan.rate)
    delay = 2 * max(longest_delay_s(config.fabric, tree) for tree in plan.trees)
    queue = min(
        x.queue * packet_model.packet_bits / packet_model.bits_per_second(config.fabric, x.rate)
        for x in links
    )
    variance = max(base.min_rto_margin, _PACKETS * packet, packet_model.min_rto_margin_s)
    first = base.initial_rto + delay + (variance - base.min_rto_margin)
    return replace(
        base,
        initial_rto=first,
        min_rto_margin=variance,
        max_rto=max(base.max_rto, 4 * first),
        delay_threshold=max(base.delay_threshold, _PACKETS / 2 * packet),
        pacing_burst=min(base.pacing_burst, _BURST_OF_QUEUE * queue),
    )


def pace_of(config: FabricConfig, plan: Plan, packet_model: PacketModel) -> float:
    """Bits per second, counted in whole frames, that a worker may send."""
    bits = packet_model.bits_per_second(
        config.fabric, plan.rate if plan.pacing_rate is None else plan.pacing_rate
    )
    return bits * frame_part(config, plan, packet_model)


def link_rate_of(config: FabricConfig, packet_model: PacketModel, host: str) -> float:
    """Bits per second of the link of the host."""
    link = config.fabric.link(host, config.fabric.attachment(host))
    return packet_model.bits_per_second(config.fabric, link.rate)


def frame_part(config: FabricConfig, plan: Plan, packet_model: PacketModel) -> float:
    """Fraction of a link's time that frames take: the link of a chip also sends preamble and gap, an emulated one does
    not."""
    switches = {node for tree in plan.trees for node in _switches(config, tree)}
    ethernet = any(config.device(s).target is not SwitchTarget.V1MODEL for s in switches)
    return packet_model.frame_bits / packet_model.packet_bits if ethernet else 1.0


def _links(config: FabricConfig, tree: Tree) -> Iterator[Link]:
    for edge in tree.edges:
        yield from (config.fabric.link(a, b) for a, b in pairwise(edge.path))


def _switches(config: FabricConfig, tree: Tree) -> Iterator[str]:
    for edge in tree.edges:
        yield from (node for node in edge.path if not config.fabric.is_host(node))
