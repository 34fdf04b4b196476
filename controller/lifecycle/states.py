# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Changes the state of jobs: their entries are installed, they run, they end. Each change is one transaction in the
store; the desired state of the switches follows from the store alone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from netfold.controller.jobs.records import JobRecord, JobState
from netfold.controller.lifecycle.capacity import unavoidable, uses_failed
from netfold.controller.lifecycle.controller_state import ControllerState
from netfold.controller.lifecycle.entry_progress import FeatureEntries, SwitchProgress
from netfold.controller.lifecycle.events import (
    CapacityFreed,
    FailuresChanged,
    JobRunning,
    JobStranded,
    MoveFailed,
)
from netfold.controller.lifecycle.leases import Leases
from netfold.controller.lifecycle.member_status import Holder
from netfold.controller.switches.desired_state import DesiredState
from netfold.controller.switches.fleet import Fleet
from netfold.p4src.manifest import Program

log = logging.getLogger(__name__)


class Lifecycle:
    """State changes of jobs, their store transactions and the desired state that follows from them."""

    def __init__(
        self,
        state: ControllerState,
        fleet: Fleet,
        desired_state: DesiredState,
        leases: Leases,
    ) -> None:
        self.changes = state.changes
        self._fabric = state.fabric
        self._registry = state.registry
        self._member_status = state.member_status
        self._tasks = state.tasks
        self._timeouts = state.timeouts
        self._failures = state.failures
        self._events = state.events
        self._fleet = fleet
        self._desired_state = desired_state
        self._leases = leases
        self._is_computing = False
        self._awaited: dict[str, int] = {}
        """For each job that is being installed, the version of the desired state that has its entries."""
        self._switches = SwitchProgress(fleet)
        self._feature_entries = FeatureEntries(
            state.registry, self._switches, state.tasks, state.failures, self, state.timeouts.install
        )

    def switches_of(self, job: JobRecord) -> list[str]:
        """All switches that hold entries of a job."""
        return self._switches.of(job)

    @property
    def lease_holders(self) -> frozenset[Holder]:
        return self._leases.holders

    def is_affected(self, job: JobRecord) -> bool:
        """Whether the placement of the job uses failed elements or lost members."""
        return job.placement is not None and uses_failed(
            job.placement.plan, self._failures.of(job.name), job.excluded
        )

    def is_over_drained(self, job: JobRecord) -> bool:
        """Whether the placement of the job uses drained elements that a plan of its members may avoid."""
        drained = self._failures.drained
        if job.placement is None or not drained:
            return False
        avoidable = drained - unavoidable(self._fabric, job.workers)
        return uses_failed(job.placement.plan, avoidable, ())

    # ---- changes ----------------------------------------------------------------------------------------

    def commit(self, job: JobRecord) -> None:
        """Store the job and notify its members; its switch entries are unchanged."""
        with self._registry.change():
            self._registry.write(job)
        self.changes.notify(job.name)

    def commit_member(self, job: JobRecord, host: str) -> None:
        """Store a change of one member without waking the others."""
        with self._registry.change():
            self._registry.write_member(job, host)
        self.changes.notify()

    def interrupt(self, name: str, why: str) -> None:
        """End the part of a job's workers. The job keeps its placement, and waits for the next generation."""
        log.info("job %s has no workers: %s", name, why)
        self.commit(self._registry.get(name).interrupt(why))
        self.forget_members(name)

    def forget_members(self, name: str) -> None:
        """Forget what is known of a job's workers, in whose place others come. Parameter servers stay, and keep their
        leases."""
        for member in self._registry.get(name).members:
            if not member.parameter_server:
                self._leases.end(name, member.host)
        self._member_status.forget(name)

    def changed(self, *names: str) -> None:
        """Set the desired state after these jobs were written with a new placement or epoch; they wait for it."""
        version = self.retarget()
        for name in names:
            job = self._registry.get(name)
            if job.state is JobState.INSTALLING:
                self._await(job, version, self._timeouts.install)
                if not job.ran_since:
                    self._limit(job)
            elif job.state.is_terminal:
                self._forget(name)
        self.settle()
        self.changes.notify(*names)

    def hold_back(self, names: Iterable[str]) -> None:
        """Let jobs that were written with a new epoch run only once switches have the next desired state. `changed`
        has to follow, and may do so in a later turn of the event loop."""
        for name in names:
            self._awaited[name] = self._fleet.version + 1
            self._desired_state.prepare(self._registry.get(name))

    def replaced(self, name: str) -> None:
        """Do the same as `changed` for a job that gives up its previous placement."""
        self.changed(name)
        self._events.publish(CapacityFreed())

    def update_feature(self, job: JobRecord, host: str) -> None:
        """Store what a member has registered with a feature of its job; switches get the entries that follow."""
        with self._registry.change():
            self._registry.write_registration(job, host)
        self.changes.notify(job.name)
        self._feature_entries.install(job)
        self.settle()

    def retarget(self) -> int:
        return self._fleet.set_desired(
            self._desired_state.contents(
                self._registry.all(),
                self._failures.failed,
                self._registry.revisions(),
                self._failures.drained,
            )
        )

    def set_program(self, switch: str, program: Program) -> None:
        """Set the program that a switch runs from now on, and give it the entries that follow."""
        self._desired_state.set_program(switch, program)
        self.retarget()

    async def compute_routes(self) -> None:
        """Compute the routes before the first desired state is set."""
        await asyncio.to_thread(
            self._desired_state.compute_routes, self._failures.failed, self._failures.drained
        )

    def on_failures_changed(self, _: FailuresChanged) -> None:
        """Give switches routes around failed and drained elements; in a large fabric once a thread has computed
        them."""
        if self._desired_state.is_small:
            self.retarget()
        elif not self._is_computing:
            self._is_computing = True
            self._tasks.spawn(self._compute_routes(), "routes around what is broken")

    async def _compute_routes(self) -> None:
        try:
            while True:
                around = (self._failures.failed, self._failures.drained)
                if self._desired_state.has_routes(*around):
                    return
                await asyncio.to_thread(self._desired_state.compute_routes, *around)
                self.retarget()
        finally:
            self._is_computing = False

    def settle(self) -> None:
        """Set jobs whose switches hold all entries to running; their previous placements are given up. The change is
        repeated as long as the store refuses it."""
        self._tasks.persist(self._settle)

    def _settle(self) -> None:
        settled = []
        for name, version in list(self._awaited.items()):
            job = self._registry.get(name)
            if job.state is not JobState.INSTALLING:
                del self._awaited[name]
            elif not self._switches.unfinished(job, version):
                settled.append(self._registry.running(job))
        self._feature_entries.settle()
        for job in settled:
            before = self._registry.get(job.name)
            has_moved = before.previous is not None
            self.commit(job)
            del self._awaited[job.name]
            if not before.ran_since:
                self._limit(job)
            self._failures.forget(job.name)
            self._events.publish(JobRunning(job.name))
            log.info("job %s runs in epoch %d", job.name, job.epoch)
            if has_moved:
                self._events.publish(CapacityFreed())
        if settled:
            self.retarget()

    def end(self, name: str, state: JobState, reason: str) -> None:
        """End a job; one that has ended already stays as it is. Raises UnknownJobError."""
        if self._registry.get(name).state.is_terminal:
            return
        log.info("job %s is %s: %s", name, state, reason)
        self.commit(self._registry.with_end_state(self._registry.get(name), state, reason))
        self._forget(name)
        self._member_status.keep(self._registry)
        self.retarget()
        self._events.publish(CapacityFreed())

    def resume(self, job: JobRecord) -> None:
        """Give jobs that were being installed time to continue after the start of the controller."""
        if job.state is JobState.INSTALLING:
            self._await(job, self._fleet.version, self._timeouts.start)
        self._feature_entries.install(job)
        if job.state.is_installed:
            self._limit(job)

    def _limit(self, job: JobRecord) -> None:
        """End the job when it has run for the time that its file gives it. Switches that take its entries late do not
        prolong it: others wait for its end."""
        left_s = self._registry.limit_s(job)
        if left_s is not None:
            left_s += 0.0 if job.ran_since else self._timeouts.install
            self._tasks.call_later(left_s, self._on_time_limit, job.name, job=job.name)

    def _on_time_limit(self, name: str) -> None:
        max_s = self._registry.resolved_job(name).file.max_s
        self.end(name, JobState.FAILED, f"its max_s of {max_s:g} s is over")

    # ---- installing -------------------------------------------------------------------------------------

    def _await(self, job: JobRecord, version: int, seconds: float) -> None:
        self._awaited[job.name] = version
        self._tasks.call_later(seconds, self._on_install_timeout, job.name, job.epoch, seconds, job=job.name)

    def _on_install_timeout(self, name: str, epoch: int, seconds: float) -> None:
        job = self._registry.get(name)
        if job.state is not JobState.INSTALLING or job.epoch != epoch:
            return
        version = self._awaited.get(name, 0)
        unfinished = self._switches.unfinished(job, version)
        why = f"switches did not take its entries in {seconds:g} s: {self._switches.listed(unfinished)}"
        if unfinished and self.roll_back(job, why, unfinished):
            return
        if not self._switches.are_refusing(
            unfinished
        ):  # they are slow, or only the store has not recorded them as installed
            self._await(job, version, seconds)
        if unfinished:
            self.strand(name, why, unfinished)

    def unfinished_switches(self, name: str) -> list[str]:
        """Switches that have not taken the entries of a job that waits for them."""
        version = self._awaited.get(name) or self._feature_entries.version(name)
        return [] if version is None else self._switches.unfinished(self._registry.get(name), version)

    def strand(self, name: str, why: str, unfinished: list[str]) -> None:
        """Move the job away from these switches. If there is no other plan, it ends if one of them refuses, and waits
        otherwise."""
        refused = self._switches.are_refusing(unfinished)
        self._failures.avoid(name, unfinished, slow=not refused)
        self._events.publish(JobStranded(name, why, is_final=refused))

    def _can_roll_back(self, job: JobRecord) -> bool:
        """Whether the job can stay on its previous placement, also on a drained one: failed elements of it may work
        again, but other jobs may have its capacity."""
        if job.previous is None or uses_failed(job.previous.plan, self._failures.failed, job.excluded):
            return False
        return self._registry.fits(job, job.previous)

    def roll_back(self, job: JobRecord, why: str, unfinished: Iterable[str] = ()) -> bool:
        """Let a job that moves stay on its previous placement, where it has run all the time, in its old epoch. False:
        it has none that works. `unfinished`: the switches that have not taken its new entries."""
        if not self._can_roll_back(job):
            return False
        log.warning("job %s stays where it was: %s", job.name, why)
        assert job.previous is not None
        members = {e.child for tree in job.previous.plan.trees for e in tree.edges}
        absent = (w for w in job.workers if w not in members)  # workers that this epoch was to include
        stays: dict[str, object] = {"placement": job.previous, "previous": None, "state": JobState.RUNNING}
        stays["excluded"] = (*job.excluded, *absent)
        self.commit(job.model_copy(update={**stays, "reason": f"it stays where it was: {why}"}))
        self._awaited.pop(job.name, None)
        self.retarget()
        self._feature_entries.install(self._registry.get(job.name))
        there = {n for link in job.previous.links for n in link}
        self._events.publish(MoveFailed(job.name, why, frozenset(unfinished) - there))
        self._events.publish(CapacityFreed())
        return True

    def _forget(self, name: str) -> None:
        self._awaited.pop(name, None)
        self._feature_entries.forget(name)
        self._failures.forget(name)
        self._leases.end_job(name)
        self._tasks.forget(name)
