# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The planners' oracle: the best trees of a tiny fabric, by going through all of them.

It shares no code with the planners and knows nothing but what a plan promises (docs/reference/planning.md). A
tree is a vector of whole numbers, how many of its streams each resource carries; its rate is the least of
capacity over streams. Trees are built one stream at a time, over every simple path, and a vector is dropped as
soon as it is no better than another one in any resource, or cannot beat what is known already. Meant for 3 or
4 switches and up to 6 workers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from netfold.controller.planning.plan import JobSpec
from netfold.topologies.fabric import Fabric
from tests.planning.cases import switch_graph

Vectors = NDArray[np.int16]
BETTER = 1e-9
MOST_VECTORS = 20_000
"""A fabric with more trees worth a look than this is not tiny."""


class TooLarge(Exception):
    """The fabric has too many trees to go through."""


def best_one_level(fabric: Fabric, job: JobSpec, known: float = 0.0) -> float:
    """The greatest rate of one tree per parameter server, in which each worker's part is added up at one switch at the
    most on its way, at the best shares: the form of `grid`, `inart` and `optimal`. At most two servers. A rate `known`
    to be possible makes it quicker."""
    trees = _Trees(fabric, job)
    singles = [trees.best(s, one_level=True, known=0.0) for s in job.parameter_servers]
    best = max(known, *singles)
    top = min(trees.access, sum(singles))
    if len(singles) == 1 or best >= top * (1 - BETTER):
        return best
    first, second = (
        trees.one_level(s, best - other)
        for s, other in zip(job.parameter_servers, reversed(singles), strict=True)
    )
    return min(trees.access, _best_pair(first, second, trees.capacity, best))


def best_single_tree(fabric: Fabric, job: JobSpec, known: float = 0.0) -> float:
    """The greatest rate of one tree with any root, a server or a switch, and any number of levels. A switch as the root
    answers a child that asks again over the child's own way up: only trees in which such an answer finds its way to all
    workers that the child speaks for count."""
    trees = _Trees(fabric, job)
    best = known
    for root in (*job.parameter_servers, *trees.able):
        best = max(best, trees.best(root, one_level=False, known=best))
    return best


@dataclass(frozen=True)
class _Way:
    """How one stream may run: what it loads, and for a switch-rooted tree the workers that may lie below it."""

    load: Vectors
    serves: frozenset[str]


class _Trees:
    """All trees of a job on a fabric, as vectors over: directed links between switches, switches, servers."""

    def __init__(self, fabric: Fabric, job: JobSpec) -> None:
        self.fabric, self.job = fabric, job
        self.graph = switch_graph(fabric)
        self.able = [s.name for s in fabric.switches if s.capacity > 0]
        hops = [hop for a, b in self.graph.edges for hop in ((a, b), (b, a))]
        names = [*hops, *self.graph.nodes, *job.parameter_servers]
        self.at = {name: i for i, name in enumerate(names)}
        self.capacity = np.array(
            [fabric.link(*hop).rate for hop in hops]
            + [fabric.switch(v).capacity for v in self.graph.nodes]
            + [fabric.ingress_capacity(s) for s in job.parameter_servers]
        )
        self.access = min(fabric.link(w, fabric.attachment(w)).rate for w in job.workers)
        self.leaves = {fabric.attachment(w) for w in job.workers}

    # ---- streams -----------------------------------------------------------------------------------------

    def switch_of(self, node: str) -> str:
        return self.fabric.attachment(node) if self.fabric.is_host(node) else node

    def paths(self, child: str, parent: str) -> list[tuple[str, ...]]:
        """The switches of every simple path."""
        first, last = self.switch_of(child), self.switch_of(parent)
        return (
            [(first,)] if first == last else [tuple(p) for p in nx.all_simple_paths(self.graph, first, last)]
        )

    def vector(self, hops: Sequence[tuple[str, str]], *spent: str) -> Vectors:
        vector = np.zeros(len(self.capacity), dtype=np.int16)
        for name in (*hops, *spent):
            vector[self.at[name]] += 1
        return vector

    def downs(self, root: str) -> Iterator[tuple[tuple[str, str], ...]]:
        """Every way down to the leaves, as links between switches; without branches that lead to no leaf."""
        start = self.switch_of(root)
        others = [v for v in self.graph.nodes if v != start]
        for count in range(len(others) + 1):
            for inside in itertools.combinations(others, count):
                if not self.leaves <= {start, *inside}:
                    continue
                choices = [[u for u in self.graph.adj[v] if u == start or u in inside] for v in inside]
                for above in itertools.product(*choices):
                    links = tuple(zip(above, inside, strict=True))
                    if set(inside) - set(above) <= self.leaves and len(_reached(start, links)) == count + 1:
                        yield links

    def structures(self, root: str, *, one_level: bool) -> Iterator[dict[str, str]]:
        """Every choice of inner nodes and of their parents."""
        nodes = [v for v in self.able if v != root]
        for count in range(len(nodes) + 1):
            for inner in itertools.combinations(nodes, count):
                parents = [[root] if one_level else [root, *(v for v in inner if v != n)] for n in inner]
                for above in itertools.product(*parents):
                    links = tuple(zip(above, inner, strict=True))
                    if len(_reached(root, links)) == count + 1:
                        yield dict(zip(inner, above, strict=True))

    # ---- trees -------------------------------------------------------------------------------------------

    def best(self, root: str, *, one_level: bool, known: float) -> float:
        """The greatest rate of a tree with this root, or `known`."""
        best = min(known, self.access)
        everyone = frozenset(self.job.workers)
        if self.fabric.is_host(root):
            downs = _least(np.array([self.vector(d) for d in self.downs(root)]), self.capacity, best)
            for structure in self.structures(root, one_level=one_level):
                found = downs
                for node, parent in structure.items():
                    found = self.joined(found, [w.load for w in self.ways(node, parent)], best)
                for worker in self.job.workers:
                    places = [w.load for p in (root, *structure) for w in self.ways(worker, p)]
                    found = self.joined(found, places, best)
                best = max(best, self.rate(found))
            return best
        for down in self.downs(root):
            base = self.joined(np.zeros((1, len(self.capacity)), np.int16), [self.vector(down)], best)
            below = {v: self.below(down, v) for v in self.graph.nodes} if len(base) else {}
            for structure in self.structures(root, one_level=one_level) if len(base) else ():
                options = [
                    self.answered(node, root, down, below) if parent == root else self.ways(node, parent)
                    for node, parent in structure.items()
                ]
                for ways in itertools.product(*options):
                    found = base
                    for way in ways:
                        found = self.joined(found, [way.load], best)
                    serves = {n: w.serves for n, w in zip(structure, ways, strict=True)} | {root: everyone}
                    for worker in self.job.workers if len(found) else ():
                        found = self.joined(
                            found, self.places(worker, root, structure, serves, down, below), best
                        )
                    best = max(best, self.rate(found))
        return best

    def one_level(self, server: str, least: float) -> Vectors:
        """All trees of one level to a server that reach a rate of `least` and are not worse than another."""
        downs = _least(np.array([self.vector(d) for d in self.downs(server)]), self.capacity, least)
        found_trees = []
        for structure in self.structures(server, one_level=True):
            found = downs
            for node in structure:
                found = self.joined(found, [w.load for w in self.ways(node, server)], least)
            for worker in self.job.workers:
                found = self.joined(
                    found, [w.load for p in (server, *structure) for w in self.ways(worker, p)], least
                )
            found_trees.append(found)
        return _least(np.concatenate(found_trees), self.capacity, least)

    def ways(self, child: str, parent: str) -> list[_Way]:
        everyone = frozenset(self.job.workers)
        return [_Way(self.vector(list(pairwise(p)), parent), everyone) for p in self.paths(child, parent)]

    def places(
        self,
        worker: str,
        root: str,
        structure: dict[str, str],
        serves: dict[str, frozenset[str]],
        down: tuple[tuple[str, str], ...],
        below: dict[str, frozenset[str]],
    ) -> list[Vectors]:
        """Where a worker may be added up, under nodes that may speak for it."""
        found = [w.load for w in self.answered(worker, root, down, below) if worker in w.serves]
        for node in structure:
            above = node
            while structure.get(above, root) != root:
                above = structure[above]
            if worker in serves[above]:
                found += [w.load for w in self.ways(worker, node)]
        return found

    def answered(
        self, child: str, root: str, down: tuple[tuple[str, str], ...], below: dict[str, frozenset[str]]
    ) -> list[_Way]:
        """Ways from a child to a switch that is the root, each with the workers that an answer reaches: it goes back
        along the way until that joins the way down."""
        found = []
        for path in self.paths(child, root):
            joins = next((b for a, b in pairwise(path[::-1]) if (a, b) in down), None)
            if joins is None:
                serves = frozenset([child]) if self.fabric.is_host(child) else below[child]
            else:
                serves = below[joins]
            found.append(_Way(self.vector(list(pairwise(path)), root), serves))
        return found

    def below(self, down: tuple[tuple[str, str], ...], switch: str) -> frozenset[str]:
        """The workers that results reach by way of a switch; none where it is not on the way down."""
        if switch not in {v for link in down for v in link} and down:
            return frozenset()
        reached = _reached(switch, down)
        return frozenset(w for w in self.job.workers if self.fabric.attachment(w) in reached)

    # ---- vectors -----------------------------------------------------------------------------------------

    def joined(self, found: Vectors, options: Sequence[Vectors], least: float) -> Vectors:
        """Each vector with each option added, without those that are not worth a look."""
        if not len(found) or not options:
            return np.zeros((0, len(self.capacity)), np.int16)
        every = (found[:, None, :] + np.array(options)[None, :, :]).reshape(-1, len(self.capacity))
        return _least(every, self.capacity, least)

    def rate(self, found: Vectors) -> float:
        if not len(found):
            return 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            rates = np.where(found > 0, self.capacity / found, np.inf).min(axis=1)
        return float(min(self.access, rates.max()))


def _reached(start: str, links: Sequence[tuple[str, str]]) -> set[str]:
    reached, waiting = {start}, [start]
    while waiting:
        at = waiting.pop()
        for a, b in links:
            if a == at and b not in reached:
                reached.add(b)
                waiting.append(b)
    return reached


def _least(vectors: Vectors, capacity: NDArray[np.float64], least: float) -> Vectors:
    """Without those that do not beat the rate `least`, and those in which another one is nowhere greater."""
    fits = (vectors * (max(0.0, least) * (1 + BETTER)) <= capacity).all(axis=1)
    fits &= ((vectors == 0) | (capacity > 0)).all(axis=1)
    left = np.unique(vectors[fits], axis=0)
    left = left[np.argsort(left.sum(axis=1), kind="stable")]
    if len(left) > MOST_VECTORS:
        raise TooLarge(f"{len(left)} trees")
    kept = np.ones(len(left), dtype=bool)
    for i in range(len(left)):
        if kept[i]:
            worse = (left[i + 1 :] >= left[i]).all(axis=1)
            kept[i + 1 :] &= ~worse
    return left[kept]


def _best_pair(first: Vectors, second: Vectors, capacity: NDArray[np.float64], known: float) -> float:
    """The greatest rate of one tree of each kind at any shares. A pair beats a rate where some share of the first tree
    satisfies every resource: each resource gives an interval of shares."""
    best = known
    for a in first:
        rest = second
        while len(rest):
            room = capacity / (best * (1 + 1e-7)) - rest
            slope = (a - rest).astype(np.float64)
            with np.errstate(divide="ignore", invalid="ignore"):
                edge = room / slope
            high = np.where(slope > 0, edge, np.inf).min(axis=1, initial=1.0)
            low = np.where(slope < 0, edge, -np.inf).max(axis=1, initial=0.0)
            possible = (low <= high) & ~((slope == 0) & (room < 0)).any(axis=1)
            rest = rest[possible]
            if len(rest):
                best = max(best, _rate_of_pair(a, rest[0], capacity))
                rest = rest[1:]
    return best


def _rate_of_pair(a: Vectors, b: Vectors, capacity: NDArray[np.float64]) -> float:
    """The rate of two trees at their best shares: the least of convex functions' maximum, to within 1e-12."""

    def slowness(share: float) -> float:
        load = share * a + (1 - share) * b
        return float((load[load > 0] / capacity[load > 0]).max())

    low, high = 0.0, 1.0
    for _ in range(100):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        if slowness(left) <= slowness(right):
            high = right
        else:
            low = left
    return 1.0 / slowness((low + high) / 2)
