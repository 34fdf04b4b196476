# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Measures how long short TCP flows take on a link that a job uses."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from netfold.evaluation.core.experiment import Row
from netfold.evaluation.testbed.shared_link import PAIRS, EndlessJob, SharedLink
from netfold.simulator.packet.run import simulate
from netfold.simulator.scenario import Flow, Scenario, TcpVariant

SIZE = 20_000
LOAD = 0.016
"""Load of the link by the short flows: 10 a second at 100 Mbit/s."""


@dataclass(frozen=True)
class ShortFlowsRow(Row):
    """Completion times in milliseconds; `beside`: the congestion control of a job on the link, or "nothing"."""

    link: str
    transport: str
    beside: str
    flows: int
    unfinished: int
    p50_ms: float
    p99_ms: float


def summarize(link: str, transport: str, beside: str, seconds: list[float], unfinished: int) -> ShortFlowsRow:
    """A flow that does not complete counts as longer than all others."""
    ordered = [*sorted(seconds), *([math.inf] * unfinished)]

    def at(part: float) -> float:
        return ordered[min(len(ordered) - 1, int(part * len(ordered)))] * 1e3 if ordered else math.nan

    return ShortFlowsRow(link, transport, beside, len(ordered), unfinished, at(0.5), at(0.99))


def simulated(
    link: SharedLink, transport: TcpVariant, job: EndlessJob | None, seed: int = 1
) -> ShortFlowsRow:
    rng = random.Random(seed)
    flows, at = [], 0.0
    while (at := at + rng.expovariate(LOAD * link.rate / 8 / SIZE)) < 0.9 * link.seconds:
        ends = f"t{rng.randrange(PAIRS) + 1}", f"r{rng.randrange(PAIRS) + 1}"
        flows.append(Flow(*ends, SIZE, at, transport))
    jobs = () if job is None else (job.job(link, "j1"),)
    scenario = Scenario(
        link.fabric, jobs, tuple(flows), seed=seed, until=link.seconds, settings=link.settings
    )
    found = simulate(scenario, link.options).completions
    over = [c for c in found if c is not None]
    beside = "nothing" if job is None else str(job.congestion)
    return summarize(link.name, transport.value, beside, over, len(found) - len(over))
