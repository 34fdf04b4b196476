# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Check that switches have room for the entries of all trees: those that admit packets, and those of owners."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from weakref import ref

from netfold.controller.features.registry import FEATURES
from netfold.controller.jobs.records import AllocatedTree, Placement
from netfold.controller.lifecycle.capacity import RefusedError
from netfold.controller.planning.plan import Tree
from netfold.controller.switches.tree_entities import UnroutableError, tree_entities
from netfold.controller.switches.tree_feature import InstalledTree
from netfold.protocol.target import Targets
from netfold.topologies.fabric import Fabric

MAX_ENTRIES, MAX_ENTRIES_OF_CHIPS = 8192, 4096
"""Sizes of the admission tables: p4src/common/sizes.p4, p4src/tna/arch.p4."""
MAX_OWNERS = 8192
"""Size of the table of owners: p4src/v1model/arch.p4."""

Place = tuple[str, str]
"""A switch and the name of a table."""


class AdmissionEntries:
    """Entries that each tree takes at each switch, computed once while the tree is alive."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self._known: dict[tuple[int, Targets], tuple[ref[Tree], Counter[Place]]] = {}
        """Entries by identity of the tree, with and without targets: its hash takes time in proportion to its edges."""

    def check(self, new: Placement, others: Iterable[Placement]) -> None:
        """Raises RefusedError if a switch has no room for the entries of `new` in addition to those of `others`, or if
        the resent results of a tree have no path."""
        used: Counter[Place] = Counter()
        try:
            for placement in (new, *others):
                for numbers, tree in zip(placement.trees, placement.plan.trees, strict=True):
                    used.update(self._of(numbers, tree))
        except UnroutableError as error:
            raise RefusedError(str(error)) from error
        for (switch, table), count in used.items():
            most = self._room(switch, table)
            if count > most:
                what = "admission" if table == "admission" else "owner"
                raise RefusedError(f"switch {switch} would hold {count} {what} entries; it has {most}")

    def _room(self, switch: str, table: str) -> int:
        if table == "owners":
            return MAX_OWNERS
        return MAX_ENTRIES if self._fabric.switch(switch).chip is None else MAX_ENTRIES_OF_CHIPS

    def _of(self, numbers: AllocatedTree, tree: Tree) -> Counter[Place]:
        """The entries that a tree takes at each switch. Raises UnroutableError."""
        key = id(tree), numbers.targets
        if key not in self._known:
            self._known[key] = ref(tree, lambda _: self._known.pop(key)), self._count(numbers, tree)
        return self._known[key][1]

    def _count(self, numbers: AllocatedTree, tree: Tree) -> Counter[Place]:
        entities = tree_entities(InstalledTree(self._fabric, numbers, tree, epoch=1, udp_port=0), FEATURES)
        tables = ((switch, str(entity.key[0])) for switch, entity in entities)
        return Counter(place for place in tables if place[1] in ("admission", "owners"))
