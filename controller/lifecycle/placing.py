# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""When jobs are planned, and what becomes of their plans: repairs before submissions before the queue before jobs that
might gain. How they are asked for, and that they still hold when they are done, is drafts.py."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from netfold.controller.jobs.file import JobOrder
from netfold.controller.jobs.records import JobRecord, JobState, Placement
from netfold.controller.lifecycle.admission import RefusedError, hit
from netfold.controller.lifecycle.book import Book, UnknownJobError
from netfold.controller.lifecycle.drafts import Drafts, Plans
from netfold.controller.lifecycle.patience import Patience
from netfold.controller.lifecycle.states import Lifecycle
from netfold.controller.lifecycle.tasks import Tasks
from netfold.controller.lifecycle.turns import Turns, Urgency
from netfold.controller.lifecycle.waiting import Waiting
from netfold.controller.planning.network import NOTHING
from netfold.controller.planning.plan import Loads, Plan
from netfold.controller.switches.desired import Broken
from netfold.topologies.fabric import Fabric

log = logging.getLogger(__name__)

WORTH_MOVING = 1.05
"""What a job has to gain before `replan` moves it."""


class JobExistsError(Exception):
    """A job of that name is not over yet."""


@dataclass(frozen=True)
class _Repair:
    """Asked for and not done. `fail`: the job ends where there is no other plan."""

    why: str
    fail: bool


class Planner:
    """Everything that places jobs goes through here, in turns; so what a plan was made for changes meanwhile only by
    what breaks, is lost or ends. `broken` tells what does not work now, `foreign` what others send."""

    def __init__(
        self,
        fabric: Fabric,
        book: Book,
        lifecycle: Lifecycle,
        plans: Plans,
        tasks: Tasks,
        patience: Patience,
        broken: Callable[[], Broken],
        foreign: Callable[[], Loads],
    ) -> None:
        self._book = book
        self._lifecycle = lifecycle
        self._tasks = tasks
        self._broken = broken
        self._drafts = Drafts(fabric, book, plans, patience, broken, foreign)
        self._turns = Turns()
        self._repairs: dict[str, _Repair] = {}
        self._admitting: set[str] = set()
        self._waiting = Waiting(book)
        self._again = False
        self._trying = False

    async def submit(self, order: JobOrder, *, queue: bool) -> JobRecord:
        """Raises JobExistsError, and RefusedError unless the job may wait."""
        name = order.file.name

        async def work(last: bool) -> None:
            self._check_name(name)
            standing = self._waiting.before((-order.file.priority, float("inf")))
            try:
                plan = await self._drafts.plan(order, frozenset, standing, soon=last)
                with self._book.change():
                    self._book.write(self._book.placed(self._book.new(order), order, plan, standing))
            except RefusedError as error:
                why = _with_queue(error, standing)
                if not queue:
                    raise RefusedError(why) from error
                kept = await self._drafts.reservation(order, frozenset, standing, soon=last)
                with self._book.change():
                    waits = {"reason": f"waits: {why}"}
                    self._book.write(self._book.new(order).model_copy(update=waits))
                self._waiting.reserve(name, self._waiting.known(self._book.get(name), self._broken()), kept)
            self._lifecycle.changed(name)

        await self._turns.take(Urgency.SUBMISSION, work)
        return self._book.get(name)

    def repair(self, name: str, why: str, *, fail: bool = True) -> None:
        """Move an installed job off what is broken or lost, soon. Without another plan it ends, if `fail`. A job that
        waits for its repair already is not asked for again, so that they do not pile up behind a slow planner."""

        def broke(error: Exception) -> None:
            self._lifecycle.end(name, JobState.FAILED, f"{why}, and the planner broke: {error}")

        waits = self._repairs.get(name)
        self._repairs[name] = _Repair(why, fail or (waits is not None and waits.fail))
        if waits is None:
            self._tasks.spawn(self._repair(name), f"repair of job {name}", broke)

    def admit(self, name: str) -> None:
        """Move an installed job, soon, to where those are in who have come (back)."""

        def broke(error: Exception) -> None:
            log.error("job %s: its new workers cannot be planned in: %s", name, error)

        if name not in self._admitting:
            self._admitting.add(name)
            self._tasks.spawn(self._admit(name), f"new workers of job {name}", broke)

    async def replan(self, name: str) -> bool:
        """Move a running job that gains enough, or that uses what is broken. Raises UnknownJobError."""

        async def work(last: bool) -> bool:
            job = self._book.get(name)
            if job.state is not JobState.RUNNING or job.placement is None:
                return False
            better = 0.0 if self._lifecycle.hit(job) else WORTH_MOVING * job.placement.plan.rate
            return await self._gain(job, "replanned", better, soon=last)

        return await self._turns.take(Urgency.REPLAN, work)

    async def reroute(self, name: str, why: str, least: float, taken: Loads) -> bool:
        """Move a running job to where its rate is `least` or more beside what others send now, or would take of some
        links, if there is such a place. Raises UnknownJobError."""

        async def work(_: bool) -> bool:
            job = self._book.get(name)
            if job.state is not JobState.RUNNING or self._lifecycle.hit(job):
                return False  # whatever else moves it comes first
            return await self._gain(job, why, least, soon=True, taken=taken)

        return await self._turns.take(Urgency.REROUTE, work)

    async def _gain(
        self, job: JobRecord, why: str, least: float, *, soon: bool, taken: Loads = NOTHING
    ) -> bool:
        try:
            return await self._move(job, why, least, self._waiting.all(), soon=soon, gain=True, taken=taken)
        except RefusedError as error:
            log.info("job %s stays where it is: %s", job.name, error)
            return False

    def try_queue(self) -> None:
        """Place waiting jobs that fit now, soon; once more if it is asked for meanwhile."""
        self._again = True
        if not self._trying and self._waiting.jobs():
            self._trying = True
            self._tasks.spawn(self._try_queue(), "the queue")

    # ---- in their turns ---------------------------------------------------------------------------------

    async def _repair(self, name: str) -> None:
        def met() -> tuple[object, ...]:
            return self._broken(), self._book.get(name).lost

        async def work(_: bool) -> None:
            asked, again = self._repairs[name], False
            try:
                job, before = self._book.get(name), met()
                if not job.state.installed or not self._lifecycle.hit(job):
                    return  # it is over, or an earlier move has seen to it
                await self._move(job, asked.why, 0.0, (), soon=True)
            except RefusedError as error:
                latest = self._repairs[name]  # somebody may have asked meanwhile
                again = latest is not asked and met() != before
                log.warning("job %s: %s, and cannot move: %s", name, latest.why, error)
                if (asked.fail or (latest.fail and not again)) and self._lifecycle.hit(self._book.get(name)):
                    why = f"{latest.why}, and there is no other plan: {error}"
                    self._lifecycle.end(name, JobState.FAILED, why)
            finally:
                latest = self._repairs.pop(name)
            if again:
                self.repair(name, latest.why, fail=latest.fail)

        try:
            await self._turns.take(Urgency.REPAIR, work)
        except UnknownJobError:
            log.debug("job %s is forgotten", name)

    async def _admit(self, name: str) -> None:
        async def work(_: bool) -> None:
            job = self._book.get(name)
            self._admitting.discard(name)  # who comes from here on is planned in the next time
            come = frozenset(job.returning)
            if not job.state.installed or not come:
                return
            try:
                why = f"{', '.join(sorted(come))} joined"
                await self._move(job, why, 0.0, (), soon=True, come=come)
            except RefusedError as error:
                job = self._book.get(name).no_longer_returning(come)
                why = f"there is no place for {', '.join(sorted(come))}: {error}"
                log.warning("job %s: %s", name, why)
                self._lifecycle.commit(job.model_copy(update={"reason": why}))

        try:
            await self._turns.take(Urgency.REPAIR, work)
        except UnknownJobError:
            log.debug("job %s is forgotten", name)
        finally:
            self._admitting.discard(name)

    async def _move(
        self,
        job: JobRecord,
        why: str,
        least: float,
        standing: Iterable[Placement],
        *,
        soon: bool,
        gain: bool = False,
        come: frozenset[str] = frozenset(),
        taken: Loads = NOTHING,
    ) -> bool:
        """Plan an installed job again and move it by a new epoch, if the plan's rate is `least` or more. With `gain` it
        may stay as well, so only the rate beside others' loads counts. Those who have `come` are in. Raises
        RefusedError."""
        order, before = self._book.order(job.name), job
        held = job.placement.plan if gain and job.placement is not None else None
        lost = self._lost(job.name, come)
        plan = await self._drafts.plan(order, lost, standing, soon=soon, held=held, taken=taken)
        job = self._book.get(job.name)
        if not come <= set(job.returning):  # one of them has gone again; the others are planned in without it
            self.admit(job.name)
            return False
        if plan.rate < least or not job.state.installed or (gain and job.epoch != before.epoch):
            return False
        with self._book.change():
            moved = _with(self._book.placed(job, order, plan, standing), come)
            update = {"previous": job.previous or job.placement, "reason": why}
            self._book.write(moved.model_copy(update=update))
        self._lifecycle.changed(job.name)
        return True

    async def _try_queue(self) -> None:
        try:
            while self._again:
                self._again = False
                for job in self._waiting.jobs():
                    try:
                        await self._turns.take(Urgency.QUEUE, functools.partial(self._try_waiting, job.name))
                    except Exception as error:
                        log.exception("job %s cannot be tried", job.name)
                        if job.name in self._book and not self._book.get(job.name).state.over:
                            self._lifecycle.end(job.name, JobState.FAILED, f"the planner broke: {error}")
        finally:
            self._trying = False

    async def _try_waiting(self, name: str, last: bool) -> None:
        if self._book.get(name).state is not JobState.QUEUED:
            return
        order = self._book.order(name)
        standing = self._waiting.before(self._waiting.rank(self._book.get(name)))
        try:
            plan = await self._fresh_or_reserved(name, order, standing, soon=last)
            job = self._book.get(name)
            if job.state is JobState.QUEUED:
                with self._book.change():
                    self._book.write(self._book.placed(job, order, plan, standing))
                self._lifecycle.changed(name)
        except RefusedError as error:
            job = self._book.get(name)
            if job.state is JobState.QUEUED:
                reason = f"waits: {_with_queue(error, standing)}"
                if job.reason != reason:
                    self._lifecycle.commit(job.model_copy(update={"reason": reason}))
                await self._reserve(name, soon=last)

    async def _fresh_or_reserved(
        self, name: str, order: JobOrder, standing: list[Placement], *, soon: bool
    ) -> Plan:
        """A new plan, or the reserved one where a heuristic does not find what was kept free. Raises RefusedError."""
        try:
            return await self._drafts.plan(order, self._lost(name), standing, soon=soon)
        except RefusedError:
            held, job = self._waiting.of(name), self._book.get(name)
            if held is None or hit(held.plan, self._broken(), job.lost):
                raise
            if not self._drafts.fits(name, held.plan, standing):
                raise
            return held.plan

    async def _reserve(self, name: str, *, soon: bool) -> None:
        """Keep room for a waiting job, as if nothing ran but those before it in the queue."""
        job, order = self._book.get(name), self._book.order(name)
        known = self._waiting.known(job, self._broken())
        if self._waiting.is_current(name, known):
            return
        before = self._waiting.before(self._waiting.rank(job))
        kept = await self._drafts.reservation(order, self._lost(name), before, soon=soon)
        if name in self._book and self._book.get(name).state is JobState.QUEUED:
            self._waiting.reserve(name, known, kept)

    def _lost(self, name: str, come: frozenset[str] = frozenset()) -> Callable[[], frozenset[str]]:
        return lambda: frozenset(self._book.get(name).lost) - come

    def _check_name(self, name: str) -> None:
        if self._book.has_live(name):
            state = self._book.get(name).state
            raise JobExistsError(f"job '{name}' is {state}; cancel it or choose another name")


def _with(job: JobRecord, come: frozenset[str]) -> JobRecord:
    """The job when these are in."""
    lost = tuple(h for h in job.lost if h not in come)
    changes = {"lost": lost, "newcomers": job.newcomers or bool(come)}
    return job.no_longer_returning(come).model_copy(update=changes)


def _with_queue(error: RefusedError, standing: list[Placement]) -> str:
    """What is in the way may be what is kept for others."""
    return f"{error} (room is kept for {len(standing)} jobs before it)" if standing else str(error)
