# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Turns a Scenario into the tables that packet.c reads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from netfold.controller.planning.plan import Tree
from netfold.protocol.congestion import MARK_FRACTION
from netfold.protocol.target import Targets
from netfold.protocol.wire import FRAME_OVERHEAD_BYTES, PORT_FIRST, SLOTS_MAX, packet_bytes
from netfold.simulator.packet.native import LANES, PS
from netfold.simulator.packet.packet_options import PacketOptions
from netfold.simulator.packet.trees import TreeTables
from netfold.simulator.routes import LinkTable, path_hash
from netfold.simulator.scenario import (
    HostCollective,
    IdealCollective,
    InNetworkCollective,
    Job,
    Scenario,
    ScenarioError,
    TcpVariant,
)
from netfold.traffic.engine.call_log import CallKind
from netfold.traffic.engine.engine import EngineAssignment, to_engine_assignment
from netfold.traffic.membership.assignment import Assignment, TreeAssignment

_UNLIMITED = 1 << 40
_SHORT_BYTES = 60
"""The frame of a short packet, which network cards pad."""
_GATHER_SLOTS = 32
"""With fewer there is no stream for gathers (docs/reference/protocol.md, section 5.1)."""


@dataclass(frozen=True)
class JobRows:
    """The places of a job: its row, and where its times begin."""

    exchange: bool
    row: int
    first_time: int


class PacketLayout:
    def __init__(self, scenario: Scenario, options: PacketOptions) -> None:
        self.scenario, self.options = scenario, options
        self.links = LinkTable(scenario.fabric, scenario.settings)
        self.rates = self._rates()
        self.trees = TreeTables(self.links.number)
        self.places: dict[str, JobRows] = {}
        self.assignments: list[EngineAssignment] = []
        self.times = 0
        self._jobs: list[tuple[int, ...]] = []
        self._workers: list[tuple[int, int, int, int]] = []
        self._worker_edges: list[int] = []
        self._buckets: list[tuple[int, int, int, int]] = []
        self._exchanges: list[tuple[int, ...]] = []
        self._streams: list[tuple[float, ...]] = []
        self._sources: list[int] = []
        self._exchange_buckets: list[tuple[int, int]] = []
        self._stream_flows: list[tuple[int, int, int, int, int, int]] = []
        for job in scenario.jobs:
            if isinstance(job.scheme, InNetworkCollective):
                self._reduce(job, job.scheme)
            elif isinstance(job.scheme, HostCollective):
                self._exchange(job, job.scheme)
            elif not isinstance(job.scheme, IdealCollective):
                raise ScenarioError(
                    f"job '{job.name}': the packet level does not support {type(job.scheme).__name__}"
                )
        starts = sorted(range(len(scenario.flows)), key=lambda i: scenario.flows[i].start)
        self.flow_order: list[int | None] = [*([None] * len(self._stream_flows)), *starts]
        """The row of a flow has its number in the scenario, or None for a connection of a job."""

    def rows(self) -> dict[str, Sequence[Any]]:
        flows = [*self._stream_flows, *(self._flow(i) for i in self.flow_order if i is not None)]
        return {
            "link": self._links(),
            "hop": self.trees.hops,
            "arc": self.trees.arcs,
            "edge": self.trees.edges,
            "node": self.trees.nodes,
            "job": self._jobs,
            "worker": self._workers,
            "worker_edge": self._worker_edges,
            "bucket": self._buckets,
            "exchange": self._exchanges,
            "stream": self._streams,
            "source": self._sources,
            "exchange_bucket": self._exchange_buckets,
            "flow": flows,
        }

    def _rates(self) -> Any:
        """Returns the bytes a second of each line; a parameter server receives no more than its capacity."""
        fabric, rates = self.scenario.fabric, self.links.rates.copy()
        for number, (_, b) in enumerate(self.links.pairs):
            if fabric.is_host(b) and fabric.host(b).parameter_server:
                rates[number] = fabric.ingress_capacity(b) * fabric.unit.bits_per_second / 8
        return rates

    def _links(self) -> list[tuple[float, ...]]:
        settings, options, fabric = self.scenario.settings, self.options, self.scenario.fabric
        queues = [x.queue for x in fabric.links for _ in range(2)]
        rows: list[tuple[float, ...]] = []
        for number, (a, _) in enumerate(self.links.pairs):
            host = fabric.is_host(a)
            room = settings.queue_bytes or _UNLIMITED
            packets = _UNLIMITED if settings.queue_bytes else queues[number]
            begin = options.marking_threshold
            if begin is None:
                begin = settings.marking_bytes / settings.packet_bytes
                begin = min(begin, MARK_FRACTION * min(packets, room / settings.packet_bytes))
            if host:
                packets, room = options.host_queue, _UNLIMITED
                begin = begin if options.hosts_mark else math.inf
            rows.append(
                (
                    *(PS / self.rates[number], self.links.delays[number] * PS, packets, room),
                    *(begin, begin + options.marking_span, options.max_marking_probability, options.loss),
                    options.host_burst_bytes if host else options.switch_burst_bytes,
                )
            )
        return rows

    def _flow(self, number: int) -> tuple[int, int, int, int, int, int]:
        flow, seed = self.scenario.flows[number], self.scenario.seed
        there = self.links.path(flow.source, flow.destination, path_hash(seed, "flow", number))
        back = self.links.path(flow.destination, flow.source, path_hash(seed, "back", number))
        kind = list(TcpVariant).index(flow.transport)
        start = round(flow.start * PS)
        return self.trees.add_path(there), self.trees.add_path(back), flow.bytes, start, kind, -1

    # ---- jobs over trees -------------------------------------------------------------------------

    def _reduce(self, job: Job, scheme: InNetworkCollective) -> None:
        model, plan = job.model, scheme.plan
        first_worker = len(self._workers)
        numbers = {name: first_worker + rank for rank, name in enumerate(job.workers)}
        slots = [self._slots(job, scheme, tree) for tree in plan.trees]
        edges = [
            self.trees.add(self.scenario.fabric, tree, len(self._jobs), numbers, size)
            for tree, size in zip(plan.trees, slots, strict=True)
        ]
        packet = self._packet(scheme)
        for rank, name in enumerate(job.workers):
            late = round(job.arrivals[rank] * PS) if job.arrivals else 0
            self._workers.append((len(self._jobs), rank, len(self._worker_edges), late))
            self._worker_edges += [own[name] for own in edges]
            self.assignments.append(self._assignment(job, scheme, rank, slots))
        buckets = sorted(model.buckets, key=lambda b: b.ready)
        row = (first_worker, len(job.workers), len(self._buckets), len(buckets), job.iterations)
        self.places[job.name] = JobRows(False, len(self._jobs), self.times)
        short = _SHORT_BYTES + self.scenario.settings.gap_bytes
        self._jobs.append((*row, packet, short, self.times, *_begin(job)))
        for bucket in buckets:
            ready = model.forward_s + bucket.ready * model.backward_s
            blocks = len(job.workers) if bucket.kind in (CallKind.REDUCE_SCATTER, CallKind.ALL_GATHER) else 1
            chunks = blocks * math.ceil(bucket.bytes / (4 * scheme.lanes * blocks))
            local = round(scheme.local_s * bucket.bytes * PS)
            self._buckets.append((round(ready * PS), chunks, local, bucket.kind))
        self.times += job.iterations * len(buckets)

    def _packet(self, scheme: InNetworkCollective) -> int:
        """Returns the bytes of a packet on a wire."""
        return packet_bytes(scheme.lanes) + FRAME_OVERHEAD_BYTES + self.scenario.settings.gap_bytes

    def _slots(self, job: Job, scheme: InNetworkCollective, tree: Tree) -> int:
        """Returns the slots of a tree: a power of two, at least twice the window of each stream of data."""
        if scheme.slots is not None:
            return scheme.slots
        window = max(1, math.ceil(self._window_bytes(scheme, tree) / (4 * scheme.lanes)))
        return min(SLOTS_MAX, (4 if job.model.has_targets else 2) << math.ceil(math.log2(window)))

    def _window_bytes(self, scheme: InNetworkCollective, tree: Tree) -> float:
        if scheme.window is not None:
            return scheme.window
        rtt, rate = self._round_trip(scheme, tree), self._least_rate(tree)
        settings = self.scenario.settings
        return rtt * rate * 4 * scheme.lanes / self._packet(scheme) + settings.marking_bytes / settings.wire

    def _least_rate(self, tree: Tree) -> float:
        return min(float(self.rates[self.links.number[edge.path[0], edge.path[1]]]) for edge in tree.edges)

    def _round_trip(self, scheme: InNetworkCollective, tree: Tree) -> float:
        """Delay of the longest path up plus that of the longest path down, through empty queues."""
        packet = self._packet(scheme)

        def delay(hops: Sequence[tuple[str, str]]) -> float:
            lines = [self.links.number[hop] for hop in hops]
            return float((self.links.delays[lines] + packet / self.rates[lines]).sum())

        parent = {edge.child: edge for edge in tree.edges}
        above = {b: a for a, b in tree.result_links}
        longest_up = longest_down = 0.0
        for edge in tree.edges:
            at, far = edge.child, 0.0
            while at in parent:
                far += delay(list(pairwise(parent[at].path)))
                at = parent[at].parent
            longest_up = max(longest_up, far)
            at, far = edge.child, 0.0
            while at in above:
                far += delay([(above[at], at)])
                at = above[at]
            longest_down = max(longest_down, far)
        return longest_up + longest_down

    def _assignment(
        self, job: Job, scheme: InNetworkCollective, rank: int, slots: Sequence[int]
    ) -> EngineAssignment:
        fabric, plan = self.scenario.fabric, scheme.plan
        parts = []
        for number, (tree, size) in enumerate(zip(plan.trees, slots, strict=True)):
            child = [edge.child for edge in tree.edges].index(job.workers[rank])
            window = size // (4 if job.model.has_targets and size >= _GATHER_SLOTS else 2)
            if scheme.window is not None:
                window = min(window, max(1, math.ceil(scheme.window / (4 * scheme.lanes))))
            parts.append(TreeAssignment(number + 1, tree.share, size, window, child, f"0.0.0.{number + 1}"))
        rate = plan.rate * fabric.unit.bits_per_second / 1e6 if self.options.paced else 0.0
        assignment = Assignment(
            *(job.name, 1, PORT_FIRST, LANES, rank, len(job.workers), tuple(parts), rate),
            timing=self.options.timings.get(job.name, self.options.timing),
        )
        epoch = to_engine_assignment(assignment, [part.destination for part in parts], scheme.congestion)
        epoch.wire_bytes = self._packet(scheme)
        if job.model.has_targets:
            epoch.targets = Targets.ON  # an Assignment with targets has more lanes
        return epoch

    # ---- jobs over connections -------------------------------------------------------------------

    def _exchange(self, job: Job, scheme: HostCollective) -> None:
        model, row = job.model, len(self._exchanges)
        first = len(self._streams)
        kind = list(TcpVariant).index(scheme.transport)
        for number, hop in enumerate(scheme.hops):
            sources = [first + i for i, other in enumerate(scheme.hops) if other.destination == hop.source]
            there = self.links.path(
                hop.source, hop.destination, path_hash(self.scenario.seed, job.name, number)
            )
            back = self.links.path(
                hop.destination, hop.source, path_hash(self.scenario.seed, job.name, number)
            )
            stream = len(self._streams)
            flow = len(self._stream_flows)
            self._streams.append((flow, row, len(self._sources), len(sources), hop.factor))
            self._sources += sources
            self._stream_flows.append(
                (self.trees.add_path(there), self.trees.add_path(back), 0, 0, kind, stream)
            )
        buckets = sorted(model.buckets, key=lambda b: b.ready)
        self.places[job.name] = JobRows(True, row, self.times)
        self._exchanges.append(
            (
                *(first, len(scheme.hops), len(self._exchange_buckets), len(buckets), job.iterations),
                *(max(1, scheme.steps), self.times, *_begin(job)),
            )
        )
        for bucket in buckets:
            ready = model.forward_s + bucket.ready * model.backward_s
            self._exchange_buckets.append((round(ready * PS), bucket.bytes))
        self.times += job.iterations * len(buckets)


def _begin(job: Job) -> tuple[int, int]:
    """Returns the start of a job, and how long an iteration takes at least."""
    return round(job.start * PS), round(job.model.compute_s * PS)
