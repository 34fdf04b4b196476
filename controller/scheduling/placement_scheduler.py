# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Decides when submitted and queued jobs are planned and placed. plan_scheduler.py orders planning tasks,
planning_client.py requests the plans, migration_scheduler.py moves installed jobs."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable

from netfold.controller.jobs.engine import StoreError
from netfold.controller.jobs.file import ResolvedJob
from netfold.controller.jobs.records import JobRecord, JobState, Placement
from netfold.controller.jobs.submitter import UNNAMED, Submitter
from netfold.controller.jobs.token_buckets import PlanningBudget
from netfold.controller.lifecycle.background_tasks import STORE_RETRY_S
from netfold.controller.lifecycle.capacity import ImpossibleJobError, RefusedError, uses_failed
from netfold.controller.lifecycle.controller_state import ControllerState
from netfold.controller.lifecycle.events import CapacityFreed, ElementsFailed
from netfold.controller.lifecycle.states import Lifecycle
from netfold.controller.planning.plan import Plan
from netfold.controller.planning.residual_network import NO_LOADS
from netfold.controller.planning.validate import add_loads
from netfold.controller.scheduling.job_queue import (
    JobQueue,
    conditions_of,
    jobs_in_the_way,
    loads_until,
    start_time,
)
from netfold.controller.scheduling.plan_scheduler import PlanPriority, PlanScheduler
from netfold.controller.scheduling.planning_client import PlanningClient, loads_of
from netfold.controller.switches.failed_elements import FailedElements

log = logging.getLogger(__name__)

MAX_ROUNDS = 3
"""Maximum rounds of planning one job when jobs ahead of it become untried during its planning: a flapping link must not
delay it for ever."""


class JobExistsError(Exception):
    """A job of that name exists and has not ended."""


class PlacementScheduler:
    """Places submitted jobs, or queues them, and queued jobs as capacity is freed."""

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
        self._timeouts = state.timeouts
        self._now = state.clock.wall_s
        self._lifecycle = lifecycle
        self._planning = planning
        self._plan_scheduler = plan_scheduler
        self._queue = queue
        self._budget = PlanningBudget(state.clock.monotonic_s)
        self._queue_requests = 0
        self._again = False
        self._is_running = False

    async def submit(
        self, resolved: ResolvedJob, submitter: Submitter = UNNAMED, *, queue: bool, request_id: str = ""
    ) -> JobRecord:
        """Place a new job, or queue it if that is allowed; a job of this request stays as it is. Raises JobExistsError,
        and RefusedError unless the job may wait: ImpossibleJobError even then. Raises LimitError for a tenant that has
        reached one of its limits."""
        name = resolved.file.name
        request = (request_id, resolved.text, submitter.name, submitter.tenant)
        new = functools.partial(self._registry.new, resolved, submitter, request_id=request_id)

        async def work(is_final_attempt: bool) -> None:
            if name in self._registry and self._registry.get(name).is_of_request(*request):
                return
            self._check_name(name)
            self._budget.check(submitter)
            self._registry.check_limits(submitter, resolved)
            requests = self._queue_requests
            ahead = functools.partial(self._queue.ahead_of_new, resolved, submitter.tenant)

            async def plan(reservations: list[Placement]) -> Plan:
                with self._budget.spent(submitter):
                    return await self._planning.plan(
                        resolved, frozenset, reservations, is_urgent=is_final_attempt
                    )

            found, reservations, kept_free = await self._plan_behind(
                ahead, resolved, plan, is_urgent=is_final_attempt
            )
            try:
                if isinstance(found, RefusedError):
                    raise found
                with self._registry.change():
                    self._registry.write(self._registry.with_placement(new(), resolved, found, kept_free))
            except RefusedError as error:
                why = _with_queue(error, reservations)
                if not queue:
                    raise RefusedError(why) from error
                with self._budget.spent(submitter):
                    kept, failed = await self._planning.reservation(
                        resolved, frozenset, reservations, is_urgent=is_final_attempt
                    )
                    if kept is None:
                        await self._planning.check_possible(resolved, frozenset, is_urgent=is_final_attempt)
                with self._registry.change():
                    waits = {"reason": f"waits: {why}"}
                    self._registry.write(new(queued=True).model_copy(update=waits))
                # The conditions of the planning: failures and jobs ahead may have changed since.
                self._queue.reserve(name, conditions_of(self._registry.get(name), failed, reservations), kept)
                is_freed = self._queue_requests != requests  # after the plan was refused
                if is_freed or not self._queue.is_last(name):  # jobs behind it get new reservations
                    self.try_queue()
            self._lifecycle.changed(name)

        await self._plan_scheduler.run(PlanPriority.SUBMISSION, work)
        return self._registry.get(name)

    async def plan(
        self,
        resolved: ResolvedJob,
        submitter: Submitter,
        without: FailedElements,
        is_hidden: Callable[[str], bool],
    ) -> Plan:
        """The plan that a job would have now, around the elements `without`, if nothing had its name. Raises
        RefusedError, LimitError, and JobExistsError for the name of a job that is hidden from the submitter."""
        name = resolved.file.name
        if is_hidden(name):
            self._check_name(name)

        def ahead() -> list[JobRecord]:
            return [j for j in self._queue.ahead_of_new(resolved, submitter.tenant) if j.name != name]

        async def work(is_final_attempt: bool) -> Plan:
            self._budget.check(submitter)

            async def plan(reservations: list[Placement]) -> Plan:
                with self._budget.spent(submitter):
                    return await self._planning.plan(
                        resolved,
                        frozenset,
                        reservations,
                        is_urgent=is_final_attempt,
                        besides=without,
                        because="it is left out",
                    )

            found, _, kept_free = await self._plan_behind(ahead, resolved, plan, is_urgent=is_final_attempt)
            if isinstance(found, RefusedError):
                raise found
            # A plan counts what links carry. The job would be refused for want of slots or entries, too.
            others = (j for j in self._registry.all() if j.name != name)
            self._registry.reserved(resolved, found, kept_free, others)
            return found

        return await self._plan_scheduler.run(PlanPriority.REPLAN, work)

    def queued(self) -> list[JobRecord]:
        """Queued jobs in the order of the queue."""
        return self._queue.jobs()

    def awaited_ends(self, name: str) -> list[str]:
        """Running jobs whose end lets a queued job fit where capacity is reserved for it; empty if none are known."""
        job, reserved = self._registry.get(name), self._queue.of(name)
        if reserved is None or uses_failed(reserved.plan, self._failures.avoided_by(name), job.excluded):
            return []
        ahead = loads_of(self._queue.reserved(self._queue.ahead_of(name)))
        return [j.name for j in jobs_in_the_way(self._fabric, reserved, ahead, self._registry.all())]

    def on_elements_failed(self, _: ElementsFailed) -> None:
        """Try the queue: reservations on failed elements no longer hold back other jobs."""
        self.try_queue()

    def on_capacity_freed(self, _: CapacityFreed) -> None:
        self.try_queue()

    def try_queue(self) -> None:
        """Start a task that places queued jobs that fit now; it runs once more if it is requested while it runs."""
        self._queue_requests += 1
        self._again = True
        if not self._is_running and self._queue.jobs():
            self._is_running = True
            self._tasks.spawn(self._try_queue(), "the queue")

    async def _try_queue(self) -> None:
        try:
            await self._failures.known.wait()
            while self._again:
                self._again = False
                for job in self._queue.jobs():
                    try:
                        await self._try_or_fail(job.name)
                    except StoreError as error:
                        log.error("the queue is tried again in %g s: %s", STORE_RETRY_S, error)
                        self._again = True
                        await asyncio.sleep(STORE_RETRY_S)
                        break
        finally:
            self._is_running = False

    async def _try_or_fail(self, name: str) -> None:
        """Try to place a queued job, and end it if a defect makes its plan fail. Raises StoreError."""
        try:
            await self._plan_scheduler.run(PlanPriority.QUEUE, functools.partial(self._try_waiting, name))
        except StoreError:
            raise
        except Exception as error:
            log.exception("job %s cannot be tried", name)
            if name in self._registry and not self._registry.get(name).state.is_terminal:
                self._lifecycle.end(name, JobState.FAILED, f"the planner crashed: {error}")

    async def _try_waiting(self, name: str, is_final_attempt: bool) -> None:
        if self._registry.get(name).state is not JobState.QUEUED:
            return
        resolved = self._registry.resolved_job(name)
        ahead = functools.partial(self._queue.ahead_of, name)
        plan = functools.partial(self._fresh_or_reserved, name, resolved, is_urgent=is_final_attempt)
        found, reservations, kept_free = await self._plan_behind(
            ahead, resolved, plan, is_urgent=is_final_attempt
        )
        try:
            if isinstance(found, RefusedError):
                raise found
            job = self._registry.get(name)
            if job.state is JobState.QUEUED:
                with self._registry.change():
                    self._registry.write(self._registry.with_placement(job, resolved, found, kept_free))
                self._lifecycle.changed(name)
        except RefusedError as error:
            job = self._registry.get(name)
            if job.state is JobState.QUEUED:
                reason = f"waits: {_with_queue(error, reservations)}"
                if job.reason != reason:
                    self._lifecycle.commit(job.model_copy(update={"reason": reason}))
                await self._reserve(name, is_urgent=is_final_attempt)

    async def _fresh_or_reserved(
        self, name: str, resolved: ResolvedJob, reservations: list[Placement], *, is_urgent: bool
    ) -> Plan:
        """A new plan, or the reserved one if a heuristic does not find it again. Raises RefusedError."""
        try:
            return await self._planning.plan(
                resolved, self._planning.lost(name), reservations, is_urgent=is_urgent
            )
        except RefusedError:
            current_plan, job = self._queue.of(name), self._registry.get(name)
            if current_plan is None or uses_failed(current_plan.plan, self._failures.avoided, job.excluded):
                raise
            if not self._planning.fits(name, current_plan.plan, reservations):
                raise
            return current_plan.plan

    async def _plan_behind(
        self,
        ahead: Callable[[], list[JobRecord]],
        resolved: ResolvedJob,
        plan: Callable[[list[Placement]], Awaitable[Plan]],
        *,
        is_urgent: bool,
    ) -> tuple[Plan | RefusedError, list[Placement], list[Placement]]:
        """A plan in addition to the reservations of the jobs that are `ahead`, or the reason why there is none; these
        reservations; and those of them that the plan keeps free. Jobs ahead have none after a start, and when their
        conditions change, also during planning. They get theirs first, so that the plan does not take their
        capacity."""
        for _ in range(MAX_ROUNDS):
            for job in self._untried(ahead()):
                await self._reserve(job.name, is_urgent=is_urgent)
            jobs_ahead = ahead()
            reservations = self._queue.reserved(jobs_ahead)
            kept_free = self._kept_free(jobs_ahead, resolved)
            try:
                found = await plan(kept_free)
            except RefusedError as error:
                return error, reservations, kept_free
            if not self._untried(ahead()):
                break
        return found, reservations, kept_free

    def _kept_free(self, ahead: list[JobRecord], resolved: ResolvedJob) -> list[Placement]:
        """The reservations of the jobs that are `ahead`, without those that cannot start before this job has ended."""
        max_s = resolved.file.max_s
        if max_s is None:
            return self._queue.reserved(ahead)
        now = self._now()
        end = now + self._timeouts.install + max_s
        installed = [j for j in self._registry.all() if j.state.is_installed]
        limits = {j.name: self._registry.limit_s(j) for j in installed}
        ends = {name: now + limit for name, limit in limits.items() if limit is not None}
        until = loads_until(installed, ends)
        kept, before = list[Placement](), NO_LOADS
        for reserved in self._queue.reserved(ahead):
            if start_time(self._fabric, reserved, before, until) < end:
                kept.append(reserved)
            before = add_loads(before, reserved.plan.loads)
        return kept

    def _untried(self, jobs: list[JobRecord]) -> list[JobRecord]:
        """The jobs that have no working reservation, and whose search under the present conditions is still to be
        made."""
        return [j for j in jobs if not self._queue.is_tried(j, self._failures.avoided)]

    async def _reserve(self, name: str, *, is_urgent: bool) -> None:
        """Reserve capacity for a queued job, as if only the jobs ahead of it existed. A job that fits nowhere even
        then, and would not fit alone, fails: it may have lost workers."""
        job, resolved = self._registry.get(name), self._registry.resolved_job(name)
        if self._queue.is_current(name, self._queue.conditions(job, self._failures.avoided)):
            return
        before = self._queue.reserved(self._queue.ahead_of(name))
        kept, failed = await self._planning.reservation(
            resolved, self._planning.lost(name), before, is_urgent=is_urgent
        )
        try:
            if kept is None:
                await self._planning.check_possible(resolved, self._planning.lost(name), is_urgent=is_urgent)
        except ImpossibleJobError as error:
            if self._registry.get(name).state is JobState.QUEUED:
                self._lifecycle.end(name, JobState.FAILED, f"it can never run: {error}")
            return
        if name in self._registry and self._registry.get(name).state is JobState.QUEUED:
            held = self._queue.of(name)
            self._queue.reserve(name, conditions_of(job, failed, before), kept)
            if held not in (None, kept) and not self._queue.is_last(name):  # its earlier reservation is free
                self.try_queue()

    def _check_name(self, name: str) -> None:
        if self._registry.has_live(name):
            state = self._registry.get(name).state
            raise JobExistsError(f"job '{name}' is {state}; cancel it or choose another name")


def _with_queue(error: RefusedError, reservations: list[Placement]) -> str:
    """The message of a refusal, with the number of reservations: one of them may be the bottleneck."""
    return (
        f"{error} (capacity is reserved for {len(reservations)} jobs ahead in the queue)"
        if reservations
        else str(error)
    )
