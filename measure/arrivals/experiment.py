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
    """Workers come evenly over `spread_ms`. Bytes on the workers' links up: `first_bytes` is a first round of chunks of
    each who waits, `again_bytes` all beyond it until the last worker comes; `again_part` the same of what the links
    could carry.
    `seconds` from the last worker's coming to the sums at all, `together_s` if all had come at once. `rate_part`: the
    highest rate of a worker on its link then, of what the plan gives it."""

    spread_ms: float
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


def _run(spread: float, size: int, until: float | None) -> tuple[Result, Plan, tuple[str, ...], Fabric]:
    fabric = _fabric()
    workers = tuple(h.name for h in fabric.hosts)
    plan = _plan(fabric, workers, size)
    comes = tuple(spread * n / (len(workers) - 1) for n in range(len(workers)))
    model = Model("array", 0.0, 0.0, (Bucket(size),))
    job = Job("job", workers, model, InNetwork(plan, slots=256, lanes=LANES), arrivals=comes)
    return simulate(Scenario(fabric, (job,), until=until, settings=SETTINGS), DETAILS), plan, workers, fabric


def arrival(spread_s: float, size: int) -> Arrival:
    """Wrong sums raise SimulationFailed."""
    together, plan, workers, fabric = _run(0.0, size, None)
    late, *_ = _run(spread_s, size, None)
    first = again = 0.0
    could = sum(RATE * 1e6 / 8 * spread_s * (1 - n / (len(workers) - 1)) for n in range(len(workers)))
    if spread_s:
        waiting, *_ = _run(spread_s, size, spread_s)
        rounds = _first_round(waiting, workers, fabric)
        sent = [
            waiting.links[w, fabric.attachment(w)].bytes if _sent(waiting, w, fabric) else 0.0
            for w in workers
        ]
        first = sum(min(s, rounds) for s in sent)
        again = sum(sent) - first
    took = late.jobs[0].iterations[0].duration - spread_s
    wire = size * FRAME / PAYLOAD * 8 / 1e6
    planned = plan.rate
    return Arrival(
        spread_ms=spread_s * 1e3,
        size=size,
        link_mbps=RATE,
        workers=len(workers),
        first_bytes=first,
        again_bytes=again,
        again_part=again / could if could else 0.0,
        seconds=took,
        together_s=together.jobs[0].iterations[0].duration,
        rate_part=wire / took / planned,
    )


def _sent(result: Result, worker: str, fabric: Fabric) -> bool:
    return (worker, fabric.attachment(worker)) in result.links


def _first_round(result: Result, workers: tuple[str, ...], fabric: Fabric) -> float:
    """What the worker that came just before the last has sent: it has had no time to ask again."""
    own = [w for w in workers if _sent(result, w, fabric)]
    return min(result.links[w, fabric.attachment(w)].bytes for w in own)
