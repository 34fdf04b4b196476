# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What jobs and flows put on the numbered links, as the engine takes it: for a tree, a ring or a flow one Row, how much
of each link a byte of it uses. Capacities are in payload bytes/s of the background flows' packets; a job with other
packets uses more or less of a link for a byte."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from netfold.controller.planning.plan import Tree
from netfold.simulator.flow.engine import Kind, Network, Row
from netfold.simulator.routes import Path, choice_of, wires_of
from netfold.simulator.scenario import Exchange, Flow, Free, Hop, InNetwork, Job, Scenario, Transport
from netfold.traffic.congestion import Congestion
from netfold.traffic.packets.wire import FRAME_OVERHEAD_BYTES, packet_bytes

BESIDE_TCP = 0.4
"""Bytes that all trees of a job by netfold's workers get of a full link, for each of a TCP flow: less than one, as a
result is marked if any link of its tree is. 0.3 to 0.7 agree with the packet level (docs/simulator.md)."""
LEAST_WINDOW = 2
"""Packets: TCP's window however often it is marked (Linux), which a fixed window's share of a full link is against."""

KINDS = {
    Transport.DCTCP: Kind.RELIEVED,
    Transport.CUBIC_ECN: Kind.RELIEVED,
    Transport.RENO: Kind.FILLING,
    Transport.CUBIC: Kind.FILLING,
}


@dataclass(frozen=True)
class Channel:
    """A tree, a ring or a connection: its row and its share of the gradient. `rtt` is there and back through empty
    queues, `chunk` the payload of its packets."""

    row: Row
    share: float
    rtt: float
    chunk: float


class Layout:
    """Resources: the directed links as Wires numbers them, then what switches can aggregate and servers take in, where
    that is less than their links carry."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        fabric, settings = scenario.fabric, scenario.settings
        self.wires = wires_of(fabric, settings)
        self._packet = settings.packet_bytes
        self._hop_s: dict[float, list[float]] = {}
        capacity = list(self.wires.rates / settings.wire)
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
        queue[: len(self.wires.pairs)] = self.wires.queues / settings.wire
        self.network = Network(
            np.array(capacity),
            queue,
            settings.marking_bytes / settings.wire,
            settings.segment_bytes,
            settings.initial_segments * settings.segment_bytes,
            settings.tolerance,
            settings.handshake,
        )

    def flow(self, number: int, flow: Flow) -> Row:
        path = self.wires.path(flow.source, flow.destination, choice_of(self.scenario.seed, "flow", number))
        return Row(
            path,
            (1.0,) * len(path),
            KINDS[flow.transport],
            flow.weight,
            delay=self._one_way(path, self._packet),
        )

    def channels(self, job: Job) -> list[Channel]:
        scheme = job.scheme
        if isinstance(scheme, Free):
            return [Channel(Row((), (), Kind.STEPS, cap=scheme.rate), 1.0, scheme.latency_s, 1.0)]
        if isinstance(scheme, Exchange):
            return [self._exchange(job, scheme)] if scheme.in_step else self._connections(job, scheme)
        trees = [self._tree(scheme, tree) for tree in scheme.plan.trees]
        return [_in_step(trees)] if scheme.in_step else trees

    def _one_way(self, path: Path, packet: float) -> float:
        """Seconds for a packet that is sent on at every hop when all of it is there."""
        seconds = self._hop_s.get(packet)
        if seconds is None:
            seconds = self._hop_s[packet] = (self.wires.delays + packet / self.wires.rates).tolist()
        return sum(seconds[link] for link in path)

    def _hops(self, job: Job, scheme: Exchange) -> Iterator[tuple[Hop, Path]]:
        for number, hop in enumerate(scheme.hops):
            choice = choice_of(self.scenario.seed, job.name, number)
            yield hop, self.wires.path(hop.source, hop.destination, choice)

    def _connections(self, job: Job, scheme: Exchange) -> list[Channel]:
        """Each by itself, its share what it carries of a gradient."""
        segment = self.scenario.settings.segment_bytes
        found = []
        for hop, path in self._hops(job, scheme):
            delay = self._one_way(path, self._packet)
            kind, weight = KINDS[scheme.transport], scheme.parallel
            row = _row(dict.fromkeys(path, 1.0), kind, weight=weight, delay=delay)
            found.append(Channel(row, hop.factor, scheme.steps * delay, segment))
        return found

    def _exchange(self, job: Job, scheme: Exchange) -> Channel:
        uses: dict[int, float] = defaultdict(float)
        longest, most = 0.0, max((hop.factor for hop in scheme.hops), default=1.0)
        for hop, path in self._hops(job, scheme):
            longest = max(longest, self._one_way(path, self._packet))
            for link in path:
                uses[link] += hop.factor
        row = _row(uses, KINDS[scheme.transport], weight=scheme.parallel / most)
        segment = self.scenario.settings.segment_bytes
        return Channel(row if scheme.hops else Row((), (), Kind.STEPS), 1.0, scheme.steps * longest, segment)

    def _tree(self, scheme: InNetwork, tree: Tree) -> Channel:
        chunk = 4 * scheme.lanes
        packet = packet_bytes(scheme.lanes) + FRAME_OVERHEAD_BYTES + self.scenario.settings.gap_bytes
        wire = packet / chunk / self.scenario.settings.wire
        uses: dict[int, float] = defaultdict(float)
        number = self.wires.number
        above: dict[str, tuple[str, float]] = {}
        for edge in tree.edges:
            path = tuple(number[pair] for pair in pairwise(edge.path))
            for link in path:
                uses[link] += wire
            if edge.parent in self._limited:
                uses[self._limited[edge.parent]] += wire
            above[edge.child] = (edge.parent, self._one_way(path, packet))
        ways = {}
        for a, b in tree.down:
            link = number[a, b]
            uses[link] += wire
            ways[b] = (a, self._one_way((link,), packet))
        hosts = [w for w in above if self.wires.fabric.is_host(w)]
        rtt = _longest(above, hosts) + _longest(ways, hosts)
        nic = (
            min(float(self.wires.rates[number[w, self.wires.attachment[w]]]) for w in hosts) * chunk / packet
        )
        window = scheme.window or rtt * nic + self.network.marking
        fixed = scheme.congestion is Congestion.FIXED
        return Channel(
            _row(
                uses,
                Kind.WINDOW if fixed else Kind.RELIEVED,
                weight=self._weight(scheme, tree, window),
                cap=window / rtt if fixed or scheme.window else math.inf,
                window=window,
                delay=rtt / 2,
            ),
            tree.share,
            rtt,
            chunk,
        )

    def _weight(self, scheme: InNetwork, tree: Tree, window: float) -> float:
        """Against a TCP flow. One window for all trees is PANAMA's and counts as a flow; netfold's workers have one for
        each tree, and yield more."""
        if scheme.congestion is Congestion.FIXED:
            return max(1.0, window / (LEAST_WINDOW * self.network.segment))
        own = scheme.congestion is Congestion.PANAMA and not scheme.in_step
        return BESIDE_TCP * tree.share if own else 1.0


def _in_step(trees: list[Channel]) -> Channel:
    """All trees as one stream: a byte of it is dealt out by their shares, and one window is for all."""
    uses: dict[int, float] = defaultdict(float)
    for tree in trees:
        for link, coef in zip(tree.row.links, tree.row.coefs, strict=True):
            uses[link] += tree.share * coef
    longest = max(trees, key=lambda t: t.rtt)
    links = sorted(uses)
    row = replace(longest.row, links=links, coefs=[uses[i] for i in links])
    return Channel(row, 1.0, longest.rtt, longest.chunk)


def _row(uses: Mapping[int, float], kind: Kind, **rest: float) -> Row:
    links = sorted(uses)
    return Row(links, [uses[i] for i in links], kind, **rest)


def _longest(towards: Mapping[str, tuple[str, float]], hosts: list[str]) -> float:
    """The longest way from a host by `towards`, which has each node's next and how far that is."""
    known: dict[str, float] = {}

    def of(node: str) -> float:
        if node not in towards:
            return 0.0
        if node not in known:
            after, far = towards[node]
            known[node] = far + of(after)
        return known[node]

    return max(map(of, hosts))
