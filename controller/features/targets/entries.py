# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Makes the entries of targets: at each switch of the result tree the port that leads to each worker below it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from netfold.controller.switches import tables
from netfold.controller.switches.entries import Entity
from netfold.controller.switches.tree_entities import workers_reached
from netfold.controller.switches.tree_feature import InstalledTree, TreeFeature


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
