# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Who gets how much of a shared link: jobs and TCP flows that have no end."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from netfold.measure.worlds import PAIRS, PAYLOAD, Training, World
from netfold.simulator.packet.run import simulate
from netfold.simulator.scenario import Flow, Scenario, Transport

ENDLESS = 10**11
SAMPLES = 80
SETTLING = 1 / 3
"""Of the time, what does not count: TCP's slow start, and what follows from it."""


@dataclass(frozen=True)
class Shares:
    """`shares` of the link's rate on the wire, the jobs' first; `series` the same over time (rows of `times`)."""

    world: str
    against: str
    jobs: int
    flows: int
    shares: tuple[float, ...]
    times: tuple[float, ...]
    series: tuple[tuple[float, ...], ...]

    @property
    def jain(self) -> float:
        """1: all have the same; 1/n: one has all."""
        return sum(self.shares) ** 2 / (len(self.shares) * sum(s * s for s in self.shares))

    @property
    def least(self) -> float:
        """The smallest share, of a fair one of what all have together."""
        return min(self.shares) * len(self.shares) / sum(self.shares)

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "jain": self.jain, "least": self.least}


def simulated(
    world: World, transport: Transport, flows: int, training: Sequence[Training], seed: int = 1
) -> Shares:
    """Jobs between w1 and w2 (and w3, w4) against flows t1 to r1, ...; flows start one after the other."""
    rng = random.Random(seed)
    jobs = tuple(t.job(world, f"j{n + 1}") for n, t in enumerate(training))
    starts = [rng.random() * 0.05 * world.seconds for _ in range(flows)]
    tcp = tuple(
        Flow(f"t{i % PAIRS + 1}", f"r{i % PAIRS + 1}", ENDLESS, start, transport)
        for i, start in enumerate(starts)
    )
    every = world.seconds / SAMPLES
    scenario = Scenario(world.fabric, jobs, tcp, seed=seed, until=world.seconds, settings=world.settings)
    result = simulate(scenario, replace(world.details, sample_s=every))
    wire = world.frame / PAYLOAD
    done = [
        [(done, world.bucket * wire) for i in result.job(job.name).iterations for _, done in i.reduced]
        for job in jobs
    ]
    times = tuple(every * (n + 1) for n in range(len(result.progress)))
    carried = [[sum(b for at, b in each if at <= time) for each in done] for time in times]
    for n, row in enumerate(result.progress):
        carried[n] += [bytes_ * world.settings.wire for bytes_ in row]
    first = int(SETTLING * len(times))
    span = (times[-1] - times[first]) * world.rate / 8
    shares = tuple((b - a) / span for a, b in zip(carried[first], carried[-1], strict=True))
    series = tuple(
        tuple((b - a) / (every * world.rate / 8) for a, b in zip(one, other, strict=True))
        for one, other in zip([[0.0] * len(shares), *carried], carried, strict=False)
    )
    against = transport.value if flows else "netfold"
    return Shares(world.name, against, len(jobs), flows, shares, times, series)
