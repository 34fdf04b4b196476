# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A job on a planned fabric: the controller's own entries in switches that run the compiled program, and a network
between them that loses, doubles and reorders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

import numpy as np

from netfold.controller.features.registry import FEATURES
from netfold.controller.jobs.records import AllocatedTree, JobRecord
from netfold.controller.planning.plan import Tree
from netfold.controller.switches.desired_state import desired_contents
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.controller.switches.failed_elements import FailedElements
from netfold.protocol.wire import Flag, Kind, Packet, Verdict, make_tag
from netfold.topologies.addressing import addresses
from netfold.topologies.fabric import Fabric
from tests.dataplane.device import Frames, SoftDevice
from tests.dataplane.frames import LANES, Ip, Netfold, gradient
from tests.slot_oracle import SlotPool

MARK = 2000  # the controller's own tree number
MAX_IN_FLIGHT = 300


@dataclass
class PlannedRun:
    """`devices` are fresh switches by name. `received[tree][worker]` are the results that a worker has, by chunk."""

    fabric: Fabric
    job: JobRecord
    devices: Mapping[str, SoftDevice]
    chunks: int
    lanes: int = LANES
    received: dict[int, dict[str, dict[int, tuple[int, ...]]]] = field(default_factory=dict)
    looped: int = 0
    _flying: list[tuple[str, str, bytes]] = field(default_factory=list)  # (from, to, frame)

    def __post_init__(self) -> None:
        self._addresses = addresses(self.fabric)
        placement = self.job.placement
        assert placement is not None
        self._trees: dict[int, tuple[AllocatedTree, Tree]] = {
            planned.tree: (planned, tree)
            for planned, tree in zip(placement.trees, placement.plan.trees, strict=True)
        }
        held = desired_contents(
            FabricConfig(self.fabric, self._addresses, MARK), [self.job], FailedElements(), features=FEATURES
        )
        for name, contents in held.items():
            self.devices[name].insert(contents.values())
        self._servers: dict[int, SlotPool] = {}
        self._gradients: dict[int, dict[str, list[list[int]]]] = {}  # lanes by tree, worker and chunk
        self._sums: dict[int, list[tuple[int, ...]]] = {}  # exact ones by tree and chunk
        for number, (planned, tree) in self._trees.items():
            workers = [edge.child for edge in tree.edges if self.fabric.is_host(edge.child)]
            self.received[number] = {worker: {} for worker in workers}
            shape = (len(workers), self.chunks, self.lanes)
            gradients = np.random.default_rng(number).integers(-1000, 1000, shape)
            self._gradients[number] = dict(zip(workers, gradients.tolist(), strict=True))
            self._sums[number] = [tuple(lanes) for lanes in gradients.sum(axis=0).tolist()]
            if self.fabric.is_host(tree.root):
                count = len(tree.children(tree.root))
                self._servers[number] = SlotPool(planned.slots, self.lanes, count, root=True)

    @property
    def done(self) -> bool:
        return all(len(got) == self.chunks for tree in self.received.values() for got in tree.values())

    def run(self, random: Random, events: int, loss: float, repeats: float) -> None:
        """`events` of sending and arriving in any order, or until all is done."""
        for _ in range(events):
            if self.done:
                return
            if len(self._flying) < MAX_IN_FLIGHT and (not self._flying or random.random() < 0.2):
                number = random.choice(list(self._trees))
                worker = random.choice(list(self.received[number]))
                if chunks := self._in_window(number, worker):
                    self._send(number, worker, random.choice(chunks))
            elif self._flying:
                place = random.randrange(len(self._flying))
                flight = self._flying[place]
                if random.random() >= repeats:
                    self._flying[place] = self._flying[-1]
                    self._flying.pop()
                if random.random() >= loss:
                    self._arrive(*flight)

    def finish(self) -> None:
        """Lose all frames in flight. Then every worker asks again until none lacks anything."""
        self._flying.clear()
        for _ in range(8 * self.chunks):
            if self.done:
                return
            for number, workers in self.received.items():
                for worker in workers:
                    for chunk in self._in_window(number, worker):
                        self._send(number, worker, chunk)
            while self._flying:
                self._arrive(*self._flying.pop(0))
        raise AssertionError(f"workers still lack results: {self.received}")

    def refusals(self) -> dict[tuple[str, int, Verdict], int]:
        """Counts the packets that switches dropped for a reason that no honest sender gives."""
        wrong = set(Verdict) & {
            Verdict.UNADMITTED,
            Verdict.STALE_EPOCH,
            Verdict.BAD_SLOT,
            Verdict.MALFORMED,
            Verdict.UNROUTED,
        }
        return {
            (name, index, Verdict(verdict)): packets
            for name, device in self.devices.items()
            for index in (0, *self._trees)
            for verdict, packets in device.verdicts(index).items()
            if verdict in wrong
        }

    def _in_window(self, number: int, worker: str) -> list[int]:
        got, channels = self.received[number][worker], self._trees[number][0].slots // 2
        return [c for c in range(self.chunks) if c not in got and (c < channels or c - channels in got)]

    def _send(self, number: int, worker: str, chunk: int) -> None:
        planned, tree = self._trees[number]
        child = next(n for n, edge in enumerate(tree.edges) if edge.child == worker)
        round_, slot = divmod(chunk, planned.slots)
        lanes = self._gradients[number][worker][chunk]
        header = Netfold(Kind.GRADIENT, number, self.job.epoch, round_, slot, child, lanes)
        packet = Ip(src=str(self._addresses.hosts[worker].ip), dst=self._address(tree.root))
        self._flying.append(
            (worker, self.fabric.attachment(worker), gradient(header, packet, port=self.job.udp_port))
        )

    def _address(self, root: str) -> str:
        known = self._addresses
        return str(known.hosts[root].ip if self.fabric.is_host(root) else known.switches[root].loopback)

    def _arrive(self, before: str, at: str, frame: bytes) -> None:
        if not self.fabric.is_host(at):
            near = {port: name for name, port in self.fabric.ports[at].items()}
            loopbacks = {x.port for x in self.fabric.switch(at).loopbacks}
            for port, left in self._through(
                self.devices[at], loopbacks, self.fabric.ports[at][before], frame
            ):
                self._flying.append((at, near[port], left))
            return
        packet = Packet.parse(frame[42:])
        assert frame[30:34] == self._addresses.hosts[at].ip.packed
        if packet.kind is Kind.GRADIENT:
            self._serve(at, packet, frame)
        elif at in self.received[packet.tree]:
            self._take(at, packet)

    def _through(self, device: SoftDevice, loopbacks: set[int], port: int, frame: bytes) -> Frames:
        """Returns the frames that leave a switch; a frame that is sent out by a port in loopback mode comes in
        there."""
        left: Frames = []
        for out, data in device.inject(port, frame):
            if out in loopbacks:
                self.looped += 1
                left += self._through(device, loopbacks, out, data)
            else:
                left.append((out, data))
        return left

    def _take(self, worker: str, packet: Packet) -> None:
        chunk = packet.round * self._trees[packet.tree][0].slots + packet.slot
        assert packet.lane == self._sums[packet.tree][chunk]
        assert Flag.OVERFLOW not in packet.flags
        self.received[packet.tree][worker][chunk] = packet.lane

    def _serve(self, server: str, packet: Packet, frame: bytes) -> None:
        _, tree = self._trees[packet.tree]
        assert server == tree.root
        bit = tree.children(server).index(tree.edges[packet.child].child)
        tag = make_tag(packet.epoch, packet.round)
        done = (
            self._servers[packet.tree]
            .gradient(tag, packet.slot, bit, packet.flags, packet.exponent, packet.lane)
            .packet
        )
        if done is not None:
            answer = Netfold(
                Kind.RESULT,
                packet.tree,
                packet.epoch,
                packet.round,
                packet.slot,
                packet.child,
                done.lanes.tolist(),
            )
            back = Ip(src=self._address(server), dst=".".join(map(str, frame[26:30])))
            self._flying.append(
                (server, self.fabric.attachment(server), gradient(answer, back, port=self.job.udp_port))
            )
