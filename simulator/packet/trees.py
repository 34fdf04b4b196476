# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The trees of a plan as tables of the packet level (reduction.h): edges with their paths, nodes, and the arcs of
the path down."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from netfold.controller.planning.plan import Edge, Tree
from netfold.topologies.fabric import Fabric

END, NONE = -1, -1
CollectiveEdge = tuple[str, str]


@dataclass
class TreeTables:
    """Rows as native.run takes them; `line` numbers the directed links."""

    line: Mapping[CollectiveEdge, int]
    hops: list[int] = field(default_factory=list)
    arcs: list[tuple[int, ...]] = field(default_factory=list)
    edges: list[tuple[int, ...]] = field(default_factory=list)
    nodes: list[tuple[int, ...]] = field(default_factory=list)
    node_names: list[str] = field(default_factory=list)

    def add_path(self, lines: Sequence[int], last: int = END) -> int:
        """Adds a path; returns where it begins among the hops."""
        begin = len(self.hops)
        self.hops += [*lines, last]
        return begin

    def add(
        self, fabric: Fabric, tree: Tree, job: int, workers: Mapping[str, int], slots: int
    ) -> dict[str, int]:
        """Adds a tree of a job whose workers have these numbers; returns each worker's edge."""
        positions, first, count = self._add_arcs(tree, workers)
        arc_of = {b: arc for (_, b), arc in positions.items()}
        node_of = {name: len(self.nodes) + i for i, name in enumerate(tree.nodes)}
        edge_of = {edge.child: len(self.edges) + i for i, edge in enumerate(tree.edges)}
        children = {name: tree.children(name) for name in tree.nodes}
        for number, edge in enumerate(tree.edges):
            path = self.add_path([self.line[hop] for hop in pairwise(edge.path)])
            result_path = self._result_path(edge, tree, positions) if edge.parent == tree.root else NONE
            bit = children[edge.parent].index(edge.child)
            worker = NONE if edge.child in node_of else workers[edge.child]
            arc = arc_of[edge.child] if edge.child in workers else NONE
            self.edges.append((number, worker, path, node_of[edge.parent], bit, result_path, arc))
        for name in tree.nodes:
            root = name == tree.root
            up = NONE if root else edge_of[name]
            server = int(fabric.is_host(name))
            arcs = (first, count) if root else (0, 0)
            self.nodes.append((slots, len(children[name]), int(root), server, up, *arcs, job))
        self.node_names += tree.nodes
        return {name: edge_of[name] for name in workers}

    def _add_arcs(self, tree: Tree, workers: Mapping[str, int]) -> tuple[dict[CollectiveEdge, int], int, int]:
        """Adds the arc of each link of the result tree. Returns those out of the root: the first, and their number."""
        below: dict[str, list[str]] = defaultdict(list)
        for a, b in tree.result_links:
            below[a].append(b)
        positions: dict[CollectiveEdge, int] = {}
        arcs_in_order: list[CollectiveEdge] = [(tree.root, b) for b in below[tree.root]]
        first = len(self.arcs)
        above = {tree.root: NONE}
        for place, arc in enumerate(arcs_in_order):  # grows: those behind an arc come one after the other
            a, b = arc
            row = (first + len(arcs_in_order), len(below[b]), workers.get(b, NONE), above[a])
            self.arcs.append((self.line[arc], *row))
            positions[arc] = above[b] = first + place
            arcs_in_order += [(b, c) for c in below[b]]
        reached: Counter[str] = Counter()
        for place, (a, b) in reversed(list(enumerate(arcs_in_order, first))):
            reached[b] += b in workers
            reached[a] += reached[b]
            self.arcs[place] = (*self.arcs[place], reached[b])
        return positions, first, len(below[tree.root])

    def _result_path(self, edge: Edge, tree: Tree, positions: Mapping[CollectiveEdge, int]) -> int:
        """Returns the path of a resent result: back along the child's own path, until it joins the result tree
        (controller.planning.resend_paths)."""
        lines: list[int] = []
        for hop in pairwise(reversed(edge.path)):
            if hop in positions:
                return self.add_path(lines, -2 - positions[hop])
            lines.append(self.line[hop])
        return self.add_path(lines)
