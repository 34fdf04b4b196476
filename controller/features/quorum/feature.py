# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Implements a quorum as a feature of a job: a sum may be sealed without the late contributions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from netfold.controller.features.feature import Feature
from netfold.controller.jobs.file import JobFile, ResolvedJob
from netfold.controller.jobs.records import AllocatedTree, JobRecord
from netfold.controller.planning.plan import Edge, Plan, Tree
from netfold.controller.switches import tables
from netfold.controller.switches.entries import Entity
from netfold.controller.switches.tree_feature import InstalledTree, TreeFeature
from netfold.protocol.wire import COUNT_MAX
from netfold.topologies.fabric import Fabric


class QuorumFeature(Feature):
    def is_in(self, file: JobFile) -> bool:
        return file.quorum is not None

    def is_used_by(self, job: JobRecord) -> bool:
        return job.placement is not None and job.placement.quorum > 0

    def refusals(
        self, fabric: Fabric, lanes: int, resolved: ResolvedJob, plan: Plan, installed: Iterable[JobRecord]
    ) -> Iterator[str]:
        """A quorum needs programs that seal sums at all nodes, and a bit for each sender at a switch as root."""
        name = resolved.file.name
        for tree in plan.trees:
            for node in tree.nodes:
                if not fabric.is_host(node) and not fabric.switch(node).runs(lanes).quorum:
                    what = fabric.switch(node).chip or "switch"
                    yield (
                        f"job '{name}' has a quorum, and switch {node} is a {what}, whose program has no room for one "
                        "(docs/reference/protocol.md, 3.7); leave 'quorum' out, or name a scheme that adds up elsewhere"
                    )
            most = None if fabric.is_host(tree.root) else fabric.switch(tree.root).max_children
            if most is not None and len(tree.edges) > most:
                yield (
                    f"job '{name}' has a quorum and a tree of {len(tree.edges)} senders to switch {tree.root}; a root "
                    f"with a bitmap of {most} bits takes {most}, a parameter server any number"
                )

    def min_contributions(self, file: JobFile, workers: int) -> int:
        assert file.quorum is not None
        return min(file.quorum, workers)

    def has_enough_workers(self, file: JobFile, workers: int) -> bool:
        return file.quorum is not None and workers >= file.quorum

    def newcomer_problem(self, job: JobRecord, workers: int) -> str:
        return f"a job with a quorum has {COUNT_MAX} workers at most" if workers > COUNT_MAX else ""

    def late_senders(self, numbers: AllocatedTree, tree: Tree) -> Sequence[str]:
        return [tree.edges[n].child for n in indirect_senders(tree)]

    def tree_feature(self, installed: InstalledTree) -> TreeFeature | None:
        return QuorumTree(installed) if installed.numbers.quorum else None

    def explain(self, fabric: Fabric, job: JobRecord) -> Iterator[str]:
        if job.placement is not None:
            yield (
                f"A sum is sealed with {job.placement.quorum} contributions once a worker's deadline is over and all "
                "workers have joined."
            )


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
