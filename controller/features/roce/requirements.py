# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Checks what RoCE needs of programs, trees and ports, and whether leaves have room for the connections of all
workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from netfold.controller.features.roce.tables import ROCE_SIDE
from netfold.controller.jobs.file import ResolvedJob
from netfold.controller.jobs.records import JobRecord
from netfold.controller.planning.plan import Plan
from netfold.p4src.manifest import lanes_with
from netfold.topologies.fabric import Fabric

MAX_ROCE_TREES = 16
"""Maximum connections of a worker (traffic/agent/messages.h)."""

MAX_CONNECTIONS, MAX_RESERVED = 1024, 2048
"""Sizes of `connections` and `roce_receivers`, and of `reserved_qps` (p4src/transport/roce)."""

_PAIR = 2
"""Entries of `reserved_qps` for a connection: one for the queue pair that sends, one for the one that receives."""


def refusals(
    fabric: Fabric, lanes: int, resolved: ResolvedJob, plan: Plan, installed: Iterable[JobRecord]
) -> Iterator[str]:
    """Why a RoCE job cannot run by the plan in addition to the `installed` jobs: it needs programs with RoCE on all
    switches, suitable ports of its workers, and room at their leaves."""
    name = resolved.file.name
    if len(plan.trees) > MAX_ROCE_TREES:
        yield f"job '{name}': a RoCE job has at most {MAX_ROCE_TREES} trees; name another scheme"
    nodes = {n for tree in plan.trees for e in tree.edges for n in e.path if not fabric.is_host(n)}
    for node in sorted(nodes):
        program = fabric.switch(node).runs(lanes)
        if program.chip is not None:
            yield f"job '{name}': switch {node} is a {program.chip}; RoCE needs v1model programs"
        elif not program.roce:
            known = " or ".join(f"{n} lanes (a path MTU of {4 * n} bytes)" for n in lanes_with("roce"))
            yield f"job '{name}': switch {node} runs a program of {program.lanes} lanes; RoCE needs {known}"
    for worker in sorted({w for tree in plan.trees for w in tree.workers_below(tree.root)}):
        yield from _port_refusals(fabric, name, worker)
    yield from _leaf_refusals(fabric, resolved, plan, installed)


def _port_refusals(fabric: Fabric, job: str, worker: str) -> Iterator[str]:
    """A RoCE worker's packets are admitted as from port + ROCE_SIDE, a port number of nine bits, and no other packets
    may come by that port."""
    leaf = fabric.attachment(worker)
    port = fabric.ports[leaf][worker]
    if port >= ROCE_SIDE:
        yield (
            f"job '{job}': worker {worker} is at port {port} of switch {leaf}; RoCE needs a port of at most "
            f"{ROCE_SIDE - 1}"
        )
    other = next((n for n, p in fabric.ports[leaf].items() if p == port + ROCE_SIDE), None)
    if other is not None:
        yield (
            f"job '{job}': worker {worker} is at port {port} of switch {leaf}, and port {port + ROCE_SIDE} leads to "
            f"{other}, which could contribute in its place; RoCE needs port {port + ROCE_SIDE} unused"
        )


@dataclass
class _Use:
    """Use of a leaf: `connections` in use, `pairs` reserved, and the hosts that have an entry for hidden queue
    pairs."""

    connections: int = 0
    pairs: int = 0
    hosts: set[str] = field(default_factory=set)

    @property
    def reserved(self) -> int:
        return self.pairs + len(self.hosts)


def _leaf_refusals(
    fabric: Fabric, resolved: ResolvedJob, plan: Plan, installed: Iterable[JobRecord]
) -> Iterator[str]:
    """Name leaves that have no room for the job's connections in addition to those of `installed` jobs. The job's own
    older ones are replaced worker by worker."""
    name = resolved.file.name
    others = [job for job in installed if job.roce and job.placements]
    older = [job for job in others if job.name == name]
    wanted = Counter(w for tree in plan.trees for w in tree.workers_below(tree.root))
    leaves: dict[str, list[str]] = {}
    for worker in wanted:
        leaves.setdefault(fabric.attachment(worker), []).append(worker)
    for leaf, workers in leaves.items():
        before = _used(fabric, leaf, [job for job in others if job.name != name])
        pairs = _registered(older)
        after = _Use(
            before.connections + sum(wanted[w] for w in workers),
            before.pairs + sum(_PAIR * max(wanted[w], pairs[w]) for w in workers),
            before.hosts | set(workers),
        )
        yield from _room_refusals(name, leaf, len(workers), before, after)


def _room_refusals(name: str, leaf: str, workers: int, before: _Use, after: _Use) -> Iterator[str]:
    left = min(
        (MAX_CONNECTIONS - before.connections) // workers,
        (MAX_RESERVED - before.pairs - len(after.hosts)) // (_PAIR * workers),
    )
    for what, count, most in (
        ("RoCE queue pairs", after.reserved, MAX_RESERVED),
        ("RoCE connections", after.connections, MAX_CONNECTIONS),
    ):
        if count > most:
            yield (
                f"job '{name}': switch {leaf} would hold {count} entries of {what}; it has {most}: {max(0, left)} "
                f"trees of its {workers} workers there fit (option 'trees')"
            )


def _used(fabric: Fabric, leaf: str, jobs: Iterable[JobRecord]) -> _Use:
    use = _Use()
    for job in jobs:
        for worker, connections, pairs in _of_job(job):
            if fabric.attachment(worker) == leaf:
                use.connections += connections
                use.pairs += _PAIR * pairs
                use.hosts.add(worker)
    return use


def _of_job(job: JobRecord) -> Iterator[tuple[str, int, int]]:
    """Yield workers with their connections, and the number of pairs of queue pairs that they may hold during the
    change: those of an older placement stay closed until the worker has registered new ones."""
    planned: Counter[str] = Counter()
    if job.placement is not None:
        planned.update(w for tree in job.placement.plan.trees for w in tree.workers_below(tree.root))
    registered = _registered([job])
    for worker in planned.keys() | registered.keys():
        yield worker, planned[worker], max(planned[worker], registered[worker])


def _registered(jobs: Iterable[JobRecord]) -> Counter[str]:
    return Counter({ends.host: len(ends.connections) for job in jobs for ends in job.queue_pairs})
