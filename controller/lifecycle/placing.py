# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""When jobs are planned, and what becomes of their plans: repairs before submissions before the queue before jobs that
might gain. What broke or was lost while a plan was made is looked at when it is done."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Protocol

from netfold.controller.jobs.file import JobOrder
from netfold.controller.jobs.records import JobRecord, JobState
from netfold.controller.lifecycle.admission import PlanRequest, RefusedError, background_of, hit
from netfold.controller.lifecycle.book import Book, UnknownJobError
from netfold.controller.lifecycle.states import Lifecycle
from netfold.controller.lifecycle.tasks import Tasks
from netfold.controller.lifecycle.turns import Turns, Urgency
from netfold.controller.planning.plan import Plan
from netfold.controller.switches.desired import Broken

log = logging.getLogger(__name__)

WORTH_MOVING = 1.05
"""What a job has to gain before `replan` moves it."""

MOST_PLANS = 5
"""So often a job is planned anew because something broke meanwhile."""


class JobExistsError(Exception):
    """A job of that name is not over yet."""


class Plans(Protocol):
    """Where plans are made, outside the event loop."""

    async def plan(self, request: PlanRequest) -> Plan:
        """Raises RefusedError. Canceled, it stops the work."""


class Planner:
    """Everything that places jobs goes through here, in turns; so what a plan was made for changes meanwhile by what
    breaks, is lost or ends only. `broken` tells what does not work now."""

    def __init__(
        self, book: Book, lifecycle: Lifecycle, plans: Plans, tasks: Tasks, broken: Callable[[], Broken]
    ) -> None:
        self._book = book
        self._lifecycle = lifecycle
        self._plans = plans
        self._tasks = tasks
        self._broken = broken
        self._turns = Turns()

    async def submit(self, order: JobOrder, *, queue: bool) -> JobRecord:
        """Raises JobExistsError, and RefusedError unless the job may wait."""

        async def work() -> None:
            self._check_name(order.file.name)
            try:
                plan = await self._plan(order, frozenset)
                with self._book.change():
                    self._book.write(self._book.placed(self._book.new(order), order, plan))
            except RefusedError as error:
                if not queue:
                    raise
                with self._book.change():
                    self._book.write(self._book.new(order).model_copy(update={"reason": f"waits: {error}"}))
            self._lifecycle.changed(order.file.name)

        await self._turns.take(Urgency.SUBMISSION, work)
        return self._book.get(order.file.name)

    def repair(self, name: str, why: str, *, fail: bool = True) -> None:
        """Move an installed job off what is broken or lost, soon. Without another plan it ends, if `fail`."""

        def broke(error: Exception) -> None:
            self._lifecycle.end(name, JobState.FAILED, f"{why}, and the planner broke: {error}")

        self._tasks.spawn(self._repair(name, why, fail=fail), f"repair of job {name}", broke)

    async def replan(self, name: str) -> bool:
        """Move a running job that gains enough, or that uses what is broken. Raises UnknownJobError."""

        async def work() -> bool:
            job = self._book.get(name)
            if job.state is not JobState.RUNNING or job.placement is None:
                return False
            better = 0.0 if self._lifecycle.hit(job) else WORTH_MOVING * job.placement.plan.rate
            try:
                return await self._move(job, "replanned", better)
            except RefusedError as error:
                log.info("job %s stays where it is: %s", name, error)
                return False

        return await self._turns.take(Urgency.REPLAN, work)

    def try_queue(self) -> None:
        """Place waiting jobs that fit now, soon: higher priority first, then older first."""
        if any(j.state is JobState.QUEUED for j in self._book.all()):
            self._tasks.spawn(self._try_queue(), "the queue")

    # ---- in their turns ---------------------------------------------------------------------------------

    async def _repair(self, name: str, why: str, *, fail: bool) -> None:
        async def work() -> None:
            job = self._book.get(name)
            if not job.state.installed or not self._lifecycle.hit(job):
                return  # it is over, or an earlier move has seen to it
            try:
                await self._move(job, why, 0.0)
            except RefusedError as error:
                log.warning("job %s: %s, and cannot move: %s", name, why, error)
                if fail:
                    self._lifecycle.end(name, JobState.FAILED, f"{why}, and there is no other plan: {error}")

        try:
            await self._turns.take(Urgency.REPAIR, work)
        except UnknownJobError:
            log.debug("job %s is forgotten", name)

    async def _move(self, job: JobRecord, why: str, least: float) -> bool:
        """Plan an installed job again and move it by a new epoch, if the plan's rate is `least` or more. Raises
        RefusedError."""
        order = self._book.order(job.name)
        plan = await self._plan(order, lambda: frozenset(self._book.get(order.file.name).lost))
        job = self._book.get(job.name)
        if plan.rate < least or not job.state.installed:
            return False
        with self._book.change():
            moved = self._book.placed(job, order, plan)
            update = {"previous": job.previous or job.placement, "reason": why}
            self._book.write(moved.model_copy(update=update))
        self._lifecycle.changed(job.name)
        return True

    async def _try_queue(self) -> None:
        waiting = [j for j in self._book.all() if j.state is JobState.QUEUED]
        for job in sorted(waiting, key=lambda j: (-self._book.order(j.name).file.priority, j.seq)):
            await self._turns.take(Urgency.QUEUE, functools.partial(self._try_waiting, job.name))

    async def _try_waiting(self, name: str) -> None:
        if self._book.get(name).state is not JobState.QUEUED:
            return
        order = self._book.order(name)
        try:
            plan = await self._plan(order, lambda: frozenset(self._book.get(name).lost))
            job = self._book.get(name)
            if job.state is JobState.QUEUED:
                with self._book.change():
                    self._book.write(self._book.placed(job, order, plan))
                self._lifecycle.changed(name)
        except RefusedError as error:
            job = self._book.get(name)
            if job.state is JobState.QUEUED:
                self._lifecycle.commit(job.model_copy(update={"reason": f"waits: {error}"}))

    # ---- plans ------------------------------------------------------------------------------------------

    async def _plan(self, order: JobOrder, lost: Callable[[], frozenset[str]]) -> Plan:
        """A plan over what works when it is done. Raises RefusedError."""
        others = [j for j in self._book.all() if j.name != order.file.name]
        for _ in range(MOST_PLANS):
            request = PlanRequest(order, background_of(others), self._broken(), lost())
            plan = await self._plans.plan(request)
            if not hit(plan, self._broken(), lost()):
                return plan
        raise RefusedError(
            f"something on the way of job '{order.file.name}' broke {MOST_PLANS} times while it was planned"
        )

    def _check_name(self, name: str) -> None:
        if self._book.has_live(name):
            state = self._book.get(name).state
            raise JobExistsError(f"job '{name}' is {state}; cancel it or choose another name")
