# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Rings are built by hosts alone; a ring says how many bytes each connection carries for a byte of the gradient."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from netfold.simulator.scenario import CollectiveEdge, HostCollective, TcpVariant


def ring(workers: Sequence[str], transport: TcpVariant = TcpVariant.DCTCP) -> HostCollective:
    """Returns the ring all-reduce (Patarasuk & Yuan, JPDC 2009): reduce-scatter, then all-gather. Every worker
    sends 2 (n - 1) / n of the gradient to the next one, in 2 (n - 1) steps."""
    count = len(workers)
    return HostCollective(_hops(workers, 2 * (count - 1) / count), 2 * (count - 1), transport)


def hierarchical_ring(
    racks: Sequence[Sequence[str]], transport: TcpVariant = TcpVariant.DCTCP
) -> HostCollective:
    """Returns the hierarchical ring: reduce-scatter in each rack, as many rings between the racks as the smallest
    has workers, each for its part of the gradient, and all-gather in each rack. The three follow one another for a
    bucket and overlap among buckets, so their bytes add up."""
    parts = min(len(rack) for rack in racks)
    hops: list[CollectiveEdge] = []
    for rack in racks:
        hops += _hops(rack, 2 * (len(rack) - 1) / len(rack))
    between = 2 * (len(racks) - 1) / len(racks) / parts
    for i in range(parts):
        hops += _hops([rack[i] for rack in racks], between)
    steps = 2 * (max(len(rack) for rack in racks) - 1) + 2 * (len(racks) - 1)
    return HostCollective(tuple(hops), steps, transport)


def _hops(around: Sequence[str], factor: float) -> tuple[CollectiveEdge, ...]:
    if len(around) < 2:
        return ()
    return tuple(CollectiveEdge(a, b, factor) for a, b in pairwise((*around, around[0])))
