# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Shares of one link between endless jobs and endless TCP flows."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from netfold.evaluation.core.experiment import Row
from netfold.evaluation.testbed.shared_link import PAIRS, PAYLOAD, EndlessJob, SharedLink
from netfold.simulator.packet.run import simulate
from netfold.simulator.scenario import Flow, Scenario, TcpVariant

ENDLESS = 10**11
SAMPLES = 80
SETTLING = 1 / 3
"""Part of the time that is not counted: TCP's slow start and its consequences."""


@dataclass(frozen=True)
class SharesRow(Row):
    """`shares` of the link's rate on the wire, the jobs' first; `series` the same over time (rows of `times`)."""

    link: str
    against: str
    jobs: int
    flows: int
    shares: tuple[float, ...]
    times: tuple[float, ...]
    series: tuple[tuple[float, ...], ...]

    @property
    def jain(self) -> float:
        """Jain's fairness index. 1: all have the same; 1/n: one has all."""
        return sum(self.shares) ** 2 / (len(self.shares) * sum(s * s for s in self.shares))

    @property
    def min_share(self) -> float:
        """The smallest share, relative to a fair share of their sum."""
        return min(self.shares) * len(self.shares) / sum(self.shares)


def simulated(
    link: SharedLink, transport: TcpVariant, flows: int, endless: Sequence[EndlessJob], seed: int = 1
) -> SharesRow:
    """Jobs between w1 and w2 (and w3, w4) beside flows t1 to r1, ...; flows start one after the other."""
    rng = random.Random(seed)
    jobs = tuple(e.job(link, f"j{n + 1}") for n, e in enumerate(endless))
    starts = [rng.random() * 0.05 * link.seconds for _ in range(flows)]
    tcp = tuple(
        Flow(f"t{i % PAIRS + 1}", f"r{i % PAIRS + 1}", ENDLESS, start, transport)
        for i, start in enumerate(starts)
    )
    every = link.seconds / SAMPLES
    scenario = Scenario(link.fabric, jobs, tcp, seed=seed, until=link.seconds, settings=link.settings)
    result = simulate(scenario, replace(link.options, sample_interval_s=every))
    wire = link.frame / PAYLOAD
    done = [
        [(done, link.bucket * wire) for i in result.job(job.name).iterations for _, done in i.reduced]
        for job in jobs
    ]
    times = tuple(every * (n + 1) for n in range(len(result.progress)))
    carried = [[sum(b for at, b in each if at <= time) for each in done] for time in times]
    for n, row in enumerate(result.progress):
        carried[n] += [bytes_ * link.settings.wire for bytes_ in row]
    first = int(SETTLING * len(times))
    span = (times[-1] - times[first]) * link.rate / 8
    shares = tuple((b - a) / span for a, b in zip(carried[first], carried[-1], strict=True))
    series = tuple(
        tuple((b - a) / (every * link.rate / 8) for a, b in zip(one, other, strict=True))
        for one, other in zip([[0.0] * len(shares), *carried], carried, strict=False)
    )
    against = transport.value if flows else "netfold"
    return SharesRow(link.name, against, len(jobs), flows, shares, times, series)
