# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What switches hold of a tree with a quorum beside what they hold of every tree: sums may go without those who are
late, and what comes late at an inner node goes on to the root, which knows its sender by a bit of its own."""

from __future__ import annotations

from collections.abc import Iterator

from netfold.controller.jobs.records import PlannedTree
from netfold.controller.planning.plan import Edge, Tree
from netfold.controller.switches import admission_table as admission
from netfold.controller.switches import tree_routes
from netfold.controller.switches.admission_table import Sender
from netfold.controller.switches.entries import Entity
from netfold.topologies.fabric import Fabric


def senders_beyond(tree: Tree) -> list[int]:
    """The edges whose senders a root with a quorum knows beside its own children: what comes late at an inner node goes
    to it alone. In the order of their bits, which follow those of the children."""
    return [number for number, edge in enumerate(tree.edges) if edge.parent != tree.root]


def senders_through(tree: Tree, node: str) -> list[int]:
    """Those of `senders_beyond` whose late packets come through a node."""
    return [
        n for n in senders_beyond(tree) if node in {e.parent for e in _up_from(tree, tree.edges[n].child)}
    ]


def quorum_entities(
    fabric: Fabric, planned: PlannedTree, tree: Tree, epoch: int, udp_port: int
) -> Iterator[tuple[str, Entity]]:
    """That sums may go without some, and the ways of late packets from inner nodes to the root."""
    children = tree.children(tree.root)
    for node in planned.bases:
        yield node, tree_routes.quorum(planned.tree, planned.quorum if node == tree.root else 0)
    for place, number in enumerate(senders_beyond(tree)):
        node = tree.edges[number].parent
        way = [node, *(hop for edge in _up_from(tree, node) for hop in edge.path[1:])]
        for before, at, after in zip(way, way[1:], [*way[2:], None], strict=False):
            if fabric.is_host(at):
                continue
            sender = Sender(fabric.ports[at][before], udp_port, planned.tree, number, epoch, planned.slots)
            if after is not None:
                yield at, admission.passed_up(sender, fabric.ports[at][after])
                continue
            for entity in admission.added_up(
                sender,
                root=True,
                bit=len(children) + place,
                full=(1 << len(children)) - 1,
                base=planned.bases[at],
            ):
                yield at, entity


def _up_from(tree: Tree, node: str) -> Iterator[Edge]:
    """The edges from a worker or inner node to the root."""
    above = {edge.child: edge for edge in tree.edges}
    while node in above:
        yield above[node]
        node = above[node].parent
