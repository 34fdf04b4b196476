# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Follows one packet up a tree by the verdicts that the switches have counted since it was sent."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from netfold.protocol import netfold_pb2 as pb
from netfold.protocol.wire import Verdict

Counts = Mapping[tuple[str, int], Mapping[str, int]]
"""Packets by switch and tree, then by verdict."""

_NO_TREE = 0
_GOES_UP = {Verdict.FORWARDED, Verdict.SUM_SENT, Verdict.SUM_RESENT}
_OF_OTHER_PACKETS = {Verdict.MULTICAST, Verdict.SLOT_READ, Verdict.SLOT_RESET}
_OF_NO_TREE = {Verdict.UNADMITTED, Verdict.MALFORMED}


@dataclass(frozen=True)
class Hop:
    """A switch on the packet's path. `adds`: it is a node of the tree; the others only forward."""

    switch: str
    adds: bool


@dataclass(frozen=True)
class HopVerdict:
    hop: Hop
    verdict: Verdict


@dataclass(frozen=True)
class Trace:
    """The switches that have counted the packet, or the sum that it completed, so far. `missing`: the switch that has
    to count it next; None: no switch has."""

    steps: tuple[HopVerdict, ...]
    missing: str | None = None


def upstream_path(tree: Mapping[str, Any], host: str, switches: Collection[str]) -> list[Hop]:
    """The switches from a worker to the root of a tree of `plan_document`."""
    edges = {edge["child"]: edge["path"] for edge in tree["edges"]}
    hops, node = [], host
    while node in edges:
        *below, parent = edges[node][1:]
        hops += [Hop(switch, adds=False) for switch in below]
        hops += [Hop(parent, adds=True)] if parent in switches else []
        node = parent
    return hops


def counts_of(status: pb.Status) -> Counts:
    return {(row.switch, row.tree): dict(row.packets) for row in status.trees}


def trace(path: Sequence[Hop], tree: int, before: Counts, after: Counts) -> Trace:
    """Follow the only packet of the tree that was sent between two readings."""
    steps: list[HopVerdict] = []
    for hop in path:
        found = _new(before, after, (hop.switch, tree)) - _OF_OTHER_PACKETS
        if hop.adds:
            found -= {Verdict.FORWARDED}  # an answer on its way back to a child
        found = found or _new(before, after, (hop.switch, _NO_TREE)) & _OF_NO_TREE
        if not found:
            return Trace(tuple(steps), hop.switch)
        steps += [HopVerdict(hop, verdict) for verdict in sorted(found)]
        if not found & _GOES_UP:
            break
    return Trace(tuple(steps))


def _new(before: Counts, after: Counts, place: tuple[str, int]) -> set[Verdict]:
    earlier = before.get(place, {})
    return {Verdict[v.upper()] for v, n in after.get(place, {}).items() if n > earlier.get(v, 0)}
