# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Defines a tree of a packing with its routes and the resources that it uses, and makes the draft of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netfold.controller.planning.candidate_paths import Route
from netfold.controller.planning.layout import Draft
from netfold.controller.planning.packing_problem import PackingProblem
from netfold.controller.planning.resend_paths import find_unreached
from netfold.topologies.distances import bfs_edges

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TreeStream:
    """`count` children of one parent over one route (between switches): workers of a place, or one node."""

    place: int | None
    node: int | None
    count: int
    parent: int
    route: Route


@dataclass(frozen=True)
class TreeColumn:
    """A tree: its `result_links` between switches, and its `use` of every resource at rate 1 without the links of the
    workers."""

    root: int
    streams: tuple[TreeStream, ...]
    result_links: tuple[int, ...]
    use: Floats

    @property
    def key(self) -> tuple[int, tuple[TreeStream, ...], tuple[int, ...]]:
        return self.root, self.streams, self.result_links


def make_column(
    problem: PackingProblem, root: int, streams: Sequence[TreeStream], result_links: Sequence[int]
) -> TreeColumn:
    use = np.zeros(len(problem.network.capacity))
    for stream in streams:
        for i in (*stream.route, *problem.nodes[stream.parent].spent):
            use[i] += stream.count
    for i in (*result_links, *problem.nodes[root].sent):
        use[i] += 1
    ordered = sorted(streams, key=lambda s: (s.parent, s.place is None, s.place or 0, s.node or 0, s.route))
    return TreeColumn(root, tuple(ordered), tuple(sorted(result_links)), use)


def mirrored(problem: PackingProblem, streams: Sequence[TreeStream]) -> set[int] | None:
    """The other direction of every link of the streams; None if one has no capacity left."""
    links = problem.network.links
    number = problem.network.order
    found = set()
    for stream in streams:
        for i in stream.route:
            a, b = links[i]
            back = problem.link_between.get((number[b], number[a]))
            if back is None:
                return None
            found.add(back)
    return found


def spanning(problem: PackingProblem, root: int, links: Collection[int]) -> tuple[int, ...] | None:
    """The result tree within `links` (between switches); None if they do not reach every place."""
    number = problem.network.order
    out: dict[int, list[int]] = defaultdict(list)
    for i in sorted(links):
        a, b = problem.network.links[i]
        out[number[a]].append(number[b])
    start = problem.nodes[root].switch
    before = {b: a for a, b in bfs_edges(start, out.__getitem__)}
    kept: dict[int, None] = {}
    for place in problem.places:
        at = place.switch
        while at != start:
            if at not in before:
                return None
            link = problem.link_between[before[at], at]
            if link in kept:
                break
            kept[link] = None
            at = before[at]
    return tuple(kept)


def can_resend(
    problem: PackingProblem, root: int, streams: Sequence[TreeStream], result_links: Sequence[int]
) -> bool:
    """Whether results that a switch as root resends reach their workers (resend_paths.py)."""
    if problem.nodes[root].is_server:
        return True
    network, parent, path = problem.network, dict[str, str](), dict[str, tuple[str, ...]]()
    leaves = []
    below: list[tuple[str, str]] = []
    for number, stream in enumerate(streams):
        if stream.place is not None:
            child = f" worker {number}"
            at = problem.switches[problem.places[stream.place].switch]
            leaves.append(child)
            below.append((at, child))
            start: tuple[str, ...] = (child, at)
        else:
            assert stream.node is not None
            child = problem.nodes[stream.node].name
            start = (child,)
        parent[child] = problem.nodes[stream.parent].name
        path[child] = (*start, *(network.links[i][1] for i in stream.route))
    result = [*(network.links[i] for i in result_links), *below]
    return find_unreached(problem.nodes[root].name, parent, path, result, leaves) is None


def as_draft(problem: PackingProblem, column: TreeColumn, share: float) -> Draft:
    """The draft of a tree; workers of a place are assigned in the order of the job."""
    network, nodes = problem.network, problem.nodes
    draft = Draft(nodes[column.root].name, share)
    waiting = {p: iter(place.workers) for p, place in enumerate(problem.places)}
    for stream in column.streams:
        parent = nodes[stream.parent]
        last = parent.spent[:1] if parent.is_server else ()
        for _ in range(stream.count):
            if stream.place is None:
                assert stream.node is not None
                draft.connect(nodes[stream.node].name, parent.name, (*stream.route, *last))
                continue
            worker = next(waiting[stream.place])
            at = problem.switches[problem.places[stream.place].switch]
            draft.connect(worker, parent.name, (network.link_id[worker, at], *stream.route, *last))
    access = [
        network.link_id[problem.switches[place.switch], worker]
        for place in problem.places
        for worker in place.workers
    ]
    draft.result_links = (*nodes[column.root].sent, *column.result_links, *access)
    return draft
