# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Implements targets as a feature of every job: a block of a scatter goes to its owner alone, and a block of a gather
comes from its owner alone. At each switch of the result tree, entries name the port towards each worker below it.

Packets of an epoch may be targeted if its job, its members and the switches on its paths know that
(docs/reference/protocol.md, section 5.8). Otherwise all calls are sums.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from netfold.controller.features.feature import Feature
from netfold.controller.jobs.file import JobFile, OnWorkerLoss, ResolvedJob, TargetsOption
from netfold.controller.jobs.records import JobRecord, Transport
from netfold.controller.planning.plan import Plan
from netfold.controller.switches import tables
from netfold.controller.switches.entries import Entity
from netfold.controller.switches.tree_entities import workers_reached
from netfold.controller.switches.tree_feature import InstalledTree, TreeFeature
from netfold.p4src.manifest import lanes_with
from netfold.protocol.constants import TARGET_NONE
from netfold.protocol.listing import listing
from netfold.protocol.target import Targets
from netfold.topologies.fabric import Fabric

MIN_LANES = 32
"""Lanes of the chunk by which ready workers find each other (docs/reference/protocol.md, E9)."""


class TargetsFeature(Feature):
    def is_in(self, file: JobFile) -> bool:
        return file.targets is not TargetsOption.OFF

    def is_used_by(self, job: JobRecord) -> bool:
        """The explanation of every job with workers says whether it has targets."""
        return job.placement is not None and not job.sandbox

    def tree_feature(self, installed: InstalledTree) -> TreeFeature | None:
        return TargetTree(installed) if installed.numbers.targets is Targets.ON else None

    def explain(self, fabric: Fabric, job: JobRecord) -> Iterator[str]:
        assert job.placement is not None
        if job.placement.targets is Targets.ON:
            yield (
                "Its packets have targets: a reduce-scatter brings each worker its own block, an all-gather those of "
                "the others."
            )
        else:
            because = job.placement.no_targets_because
            yield f"Its packets have no targets, so all its calls are sums: {because}."


class TargetTree(TreeFeature):
    """Targets in one tree."""

    def __init__(self, installed: InstalledTree) -> None:
        self._installed = installed

    def entities(self) -> Iterator[tuple[str, Entity]]:
        fabric, tree = self._installed.fabric, self._installed.tree
        reached, ranks = workers_reached(fabric, tree), self._ranks()
        next_hops: dict[str, list[str]] = defaultdict(list)
        for above, below in tree.result_links:
            next_hops[above].append(below)
        for switch in reached:
            for below in next_hops[switch]:
                workers = {below} if fabric.is_host(below) else reached[below]
                for worker in sorted(workers, key=ranks.__getitem__):
                    via = fabric.ports[switch][below]
                    alone = len(workers) == 1
                    yield switch, tables.owner(self._installed.numbers.tree, ranks[worker], via, alone=alone)

    def _ranks(self) -> Mapping[str, int]:
        """The ranks of the workers in the tree, also of those that are lost since; while a placement is only checked,
        any numbers."""
        job, tree = self._installed.job, self._installed.tree
        planned = dict.fromkeys(tree.workers_below(tree.root))
        workers = planned if job is None else [m.host for m in job.members if m.host in planned]
        return {worker: rank for rank, worker in enumerate(workers)}


@dataclass(frozen=True)
class TargetsDecision:
    """Whether packets of an epoch have targets; `because`: why they have none, "" if they have."""

    targets: Targets
    because: str = ""


def decide_targets(
    fabric: Fabric, lanes: int, resolved: ResolvedJob, plan: Plan, job: JobRecord | None = None
) -> TargetsDecision:
    """The decision for an epoch of the job by a plan. `job`: its record, if it has one that members may have joined."""
    for because in (*_job_problems(lanes, resolved), *([] if job is None else _worker_problems(job))):
        return TargetsDecision(Targets.OFF, because)
    roots = {tree.root for tree in plan.trees}
    unaware = [m.host for m in job.members if not m.supports_targets and m.host in roots] if job else []
    if unaware:
        return TargetsDecision(Targets.PAUSED, f"parameter server {listing(unaware)} does not know targets")
    for because in _switch_problems(fabric, lanes, plan):
        return TargetsDecision(Targets.PAUSED, because)
    return TargetsDecision(Targets.ON)


def _switch_problems(fabric: Fabric, lanes: int, plan: Plan) -> Iterator[str]:
    """The switches on the paths of the plan whose programs drop targeted packets."""
    for node in sorted({n for tree in plan.trees for n in tree.touched if not fabric.is_host(n)}):
        program = fabric.switch(node).runs(lanes)
        if not program.targets:
            known = " or ".join(map(str, lanes_with("targets")))
            what = program.chip or f"program of {program.lanes} lanes"
            yield f"switch {node} runs a {what} without targets; v1model programs of {known} lanes have them"


def _job_problems(lanes: int, resolved: ResolvedJob) -> Iterator[str]:
    file, workers = resolved.file, len(resolved.workers)
    if file.targets is TargetsOption.OFF:
        yield "its file has `targets: off`"
    if file.sandbox:
        yield "packets of a sandbox are made by hand"
    if file.transport is Transport.ROCE:
        yield "RoCE packets have no targets"
    if file.quorum is not None:
        yield "sums with a quorum have no targets"
    if file.on_worker_loss is OnWorkerLoss.CONTINUE:
        yield "blocks of an elastic job may lose their owners"
    if lanes < MIN_LANES:
        yield f"targets need packets of at least {MIN_LANES} lanes, and these have {lanes}"
    if workers > TARGET_NONE:
        yield f"a target names one of at most {TARGET_NONE} workers, and the job has {workers}"


def _worker_problems(job: JobRecord) -> Iterator[str]:
    if job.newcomers:
        yield "workers have come to the job later"
    if unaware := [m.host for m in job.members if not m.supports_targets and not m.parameter_server]:
        yield f"the worker of {listing(unaware)} does not know targets"
