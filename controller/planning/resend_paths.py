# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Checks whether a switch as root can resend results. It resends a result by the port of the request; the result
follows the upstream path of the child back, until it is at the child or joins the result tree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise

from netfold.controller.planning.plan import Tree

Hop = tuple[str, str]


def unreached_by_resend(tree: Tree, workers: Collection[str]) -> tuple[str, str] | None:
    """The first child of the root for which resent results do not reach a worker below it, and that worker."""
    parent = {edge.child: edge.parent for edge in tree.edges}
    return find_unreached(
        tree.root, parent, {e.child: e.path for e in tree.edges}, tree.result_links, workers
    )


def find_unreached(
    root: str,
    parent: Mapping[str, str],
    path: Mapping[str, Sequence[str]],
    result_links: Iterable[Hop],
    workers: Collection[str],
) -> tuple[str, str] | None:
    """Find an unreached worker as `unreached_by_resend` does, from the parts of a tree: parent and path of each child,
    and the result links."""
    above = {b: a for a, b in result_links}
    below = _workers_below(above, workers)
    below_child = _workers_below(parent, workers)
    for child, its_parent in parent.items():
        if its_parent != root:
            continue
        back = pairwise(reversed(path[child]))
        joins = next((at for before, at in back if above.get(at) == before), child)
        missed = below_child[child] - below[joins]
        if missed and joins not in workers:
            return child, min(missed)
    return None


def _workers_below(above: Mapping[str, str], workers: Collection[str]) -> Mapping[str, set[str]]:
    """The workers below each node, itself included; `above` has the parent of each node."""
    below: dict[str, set[str]] = defaultdict(set)
    for worker in workers:
        at: str | None = worker
        while at is not None:
            below[at].add(worker)
            at = above.get(at)
    return below
