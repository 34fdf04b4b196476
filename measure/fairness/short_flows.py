# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""How long short TCP flows take on a link that a job uses."""

from __future__ import annotations

import math
import random
from dataclasses import asdict, dataclass
from typing import Any

from netfold.measure.worlds import PAIRS, Training, World
from netfold.simulator.packet.run import simulate
from netfold.simulator.scenario import Flow, Scenario, Transport

SIZE = 20_000
LOAD = 0.016
"""Of the link, by the short flows: 10 a second at 100 Mbit/s."""


@dataclass(frozen=True)
class Short:
    """Completion in milliseconds; `beside` is what a job does, or nothing."""

    world: str
    transport: str
    beside: str
    flows: int
    unfinished: int
    p50_ms: float
    p99_ms: float

    def to_dict(self) -> dict[str, Any]:
        """JSON has no infinity: null."""
        return {k: None if v == math.inf else v for k, v in asdict(self).items()}


def summary(world: str, transport: str, beside: str, seconds: list[float], unfinished: int) -> Short:
    """A flow that does not end takes longer than all others."""
    ordered = [*sorted(seconds), *([math.inf] * unfinished)]

    def at(part: float) -> float:
        return ordered[min(len(ordered) - 1, int(part * len(ordered)))] * 1e3 if ordered else math.nan

    return Short(world, transport, beside, len(ordered), unfinished, at(0.5), at(0.99))


def simulated(world: World, transport: Transport, training: Training | None, seed: int = 1) -> Short:
    rng = random.Random(seed)
    flows, at = [], 0.0
    while (at := at + rng.expovariate(LOAD * world.rate / 8 / SIZE)) < 0.9 * world.seconds:
        ends = f"t{rng.randrange(PAIRS) + 1}", f"r{rng.randrange(PAIRS) + 1}"
        flows.append(Flow(*ends, SIZE, at, transport))
    jobs = () if training is None else (training.job(world, "j1"),)
    scenario = Scenario(
        world.fabric, jobs, tuple(flows), seed=seed, until=world.seconds, settings=world.settings
    )
    found = simulate(scenario, world.details).completions
    over = [c for c in found if c is not None]
    beside = "nothing" if training is None else str(training.congestion)
    return summary(world.name, transport.value, beside, over, len(found) - len(over))
