# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Workers that come one after the other, at the packet level: what those who wait send, and when all is done."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from netfold.controller.planning.plan import JobSpec, Plan
from netfold.controller.planning.planner import make_plan
from netfold.measure.worlds import FRAME, LANES, PAYLOAD
from netfold.simulator.packet.details import Details
from netfold.simulator.packet.run import simulate
from netfold.simulator.result import Result
from netfold.simulator.scenario import Bucket, InNetwork, Job, Model, Scenario, Settings
from netfold.topologies.fabric import Fabric
from netfold.topologies.generators import MBIT, leaf_spine
from netfold.traffic.membership.assignment import Timing

RATE = 100.0
SETTINGS = Settings(gap_bytes=0, hop_delay_s=0.002 / 8)
DETAILS = Details(timing=Timing(), paced=True, hosts_mark=False)


@dataclass(frozen=True)
class Arrival:
    """Workers come evenly over `spread_ms` to each call; this is the `call`th (from 1). Bytes on the workers' links up:
    `first_bytes` is a first round of chunks of each who waits, `again_bytes` all beyond it until the last worker comes;
    `again_part` the same of what the links could carry. `seconds` from the last worker's coming to the sums at all,
    `together_s` if all had come at once. `rate_part`: the highest rate of a worker on its link then, of what the plan
    gives it."""

    spread_ms: float
    call: int
    size: int
    link_mbps: float
    workers: int
    first_bytes: float
    again_bytes: float
    again_part: float
    seconds: float
    together_s: float
    rate_part: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def _fabric() -> Fabric:
    return leaf_spine(2, 2, 4, rate=RATE, fabric_rate=RATE, unit=MBIT)


def _plan(fabric: Fabric, workers: tuple[str, ...], size: int) -> Plan:
    return make_plan(fabric, JobSpec("job", workers, (), elements=size // 4, scheme="panama"))


@dataclass(frozen=True)
class _World:
    """So many calls of workers that come over `spread_s` to each."""

    fabric: Fabric
    workers: tuple[str, ...]
    job: Job

    def run(self, until: float | None = None) -> Result:
        return simulate(Scenario(self.fabric, (self.job,), until=until, settings=SETTINGS), DETAILS)

    def sent(self, until: float) -> list[float]:
        """Bytes on the workers' links up."""
        links = self.run(until).links if until > 0 else {}
        ways = [(w, self.fabric.attachment(w)) for w in self.workers]
        return [links[way].bytes if way in links else 0.0 for way in ways]


def _world(spread_s: float, size: int, calls: int) -> tuple[_World, float]:
    """And the rate that the plan gives each worker."""
    fabric = _fabric()
    workers = tuple(h.name for h in fabric.hosts)
    plan = _plan(fabric, workers, size)
    comes = tuple(spread_s * n / (len(workers) - 1) for n in range(len(workers)))
    model = Model("array", 0.0, 0.0, (Bucket(size),))
    scheme = InNetwork(plan, slots=256, lanes=LANES)
    return _World(
        fabric, workers, Job("job", workers, model, scheme, iterations=calls, arrivals=comes)
    ), plan.rate


def arrivals(spread_s: float, size: int, calls: int = 1) -> list[Arrival]:
    """The first call and the last one. Wrong sums raise SimulationFailed."""
    together, planned = _world(0.0, size, calls)
    world, _ = _world(spread_s, size, calls)
    at_once, late = together.run().jobs[0].iterations, world.run().jobs[0].iterations
    parts = [n / (len(world.workers) - 1) for n in range(len(world.workers))]
    could = sum(RATE * 1e6 / 8 * spread_s * (1 - part) for part in parts)
    wire = size * FRAME / PAYLOAD * 8 / 1e6
    found = []
    for call in sorted({1, calls}):
        begun = late[call - 1].start
        first = again = 0.0
        if spread_s:
            before, then = world.sent(begun), world.sent(begun + spread_s)
            sent = [b - a for a, b in zip(before, then, strict=True)]
            # who came just before the last has had no time to ask again
            rounds = min(s for s in sent if s)
            first = sum(min(s, rounds) for s in sent)
            again = sum(sent) - first
        took = late[call - 1].duration - spread_s
        found.append(
            Arrival(
                spread_ms=spread_s * 1e3,
                call=call,
                size=size,
                link_mbps=RATE,
                workers=len(world.workers),
                first_bytes=first,
                again_bytes=again,
                again_part=again / could if could else 0.0,
                seconds=took,
                together_s=at_once[call - 1].duration,
                rate_part=wire / took / planned,
            )
        )
    return found
