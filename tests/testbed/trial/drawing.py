# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The steps of a trial from a seed: random jobs, and faults that leave each of them a way to go on."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import yaml

from netfold.topologies.fabric import Fabric
from tests.simulation.scenario import Step
from tests.testbed.trial.sums import MAX_WORKERS

LEASE_MS, JOIN_S = 15_000, 60
"""Longer than a process waits for a processor of a loaded machine."""

QUIET_S = 8.0
"""Before the end, in which nothing new begins."""


@dataclass(frozen=True)
class TrialJob:
    """`calls`: by worker, after how many calls of the job it leaves. `late`: a worker that pauses now and then; empty:
    none."""

    name: str
    calls: Mapping[str, int]
    scheme: str
    rate: int
    is_elastic: bool = False
    quorum: int = 0
    late: str = ""
    seed: int = field(default=0, repr=False)

    @property
    def workers(self) -> list[str]:
        return list(self.calls)

    @property
    def text(self) -> str:
        """The job file."""
        keys: dict[str, object] = {
            "name": self.name,
            "workers": self.workers,
            "parameter_servers": 0,
            "scheme": self.scheme,
            "rate": self.rate,
            "min_rate": 1,
            "on_worker_loss": "continue" if self.is_elastic else "fail",
            "lease_ms": LEASE_MS,
            "join_s": JOIN_S,
        }
        if self.quorum:
            keys |= {"quorum": self.quorum, "quorum_deadline": "150ms"}
        return yaml.safe_dump(keys)

    def __str__(self) -> str:
        kind = (
            f"{'elastic' if self.is_elastic else 'fixed'}{f', quorum {self.quorum}' if self.quorum else ''}"
        )
        return f"{self.name}: {kind}, {self.scheme}, rate {self.rate}, {dict(self.calls)}"


def trial_of(seed: int, seconds: float, fabric: Fabric) -> list[Step]:
    """In the order of their times. Each kind is a method of Trial (trial.py)."""
    chosen = random.Random(f"trial {seed}")
    steps = [
        *_jobs(chosen, fabric, seconds),
        *_network_faults(chosen, fabric, seconds),
        *_controller_faults(chosen, seconds),
    ]
    return sorted(steps, key=lambda s: s.at_s)


# ---- jobs ---------------------------------------------------------------------------------------------


def _jobs(chosen: random.Random, fabric: Fabric, seconds: float) -> Iterator[Step]:
    hosts = [h.name for h in fabric.hosts if not h.parameter_server]
    at, number = 1.0, 0
    while at < seconds - QUIET_S:
        job = _job(chosen, hosts, f"job{number}")
        yield Step(at, "submit", (job,))
        yield from _members_fates(chosen, job, at)
        if chosen.random() < 0.12:
            yield Step(at + chosen.uniform(0.5, 12.0), "cancel", (job.name,))
        at, number = at + 1.0 + chosen.expovariate(1 / 3), number + 1


def _job(chosen: random.Random, hosts: list[str], name: str) -> TrialJob:
    workers = chosen.sample(hosts, chosen.randint(2, min(MAX_WORKERS, len(hosts))))
    calls = dict.fromkeys(workers, chosen.randint(60, 500))
    has_quorum = len(workers) > 2 and chosen.random() < 0.25
    if not has_quorum and chosen.random() < 0.25:  # one leaves early
        calls[workers[-1]] //= 2
    return TrialJob(
        name=name,
        calls=calls,
        scheme="panama" if has_quorum else chosen.choice(("panama", "switchml", "packing")),
        rate=chosen.choice((10, 20, 60)),
        is_elastic=chosen.random() < 0.5,
        quorum=len(workers) - 1 if has_quorum else 0,
        late=workers[-1] if has_quorum else "",
        seed=chosen.randrange(1 << 30),
    )


def _members_fates(chosen: random.Random, job: TrialJob, at: float) -> Iterator[Step]:
    """The first worker is spared: an elastic job goes on with it."""
    chance = 0.6 if job.is_elastic else 0.2
    for host in job.workers[1:3]:
        if chosen.random() >= chance:
            continue
        killed_at = at + chosen.uniform(2.0, 15.0)
        yield Step(killed_at, "kill_worker", (job.name, host))
        if job.is_elastic and chosen.random() < 0.6:
            yield Step(killed_at + chosen.uniform(0.5, 20.0), "start_worker", (job.name, host))
        chance /= 2


# ---- faults -------------------------------------------------------------------------------------------


def _network_faults(chosen: random.Random, fabric: Fabric, seconds: float) -> Iterator[Step]:
    """One after the other, so that there is another way around each, or its switch comes back."""
    switches = [s.name for s in fabric.switches]
    links = [(k.a, k.b) for k in fabric.links if k.a in switches and k.b in switches]
    at = chosen.uniform(5.0, 12.0)
    while at < seconds - QUIET_S:
        lasts_s = chosen.uniform(1.0, 8.0)
        if chosen.random() < 0.5:
            switch = chosen.choice(switches)
            yield Step(at, "kill_switch", (switch,))
            yield Step(at + lasts_s, "start_switch", (switch,))
        else:
            link, is_silent = chosen.choice(links), chosen.random() < 0.5
            yield Step(at, "cut_link", (*link, is_silent))
            yield Step(at + lasts_s, "mend_link", (*link, is_silent))
        at += lasts_s + chosen.uniform(2.0, 10.0)


def _controller_faults(chosen: random.Random, seconds: float) -> Iterator[Step]:
    at = chosen.uniform(8.0, 25.0)
    while at < seconds - QUIET_S:
        away_s = chosen.choice((0.0, 1.0, 6.0))
        yield Step(at, "kill_controller")
        yield Step(at + away_s, "start_controller")
        at += away_s + chosen.uniform(15.0, 40.0)
