# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs and flows as streams over the numbered links: a Stream for each tree, ring or flow, with the use of each link by
one of its bytes. Capacities are payload bytes/s of the background flows' packets; jobs with other packets use more or
less of a link per byte."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from netfold.controller.planning.plan import Tree
from netfold.protocol.wire import FRAME_OVERHEAD_BYTES, packet_bytes
from netfold.simulator.flow.native import FlowNetwork, FlowType, Stream
from netfold.simulator.routes import Path, link_table, path_hash
from netfold.simulator.scenario import (
    CollectiveEdge,
    Flow,
    HostCollective,
    IdealCollective,
    InNetworkCollective,
    Job,
    Scenario,
    ScenarioError,
    TcpVariant,
)
from netfold.traffic.congestion import Congestion

TREE_SHARE_BESIDE_TCP = 0.4
"""All trees of a netfold job get this share of a full link, relative to one TCP flow. It is below 1 because a
result is marked if any link of its tree is. 0.3 to 0.7 agree with the packet level (docs/explanation/simulator.md)."""
MIN_TCP_WINDOW = 2
"""TCP's smallest window has this many packets (Linux). A fixed window's share of a full link is relative to it."""

FLOW_TYPES = {
    TcpVariant.DCTCP: FlowType.ECN,
    TcpVariant.CUBIC_ECN: FlowType.ECN,
    TcpVariant.RENO: FlowType.LOSS_BASED,
    TcpVariant.CUBIC: FlowType.LOSS_BASED,
}


@dataclass(frozen=True)
class Channel:
    """A tree, a ring or a connection: its row and its share of the gradient. `rtt` is there and back through empty
    queues, `chunk` the payload of its packets."""

    row: Stream
    share: float
    rtt: float
    chunk: float


class FlowLayout:
    """Resources: the directed links as numbered by LinkTable, then switches' aggregation and servers' ingress, where
    that is less than their links carry."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        fabric, settings = scenario.fabric, scenario.settings
        self.links = link_table(fabric, settings)
        self._packet = settings.packet_bytes
        self._hop_s: dict[float, list[float]] = {}
        capacity = list(self.links.rates / settings.wire)
        per_unit = fabric.unit.bits_per_second / 8 / settings.wire
        self._limited: dict[str, int] = {}
        total: dict[str, float] = defaultdict(float)
        for link in fabric.links:
            total[link.a] += link.rate
            total[link.b] += link.rate
        limits = {s.name: s.capacity for s in fabric.switches}
        limits |= {h.name: h.capacity for h in fabric.hosts if h.capacity is not None}
        for name, limit in limits.items():
            if 0 < limit < total[name] * (1 - 1e-9):
                self._limited[name] = len(capacity)
                capacity.append(limit * per_unit)
        queue = np.full(len(capacity), 0.0)
        queue[: len(self.links.pairs)] = self.links.queues / settings.wire
        self.network = FlowNetwork(
            np.array(capacity),
            queue,
            settings.marking_bytes / settings.wire,
            settings.segment_bytes,
            settings.initial_segments * settings.segment_bytes,
            settings.tolerance,
            settings.handshake,
        )

    def flow(self, number: int, flow: Flow) -> Stream:
        path = self.links.path(flow.source, flow.destination, path_hash(self.scenario.seed, "flow", number))
        return Stream(
            path,
            (1.0,) * len(path),
            FLOW_TYPES[flow.transport],
            flow.weight,
            delay=self._one_way(path, self._packet),
        )

    def channels(self, job: Job) -> list[Channel]:
        scheme = job.scheme
        if job.model.has_targets:
            raise ScenarioError(
                f"job '{job.name}': flows make all-reduces; give the level `packet` for others"
            )
        if isinstance(scheme, IdealCollective):
            return [Channel(Stream((), (), FlowType.NO_QUEUE, cap=scheme.rate), 1.0, scheme.latency_s, 1.0)]
        if isinstance(scheme, HostCollective):
            return [self._exchange(job, scheme)] if scheme.lockstep else self._connections(job, scheme)
        trees = [self._tree(scheme, tree) for tree in scheme.plan.trees]
        return [_lockstep(trees)] if scheme.lockstep else trees

    def _one_way(self, path: Path, packet: float) -> float:
        """Returns the seconds for a packet that every hop forwards once all of it has arrived."""
        seconds = self._hop_s.get(packet)
        if seconds is None:
            seconds = self._hop_s[packet] = (self.links.delays + packet / self.links.rates).tolist()
        return sum(seconds[link] for link in path)

    def _hops(self, job: Job, scheme: HostCollective) -> Iterator[tuple[CollectiveEdge, Path]]:
        for number, hop in enumerate(scheme.hops):
            choice = path_hash(self.scenario.seed, job.name, number)
            yield hop, self.links.path(hop.source, hop.destination, choice)

    def _connections(self, job: Job, scheme: HostCollective) -> list[Channel]:
        """Returns the connections as channels of their own; each has as its share what it carries of a gradient."""
        segment = self.scenario.settings.segment_bytes
        found = []
        for hop, path in self._hops(job, scheme):
            delay = self._one_way(path, self._packet)
            kind, weight = FLOW_TYPES[scheme.transport], scheme.parallel
            row = _row(dict.fromkeys(path, 1.0), kind, weight=weight, delay=delay)
            found.append(Channel(row, hop.factor, scheme.steps * delay, segment))
        return found

    def _exchange(self, job: Job, scheme: HostCollective) -> Channel:
        uses: dict[int, float] = defaultdict(float)
        longest, most = 0.0, max((hop.factor for hop in scheme.hops), default=1.0)
        for hop, path in self._hops(job, scheme):
            longest = max(longest, self._one_way(path, self._packet))
            for link in path:
                uses[link] += hop.factor
        row = _row(uses, FLOW_TYPES[scheme.transport], weight=scheme.parallel / most)
        segment = self.scenario.settings.segment_bytes
        return Channel(
            row if scheme.hops else Stream((), (), FlowType.NO_QUEUE), 1.0, scheme.steps * longest, segment
        )

    def _tree(self, scheme: InNetworkCollective, tree: Tree) -> Channel:
        chunk = 4 * scheme.lanes
        packet = packet_bytes(scheme.lanes) + FRAME_OVERHEAD_BYTES + self.scenario.settings.gap_bytes
        wire = packet / chunk / self.scenario.settings.wire
        uses: dict[int, float] = defaultdict(float)
        number = self.links.number
        above: dict[str, tuple[str, float]] = {}
        for edge in tree.edges:
            path = tuple(number[pair] for pair in pairwise(edge.path))
            for link in path:
                uses[link] += wire
            if edge.parent in self._limited:
                uses[self._limited[edge.parent]] += wire
            above[edge.child] = (edge.parent, self._one_way(path, packet))
        from_parent = {}
        for a, b in tree.result_links:
            link = number[a, b]
            uses[link] += wire
            from_parent[b] = (a, self._one_way((link,), packet))
        hosts = [w for w in above if self.links.fabric.is_host(w)]
        rtt = _longest(above, hosts) + _longest(from_parent, hosts)
        nic = (
            min(float(self.links.rates[number[w, self.links.attachment[w]]]) for w in hosts) * chunk / packet
        )
        window = scheme.window or rtt * nic + self.network.marking
        fixed = scheme.congestion is Congestion.FIXED
        return Channel(
            _row(
                uses,
                FlowType.FIXED_WINDOW if fixed else FlowType.ECN,
                weight=self._weight(scheme, tree, window),
                cap=window / rtt if fixed or scheme.window else math.inf,
                window=window,
                delay=rtt / 2,
            ),
            tree.share,
            rtt,
            chunk,
        )

    def _weight(self, scheme: InNetworkCollective, tree: Tree, window: float) -> float:
        """Returns the weight against a TCP flow. One window for all trees is PANAMA's and counts as a flow;
        netfold's workers have one for each tree, and yield more."""
        if scheme.congestion is Congestion.FIXED:
            return max(1.0, window / (MIN_TCP_WINDOW * self.network.segment))
        own = scheme.congestion is Congestion.PANAMA and not scheme.lockstep
        return TREE_SHARE_BESIDE_TCP * tree.share if own else 1.0


def _lockstep(trees: list[Channel]) -> Channel:
    """Returns all trees as one stream: a byte of it is divided by their shares, and they have one window."""
    uses: dict[int, float] = defaultdict(float)
    for tree in trees:
        for link, coef in zip(tree.row.links, tree.row.coefs, strict=True):
            uses[link] += tree.share * coef
    longest = max(trees, key=lambda t: t.rtt)
    links = sorted(uses)
    row = replace(longest.row, links=links, coefs=[uses[i] for i in links])
    return Channel(row, 1.0, longest.rtt, longest.chunk)


def _row(uses: Mapping[int, float], kind: FlowType, **rest: float) -> Stream:
    links = sorted(uses)
    return Stream(links, [uses[i] for i in links], kind, **rest)


def _longest(towards: Mapping[str, tuple[str, float]], hosts: list[str]) -> float:
    """Returns the longest path from a host by `towards`, which has each node's next and the distance to that."""
    known: dict[str, float] = {}

    def of(node: str) -> float:
        if node not in towards:
            return 0.0
        if node not in known:
            after, far = towards[node]
            known[node] = far + of(after)
        return known[node]

    return max(map(of, hosts))
