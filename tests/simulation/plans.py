# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The plan process: real plans after a delay. It can crash, and be slow."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from netfold.controller.lifecycle.capacity import RefusedError
from netfold.controller.planning.plan import Loads, Plan
from netfold.controller.scheduling.job_planner import PlanRequest, plan_job
from netfold.controller.scheduling.plan_process import PlannerCrashedError
from netfold.topologies.fabric import Fabric
from tests.simulation.faults import Draws
from tests.simulation.process import Process

BUSY_S = 40.0
"""Twice as long as a repair may take."""


class SimulatedPlans:
    """See PlanBackend. `is_busy`: plans take up to BUSY_S. `crashes`: of the next plans, how many the process does not
    survive. `requests`: by job, all so far."""

    def __init__(self, fabric: Fabric, draws: Draws, *, is_slow: bool = False) -> None:
        self.is_slow = is_slow
        self.fabric = fabric
        self._durations_s = (1.0, 3.0) if is_slow else (0.01, 0.05, 0.2, 1.0, 3.0)
        self._draws = draws
        self.crashes = 0
        self.is_busy = False
        self.requests: Counter[str] = Counter()
        self._under_way = 0
        self._ended_at = 0.0

    def of(self, process: Process) -> _Backend:
        return _Backend(self, process)

    @property
    def idle_s(self) -> float:
        """Since when it has nothing to do, and could have."""
        return 0.0 if self._under_way else asyncio.get_running_loop().time() - self._ended_at

    def note_held(self) -> None:
        """The controller waits for its store, as in a commit of many transactions, and can request no plan."""
        self._ended_at = asyncio.get_running_loop().time()

    @contextmanager
    def counted(self, job: str) -> Iterator[None]:
        self.requests[job] += 1
        self._under_way += 1
        try:
            yield
        finally:
            self._under_way -= 1
            self._ended_at = asyncio.get_running_loop().time()

    def compute(self, request: PlanRequest) -> Plan:
        """Raises RefusedError."""
        plan = cached_plan(self.fabric, request)
        if isinstance(plan, str):
            raise RefusedError(plan)
        return plan


class _Backend:
    def __init__(self, plans: SimulatedPlans, process: Process) -> None:
        self._plans = plans
        self._process = process

    async def plan(self, request: PlanRequest) -> Plan:
        self._process.check()
        draws = self._plans._draws
        lasts = draws.of("plan").choice(self._plans._durations_s)
        if self._plans.is_busy:
            lasts += draws.of("busy plan").uniform(0, BUSY_S)
        with self._plans.counted(request.resolved_job.file.name):
            await asyncio.sleep(0.02 if draws.is_calm else lasts)
        if self._plans.crashes:
            self._plans.crashes -= 1
            raise PlannerCrashedError("its process ended")
        return self._plans.compute(request)


_CACHE: dict[object, Plan | str] = {}
MAX_CACHED = 20_000


def cached_plan(fabric: Fabric, request: PlanRequest) -> Plan | str:
    """The plan, or why there is none. Runs repeat most requests."""
    key = (
        fabric,
        request.resolved_job.text,
        request.resolved_job.workers,
        _frozen(request.background),
        _frozen(request.cross_traffic),
        request.current_trees,
        request.sufficient_rate,
        request.failed,
        request.excluded_members,
    )
    if key not in _CACHE:
        if len(_CACHE) > MAX_CACHED:
            _CACHE.clear()
        try:
            _CACHE[key] = plan_job(fabric, request)
        except RefusedError as error:
            _CACHE[key] = str(error)
    return _CACHE[key]


def forget_plans() -> None:
    _CACHE.clear()


def _frozen(loads: Loads) -> object:
    return tuple(
        tuple(sorted(part.items())) for part in (loads.links, loads.switches, loads.servers, loads.loopbacks)
    )
