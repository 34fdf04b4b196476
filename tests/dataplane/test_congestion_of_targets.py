# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Workers' engines and switches in virtual time: scatters and gathers beside each other keep the queues of a link at
their threshold in bytes, up and down."""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from dataclasses import dataclass, field, replace
from enum import Enum

import numpy as np
import pytest

from netfold.controller.switches.tables import ecn_threshold
from netfold.p4src.tools.p4build import Profile
from netfold.protocol.congestion import MARK_FRACTION
from netfold.protocol.target import Targets
from netfold.traffic.congestion import Congestion
from netfold.traffic.engine.blocks import Blocks, CallForm
from netfold.traffic.engine.engine import NEVER, Status
from tests.dataplane.device import SoftDevice, compiled
from tests.dataplane.fixtures import HOSTS, ROOT_ADDRESS, SETTINGS, UPLINK
from tests.dataplane.frames import CE, Ip, ethernet, udp
from tests.dataplane.node import Child, Owner, TreeAt
from tests.traffic.cores import Core, assignment

LANES, WORKERS, SLOTS, QUEUE = 64, 3, 1024, 256
NARROW_BPS = 10_000_000
FULL_US = 8e6 * (42 + 16 + 4 * LANES) / NARROW_BPS
THRESHOLD_US = round(MARK_FRACTION * QUEUE * FULL_US)
TREE, PORT, NODE = 40, 61440, 50


class Narrow(Enum):
    """Which links of the leaf are the narrowest."""

    UP = "up"
    DOWN = "down"


@dataclass
class Link:
    """A packet that leaves a switch by a port goes to a worker, or to a port of the other switch."""

    device: SoftDevice
    port: int
    arrived: deque[int] = field(default_factory=deque)  # ns, of the packets in the queue
    waits_us: list[float] = field(default_factory=list)
    frame_bytes: int = 0


class Network:
    """Workers at the ports of a leaf, whose uplink leads to a root, in virtual time. Either the uplink is the narrowest
    link, or those from the leaf to the workers are."""

    def __init__(self, leaf: SoftDevice, root: SoftDevice, narrow: Narrow) -> None:
        self.narrow = narrow
        self.now_ns = 0
        self.cores = [Core(Congestion.PANAMA) for _ in range(WORKERS)]
        self.leaf, self.root = leaf, root
        parts = [
            assignment(n, WORKERS, LANES, slots=SLOTS, targets=Targets.ON, window=QUEUE)
            for n in range(WORKERS)
        ]
        children = tuple(Child(n + 1, part.trees[0].child) for n, part in enumerate(parts))
        down = tuple(range(1, WORKERS + 1))
        shape = {"tree": TREE, "epoch": 1, "slots": SLOTS, "udp_port": PORT}
        at_leaf = TreeAt(**shape, children=children, up=(UPLINK, NODE), results_from=UPLINK, down=down)
        at_root = TreeAt(**shape, root=True, children=(Child(1, NODE),), down=(1,))
        self._set_up(leaf, replace(at_leaf, owners=tuple(Owner(n, n + 1) for n in range(WORKERS))))
        self._set_up(root, replace(at_root, owners=tuple(Owner(n, 1, alone=False) for n in range(WORKERS))))
        self.links = {(leaf, port): Link(leaf, port) for port in (*down, UPLINK)}
        self.links[root, 1] = Link(root, 1)
        self._ways: list[tuple[int, int, SoftDevice, int, bytes]] = []  # frames on the links of workers
        self._sent = 0
        self._link_is_free_ns = defaultdict[int, int](int)
        for core, part in zip(self.cores, parts, strict=True):
            core.assign(part)

    def narrow_ports(self) -> tuple[int, ...]:
        return (UPLINK,) if self.narrow is Narrow.UP else tuple(range(1, WORKERS + 1))

    def _set_up(self, device: SoftDevice, tree: TreeAt) -> None:
        for setting in (*SETTINGS, tree):
            device.insert(setting.entities())
        for port in range(1, UPLINK + 1):
            rate = NARROW_BPS if device is self.leaf and port in self.narrow_ports() else 4 * NARROW_BPS
            device.insert([ecn_threshold(port, THRESHOLD_US * NARROW_BPS // rate)])
            device.switch.port_config(port, rate, QUEUE)

    def run(self, calls: list[list[int]]) -> float:
        """Return the seconds until all calls have ended."""
        while not all(self._is_done(core, mine) for core, mine in zip(self.cores, calls, strict=True)):
            self._send()
            due = [self._ways[0][0]] if self._ways else []
            for device in (self.leaf, self.root):
                left, next_ns = device.switch.service(self.now_ns)
                self._leave(device, left)
                due += [self.now_ns] if left else [] if next_ns is None else [next_ns]
            timers = [core.next_deadline(self.now_ns / 1e9) for core in self.cores]
            due += [int(at * 1e9) + 1 for at in timers if at < NEVER]
            self.now_ns = max(self.now_ns, min(due))
            while self._ways and self._ways[0][0] <= self.now_ns:
                _, _, device, port, frame = heapq.heappop(self._ways)
                self._inject(device, port, frame)
        return self.now_ns / 1e9

    @staticmethod
    def _is_done(core: Core, calls: list[int]) -> bool:
        return all(core.status(call) is Status.DONE for call in calls)

    def _send(self) -> None:
        for worker, core in enumerate(self.cores):
            core.process(self.now_ns / 1e9)
            for _, payload in core.send(self.now_ns / 1e9):
                frame = ethernet(
                    Ip(src=HOSTS[worker].address or "", dst=ROOT_ADDRESS).pack(udp(payload, PORT, PORT))
                )
                begins = max(self.now_ns, self._link_is_free_ns[worker])
                self._link_is_free_ns[worker] = begins + 2_000_000_000 * len(frame) // NARROW_BPS
                self._sent += 1
                heapq.heappush(
                    self._ways, (self._link_is_free_ns[worker], self._sent, self.leaf, worker + 1, frame)
                )

    def _inject(self, device: SoftDevice, port: int, frame: bytes) -> None:
        ports = [p for d, p in self.links if d is device]
        before = {p: device.switch.port_stats(p)["queue_depth"] for p in ports}
        left = device.switch.inject(port, frame, self.now_ns)
        for p in ports:
            came = device.switch.port_stats(p)["queue_depth"] - before[p] + sum(out == p for out, _ in left)
            self.links[device, p].arrived.extend([self.now_ns] * came)
        self._leave(device, left)

    def _leave(self, device: SoftDevice, left: list[tuple[int, bytes]]) -> None:
        for port, frame in left:
            link = self.links[device, port]
            link.waits_us.append((self.now_ns - link.arrived.popleft()) / 1000)
            link.frame_bytes += len(frame)
            if device is self.root:
                self._inject(self.leaf, UPLINK, frame)
            elif port == UPLINK:
                self._inject(self.root, 1, frame)
            else:
                self.cores[port - 1].receive(frame[42:], self.now_ns / 1e9, 0, frame[15] & 3 == CE)
                self.cores[port - 1].process(self.now_ns / 1e9)


@pytest.mark.parametrize("narrow", Narrow)
@pytest.mark.parametrize(
    "forms",
    [(CallForm.SCATTER,), (CallForm.GATHER,), (CallForm.SCATTER, CallForm.GATHER)],
    ids=["scatter", "gather", "both"],
)
def test_queues_stay_at_their_threshold_in_bytes(narrow: Narrow, forms: tuple[CallForm, ...]):
    """The second half counts, after the windows have found their size. A threshold in packets, some of which do not
    leave, held the queue to a worker at a third of it."""
    elements, program = 40_000 * WORKERS, compiled(Profile(LANES))[0]
    with SoftDevice(program) as leaf, SoftDevice(program) as root:
        network = Network(leaf, root, narrow)
        calls: list[list[int]] = []
        for core in network.cores:
            arrays = [np.ones(elements, "float32" if f is CallForm.SCATTER else "int32") for f in forms]
            blocks = [Blocks.one_each(form, elements, WORKERS) for form in forms]
            pairs = zip(arrays, blocks, strict=True)
            calls.append([core.submit(array, blocks=each) for array, each in pairs])
        seconds = network.run(calls)
        for link in network.links.values():
            assert link.device.switch.port_stats(link.port)["queue_drops"] == 0
        for port in network.narrow_ports():
            link = network.links[leaf, port]
            settled = link.waits_us[len(link.waits_us) // 2 :]
            assert 0.5 < np.median(settled) / THRESHOLD_US <= 1
            assert np.percentile(settled, 95) / THRESHOLD_US < 1.5
            assert 8 * link.frame_bytes / NARROW_BPS > 0.95 * seconds
