# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs wait in the order of their tenants' shares. Those are computed from each change of a job that was committed,
without the controller's own sums."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise

from netfold.controller.jobs.records import JobRecord
from netfold.controller.jobs.tenant_usage import ADVANCE_S, HALF_LIFE_S, MEAN_LIFE_S
from netfold.controller.lifecycle.packet_model import PacketModel
from netfold.topologies.fabric import Fabric
from tests.simulation.program import Program
from tests.simulation.world import ViolationError

NEARLY = 1e-6
"""Shares that differ by less are equal: the controller adds up numbers in another order."""

Amounts = tuple[float, float]
"""Slots, and bits a second."""


@dataclass(frozen=True)
class _Held:
    """Slots and bits that a job holds from a time on."""

    tenant: str
    amounts: Amounts
    since: float

    def recent(self, now: float) -> Amounts:
        """Return the sum up to now, in which a second HALF_LIFE_S ago counts half."""
        seconds = MEAN_LIFE_S * (1 - _kept(now - self.since))
        return self.amounts[0] * seconds, self.amounts[1] * seconds


def _kept(seconds: float) -> float:
    """The part that usage counts after some time."""
    return float(0.5 ** (seconds / HALF_LIFE_S))


class Shares:
    def __init__(self, fabric: Fabric) -> None:
        self._held: dict[str, _Held] = {}
        self._ended: dict[str, tuple[Amounts, float]] = {}
        """By tenant: what its jobs have held until a time, as it counted then."""
        self.is_known = True
        """False after a restore, which forgets some of it."""
        self.take_fabric(fabric)

    def take_fabric(self, fabric: Fabric) -> None:
        self._unit = PacketModel(64).bits_per_second(fabric, 1.0)
        hosts = (fabric.link(h.name, fabric.attachment(h.name)).rate for h in fabric.hosts)
        self._whole = (sum(s.slots for s in fabric.switches), sum(hosts) * self._unit)

    def on_written(self, job: JobRecord, now: float) -> None:
        if job.name in self._held:
            ended = self._held.pop(job.name)
            before, more = self._ended_of(ended.tenant, now), ended.recent(now)
            self._ended[ended.tenant] = (before[0] + more[0], before[1] + more[1]), now
        if job.state.is_installed and job.placement is not None:
            placements = [p for p in (job.placement, job.previous) if p is not None]
            slots = sum(max(t.slots, 16) * len(t.bases) for p in placements for t in p.trees)
            bits = job.placement.plan.rate * len(job.workers) * self._unit
            self._held[job.name] = _Held(job.tenant, (slots, bits), now)

    def check_order(
        self, queued: list[JobRecord], programs: dict[str, Program], now: float, age_s: float
    ) -> None:
        """Raises ViolationError if jobs wait in another order than by priority, of which each `age_s` that a job waits
        are one point more, then by the share of their tenant for its weight, then by age (docs/reference/jobs.md)."""
        if not self.is_known or any(j.name not in programs for j in queued):
            return
        specs = {j.name: programs[j.name].spec for j in queued}
        ages = {j.name: max(0.0, now - j.submitted) // age_s for j in queued}
        shares: dict[str, float] = {}
        taken: defaultdict[str, float] = defaultdict(float)
        for job in sorted(queued, key=lambda j: (-specs[j.name].priority - ages[j.name], j.seq)):
            spec = specs[job.name]
            shares[job.name] = self._share(job.tenant, taken[job.tenant], now) / spec.weight
            taken[job.tenant] += spec.rate * len(spec.workers) * self._unit
        names = sorted(shares, key=lambda name: shares[name])
        tenants = {j.name: j.tenant for j in queued}
        for a, b in pairwise(names):
            if tenants[a] != tenants[b] and shares[b] - shares[a] < NEARLY * max(1.0, shares[b]):
                return
        is_one = len(set(tenants.values())) <= 1
        ranks: dict[str, tuple[float, float, float]] = {}
        for priority in {spec.priority for spec in specs.values()}:
            alike = [j for j in queued if specs[j.name].priority == priority]
            age = math.inf
            for job in sorted(alike, key=lambda j: (0.0 if is_one else shares[j.name], j.seq)):
                age = min(age, ages[job.name])  # a job does not pass those whose turn is before its own
                ranks[job.name] = (-priority - age, 0.0 if is_one else shares[job.name], job.seq)
        right = sorted(ranks, key=lambda name: ranks[name])
        if [j.name for j in queued] != right:
            shown = ", ".join(j.name for j in queued)
            raise ViolationError(f"the queue is {shown}, and not {', '.join(right)}")

    def _ended_of(self, tenant: str, now: float) -> Amounts:
        (slots, bits), at = self._ended.get(tenant, ((0.0, 0.0), now))
        kept = _kept(now - at)
        return slots * kept, bits * kept

    def _share(self, tenant: str, wanted: float, now: float) -> float:
        own = [held for held in self._held.values() if held.tenant == tenant]
        recent = [self._ended_of(tenant, now), *(o.recent(now) for o in own)]
        slots = sum(r[0] for r in recent) + ADVANCE_S * sum(o.amounts[0] for o in own)
        bits = sum(r[1] for r in recent) + ADVANCE_S * (sum(o.amounts[1] for o in own) + wanted)
        return max(slots / self._whole[0], bits / self._whole[1])
