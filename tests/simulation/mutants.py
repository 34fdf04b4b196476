# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Faults that are put into the controller (mutant.py), one at a time, to see what the simulation finds."""

from __future__ import annotations

from tests.simulation.drain_mutants import DRAIN_MUTANTS
from tests.simulation.fabric_mutants import FABRIC_MUTANTS
from tests.simulation.leader_mutants import LEADER_MUTANTS
from tests.simulation.mutant import Mutant
from tests.simulation.queue_mutants import QUEUE_MUTANTS
from tests.simulation.tenant_mutants import TENANT_MUTANTS
from tests.simulation.upgrade_mutants import UPGRADE_MUTANTS

MIGRATIONS = "scheduling/migration_scheduler.py"
STATES = "lifecycle/states.py"
ENTRY_PROGRESS = "lifecycle/entry_progress.py"
MEMBERS = "lifecycle/members.py"
CORE = "core.py"

MUTANTS = (
    *QUEUE_MUTANTS,
    *DRAIN_MUTANTS,
    *FABRIC_MUTANTS,
    *UPGRADE_MUTANTS,
    *TENANT_MUTANTS,
    *LEADER_MUTANTS,
    Mutant(
        "the end of a job frees no capacity",
        STATES,
        "        self._member_status.keep(self._registry)\n        self.retarget()\n"
        "        self._events.publish(CapacityFreed())\n",
        "        self._member_status.keep(self._registry)\n        self.retarget()\n",
    ),
    Mutant(
        "a switch that is back frees no capacity",
        "health/failure_monitor.py",
        "self._failures.failed.switches - {switch})\n                )\n"
        "                self._events.publish(CapacityFreed())",
        "self._failures.failed.switches - {switch})\n                )",
    ),
    Mutant(
        "a job moves only where there is room beside its own slots",
        MIGRATIONS,
        "gives_up_slots=True",
        "gives_up_slots=False",
        "a job that has all slots of its switches has to move",
    ),
    Mutant(
        "a stranded job is not moved",
        CORE,
        "        on(JobStranded, planning.migrations.on_job_stranded)",
        "        #",
    ),
    Mutant(
        "a lease that ran out has no effect",
        CORE,
        "        on(LeaseExpired, jobs.members.on_lease_expired)",
        "        #",
    ),
    Mutant(
        "a worker that comes again is not planned in",
        CORE,
        "        on(MembersRejoining, planning.migrations.on_members_rejoining)",
        "        #",
    ),
    Mutant(
        "failed elements move no job",
        CORE,
        "        on(ElementsFailed, planning.migrations.on_elements_failed)",
        "        #",
        "a spine is away for long under a job",
    ),
    Mutant(
        "after a start a lease has its usual length",
        MEMBERS,
        "seconds = max(self.lease_s(job.name), self._timeouts.start)",
        "seconds = self.lease_s(job.name)",
    ),
    Mutant(
        "after a start members have no lease",
        MEMBERS,
        "                self._leases.renew(job.name, member.host, seconds)",
        "                pass",
    ),
    Mutant(
        "a switch that lost its registers needs no new epochs",
        "switches/reconciler.py",
        'are not of this store")\n        await self._on_registers_lost(self._reporter.name)',
        'are not of this store")',
    ),
    Mutant(
        "a restored store trusts registers that are newer",
        "switches/reconciler.py",
        "if not self._has_revision(name, revision):",
        "if False:",
    ),
    Mutant(
        "the leader's term does not follow the clock",
        "service/leadership.py",
        'term = max(self._store.number("term") + 1, int(self._now()))',
        'term = self._store.number("term") + 1',
        "the store is restored, with a lower term than its switches have seen",
    ),
    Mutant(
        "a job runs before its switches hold its entries",
        STATES,
        "            elif not self._switches.unfinished(job, version):\n                settled",
        "            elif True:\n                settled",
    ),
    Mutant(
        "a switch is ready before it holds its entries",
        "switches/reconciler.py",
        "            desired = await self._inbox.newer_than(0)\n            try:\n",
        "            desired = await self._inbox.newer_than(0)\n"
        "            self._reporter.set_ready(desired.version)\n            try:\n",
    ),
    Mutant(
        "a placement does not note that its slots are used",
        "lifecycle/job_registry.py",
        "        self.use_slots(placement)\n        port =",
        "        port =",
    ),
    Mutant(
        "a placement has the epoch that its slots have seen",
        "lifecycle/allocation.py",
        "epoch=epoch + 1, no_targets_because=",
        "epoch=max(1, epoch), no_targets_because=",
    ),
    Mutant(
        "what a job moves from counts as free",
        "jobs/records.py",
        "return tuple(p for p in (self.placement, self.previous) if p is not None)",
        "return tuple(p for p in (self.placement,) if p is not None)",
        "a job moves while one of its switches hangs",
    ),
    Mutant(
        "memory does not follow a store that refused a change",
        "lifecycle/job_registry.py",
        "            self._jobs, self._revisions = jobs, revisions\n"
        "            self.ledger.rows = rows\n"
        "            self._resolved = {n: o for n, o in self._resolved.items() if n in self._jobs}\n            raise",
        "            raise",
    ),
    Mutant(
        "a job is acknowledged that is in memory alone",
        "lifecycle/job_registry.py",
        "        self._store.put(job)\n        self.ledger.settle(",
        "        if job.state is not JobState.QUEUED:\n            self._store.put(job)\n        self.ledger.settle(",
    ),
    Mutant(
        "a member's joining and leaving is in memory alone",
        "lifecycle/job_registry.py",
        "        self._store.put_member(job.name, member)\n",
        "",
        "the controller dies when one worker has left and another one is about to",
    ),
    Mutant(
        "an audit does not read",
        "switches/reconciler.py",
        "drift = await self._installed.read()",
        "drift = 0",
    ),
    Mutant(
        "what a failed write left is not read",
        "switches/reconciler.py",
        "        await self._installed.read()\n        with suppress",
        "        with suppress",
    ),
    Mutant(
        "a leave that the store refused is acknowledged",
        "service/member_service.py",
        "if isinstance(error, StoreError):",
        "if False:",
        "a worker leaves while the disk is full, and the controller dies before it has room",
    ),
    Mutant(
        "a job is no longer awaited though the store refused that it runs",
        STATES,
        "            self.commit(job)\n            del self._awaited[job.name]\n",
        "            del self._awaited[job.name]\n            self.commit(job)\n",
    ),
    Mutant(
        "the last worker's loss does not end a job that the others left",
        MEMBERS,
        "            self._end_if_left(name)\n            if self._registry.get(name).state.is_installed:",
        "            if self._registry.get(name).state.is_installed:",
        "a worker of an elastic job is lost when the other has left",
    ),
    Mutant(
        "a queued job that lost a member is not tried again",
        MEMBERS,
        "            else:  # without the member it may fit\n                self._events.publish(CapacityFreed())\n",
        "",
        "a queued job fits once it has lost a worker, beside a job that goes on",
    ),
    Mutant(
        "entries of an ended job stay",
        STATES,
        "        self._member_status.keep(self._registry)\n        self.retarget()\n",
        "        self._member_status.keep(self._registry)\n",
    ),
    Mutant(
        "leases of an ended job stay",
        STATES,
        "        self._failures.forget(name)\n        self._leases.end_job(name)\n",
        "        self._failures.forget(name)\n",
    ),
    Mutant(
        "a change is awaited one step later, and may be missed",
        "lifecycle/events.py",
        "        return self._job_events.setdefault(job, asyncio.Event()).wait()",
        "        async def later() -> object:\n"
        "            await asyncio.sleep(0)\n"
        "            return await self._job_events.setdefault(job, asyncio.Event()).wait()\n\n"
        "        return later()",
    ),
    Mutant(
        "a job that cannot be installed fails",
        STATES,
        "            self._await(job, version, seconds)\n"
        "        if unfinished:\n            self.strand(name, why, unfinished)\n",
        "            self._await(job, version, seconds)\n"
        "        if unfinished:\n            self.end(name, JobState.FAILED, why)\n",
        "a job is placed over a spine that hangs",
    ),
    Mutant(
        "a lost connection is not noticed",
        "switches/session.py",
        "            self._closing.set,\n",
        "            lambda: None,\n",
    ),
    Mutant(
        "heartbeats do not renew leases after the first",
        MEMBERS,
        "        self.renew_lease(name, host)\n        is_same = member.joined",
        "        if not member.joined:\n            self.renew_lease(name, host)\n        is_same = member.joined",
    ),
    Mutant(
        "a job moves though it ended while it was planned",
        MIGRATIONS,
        "if plan.rate < min_rate or not job.state.is_installed or",
        "if plan.rate < min_rate or",
        "a job is canceled while its move is planned",
    ),
    Mutant(
        "a repair without a plan ends its job though a switch may soon be back",
        "scheduling/migration_scheduler.py",
        "        if not self._failures.awaited and not is_late:",
        "        if not is_late:",
        "a worker leaves while the only spine takes no connections for a moment",
    ),
    Mutant(
        "new workers wait on when the planner has crashed",
        "scheduling/migration_scheduler.py",
        "            self._tasks.persist(self._refuse_newcomers, name, why, job=name)\n",
        "            log.error(why)\n",
        "the planner crashes while a worker that comes again is planned in",
    ),
    Mutant(
        "a RoCE job fails while only the disk has not taken that it is connected",
        ENTRY_PROGRESS,
        "            self._await(name, version)\n        if unfinished:\n",
        "            self._states.end(name, JobState.FAILED, 'late')\n            return\n        if unfinished:\n",
        "the disk is full when the connections of a RoCE job are installed",
    ),
    Mutant(
        "a RoCE job fails whose connections a switch does not take, and does not move",
        ENTRY_PROGRESS,
        "self._states.strand(name, why, unfinished)",
        "self._states.end(name, JobState.FAILED, why)",
        "a spine hangs before a RoCE job's connections are installed",
    ),
    Mutant(
        "a job goes back to where it was without a look at the others",
        STATES,
        "return self._registry.fits(job, job.previous)",
        "return True",
        "a job goes back to where a link failed, and another one was planned meanwhile",
    ),
    Mutant(
        "cross traffic moves no job",
        "health/reroute.py",
        "            if why:\n",
        "            if False:\n",
        "cross traffic leaves a job little where it is, and another spine is free",
    ),
    Mutant(
        "a worker that began again while no controller ran is taken for the earlier one",
        "lifecycle/members.py",
        "return status.is_assigned(name, host) or is_of_earlier",
        "return status.is_assigned(name, host)",
        "a worker begins again while no controller runs",
    ),
    Mutant(
        "a worker that is started again goes on in a job that its loss ends",
        MEMBERS,
        "            self.handle_loss(name, host, why)\n            return\n        if job.state",
        "            return\n        if job.state",
        "a worker is started again within its lease",
    ),
    Mutant(
        "a worker that is started again keeps the epoch",
        MEMBERS,
        '            job = job.model_copy(update={"newcomers": True})\n        else:',
        '            job = job.model_copy(update={"newcomers": True})\n'
        "            self._lifecycle.commit(job)\n            return\n        else:",
        "a worker of an elastic job is started again within its lease",
    ),
    Mutant(
        "a parameter server that is started again keeps the epoch",
        MEMBERS,
        'was started again, with empty slots"\n',
        'was started again, with empty slots"\n            return\n',
        "a parameter server is started again within its lease",
    ),
    Mutant(
        "a member that is started again may get the epoch from which its job moves",
        MEMBERS,
        "if job.state is JobState.RUNNING or job.previous is not None:",
        "if job.state is JobState.RUNNING:",
        "a worker is started again while its job moves, and the job goes back",
    ),
    Mutant(
        "a process that another one has replaced takes its place again",
        MEMBERS,
        "if not new and member.is_of_other_process(process):",
        "if False:",
        "a second worker is started while the first has lost its stream",
    ),
    Mutant(
        "the time in which workers have to join begins anew with each start",
        MEMBERS,
        "0.0 if job.generation else self._registry.ran_for_s(job)",
        "0.0",
        "a worker never joins, and the controller starts again every 21 s",
    ),
)


BUSY_MUTANTS = (
    Mutant(
        "a silent switch is taken for dead",
        "health/failure_monitor.py",
        "if health.silent or health.preempted or is_early:",
        "if health.preempted or is_early:",
        "a switch that a job cannot do without hangs for long",
    ),
    Mutant(
        "a slow switch is taken for one that refuses",
        ENTRY_PROGRESS,
        "        return any(h.preempted or (h.reached and h.refusals >= MIN_REFUSALS) for h in found)",
        "        return bool(switches)",
    ),
    Mutant(
        "a plan that is not found in time is taken for none",
        MIGRATIONS,
        "is_late = isinstance(error, PlanTimeoutError)",
        "is_late = False",
    ),
    Mutant(
        "the time in which the loop stood still counts for a lease",
        "switches/deadline.py",
        "STEPS = 8\n",
        "STEPS = 1\n",
        "the machine stands still twice in a row",
    ),
)
MUTANTS += BUSY_MUTANTS


def mutant_named(name: str) -> Mutant:
    return next(m for m in MUTANTS if m.name == name)
