# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Requests plans that are valid when they arrive: around the failures, withdrawals and lost members of that moment, in
addition to running jobs and reservations, within a deadline."""

from __future__ import annotations

import functools
import logging
import math
from collections.abc import Callable, Iterable
from typing import Protocol

from netfold.controller.jobs.file import Reroute, ResolvedJob
from netfold.controller.jobs.records import JobRecord, Placement
from netfold.controller.lifecycle.capacity import (
    ImpossibleJobError,
    RefusedError,
    background_of,
    fits,
    uses_failed,
)
from netfold.controller.lifecycle.controller_state import ControllerState
from netfold.controller.planning.plan import Loads, Plan
from netfold.controller.planning.residual_network import NO_LOADS
from netfold.controller.planning.validate import add_loads, either_load
from netfold.controller.scheduling.job_planner import PlanRequest
from netfold.controller.switches.deadline import Deadline
from netfold.controller.switches.failed_elements import NO_ELEMENTS, FailedElements

log = logging.getLogger(__name__)

DEFAULT_TIME_LIMIT_S = 10.0
REPAIR_TIME_LIMIT_S = 2.0
"""Time limit of solvers for urgent plans: a job that stands still takes the best plan found within it."""


NOT_TAKEN = "it did not take the entries of the job"


class PlanTimeoutError(RefusedError):
    """No plan was found in time, although there may be one."""


class PlanBackend(Protocol):
    """Computes plans outside the event loop."""

    async def plan(self, request: PlanRequest) -> Plan:
        """Compute a plan; a cancellation stops the work. Raises RefusedError; any other exception is a defect."""


class PlanningClient:
    """Requests plans from `plans`: around failures and the cross traffic that `cross_traffic` returns, within the
    deadlines of the timeouts. `failure_cause` returns the reason why a switch is down, for refusals."""

    def __init__(
        self,
        state: ControllerState,
        plans: PlanBackend,
        cross_traffic: Callable[[], Loads],
        failure_cause: Callable[[str], str],
    ) -> None:
        self._fabric = state.fabric
        self._registry = state.registry
        self._timeouts = state.timeouts
        self._failures = state.failures
        self._plans = plans
        self._cross_traffic = cross_traffic
        self._failure_cause = failure_cause

    async def plan(
        self,
        resolved: ResolvedJob,
        lost: Callable[[], frozenset[str]],
        reservations: Iterable[Placement],
        *,
        is_urgent: bool,
        current_plan: Plan | None = None,
        assumed_loads: Loads = NO_LOADS,
        besides: FailedElements = NO_ELEMENTS,
        because: str = NOT_TAKEN,
        may_use: Callable[[], FailedElements] = FailedElements,
    ) -> Plan:
        """A plan on the capacity that running jobs, reservations and cross traffic leave; the plan of a job with
        `reroute: off` ignores cross traffic. `assumed_loads` replaces the measured cross traffic of its links. It
        avoids further elements (`besides`), `because` they have not taken the job, and `may_use` these elements, at the
        time of the call, if they are only withdrawn. Raises RefusedError."""
        background = self._background(resolved.file.name, reservations)
        cross_traffic = NO_LOADS
        if resolved.file.reroute is not Reroute.OFF:
            cross_traffic = Loads(links={**self._cross_traffic().links, **assumed_loads.links})
        found, _ = await self._planned(
            resolved,
            lost,
            background,
            is_urgent=is_urgent,
            cross_traffic=cross_traffic,
            current_plan=current_plan,
            besides=besides,
            because=because,
            may_use=may_use,
        )
        return _found(found)

    def lost(self, name: str, joining: frozenset[str] = frozenset()) -> Callable[[], frozenset[str]]:
        """A function that returns the lost members of the job at the time of the call, without `joining`."""
        return lambda: frozenset(self._registry.get(name).excluded) - joining

    def fits(self, name: str, plan: Plan, reservations: Iterable[Placement]) -> bool:
        """Whether an earlier plan of the job fits in addition to running jobs and reservations."""
        return fits(self._fabric, plan, self._background(name, reservations))

    async def reservation(
        self,
        resolved: ResolvedJob,
        lost: Callable[[], frozenset[str]],
        before: list[Placement],
        *,
        is_urgent: bool,
    ) -> tuple[Placement | None, FailedElements]:
        """The job's placement if only the reservations `before` it existed, or None if it fits nowhere; and the
        elements that plans avoided when it was planned or refused."""
        found, failed = await self._planned(resolved, lost, loads_of(before), is_urgent=is_urgent)
        try:
            return self._registry.reserved(resolved, _found(found), before), failed
        except RefusedError as error:
            log.info("nothing is reserved for job %s: %s", resolved.file.name, error)
            return None, failed

    async def check_possible(
        self, resolved: ResolvedJob, lost: Callable[[], frozenset[str]], *, is_urgent: bool
    ) -> None:
        """Raises ImpossibleJobError if the job has no plan on the whole fabric without other jobs and failures. A plan
        that is not found in time may exist."""
        try:
            found, _ = await self._planned(resolved, lost, NO_LOADS, is_urgent=is_urgent, avoids_failed=False)
            self._registry.reserved(resolved, _found(found), ())
        except PlanTimeoutError:
            return
        except RefusedError as error:
            raise ImpossibleJobError(f"{error}; it would not fit on an empty fabric either") from error

    async def _planned(
        self,
        resolved: ResolvedJob,
        lost: Callable[[], frozenset[str]],
        background: Loads,
        *,
        is_urgent: bool,
        cross_traffic: Loads = NO_LOADS,
        current_plan: Plan | None = None,
        avoids_failed: bool = True,
        besides: FailedElements = NO_ELEMENTS,
        because: str = NOT_TAKEN,
        may_use: Callable[[], FailedElements] = FailedElements,
    ) -> tuple[Plan | RefusedError, FailedElements]:
        """A plan that is valid when it arrives, or the reason why there is none; and the elements that plans avoided
        when the last one was requested. After a failure, a withdrawal or a loss during planning another plan is
        requested, all within one deadline."""

        def avoided_now() -> FailedElements:
            name = resolved.file.name
            return self._failures.avoided_by(name, may_use()) | besides if avoids_failed else NO_ELEMENTS

        def without_now(avoided: FailedElements) -> frozenset[str]:
            return lost() | avoided.switches.intersection(resolved.parameter_servers)

        seconds, time_limit = self._deadline(resolved, is_urgent=is_urgent)
        failed = self._failures.avoided
        try:
            async with Deadline(seconds):
                while True:
                    failed, avoided = self._failures.avoided, avoided_now()
                    trees, enough = (
                        ((), math.inf) if current_plan is None else (current_plan.trees, current_plan.rate)
                    )
                    causes = {m.link: str(m) for m in self._failures.miscablings}
                    causes |= dict.fromkeys(self._failures.withdrawn.names, "withdrawn")
                    causes |= dict.fromkeys(besides.switches, because)
                    down = self._failures.of(resolved.file.name).switches
                    causes |= {s: self._failure_cause(s) for s in avoided.switches & down}
                    request = PlanRequest(
                        resolved,
                        background,
                        cross_traffic,
                        trees,
                        enough,
                        avoided,
                        without_now(avoided),
                        seconds,
                        time_limit,
                        causes,
                    )
                    plan = await self._plans.plan(request)
                    if not uses_failed(plan, avoided_now(), lost()):
                        return plan, failed
        except RefusedError as error:
            return error, failed
        except TimeoutError:
            why = (
                f"no plan of job '{resolved.file.name}' was found within {seconds:g} s; name a simpler scheme"
            )
            return PlanTimeoutError(why), failed

    def _deadline(self, resolved: ResolvedJob, *, is_urgent: bool) -> tuple[float, float]:
        """Deadline of a planning task and time limit of a solver, in seconds. `is_urgent`: a repair or an operator may
        wait for the task."""
        if is_urgent:
            return self._timeouts.repair, REPAIR_TIME_LIMIT_S
        own = resolved.file.options.get("time_limit", DEFAULT_TIME_LIMIT_S)
        limit = float(own) if isinstance(own, int | float) else DEFAULT_TIME_LIMIT_S
        return self._timeouts.plan + limit, limit

    def _background(self, name: str, reservations: Iterable[Placement]) -> Loads:
        running = functools.reduce(
            add_loads, (self._held(j) for j in self._registry.all() if j.name != name), NO_LOADS
        )
        return add_loads(running, loads_of(reservations))

    def _held(self, job: JobRecord) -> Loads:
        """The loads of a job. While it migrates, they include its previous placement as long as it may roll back to
        it."""
        held, previous = background_of([job]), job.previous
        if previous is None or not job.state.is_installed:
            return held
        if uses_failed(previous.plan, self._failures.failed, job.excluded):
            return held
        return either_load(held, previous.plan.loads)


def _found(plan: Plan | RefusedError) -> Plan:
    """The plan that was found. Raises RefusedError if there is none."""
    if isinstance(plan, RefusedError):
        raise plan
    return plan


def loads_of(placements: Iterable[Placement]) -> Loads:
    return functools.reduce(add_loads, (p.plan.loads for p in placements), Loads())
