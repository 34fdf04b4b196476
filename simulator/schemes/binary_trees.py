# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""NCCL's double binary trees are built by hosts alone: two trees over all workers, each for half of the gradient. A
worker that is an inner node of one tree is a leaf of the other one (Sanders, Speck, Traeff, Parallel Computing
2009; NCCL 2.4, src/graph/trees.cc)."""

from __future__ import annotations

from collections.abc import Sequence

from netfold.simulator.scenario import CollectiveEdge, HostCollective, TcpVariant

TREES = 2


def double_binary_tree(workers: Sequence[str], transport: TcpVariant = TcpVariant.DCTCP) -> HostCollective:
    """Returns the all-reduce: each tree's half goes up to its root and, summed, down again, in chunks that follow
    one another. Each worker sends at most two bytes for a byte of the gradient, as in a ring, and a chunk takes
    twice the trees' depth."""
    both = parents(len(workers))
    hops: list[CollectiveEdge] = []
    for above in both:
        for child, parent in enumerate(above):
            if parent is not None:
                hops.append(CollectiveEdge(workers[child], workers[parent], 1 / TREES))
                hops.append(CollectiveEdge(workers[parent], workers[child], 1 / TREES))
    return HostCollective(tuple(hops), 2 * max(map(depth, both)), transport)


def parents(count: int) -> tuple[tuple[int | None, ...], tuple[int | None, ...]]:
    """Returns each rank's parent in both trees; None: the root."""
    first = tuple(_parent(rank, count) for rank in range(count))
    if count % 2:  # the same tree, one rank further
        shifted = (first[(rank - 1) % count] for rank in range(count))
        return first, tuple(None if p is None else (p + 1) % count for p in shifted)
    mirrored = (first[count - 1 - rank] for rank in range(count))
    return first, tuple(None if p is None else count - 1 - p for p in mirrored)


def _parent(rank: int, count: int) -> int | None:
    """Returns the parents of ranks by their lowest set bit: the odd ones are leaves, rank 0 is the root above the
    largest power of two."""
    if rank == 0:
        return None
    bit = rank & -rank
    above = (rank ^ bit) | (bit << 1)
    return above if above < count else rank ^ bit


def depth(above: Sequence[int | None]) -> int:
    """Returns the number of edges from the farthest rank to the root."""
    known: dict[int, int] = {}

    def of(rank: int) -> int:
        if rank not in known:
            parent = above[rank]
            known[rank] = 0 if parent is None else of(parent) + 1
        return known[rank]

    return max(map(of, range(len(above))))
