# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Makes the entries of a quorum. A contribution that reaches an inner node late is passed on to the root, where its
sender has a bit of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from netfold.controller.planning.plan import Edge, Tree
from netfold.controller.switches import tables
from netfold.controller.switches.entries import Entity
from netfold.controller.switches.tree_feature import InstalledTree, TreeFeature


class QuorumTree(TreeFeature):
    """A quorum in one tree."""

    def __init__(self, installed: InstalledTree) -> None:
        self._installed = installed

    def late_senders(self, child: str) -> Sequence[int]:
        tree = self._installed.tree
        return [
            n
            for n in indirect_senders(tree)
            if child in {e.parent for e in _edges_to_root(tree, tree.edges[n].child)}
        ]

    def entities(self) -> Iterator[tuple[str, Entity]]:
        """Entities of the quorum at each node, and of the paths of late contributions from inner nodes to the root."""
        numbers, tree = self._installed.numbers, self._installed.tree
        for node in numbers.bases:
            yield node, tables.quorum(numbers.tree, numbers.quorum if node == tree.root else 0)
        for place, number in enumerate(indirect_senders(tree)):
            yield from self._late_path(place, number)

    def _late_path(self, place: int, number: int) -> Iterator[tuple[str, Entity]]:
        """Entities of the path of late contributions from the parent of edge `number` to the root, where it is the
        indirect sender at `place`."""
        fabric, tree = self._installed.fabric, self._installed.tree
        node = tree.edges[number].parent
        children = len(tree.children(tree.root))
        path = [node, *(hop for edge in _edges_to_root(tree, node) for hop in edge.path[1:])]
        for previous, at, following in zip(path, path[1:], [*path[2:], None], strict=False):
            if fabric.is_host(at):
                continue
            sender = self._installed.sender(fabric.ports[at][previous], number)
            if following is not None:
                yield at, tables.forward_up(sender, fabric.ports[at][following])
                continue
            for entity in tables.accumulate(
                sender,
                root=True,
                bit=children + place,
                full=(1 << children) - 1,
                base=self._installed.numbers.bases[at],
            ):
                yield at, entity


def indirect_senders(tree: Tree) -> list[int]:
    """Edges to inner nodes, whose senders have a bit at the root for their late contributions, in the order of these
    bits, which follow the bits of the root's children."""
    return [number for number, edge in enumerate(tree.edges) if edge.parent != tree.root]


def _edges_to_root(tree: Tree, node: str) -> Iterator[Edge]:
    """The edges from a worker or inner node to the root."""
    above = {edge.child: edge for edge in tree.edges}
    while node in above:
        yield above[node]
        node = above[node].parent
