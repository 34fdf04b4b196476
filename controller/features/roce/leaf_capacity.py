# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Checks that leaves have room for the connections of all RoCE workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from netfold.controller.jobs.file import ResolvedJob
from netfold.controller.jobs.records import JobRecord
from netfold.controller.planning.plan import Plan
from netfold.topologies.fabric import Fabric

MAX_CONNECTIONS, MAX_RESERVED = 1024, 2048
"""Sizes of `connections` and `roce_receivers`, and of `reserved_qps` (p4src/transport/roce)."""

_PAIR = 2
"""Entries of `reserved_qps` for a connection: one for the queue pair that sends, one for the one that receives."""


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


def leaf_refusals(
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
        yield from _refusals(name, leaf, len(workers), before, after)


def _refusals(name: str, leaf: str, workers: int, before: _Use, after: _Use) -> Iterator[str]:
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
