# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A call over four trees of which one is slow, at the packet level: how long it takes, and what each tree carries."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from netfold.controller.planning.plan import JobSpec
from netfold.controller.planning.planner import make_plan
from netfold.measure.worlds import FRAME, LANES, PAYLOAD
from netfold.simulator.packet.details import Details
from netfold.simulator.packet.run import simulate
from netfold.simulator.scenario import Bucket, InNetwork, Job, Model, Scenario, Settings
from netfold.topologies.fabric import Fabric
from netfold.topologies.generators import GBIT, leaf_spine

RATE, TREES, QUEUE = 10, 4, 256
SETTINGS = Settings(queue_bytes=QUEUE * 1538)


@dataclass(frozen=True)
class Balanced:
    """`speed` is what is left of the slow tree's links. `ideal_s`: all trees are busy all the time. `unbalanced_s`:
    each carries what the plan gives it, the slow one to the end. `carried`: the trees' parts of the bytes, the slow one
    first."""

    size: int
    speed: float
    seconds: float
    ideal_s: float
    unbalanced_s: float
    carried: tuple[float, ...]

    @property
    def of_ideal(self) -> float:
        return self.seconds / self.ideal_s

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "of_ideal": self.of_ideal}


def fabric() -> Fabric:
    """Two racks of four workers under four spines; a worker's link carries as much as all its rack's uplinks."""
    return leaf_spine(2, TREES, 4, rate=TREES * RATE, fabric_rate=RATE, unit=GBIT, queue=QUEUE)


def slowed(whole: Fabric, spine: str, speed: float) -> Fabric:
    links = tuple(replace(x, rate=x.rate * speed) if spine in (x.a, x.b) else x for x in whole.links)
    return replace(whole, links=links)


def balanced(size: int, speed: float) -> Balanced:
    """The plan knows nothing of the slow spine. Wrong sums raise SimulationFailed."""
    whole = fabric()
    workers = tuple(h.name for h in whole.hosts)
    order = JobSpec("job", workers, (), elements=size // 4, scheme="panama", options={"trees": TREES})
    plan = make_plan(whole, order)
    roots = [tree.root for tree in plan.trees]
    slow = roots[1]
    model = Model("array", 0.0, 0.0, (Bucket(size),))
    job = Job("job", workers, model, InNetwork(plan, lanes=LANES))
    result = simulate(Scenario(slowed(whole, slow, speed), (job,), settings=SETTINGS), Details())
    order_of_roots = [slow, *(r for r in roots if r != slow)]
    leaf = next(s.name for s in whole.switches if s.name not in roots)
    up = [result.links[leaf, root].bytes for root in order_of_roots]
    wire = size * (FRAME + SETTINGS.gap_bytes) / PAYLOAD * 8 / (RATE * 1e9)
    return Balanced(
        size=size,
        speed=speed,
        seconds=result.job("job").iterations[0].duration,
        ideal_s=wire / (TREES - 1 + speed),
        unbalanced_s=wire * max(t.share for t in plan.trees) / speed,
        carried=tuple(b / sum(up) for b in up),
    )
