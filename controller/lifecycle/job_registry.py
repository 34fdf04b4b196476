# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Holds the jobs in memory, and in the store before a change is published. Nothing here waits."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from netfold.controller.jobs.engine import StoreError, StoreUsers
from netfold.controller.jobs.file import JobHosts, OnWorkerLoss, ResolvedJob, resolve_job, slowest_link
from netfold.controller.jobs.records import LAST_EPOCH, JobRecord, JobState, Member, Placement
from netfold.controller.jobs.revisions import Revision, is_known
from netfold.controller.jobs.slot_allocator import SlotAllocator
from netfold.controller.jobs.store import HISTORY
from netfold.controller.jobs.stored_fabric import FabricStore
from netfold.controller.jobs.submitter import UNNAMED, Submitter, TenantLimits
from netfold.controller.jobs.tenant_usage import Holding, TenantUsage
from netfold.controller.jobs.withdrawal import Withdrawal
from netfold.controller.lifecycle.allocation import (
    AllocationState,
    allocate,
    ranges_of,
    slot_pools,
)
from netfold.controller.lifecycle.capacity import background_of, fits
from netfold.controller.lifecycle.clock import Clock, SystemClock
from netfold.controller.lifecycle.job_store import JobStore
from netfold.controller.lifecycle.packet_model import PacketModel
from netfold.controller.lifecycle.switch_requirements import AdmissionEntries
from netfold.controller.lifecycle.tenant_ledger import TenantLedger
from netfold.controller.lifecycle.tree_numbers import free_udp_port
from netfold.controller.planning.plan import Plan
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.controller.switches.failed_elements import FailedElements, element_named
from netfold.controller.switches.stored_programs import ProgramStore
from netfold.topologies.fabric import Fabric, Switch

RANDOM_BYTES = 9
"""Twelve characters: a token of the longest name still fits in 127."""


class ReplacedError(StoreError):
    """Another controller takes the place of this one: the store has another fabric since, or this process does not lead
    any more. It may lead again, and then its next controller alone writes."""


class UnknownJobError(Exception):
    """There is no job of that name."""


def resolved_with(job: JobRecord, fabric: Fabric) -> ResolvedJob:
    """The job's file with the hosts of its record, in a fabric that has them. Raises JobError."""
    servers = tuple(m.host for m in job.members if m.parameter_server)
    return resolve_job(job.spec_yaml, fabric, job.name, JobHosts(job.all_workers, servers))


class JobRegistry:
    """All jobs of a store. Methods below "within a change" have to be called within `change`."""

    def __init__(
        self, config: FabricConfig, packet_model: PacketModel, store: JobStore, clock: Clock | None = None
    ) -> None:
        self._config = config
        self._packet_model = packet_model
        self._store = store
        self._clock = clock or SystemClock()
        self._jobs = {j.name: j for j in store.jobs()}
        self._resolved: dict[str, ResolvedJob] = {}
        self._revisions = self._stored_revisions()
        self._quarantined: set[tuple[str, int]] = set()
        self._entries = AdmissionEntries(config.fabric)
        jobs, now = self._jobs.values(), self._clock.wall_s()
        self.ledger = TenantLedger(config.fabric, packet_model, store, jobs, now)
        self.key = store.key
        self._is_replaced = False
        self._starts: dict[int, float] = {}
        """When jobs first ran, by `seq`, on the monotonic clock: a step of the wall clock ends no job, and lets none
        run for longer."""

    @contextmanager
    def change(self) -> Iterator[None]:
        """Make one transaction; memory follows the store also when the transaction fails. Raises StoreError."""
        if self._is_replaced:
            raise ReplacedError("the controller starts anew")
        jobs, revisions, rows = dict(self._jobs), dict(self._revisions), self.ledger.rows
        try:
            with self._store.change():
                yield
        except BaseException:
            self._jobs, self._revisions = jobs, revisions
            self.ledger.rows = rows
            self._resolved = {n: o for n, o in self._resolved.items() if n in self._jobs}
            raise

    def replace_fabric(self, fabric: str, numbers: str, removed: FailedElements) -> None:
        """Replace the store's fabric and forget what was noted of elements that are gone, in one change, which is this
        registry's last: it holds the names of the old fabric. Raises StoreError."""
        with self.change():
            self._store.set_fabric(fabric, numbers)
            for withdrawal in self._store.withdrawals():
                if not element_named(self._config.fabric, withdrawal.element) - removed:
                    self._store.delete_withdrawal(withdrawal.element)
        self.retire()

    def retire(self) -> None:
        """Refuse all later changes: the controller ends, and the next one has a registry of its own."""
        self._is_replaced = True

    @property
    def fabric_store(self) -> FabricStore:
        return self._store

    @property
    def program_store(self) -> ProgramStore:
        """The store, for the programs of switches. They are written within a change."""
        return self._store

    @property
    def primary(self) -> str:
        """The address where the leader serves, or served last."""
        return self._store.primary

    async def store_users(self) -> StoreUsers:
        """The other controllers and the servers of the store. Raises StoreError."""
        return await self._store.users()

    @property
    def leads_since(self) -> float:
        """When the leader began to lead, by its wall clock."""
        return self._store.leads_since

    @property
    def withdrawals(self) -> list[Withdrawal]:
        """The elements that operators and rollouts have withdrawn, by name."""
        return self._store.withdrawals()

    def __contains__(self, name: object) -> bool:
        return name in self._jobs

    def all(self) -> list[JobRecord]:
        """All jobs in the order of their submission."""
        return sorted(self._jobs.values(), key=lambda j: j.seq)

    def get(self, name: str) -> JobRecord:
        """The job of this name. Raises UnknownJobError."""
        try:
            return self._jobs[name]
        except KeyError:
            raise UnknownJobError(f"there is no job '{name}'") from None

    def has_live(self, name: str) -> bool:
        return name in self._jobs and not self._jobs[name].state.is_terminal

    def resolved_job(self, name: str) -> ResolvedJob:
        """The job's file with the hosts of its record: those that it was accepted with, and the added ones. Raises
        UnknownJobError."""
        job = self.get(name)
        resolved = self._resolved.get(name)
        if resolved is None or resolved.text != job.spec_yaml:
            resolved = resolved_with(job, self._config.fabric)
        elif job.added and resolved.workers != (workers := job.all_workers):
            resolved = resolved.model_copy(update={"workers": workers})
        self._resolved[name] = resolved
        return resolved

    def check_limits(self, submitter: Submitter, resolved: ResolvedJob, *, queued: bool = False) -> None:
        """Check a new job against the limits of the submitter's tenant. Raises LimitError."""
        submitter.check(resolved, self._jobs_of(submitter), queued=queued)

    def check_workers(self, submitter: Submitter, name: str, new_workers: int) -> None:
        """Check workers that a job gets against the limits of the submitter's tenant. Raises UnknownJobError,
        LimitError."""
        submitter.check_rate(self.resolved_job(name), new_workers, self._jobs_of(submitter))

    def _jobs_of(self, submitter: Submitter) -> list[tuple[JobRecord, ResolvedJob]]:
        """The jobs of the submitter's tenant that have not ended."""
        if submitter.limits == TenantLimits():
            return []
        own = [j for j in self._jobs.values() if j.tenant == submitter.tenant and not j.state.is_terminal]
        return [(job, self.resolved_job(job.name)) for job in own]

    def demand(self, resolved: ResolvedJob) -> Holding:
        """The rate that a job wants for all its workers: that of its file, or of their slowest link."""
        rate = resolved.file.rate
        if rate is None:
            rate = slowest_link(self._config.fabric, resolved.workers)
        return self.ledger.promised(rate, len(resolved.workers))

    def held(self) -> Mapping[str, Holding]:
        """The holding of each tenant now."""
        return self.ledger.held(self._jobs.values())

    def usage(self, tenants: Iterable[str] | None = None) -> dict[str, TenantUsage]:
        """The usage of these tenants now; None: of each one that ever held something."""
        jobs = list(self._jobs.values())  # a scrape is another thread
        return self.ledger.usage(jobs, self._clock.wall_s(), tenants)

    def is_host(self, name: str) -> bool:
        """Whether the fabric has a host of that name."""
        return self._config.fabric.is_host(name)

    @property
    def lanes(self) -> int:
        return self._packet_model.lanes

    def revisions(self) -> dict[str, Revision]:
        """The newest revision of each switch's slots, if they were ever used."""
        newest = {s: max(last) for s, last in self._revisions.items() if last}
        return {s: Revision(term, self._revisions[s][term]) for s, term in newest.items()}

    def has_revision(self, switch: str, found: Revision) -> bool:
        """Whether the store has made this revision of the slots of the switch."""
        return is_known(found, self._revisions[switch])

    def needs(self, job: JobRecord, host: str) -> bool:
        """Whether the job cannot continue without the host: a worker, or a parameter server that is a root. A sandbox
        has no workers to wait for."""
        member = job.member(host)
        if member is None or member.left or host in job.excluded:
            return False
        if not member.parameter_server:
            return not job.sandbox
        return any(host in p.roots for p in job.placements)

    def is_last_worker(self, job: JobRecord, host: str) -> bool:
        absent = {*job.excluded, host}
        return all(m.parameter_server or m.host in absent for m in job.members)

    def fits(self, job: JobRecord, placement: Placement) -> bool:
        """Whether the placement fits in addition to those that all other jobs have now."""
        others = background_of(j for j in self._jobs.values() if j.name != job.name)
        return fits(self._config.fabric, placement.plan, others)

    def occupancy(self) -> dict[str, SlotAllocator]:
        """The slots of every switch as they are taken now, without their epochs."""
        return self._pools(self._config.fabric.switches, {})

    def last_epoch(self, placement: Placement) -> int:
        """The greatest epoch that slots of the placement have seen."""
        ranges = ranges_of(placement)
        epochs = self._epochs(self._config.fabric.switch(switch) for switch in ranges)
        seen = (epochs[s].get(block, 0) for s, own in ranges.items() for r in own for block in r.blocks)
        return max(seen, default=0)  # a tree may have its nodes on hosts alone

    def pool(self, switch: str) -> SlotAllocator:
        """The slots of one switch as they are taken now."""
        switches = (self._config.fabric.switch(switch),)
        return self._pools(switches, self._epochs(switches))[switch]

    def _pools(
        self, switches: Iterable[Switch], epochs: Mapping[str, Mapping[int, int]]
    ) -> dict[str, SlotAllocator]:
        return slot_pools(switches, [p for j in self.all() for p in j.placements], epochs)

    @contextmanager
    def quarantine(self, switch: str, block: int) -> Iterator[None]:
        """Keep trees from getting this block of slots within the context."""
        self._quarantined.add((switch, block))
        try:
            yield
        finally:
            self._quarantined.discard((switch, block))

    def is_free(self, switch: str, block: int) -> bool:
        return self._pools((self._config.fabric.switch(switch),), {})[switch].is_free(block)

    def _epochs(self, switches: Iterable[Switch]) -> dict[str, dict[int, int]]:
        """The epochs that blocks of slots have seen. A block in quarantine looks used up, so that no tree gets it."""
        epochs = {s.name: self._store.epochs(s.name) for s in switches}
        for switch, block in self._quarantined:
            if switch in epochs:
                epochs[switch][block] = LAST_EPOCH
        return epochs

    # ---- within a change --------------------------------------------------------------------------------

    def write(self, job: JobRecord) -> None:
        """Write the job. The store deletes jobs that ended long ago, and so does this registry."""
        self._store.put(job)
        self.ledger.settle(self._jobs.get(job.name), job, self._jobs.values(), self._clock.wall_s())
        self._jobs[job.name] = job
        if job.state.is_terminal:
            self._starts.pop(job.seq, None)
            past = sorted((j for j in self._jobs.values() if j.state.is_terminal), key=lambda j: -j.seq)
            for old in past[HISTORY:]:
                del self._jobs[old.name]
                self._resolved.pop(old.name, None)

    def write_member(self, job: JobRecord, host: str) -> None:
        """Write the job after a change of only this member."""
        member = job.member(host)
        assert member is not None
        self._store.put_member(job.name, member)
        self._jobs[job.name] = job

    def write_registration(self, job: JobRecord, host: str) -> None:
        """Write the job after this member has registered other queue pairs, and nothing else has changed."""
        self._store.put_queue_pairs(job, next(e for e in job.queue_pairs if e.host == host))
        self._jobs[job.name] = job

    def withdraw(self, withdrawal: Withdrawal) -> None:
        """Note that an element is withdrawn."""
        self._store.put_withdrawal(withdrawal)

    def give_back(self, element: str) -> None:
        """Note that an element is not withdrawn any more."""
        self._store.delete_withdrawal(element)

    def new(
        self,
        resolved: ResolvedJob,
        submitter: Submitter = UNNAMED,
        *,
        queued: bool = False,
        request_id: str = "",
    ) -> JobRecord:
        """Make a queued job of a resolved file. `queued`: it has to wait. Raises LimitError, StoreError."""
        self.check_limits(submitter, resolved, queued=queued)
        if resolved.file.max_s is not None:
            self._store.expect_final("`max_s`")
        if resolved.file.on_worker_loss is OnWorkerLoss.RECONFIGURE:
            self._store.expect_final("`on_worker_loss: reconfigure`")
        self._resolved[resolved.file.name] = resolved
        now = self._clock.wall_s()
        self.ledger.set_weight(submitter.tenant, submitter.weight, self._jobs.values(), now)
        seq = self._store.number("seq") + 1
        self._store.set_number("seq", seq)
        members = (
            *(Member(host=h) for h in resolved.workers),
            *(Member(host=h, parameter_server=True) for h in resolved.parameter_servers),
        )
        return JobRecord(
            name=resolved.file.name,
            seq=seq,
            spec_yaml=resolved.text,
            state=JobState.QUEUED,
            members=members,
            transport=resolved.file.transport,
            floats=resolved.file.numerics.floats,
            sandbox=resolved.file.sandbox,
            submitted=now,
            submitted_by=submitter.name,
            tenant=submitter.tenant,
            request_id=request_id if self._store.is_final else "",
            random=secrets.token_urlsafe(RANDOM_BYTES) if self._store.is_final else "",
        )

    def with_placement(
        self,
        job: JobRecord,
        resolved: ResolvedJob,
        plan: Plan,
        reserved: Iterable[Placement] = (),
        *,
        gives_up_slots: bool = False,
    ) -> JobRecord:
        """The job with a new placement in a new epoch, disjoint from all installed or reserved ones. A job that
        `gives_up_slots` may get those of its own older placements, whose packets are stale then. Raises
        RefusedError."""
        jobs = self._jobs.values()
        numbers = AllocationState(self._store.number("tree"), self._epochs(self._config.fabric.switches))
        placement = allocate(
            self._config.fabric,
            self._packet_model,
            resolved,
            plan,
            jobs,
            numbers,
            after_epoch=job.epoch,
            reserved=reserved,
            entries=self._entries,
            slots_given_up=job.name if gives_up_slots else "",
            job=job,
        )
        self.use_slots(placement)
        port = job.udp_port or free_udp_port(job, jobs, self._store.number("port"))
        self._store.set_number("tree", placement.trees[-1].tree)
        self._store.set_number("port", port)
        changes = {"state": JobState.INSTALLING, "placement": placement, "udp_port": port, "reason": ""}
        return job.model_copy(update=changes)

    def reserved(
        self,
        resolved: ResolvedJob,
        plan: Plan,
        reserved: Iterable[Placement],
        others: Iterable[JobRecord] = (),
    ) -> Placement:
        """The placement that the job would have if only the `reserved` ones and those of `others` existed. Raises
        RefusedError."""
        nothing = AllocationState(self._store.number("tree"), {})
        return allocate(
            *(self._config.fabric, self._packet_model, resolved, plan, others, nothing),
            after_epoch=0,
            reserved=reserved,
            entries=self._entries,
        )

    def use_slots(self, placement: Placement) -> None:
        """Note that the slots of a placement are used in its epoch."""
        self._store.use_slots(ranges_of(placement), placement.epoch)
        for switch in ranges_of(placement):
            self._revisions[switch] = self._store.revisions(switch)

    def _stored_revisions(self) -> dict[str, dict[int, int]]:
        """The revisions in the store, by switch and term."""
        return {s.name: self._store.revisions(s.name) for s in self._config.fabric.switches}

    def running(self, job: JobRecord) -> JobRecord:
        """The job after its switches have taken its new placement."""
        since = job.ran_since or self._clock.wall_s()
        changes = {"state": JobState.RUNNING, "previous": None, "has_run": True, "ran_since": since}
        return job.model_copy(update=changes)

    def ran_for_s(self, job: JobRecord) -> float:
        """Seconds since the job first ran; 0 where that is not recorded."""
        if not job.ran_since:
            return 0.0
        now = self._clock.monotonic_s()
        if job.seq not in self._starts:
            self._starts[job.seq] = now - max(0.0, self._clock.wall_s() - job.ran_since)
        return now - self._starts[job.seq]

    def limit_s(self, job: JobRecord) -> float | None:
        """Seconds that the job may still run by its file's `max_s`; None: it has none."""
        max_s = self.resolved_job(job.name).file.max_s
        return None if max_s is None else max(0.0, max_s - self.ran_for_s(job))

    def with_end_state(self, job: JobRecord, state: JobState, reason: str) -> JobRecord:
        changes = {"state": state, "reason": reason, "previous": None, "ended": self._clock.wall_s()}
        return job.model_copy(update=changes)

    def registers_empty(self, switch: str, blocks: list[int] | None = None) -> None:
        """Note that the registers of a switch are zero: all, or those of some blocks of slots."""
        self._store.registers_empty(switch, blocks)
