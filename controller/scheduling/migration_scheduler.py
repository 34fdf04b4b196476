# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Decides when installed jobs are planned again, and migrates them. plan_scheduler.py orders planning tasks,
planning_client.py requests the plans.

A job that has to move leaves failed elements and lost members: its repair may break it before it is made again, may end
it, and may use what is withdrawn where there is no other plan. A job that only leaves drained elements stays where it
is until the new placement is installed, or for good if there is none."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from netfold.controller.jobs.engine import StoreError
from netfold.controller.jobs.file import ResolvedJob
from netfold.controller.jobs.records import JobRecord, JobState, Placement
from netfold.controller.lifecycle.background_tasks import STORE_RETRY_S
from netfold.controller.lifecycle.capacity import RefusedError, unavoidable, uses_failed
from netfold.controller.lifecycle.controller_state import ControllerState
from netfold.controller.lifecycle.events import (
    CapacityFreed,
    ElementsFailed,
    EpochsExhausted,
    FailuresChanged,
    JobRunning,
    JobStranded,
    MembersRejoining,
    MoveFailed,
)
from netfold.controller.lifecycle.job_registry import UnknownJobError
from netfold.controller.lifecycle.states import Lifecycle
from netfold.controller.planning.plan import Loads, Plan
from netfold.controller.planning.residual_network import NO_LOADS
from netfold.controller.scheduling.job_queue import JobQueue
from netfold.controller.scheduling.plan_scheduler import PlanPriority, PlanScheduler
from netfold.controller.scheduling.planning_client import PlanningClient, PlanTimeoutError
from netfold.controller.switches.failed_elements import NO_ELEMENTS, FailedElements

log = logging.getLogger(__name__)

WORTH_MOVING = 1.05
"""Ratio of the new rate to the present one above which `replan` migrates a job."""


PLAN_AGAIN_S = 10.0
"""Seconds between a plan that was not found in time and the next attempt: the machine may only be busy."""

LEAVES = "it leaves what is drained"
"""Reason of a job that moves although it need not."""

LEAVE_AGAIN_S = 10.0
"""Seconds between a move off drained elements that was not possible in time, or that switches or the store did not
take, and the next attempt."""


@dataclass(frozen=True)
class _Circumstances:
    """The conditions of a plan of a job. `freed`: how often capacity was freed; `failures`: how often failures have
    changed; `excluded`: of the job."""

    freed: int
    failures: int
    excluded: tuple[str, ...]


@dataclass(frozen=True)
class _Repair:
    """A requested repair. `fail`: the job ends if there is no other plan."""

    why: str
    fail: bool


@dataclass(frozen=True)
class _Postponed:
    """A postponed step of a job: why it was not possible, and how it is tried again. `repair`: the step, if it is one.
    `is_late`: its plan was not found in time, and a timer tries it again."""

    why: str
    retry: Callable[[], None]
    repair: _Repair | None = None
    is_late: bool = False


class MigrationScheduler:
    """Moves installed jobs, one at a time. A repair may take the capacity that queued jobs have reserved; a migration
    that only gains may not. A migration without a plan is postponed while a switch or link may be back shortly, until
    it is back or given up, or capacity is freed. A migration whose plan was not found in time is tried again."""

    def __init__(
        self,
        state: ControllerState,
        lifecycle: Lifecycle,
        planning: PlanningClient,
        plan_scheduler: PlanScheduler,
        queue: JobQueue,
    ) -> None:
        self._fabric = state.fabric
        self._registry = state.registry
        self._tasks = state.tasks
        self._failures = state.failures
        self._lifecycle = lifecycle
        self._planning = planning
        self._plan_scheduler = plan_scheduler
        self._queue = queue
        self._repairs: dict[str, _Repair] = {}
        self._admitting: set[str] = set()
        self._renewing: set[str] = set()
        self._postponed: dict[tuple[str, str], _Postponed] = {}
        """Postponed steps by job and kind."""
        self._freed = 0
        """How often capacity was freed."""
        self._leaving: dict[str, bool] = {}
        """Jobs that are to leave drained elements; true: something has changed since the attempt began."""
        self._stays: dict[str, str] = {}
        """The reasons why jobs could not leave drained elements at the last attempt."""
        self._rests: set[str] = set()
        """Jobs that leave drained elements after a while, and not when room comes."""
        self._declined: dict[str, frozenset[str]] = {}
        """Switches that did not take the entries of jobs that were leaving drained elements: the next plans avoid them,
        until there is none."""

    # ---- events ---------------------------------------------------------------------------------

    def on_job_stranded(self, event: JobStranded) -> None:
        self.repair(event.job, event.reason, fail=event.is_final)

    def on_epochs_exhausted(self, event: EpochsExhausted) -> None:
        self.renew(event.job, event.epoch, event.reason)

    def on_members_rejoining(self, event: MembersRejoining) -> None:
        self.admit(event.job)

    def on_elements_failed(self, event: ElementsFailed) -> None:
        """Move the jobs that use the failed elements."""
        for job in self._registry.all():
            uses_link = any(event.elements.links & p.links for p in job.placements)
            if uses_link or event.elements.switches & job.nodes:
                self.repair(job.name, event.reason, fail=event.is_final)
        if event.is_final:
            self._retry_postponed()

    def on_failures_changed(self, _: FailuresChanged) -> None:
        self._retry_postponed()

    def on_capacity_freed(self, _: CapacityFreed) -> None:
        """Let jobs leave failed and drained elements that had no other plan before."""
        self._freed += 1
        for (name, kind), postponed in list(self._postponed.items()):
            if not postponed.is_late:
                self._retry(name, kind)
        self.leave_drained()

    def on_move_failed(self, event: MoveFailed) -> None:
        """Let the job leave drained elements later: its capacity is free now, and it would be planned at once."""
        if self._lifecycle.is_over_drained(self._registry.get(event.job)):
            self._stays[event.job] = event.reason
            self._declined[event.job] = self._declined.get(event.job, frozenset()) | event.switches
            self._leave_later(event.job)

    def on_job_running(self, event: JobRunning) -> None:
        self._rests.discard(event.job)
        self._declined.pop(event.job, None)
        self.leave(event.job)

    # ---- commands -------------------------------------------------------------------------------

    def repair(self, name: str, why: str, *, fail: bool = True) -> None:
        """Migrate an installed job off failed elements and lost members, in a task. If there is no other plan, it ends,
        if `fail` is true of one request. A second request during a repair only changes its reason, so repairs do not
        pile up; a reason to end stays if the second one is none."""

        def on_error(error: Exception) -> None:
            reason = f"{why}, and the planner crashed: {error}"
            self._tasks.persist(self._lifecycle.end, name, JobState.FAILED, reason, job=name)

        waits, postponed = self._repairs.get(name), self._postponed.pop((name, "repair"), None)
        request = _Repair(why, fail)
        for earlier in (waits, None if postponed is None else postponed.repair):
            if earlier is not None and earlier.fail and not request.fail:
                request = earlier
        self._repairs[name] = request
        if waits is None:
            self._tasks.spawn(self._repair(name), f"repair of job {name}", on_error)

    def leave_drained(self) -> None:
        """Migrate installed jobs off drained elements, each in a task. Those whose attempt has just failed wait."""
        installed = {j.name for j in self._registry.all() if j.state.is_installed}
        self._stays = {
            n: why
            for n, why in self._stays.items()
            if n in installed and self._lifecycle.is_over_drained(self._registry.get(n))
        }
        self._declined = {n: s for n, s in self._declined.items() if n in installed}
        self._rests &= installed
        for job in self._registry.all():
            if job.name in installed - self._rests:
                self.leave(job.name)

    def leave(self, name: str) -> None:
        """Migrate an installed job off drained elements, in a task. If there is no other plan, it stays."""

        def on_error(_: Exception) -> None:
            self._leave_later(name)

        if name not in self._registry or not self._may_leave(self._registry.get(name)):
            return
        if name in self._leaving:
            self._leaving[name] = True
        else:
            self._leaving[name] = False
            self._tasks.spawn(self._leave(name), f"job {name} leaves drained elements", on_error)

    def renew(self, name: str, epoch: int, why: str) -> None:
        """Migrate an installed job in its last epoch, in a task, to slots that have epochs left. If there are none, it
        ends."""

        def on_error(error: Exception) -> None:
            reason = f"{why}, and the planner crashed: {error}"
            self._tasks.persist(self._lifecycle.end, name, JobState.FAILED, reason, job=name)

        if name not in self._renewing:
            self._renewing.add(name)
            self._tasks.spawn(self._renew(name, epoch, why), f"other slots for job {name}", on_error)

    def admit(self, name: str) -> None:
        """Migrate an installed job, in a task, to a plan with its rejoining members."""

        def on_error(error: Exception) -> None:
            why = f"the planner crashed: {error}"
            self._tasks.persist(self._refuse_newcomers, name, why, job=name)

        if name not in self._admitting:
            self._admitting.add(name)
            self._tasks.spawn(self._admit(name), f"new workers of job {name}", on_error)

    async def replan(self, name: str) -> bool:
        """Migrate a running job that gains enough or uses failed or drained elements. Raises UnknownJobError."""

        async def work(is_final_attempt: bool) -> bool:
            job = self._registry.get(name)
            if job.state is not JobState.RUNNING or job.placement is None:
                return False
            has_to_move = self._lifecycle.is_affected(job) or self._lifecycle.is_over_drained(job)
            better = 0.0 if has_to_move else WORTH_MOVING * job.placement.plan.rate
            return await self._gain(job, "replanned", better, is_urgent=is_final_attempt)

        return await self._plan_scheduler.run(PlanPriority.REPLAN, work)

    async def reroute(self, name: str, why: str, min_rate: float, assumed_loads: Loads) -> bool:
        """Migrate a running job if a plan around the cross traffic (`assumed_loads` on the links that it has) has a
        rate of `min_rate` or more. Raises UnknownJobError."""

        async def work(_: bool) -> bool:
            job = self._registry.get(name)
            if job.state is not JobState.RUNNING or self._lifecycle.is_affected(job):
                return False  # a repair comes first
            return await self._gain(job, why, min_rate, is_urgent=True, assumed_loads=assumed_loads)

        return await self._plan_scheduler.run(PlanPriority.REROUTE, work)

    async def _gain(
        self, job: JobRecord, why: str, min_rate: float, *, is_urgent: bool, assumed_loads: Loads = NO_LOADS
    ) -> bool:
        try:
            return await self._move(
                job,
                why,
                min_rate,
                self._queue.all(),
                is_urgent=is_urgent,
                must_gain=True,
                assumed_loads=assumed_loads,
            )
        except (RefusedError, StoreError) as error:
            log.info("job %s stays where it is: %s", job.name, error)
            return False

    def postponed(self, name: str) -> list[str]:
        """The reasons why an installed job waits to move."""
        return [p.why for (job, _), p in self._postponed.items() if job == name]

    def stays_because(self, name: str) -> str:
        """The reason why an installed job could not leave drained elements at the last attempt; "": none is known."""
        return self._stays.get(name, "")

    def _postpone(
        self,
        name: str,
        kind: str,
        error: RefusedError,
        retry: Callable[[], None],
        repair: _Repair | None = None,
    ) -> bool:
        """Postpone `retry` if a switch or link may be back shortly, or if time was short. True: it is postponed, or the
        job has ended and there is nothing to do."""
        if name not in self._registry or not self._registry.get(name).state.is_installed:
            return True  # it has ended while it was planned
        is_late = isinstance(error, PlanTimeoutError)
        if not self._failures.awaited and not is_late:
            return False
        self._postponed[name, kind] = _Postponed(str(error), retry, repair, is_late)
        if is_late:
            self._tasks.call_later(PLAN_AGAIN_S, self._retry, name, kind, job=name)
        return True

    def _retry(self, name: str, kind: str) -> None:
        if (postponed := self._postponed.pop((name, kind), None)) is not None:
            postponed.retry()

    def _retry_postponed(self) -> None:
        for name, kind in list(self._postponed):
            self._retry(name, kind)

    def _circumstances(self, name: str) -> _Circumstances:
        return _Circumstances(self._freed, self._failures.changes, self._registry.get(name).excluded)

    def _is_outdated(self, name: str, before: _Circumstances, error: RefusedError) -> bool:
        """Whether a refusal may not hold any more, as its event was published while the plan was made. Room alone is no
        reason to make a plan again that was late."""
        now = self._circumstances(name)
        return now != (replace(before, freed=now.freed) if isinstance(error, PlanTimeoutError) else before)

    # ---- planning tasks -------------------------------------------------------------------------

    async def _repair(self, name: str) -> None:
        latest = self._repairs[name]

        async def work(_: bool) -> None:
            nonlocal latest
            request, must_retry = self._repairs[name], False
            try:
                job, before = self._registry.get(name), self._circumstances(name)
                if not job.state.is_installed or not self._lifecycle.is_affected(job):
                    return  # it has ended, or an earlier migration has solved it
                if job.interrupted:
                    return  # its next workers get a plan when they come
                if self._lifecycle.roll_back(job, request.why):
                    return  # only the placement that it moves to is affected
                await self._move_off(job, request.why)
            except RefusedError as error:
                latest = self._repairs[name]  # a request may have arrived in the meantime
                must_retry = self._is_outdated(name, before, error) or self._failures.forgive_slow(name)
                log.warning("job %s: %s, and cannot move: %s", name, latest.why, error)
                if not must_retry and self._lifecycle.is_affected(self._registry.get(name)):
                    self._end_or_postpone(name, latest, error)
            finally:
                latest = self._repairs.pop(name)
            if must_retry:
                self.repair(name, latest.why, fail=latest.fail)

        try:
            await self._plan_scheduler.run(PlanPriority.REPAIR, work)
        except UnknownJobError:
            log.debug("job %s is forgotten", name)
        except StoreError as error:
            log.error("job %s is repaired again in %g s: %s", name, STORE_RETRY_S, error)
            await asyncio.sleep(STORE_RETRY_S)
            self.repair(name, latest.why, fail=latest.fail)

    async def _leave(self, name: str) -> None:
        async def work(_: bool) -> None:
            job = self._registry.get(name)
            self._leaving[name] = False
            if not self._may_leave(job):
                return
            declined = FailedElements(switches=self._declined.get(name, frozenset()))
            try:
                await self._move(job, LEAVES, 0.0, (), is_urgent=True, is_leave=True, besides=declined)
                self._stays.pop(name, None)
            except RefusedError as error:
                log.info("job %s stays over drained elements: %s", name, error)
                self._stays[name] = str(error)
                if self._declined.pop(name, None) or isinstance(error, PlanTimeoutError):
                    self._leave_later(name)

        was_refused = name in self._stays
        try:
            await self._plan_scheduler.run(PlanPriority.QUEUE if was_refused else PlanPriority.LEAVE, work)
        except UnknownJobError:
            log.debug("job %s is forgotten", name)
        except StoreError as error:
            log.error("job %s: %s", name, error)
            self._leave_later(name)
        finally:
            must_retry = self._leaving.pop(name)
        if must_retry:
            self.leave(name)

    def _may_leave(self, job: JobRecord) -> bool:
        """Whether the job is over drained elements, and keeps a placement until another one is installed. One that has
        to move leaves them by its repair."""
        return (
            (job.state is JobState.RUNNING or job.previous is not None)
            and job.state.is_installed
            and self._lifecycle.is_over_drained(job)
            and not self._lifecycle.is_affected(job)
        )

    def _leave_later(self, name: str) -> None:
        self._rests.add(name)
        self._tasks.call_later(LEAVE_AGAIN_S, self._leave_again, name, job=name)

    def _leave_again(self, name: str) -> None:
        self._rests.discard(name)
        self.leave(name)

    async def _move_off(self, job: JobRecord, why: str, joining: frozenset[str] = frozenset()) -> None:
        """Migrate a job that has to move: off withdrawn elements, too, if there is such a plan. Raises RefusedError."""
        try:
            await self._move(job, why, 0.0, (), is_urgent=True, joining=joining)
        except RefusedError:
            if not self._failures.withdrawn:
                raise
            job = self._registry.get(job.name)
            if not job.state.is_installed:
                raise
            await self._move(
                job, why, 0.0, (), is_urgent=True, joining=joining, may_use=lambda: self._failures.withdrawn
            )

    def _end_or_postpone(self, name: str, request: _Repair, error: RefusedError) -> None:
        retry = functools.partial(self.repair, name, request.why, fail=request.fail)
        if not self._postpone(name, "repair", error, retry, request) and request.fail:
            reason = f"{request.why}, and there is no other plan: {error}"
            self._lifecycle.end(name, JobState.FAILED, reason)

    async def _renew(self, name: str, epoch: int, why: str) -> None:
        must_retry = False

        async def work(_: bool) -> None:
            nonlocal must_retry
            job, before = self._registry.get(name), self._circumstances(name)
            if not job.state.is_installed or job.epoch != epoch:
                return  # another migration has solved it
            try:
                await self._move_off(job, why)
            except RefusedError as error:
                must_retry = self._is_outdated(name, before, error)
                if must_retry or self._postpone(name, "epochs", error, lambda: self.renew(name, epoch, why)):
                    return
                if self._registry.get(name).state.is_installed:
                    reason = f"{why}, and it cannot move to other slots: {error}"
                    self._lifecycle.end(name, JobState.FAILED, reason)

        try:
            await self._plan_scheduler.run(PlanPriority.REPAIR, work)
        except UnknownJobError:
            log.debug("job %s is forgotten", name)
        except StoreError as error:
            log.error("job %s is moved to other slots again in %g s: %s", name, STORE_RETRY_S, error)
            await asyncio.sleep(STORE_RETRY_S)
            must_retry = True
        finally:
            self._renewing.discard(name)
        if must_retry:
            self.renew(name, epoch, why)

    async def _admit(self, name: str) -> None:
        must_retry = False

        async def work(_: bool) -> None:
            nonlocal must_retry
            job, before = self._registry.get(name), self._circumstances(name)
            self._admitting.discard(name)  # later ones are in the next plan
            joining = frozenset(job.rejoining)
            if not job.state.is_installed or not joining:
                return
            try:
                why = f"{', '.join(sorted(joining))} joined"
                await self._move_off(job, why, joining)
            except RefusedError as error:
                must_retry = self._is_outdated(name, before, error)
                if not must_retry and not self._postpone(name, "newcomers", error, lambda: self.admit(name)):
                    self._refuse_newcomers(name, str(error))

        try:
            await self._plan_scheduler.run(PlanPriority.REPAIR, work)
        except UnknownJobError:
            log.debug("job %s is forgotten", name)
        except StoreError as error:
            log.error("job %s: its new workers are planned in again in %g s: %s", name, STORE_RETRY_S, error)
            await asyncio.sleep(STORE_RETRY_S)
            must_retry = True
        finally:
            self._admitting.discard(name)
        if must_retry:
            self.admit(name)

    def _refuse_newcomers(self, name: str, why: str) -> None:
        """End the streams of members that fit in no plan; other processes may try again."""
        job = self._registry.get(name)
        if job.state.is_installed and job.rejoining:
            why = f"there is no place for {', '.join(sorted(job.rejoining))}: {why}"
            log.warning("job %s: %s", name, why)
            self._lifecycle.commit(job.no_longer_rejoining(job.rejoining).model_copy(update={"reason": why}))

    async def _move(
        self,
        job: JobRecord,
        why: str,
        min_rate: float,
        reservations: Iterable[Placement],
        *,
        is_urgent: bool,
        must_gain: bool = False,
        joining: frozenset[str] = frozenset(),
        assumed_loads: Loads = NO_LOADS,
        is_leave: bool = False,
        besides: FailedElements = NO_ELEMENTS,
        may_use: Callable[[], FailedElements] | None = None,
    ) -> bool:
        """Replan an installed job and migrate it in a new epoch if the rate is `min_rate` or more. With `must_gain` the
        job may stay where it is, and only a rate in addition to cross traffic counts. `joining` members take part. A
        job that only leaves drained elements (`is_leave`) does not break for it, and stays if they are given back while
        it is planned. The plan avoids these elements `besides`. It `may_use` these elements if they are only withdrawn;
        by default those that no plan of its members avoids. Raises RefusedError."""
        resolved, before = self._registry.resolved_job(job.name), job
        current_plan = job.placement.plan if must_gain and job.placement is not None else None
        lost = self._planning.lost(job.name, joining)
        bound = unavoidable(self._fabric, (*job.workers, *joining))
        plan = await self._planning.plan(
            resolved,
            lost,
            reservations,
            is_urgent=is_urgent,
            current_plan=current_plan,
            assumed_loads=assumed_loads,
            besides=besides,
            may_use=may_use or (lambda: bound),
        )
        job = self._registry.get(job.name)
        if not joining <= set(job.rejoining):  # a member has left again: plan without it
            self.admit(job.name)
            return False
        if plan.rate < min_rate or not job.state.is_installed or (must_gain and job.epoch != before.epoch):
            return False
        if is_leave and not self._may_leave(job):
            return False
        with self._registry.change():
            joined = _joined_by(job, joining)
            moved = self._placed(joined, resolved, plan, reservations, may_break=not (must_gain or is_leave))
            if moved.previous is not None and uses_failed(moved.previous.plan, NO_ELEMENTS, joining):
                # the workers that join would go back to an epoch that lost earlier processes of them
                moved = moved.model_copy(update={"previous": None})
            self._registry.write(moved.model_copy(update={"reason": why}))
        if moved.previous is None:
            self._lifecycle.replaced(job.name)
        else:
            self._lifecycle.changed(job.name)
        return True

    def _placed(
        self,
        job: JobRecord,
        resolved: ResolvedJob,
        plan: Plan,
        reservations: Iterable[Placement],
        *,
        may_break: bool,
    ) -> JobRecord:
        """Give the plan a placement, make before break: an installed placement stays until the new one is installed. If
        its slots leave no room for both, and the job `may_break`, the new one replaces it. Raises RefusedError."""
        try:
            placed = self._registry.with_placement(job, resolved, plan, reservations)
        except RefusedError:
            if not may_break:
                raise
            return self._registry.with_placement(
                job, resolved, plan, reservations, gives_up_slots=True
            ).model_copy(update={"previous": None})
        ran = job.placement if job.state is JobState.RUNNING else None
        return placed.model_copy(update={"previous": job.previous or ran})


def _joined_by(job: JobRecord, joining: frozenset[str]) -> JobRecord:
    """The job with these members taking part."""
    lost = tuple(h for h in job.excluded if h not in joining)
    changes = {"excluded": lost, "newcomers": job.newcomers or bool(joining)}
    return job.no_longer_rejoining(joining).model_copy(update=changes)
