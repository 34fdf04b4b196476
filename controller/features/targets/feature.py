# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Implements targets as a feature of every job: a block of a scatter goes to its owner alone, and a block of a gather
comes from its owner alone. At each switch of the result tree, entries name the port towards each worker below it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from netfold.controller.features.feature import Feature
from netfold.controller.jobs.file import JobFile, TargetsOption
from netfold.controller.jobs.records import JobRecord
from netfold.controller.switches import tables
from netfold.controller.switches.entries import Entity
from netfold.controller.switches.tree_entities import workers_reached
from netfold.controller.switches.tree_feature import InstalledTree, TreeFeature
from netfold.protocol.target import Targets
from netfold.topologies.fabric import Fabric


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
