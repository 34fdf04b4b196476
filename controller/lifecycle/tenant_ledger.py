# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Accounts what the jobs of each tenant hold. A row in the store is settled with each change of what a tenant holds, in
the same transaction. So the usage at any time follows from the store, for this or a later controller."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from netfold.controller.jobs.records import JobRecord, Placement
from netfold.controller.jobs.tenant_usage import KEPT_S, Holding, TenantUsage
from netfold.controller.lifecycle.allocation import ranges_of
from netfold.controller.lifecycle.job_store import JobStore
from netfold.controller.lifecycle.packet_model import PacketModel
from netfold.topologies.fabric import Fabric

NOTHING = Holding()


class TenantLedger:
    """The usage of all tenants. Times are of the wall clock. `jobs`: all."""

    def __init__(
        self,
        fabric: Fabric,
        packet_model: PacketModel,
        store: JobStore,
        jobs: Iterable[JobRecord],
        now: float,
    ) -> None:
        self._fabric = fabric
        self._packet_model = packet_model
        self._store = store
        self._held: dict[str, tuple[tuple[Placement, ...], Holding]] = {}
        """By job: its placements, and what it holds by them."""
        rates = (fabric.link(h.name, fabric.attachment(h.name)).rate for h in fabric.hosts)
        slots = sum(s.slots for s in fabric.switches)
        self.whole = Holding(max(1.0, slots), max(1.0, self._bits(sum(rates))))
        """All slots of the fabric, and the rates of the links of all hosts."""
        self.rows: Mapping[str, TenantUsage] = {row.tenant: row for row in store.usage()}
        """By tenant. Each change makes a new mapping, so that the one before can take its place again."""
        self._charge_earlier(jobs, now)

    def _charge_earlier(self, jobs: Iterable[JobRecord], now: float) -> None:
        """Charge jobs for the time in which the version before led, which writes no rows: those that it placed, from
        when they first ran, or from now where that is not recorded; and those that it ended, until then. A job that
        ended before its tenant's row was written is in that row."""
        written = max((row.at for row in self.rows.values()), default=0.0)
        held = defaultdict[str, dict[int, Holding]](dict)
        changes: list[tuple[float, JobRecord, Holding]] = []
        for job in jobs:
            row = self._row(job.tenant)
            has_ended_since = job.state.is_terminal and job.ended > (row.at or written) > 0
            if job.placement is None or not (job.state.is_installed or has_ended_since):
                continue
            holding = self._holding(job, job.placements or (job.placement,))
            if job.seq in row.holders:
                held[job.tenant][job.seq] = holding
            else:
                latest = job.ended if has_ended_since else now
                changes.append((min(job.ran_since or latest, latest), job, holding))
            if has_ended_since:
                changes.append((job.ended, job, NOTHING))
        rows = dict(self.rows)
        for at, job, holding in sorted(changes, key=lambda change: change[0]):
            row, of_tenant = rows.get(job.tenant) or self._row(job.tenant), held[job.tenant]
            row = row.until(max(row.at, at), sum(of_tenant.values(), NOTHING))
            of_tenant.pop(job.seq, None)
            if holding != NOTHING:
                of_tenant[job.seq] = holding
            rows[job.tenant] = row.model_copy(update={"holders": tuple(sorted(of_tenant))})
        self.rows = rows

    def promised(self, rate: float, workers: int) -> Holding:
        """The holding of workers that are promised a rate in the fabric's unit."""
        return Holding(bits=self._bits(rate) * workers)

    def _bits(self, rate: float) -> float:
        return self._packet_model.bits_per_second(self._fabric, rate)

    def held_by(self, job: JobRecord) -> Holding:
        """The holding of a job. While it moves, it has the slots of both placements."""
        placements = job.placements
        if not placements:
            return NOTHING
        known = self._held.get(job.name)
        if known is None or known[0] != placements:
            known = self._held[job.name] = placements, self._holding(job, placements)
        return known[1]

    def _holding(self, job: JobRecord, placements: tuple[Placement, ...]) -> Holding:
        slots = sum(r.size for p in placements for ranges in ranges_of(p).values() for r in ranges)
        promised = self.promised(placements[0].plan.rate, len(job.workers))
        return Holding(slots, promised.bits)

    def held(self, jobs: Iterable[JobRecord]) -> Mapping[str, Holding]:
        """The holding of each tenant of these jobs."""
        held: defaultdict[str, Holding] = defaultdict(Holding)
        for job in jobs:
            if job.state.is_installed:
                held[job.tenant] += self.held_by(job)
        return held

    def usage(
        self, jobs: Iterable[JobRecord], now: float, tenants: Iterable[str] | None = None
    ) -> dict[str, TenantUsage]:
        """The usage of these tenants at a time; None: of each one that ever held something. `jobs`: all."""
        held = self.held(jobs)
        rows = [self._row(tenant) for tenant in ({*self.rows, *held} if tenants is None else tenants)]
        return {row.tenant: row.until(now, held.get(row.tenant, NOTHING)) for row in rows}

    def _row(self, tenant: str) -> TenantUsage:
        return self.rows.get(tenant) or TenantUsage(tenant=tenant)

    # ---- within a change --------------------------------------------------------------------------------

    def settle(self, before: JobRecord | None, job: JobRecord, jobs: Iterable[JobRecord], now: float) -> None:
        """Write the usage of the job's tenant up to now, if the job holds something else from now on. `jobs`: all, as
        they were until now."""
        known = NOTHING if before is None else self.held_by(before)
        if known == self.held_by(job):
            return
        own = [j for j in jobs if j.tenant == job.tenant and j.state.is_installed]
        held = self.held(own)
        holders = {j.seq for j in own} - {job.seq} | ({job.seq} if job.state.is_installed else set())
        row = self._row(job.tenant).until(now, held.get(job.tenant, NOTHING))
        self._write(row.model_copy(update={"holders": tuple(sorted(holders))}), jobs, now)
        if not job.state.is_installed:
            self._held.pop(job.name, None)

    def set_weight(self, tenant: str, weight: float, jobs: Iterable[JobRecord], now: float) -> None:
        """Take the weight that the tenant has from now on. `jobs`: all."""
        row = self._row(tenant)
        if row.weight != weight:
            self._write(row.model_copy(update={"weight": weight}), jobs, now)

    def _write(self, row: TenantUsage, jobs: Iterable[JobRecord], now: float) -> None:
        if row.tenant not in self.rows:  # rows grow by new tenants alone
            self._forget(jobs, now - KEPT_S)
        self._store.put_usage(row)
        self.rows = {**self.rows, row.tenant: row}

    def _forget(self, jobs: Iterable[JobRecord], before: float) -> None:
        """Delete the rows of tenants that have had no job since a time."""
        kept = {j.tenant for j in jobs if not j.state.is_terminal or j.ended > before}
        past = {t for t, row in self.rows.items() if row.at <= before} - kept
        for tenant in past:
            self._store.delete_usage(tenant)
        self.rows = {t: row for t, row in self.rows.items() if t not in past}
