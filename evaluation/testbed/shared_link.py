# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The scenario of experiments at the packet level: one shared link, and jobs that do not end."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from netfold.controller.planning.plan import JobSpec
from netfold.controller.planning.planner import make_plan
from netfold.protocol.congestion import MARK_FRACTION, Timing
from netfold.protocol.wire import FRAME_OVERHEAD_BYTES, packet_bytes
from netfold.simulator.packet.packet_options import PacketOptions
from netfold.simulator.scenario import Bucket, InNetworkCollective, Job, Model, NetworkSettings
from netfold.topologies.fabric import Fabric, Host, Link, Switch, SwitchRole
from netfold.topologies.generators import GBIT, MBIT
from netfold.traffic.congestion import Congestion

LANES = 256
PAYLOAD = 4 * LANES
FRAME = packet_bytes(LANES) + FRAME_OVERHEAD_BYTES
TCP_FRAME = 1514
QUEUE = 64
PAIRS = 5
"""Pairs of TCP hosts, one on each side."""


@dataclass(frozen=True)
class SharedLink:
    """A link between two switches, with hosts at both; `rate` in bit/s, `seconds` long enough for shares to settle,
    `bucket` bytes of a job's all-reduces."""

    name: str
    fabric: Fabric
    rate: float
    options: PacketOptions
    settings: NetworkSettings
    seconds: float
    bucket: int

    @property
    def frame(self) -> int:
        """Bytes of a job's packet on the wire."""
        return FRAME + self.settings.gap_bytes


def shared_link_fabric(rate: float, edge: float, unit: str, workers: int, pairs: int, queue: int) -> Fabric:
    """Workers w1, w2 ... and pairs t1, r1 ... on the two sides of one link; edges of rate `edge` are no limit."""
    hosts, links = [], []
    for i in range(workers):
        hosts.append(Host(f"w{i + 1}"))
        links.append(Link(f"w{i + 1}", "s1" if i % 2 == 0 else "s2", edge, queue))
    for i in range(pairs):
        for name, switch in ((f"t{i + 1}", "s1"), (f"r{i + 1}", "s2")):
            hosts.append(Host(name))
            links.append(Link(name, switch, edge, queue))
    links.append(Link("s1", "s2", rate, queue))
    switches = tuple(Switch(s, SwitchRole.LEAF, capacity=10 * edge, slots=65536) for s in ("s1", "s2"))
    return Fabric("shared-link", tuple(hosts), switches, tuple(links), MBIT if unit == "M" else GBIT)


TESTBED = SharedLink(
    "100 Mbit/s, 2 ms",
    shared_link_fabric(100, 1000, "M", 4, PAIRS, QUEUE),
    1e8,
    PacketOptions(
        timing=Timing(),
        hosts_mark=False,
        marking_threshold=MARK_FRACTION * QUEUE,
        switch_burst_bytes=TCP_FRAME,
        min_rto_s=0.2,
        initial_rto_s=1.0,
        delayed_ack_s=0.04,
    ),
    NetworkSettings(gap_bytes=0, hop_delay_s=0.002 / 6, handshake=True),
    20.0,
    1 << 19,
)
"""The delays of a machine that runs hosts and switches (docs/explanation/simulator.md)."""

DATA_CENTER = SharedLink(
    "10 Gbit/s, 20 us",
    shared_link_fabric(10, 40, "G", 4, PAIRS, QUEUE),
    1e10,
    PacketOptions(hosts_mark=False),
    NetworkSettings(hop_delay_s=2e-6, handshake=True),
    0.5,
    1 << 21,
)


@dataclass(frozen=True)
class EndlessJob:
    """An endless job over the shared link between two workers. `window` chunks at most."""

    congestion: Congestion = Congestion.PANAMA
    window: int = 128
    trees: int = 1
    workers: tuple[str, ...] = field(default=("w1", "w2"))

    def job(self, link: SharedLink, name: str) -> Job:
        per = 2
        plan = make_plan(
            link.fabric,
            JobSpec(
                name,
                self.workers,
                (),
                elements=per * link.bucket // 4,
                scheme="panama",
                options={"trees": self.trees},
            ),
        )
        model = Model("array", 0.0, 0.0, tuple(Bucket(link.bucket) for _ in range(per)))
        scheme = InNetworkCollective(plan, self.congestion, slots=2 * self.window, lanes=LANES)
        endless = int(link.rate * link.seconds / 8 / (per * link.bucket)) + 1
        return Job(name, self.workers, model, scheme, iterations=endless)


def shortened(link: SharedLink) -> SharedLink:
    """A fifth of the time."""
    return replace(link, seconds=link.seconds / 5)
