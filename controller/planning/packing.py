# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Packs whole streams into nodes: at a given rate, members are packed into as few nodes as a server can serve.

A node has room for the streams that its capacity, its fan-in, and the links into it carry at that rate. For one server
this is an exact answer to a relaxation (routes beyond the own links of a node are left out, and then all workers off
the node are alike), so it bounds every plan that leaves streams whole. For several servers, nodes are assigned to one
server after the other.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from netfold.controller.planning.draft_editor import DraftEditor
from netfold.controller.planning.layout import Draft
from netfold.controller.planning.residual_network import ResidualNetwork

ROUND_OFF = 1e-9


class Style(Enum):
    """Order in which nodes are filled. DENSE fills the roomiest nodes, as few as possible. SPREAD distributes the
    members evenly over the nodes that the server can serve, the preferred ones first: fewer streams meet on a link."""

    DENSE = "dense"
    SPREAD = "spread"


@dataclass(frozen=True)
class Packing:
    """The number of members of each node for one server, and the number of workers that send straight to it."""

    members: dict[str, int]
    direct: int


class Packer:
    """Packs `workers` into `nodes`."""

    def __init__(
        self,
        network: ResidualNetwork,
        workers: Sequence[str],
        nodes: Sequence[str],
        style: Style = Style.DENSE,
    ) -> None:
        self.network, self.workers, self.nodes, self.style = network, workers, nodes, style
        racks = Counter(network.attachment(w) for w in workers)
        self.local = np.array([racks[v] for v in nodes], dtype=np.int64)
        inward = [[network.capacity[network.link_id[u, v]] for u in network.neighbors[v]] for v in nodes]
        self.links = np.array([c for caps in inward for c in (0.0, *caps)])
        sizes = [len(caps) + 1 for caps in inward]
        self.starts = np.concatenate(([0], np.cumsum(sizes[:-1]))).astype(np.int64)

    def greatest(
        self, drafts: Sequence[Draft], preferences: Sequence[Counter[str]], ceiling: float, steps: int = 24
    ) -> tuple[float, float, dict[int, Packing]] | None:
        """The greatest rate that can be packed, as a lower and an upper value, with its packing for each draft number.
        `preferences` counts, by draft, the nodes to prefer if room is equal."""
        best = self.at(drafts, preferences, ceiling)
        if best is not None:
            return ceiling, ceiling, best
        low, high = 0.0, ceiling
        for _ in range(steps):
            rate = (low + high) / 2
            found = self.at(drafts, preferences, rate)
            low, high, best = (low, rate, best) if found is None else (rate, high, found)
        return None if best is None else (low, high, best)

    def at(
        self, drafts: Sequence[Draft], preferences: Sequence[Counter[str]], rate: float
    ) -> dict[int, Packing] | None:
        """A packing at `rate`, or None."""
        left = np.array([self.network.capacity[self.network.switch_id[v]] for v in self.nodes])
        inflow = np.zeros(len(self.nodes))
        ingress = {d.root: float(self.network.capacity[self.network.server_id[d.root]]) for d in drafts}
        waiting = {root: sum(d.share for d in drafts if d.root == root) for root in ingress}
        result: dict[int, Packing] = {}
        for t in sorted(range(len(drafts)), key=lambda t: -drafts[t].share):
            root, share = drafts[t].root, drafts[t].share
            if share * rate <= 0:
                result[t] = Packing({}, len(self.workers))
                continue
            fair = ingress[root] * share / waiting[root]  # a server's trees divide its ingress
            streams = int(fair / (share * rate) * (1 + ROUND_OFF))
            packing = self._one(root, share * rate, streams, preferences[t], left, inflow)
            if packing is None:
                return None
            result[t] = packing
            waiting[root] -= share
            ingress[root] -= (packing.direct + len(packing.members)) * share * rate
        return result

    def _one(
        self,
        server: str,
        stream: float,
        streams: int,
        preference: Counter[str],
        left: NDArray[np.float64],
        inflow: NDArray[np.float64],
    ) -> Packing | None:
        """Pack one tree, whose root takes up to `streams`. `left` and `inflow` (the load that comes to each node over
        links) are kept up to date."""
        count = len(self.workers)
        if not self.nodes:
            return Packing({}, count) if count <= streams else None
        room = self._room(server, stream, left, inflow)
        preferred = np.array([-preference[v] for v in self.nodes])
        order = np.lexsort((preferred, -room) if self.style is Style.DENSE else (-room, preferred, room == 0))
        covered = np.minimum(np.concatenate(([0], np.cumsum(room[order]))), count)
        fits = np.flatnonzero(np.arange(len(covered)) + (count - covered) <= streams)
        if not len(fits):
            return None
        opened = order[: fits[0] if self.style is Style.DENSE else fits[-1]]
        members: dict[str, int] = {}
        rest = int(covered[len(opened)])
        for position, i in enumerate(opened):
            taken = min(rest, int(room[i]))
            if self.style is Style.SPREAD:
                behind = int(np.sum(room[opened[position + 1 :]]))
                taken = min(taken, max(-(-rest // (len(opened) - position)), rest - behind))
            if taken:
                members[self.nodes[i]] = taken
                left[i] -= taken * stream
                inflow[i] += max(0, taken - int(self.local[i])) * stream
                rest -= taken
        return Packing(members, count - sum(members.values()))

    def _room(
        self, server: str, stream: float, left: NDArray[np.float64], inflow: NDArray[np.float64]
    ) -> NDArray[np.int64]:
        """The number of members that each node can take. A node with workers of its own needs the room of one link for
        the results, unless the server is attached to it."""

        def whole(amounts: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.asarray(np.floor(amounts / stream * (1 + ROUND_OFF)))

        results = (self.local > 0) & (np.array(self.nodes) != self.network.attachment(server))
        arriving = (
            np.add.reduceat(whole(self.links), self.starts) - np.ceil(inflow / stream - ROUND_OFF) - results
        )
        most = np.array([min(self.network.max_children(v), len(self.workers)) for v in self.nodes])
        room = np.minimum(np.minimum(whole(left), most), self.local + np.maximum(arriving, 0))
        room[[not self.network.paths.routes(v, server, 1) for v in self.nodes]] = 0
        return np.asarray(np.maximum(room, 0), dtype=np.int64)


def packing_bound(
    network: ResidualNetwork, workers: Sequence[str], servers: Sequence[str], nodes: Sequence[str]
) -> float:
    """An upper bound of the rate when each worker's part for a server stays whole: the sum of the rates that each
    server could have alone."""
    packer, top = Packer(network, workers, nodes), network.access_limit(tuple(workers))
    total = 0.0
    for server in servers:
        high = min(top, float(network.capacity[network.server_id[server]]))
        found = packer.greatest([Draft(server, 1.0)], [Counter()], high, steps=50)
        total += high if found is None else found[1]
    return min(top, total)


def placed(
    network: ResidualNetwork,
    workers: Sequence[str],
    rounded: Sequence[Draft],
    packings: dict[int, Packing],
    rate: float,
) -> list[Draft]:
    """Drafts that follow packings made at `rate`, each worker near its rounded place, routes balanced. Raises
    PlanningError if a worker has no route to its place."""
    drafts = [Draft(d.root, d.share) for d in rounded]
    places = [_places(network, workers, rounded[t], packings[t], rate) for t in range(len(drafts))]
    editor = DraftEditor(network, drafts, ())
    for t, draft in enumerate(drafts):
        for node in sorted({p for p in places[t].values() if p != draft.root}):
            editor.place(t, node, draft.root)
    for t in range(len(drafts)):
        for worker in workers:
            editor.place(t, worker, places[t][worker])
    return drafts


def _places(
    network: ResidualNetwork, workers: Sequence[str], rounded: Draft, packing: Packing, rate: float
) -> dict[str, str]:
    """Give every worker a place within the numbers of the packing: the nearest pairs of switch and node first, and no
    more workers of a pair than its routes carry; the remaining ones go anywhere with room. Within a switch, workers
    whose rounded choice it was come first."""
    room = dict(packing.members)
    room[rounded.root] = packing.direct
    waiting: dict[str, list[str]] = defaultdict(list)
    for worker in workers:
        waiting[network.attachment(worker)].append(worker)
    pairs = sorted(
        (network.paths.hops(switch, parent), rank, parent, switch)
        for rank, parent in enumerate(room)
        for switch in waiting
    )
    place: dict[str, str] = {}
    for bounded in (True, False):
        for _, _, parent, switch in pairs:
            if room[parent] > 0 and waiting[switch]:
                most = room[parent]
                if bounded:
                    most = min(most, _carried(network, switch, parent, rounded.share * rate))
                waiting[switch].sort(key=lambda w: rounded.parent[w] != parent)
                taken, waiting[switch] = waiting[switch][:most], waiting[switch][most:]
                room[parent] -= len(taken)
                place.update(dict.fromkeys(taken, parent))
    return place


def _carried(network: ResidualNetwork, switch: str, parent: str, stream: float) -> int:
    """The number of streams that the candidate routes from a switch to a node carry, as if they shared no link."""
    total = 0
    for route in network.paths.routes(switch, parent):
        if not route:
            return len(network.server_id)
        total += int(min(network.capacity[i] for i in route) / stream * (1 + ROUND_OFF))
    return total
