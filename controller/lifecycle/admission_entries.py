# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Whether switches have room for the admission entries of all trees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from netfold.controller.jobs.records import AllocatedTree, Placement
from netfold.controller.lifecycle.job_admission import RefusedError
from netfold.controller.planning.plan import Tree
from netfold.controller.switches.tree_entities import UnroutableError, tree_entities
from netfold.controller.switches.tree_feature import InstalledTree
from netfold.topologies.fabric import Fabric

MAX_ENTRIES, MAX_ENTRIES_OF_CHIPS = 8192, 4096
"""p4src/common/sizes.p4, p4src/tna/arch.p4."""

SPARE = 1024
"""Trees that are gone and still remembered: jobs are admitted against several sets of placements."""


class AdmissionEntries:
    """Entries that each tree takes at each switch, computed once for each tree."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self._known: dict[int, tuple[Tree, Counter[str]]] = {}

    def check(self, new: Placement, others: Iterable[Placement]) -> None:
        """Raises RefusedError if a switch has no room for the entries of `new` beside `others`, or if repeated results
        of a tree do not find their way."""
        placements = [new, *others]
        try:
            counts = [counted for held in placements for counted in self._counts(held)]
        except UnroutableError as error:
            raise RefusedError(str(error)) from error
        used: Counter[str] = Counter()
        for _, counted in counts:
            used.update(counted)
        if len(self._known) > 2 * len(counts) + SPARE:
            self._known = {id(tree): (tree, counted) for tree, counted in counts}
        for switch, count in used.items():
            most = MAX_ENTRIES if self._fabric.switch(switch).chip is None else MAX_ENTRIES_OF_CHIPS
            if count > most:
                raise RefusedError(f"switch {switch} would hold {count} admission entries; it has {most}")

    def _counts(self, placement: Placement) -> Iterable[tuple[Tree, Counter[str]]]:
        """Raises UnroutableError."""
        for numbers, tree in zip(placement.trees, placement.plan.trees, strict=True):
            if id(tree) not in self._known:
                self._known[id(tree)] = (
                    tree,
                    self._count(numbers, tree),
                )  # with the tree: an id may be used again
            yield self._known[id(tree)]

    def _count(self, numbers: AllocatedTree, tree: Tree) -> Counter[str]:
        entities = tree_entities(InstalledTree(self._fabric, numbers, tree, epoch=1, udp_port=0))
        return Counter(switch for switch, entity in entities if entity.key[0] == "admission")
