# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Whether a root that is a switch can answer. It sends a repeated result back by the port that the question came in
from; the answer runs back along the child's own way up, until it is at the child or joins the way down."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise

from netfold.controller.planning.plan import Tree

Hop = tuple[str, str]


def unanswered(tree: Tree, workers: Collection[str]) -> tuple[str, str] | None:
    """The first child of the root whose answers do not reach a worker that it speaks for, and that worker."""
    parent = {edge.child: edge.parent for edge in tree.edges}
    return lost_answer(tree.root, parent, {e.child: e.path for e in tree.edges}, tree.down, workers)


def lost_answer(
    root: str,
    parent: Mapping[str, str],
    path: Mapping[str, Sequence[str]],
    down: Iterable[Hop],
    workers: Collection[str],
) -> tuple[str, str] | None:
    """As `unanswered`, of a tree's parts: each child's parent and path, and the links of the way down."""
    above = {b: a for a, b in down}
    below = _workers_below(above, workers)
    speaks_for = _workers_below(parent, workers)
    for child, its_parent in parent.items():
        if its_parent != root:
            continue
        back = pairwise(reversed(path[child]))
        joins = next((at for before, at in back if above.get(at) == before), child)
        missed = speaks_for[child] - below[joins]
        if missed and joins not in workers:
            return child, min(missed)
    return None


def _workers_below(above: Mapping[str, str], workers: Collection[str]) -> Mapping[str, set[str]]:
    """For each node the workers that lie below it, itself included, by the node `above` each."""
    below: dict[str, set[str]] = defaultdict(set)
    for worker in workers:
        at: str | None = worker
        while at is not None:
            below[at].add(worker)
            at = above.get(at)
    return below
