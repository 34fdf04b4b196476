# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Plans that still hold when they are done: over what works then, without who is lost then, beside what runs and what
is kept for others, within a deadline."""

from __future__ import annotations

import asyncio
import functools
import logging
import math
from collections.abc import Callable, Iterable
from typing import Protocol

from netfold.controller.jobs.file import JobOrder, Reroute
from netfold.controller.jobs.records import Placement
from netfold.controller.lifecycle.admission import PlanRequest, RefusedError, background_of, fits, hit
from netfold.controller.lifecycle.book import Book
from netfold.controller.lifecycle.patience import Patience
from netfold.controller.planning.network import NOTHING
from netfold.controller.planning.plan import Loads, Plan
from netfold.controller.planning.validate import add_loads
from netfold.controller.switches.desired import Broken
from netfold.topologies.fabric import Fabric

log = logging.getLogger(__name__)

DEFAULT_TIME_LIMIT_S = 10.0
REPAIR_TIME_LIMIT_S = 2.0
"""Of solvers that have one: a job that stands still takes the best of so long."""


class Plans(Protocol):
    """Where plans are made, outside the event loop."""

    async def plan(self, request: PlanRequest) -> Plan:
        """Raises RefusedError; anything else is a defect. Canceled, it stops the work."""


class Drafts:
    """`plans` makes them; `broken` tells what does not work now, `foreign` what others send."""

    def __init__(
        self,
        fabric: Fabric,
        book: Book,
        plans: Plans,
        patience: Patience,
        broken: Callable[[], Broken],
        foreign: Callable[[], Loads],
    ) -> None:
        self._fabric = fabric
        self._book = book
        self._plans = plans
        self._patience = patience
        self._broken = broken
        self._foreign = foreign

    async def plan(
        self,
        order: JobOrder,
        lost: Callable[[], frozenset[str]],
        standing: Iterable[Placement],
        *,
        soon: bool,
        held: Plan | None = None,
        taken: Loads = NOTHING,
    ) -> Plan:
        """A plan on what runs, what is reserved, and what others send, or would take of the links in `taken` (unless
        the job is to stay where it is whatever they do). Raises RefusedError."""
        background = self._background(order.file.name, standing)
        foreign = NOTHING
        if order.file.reroute is not Reroute.OFF:
            foreign = Loads(links={**self._foreign().links, **taken.links})
        return await self._planned(order, lost, background, soon=soon, foreign=foreign, held=held)

    def fits(self, name: str, plan: Plan, standing: Iterable[Placement]) -> bool:
        """An earlier plan of the job has its room beside what runs and what is reserved."""
        return fits(self._fabric, plan, self._background(name, standing))

    async def reservation(
        self, order: JobOrder, lost: Callable[[], frozenset[str]], before: list[Placement], *, soon: bool
    ) -> Placement | None:
        """Where a job would be if only those before it ran; None: nowhere."""
        try:
            plan = await self._planned(order, lost, _loads(before), soon=soon)
            return self._book.reserved(order, plan, before)
        except RefusedError as error:
            log.info("nothing is reserved for job %s: %s", order.file.name, error)
            return None

    async def _planned(
        self,
        order: JobOrder,
        lost: Callable[[], frozenset[str]],
        background: Loads,
        *,
        soon: bool,
        foreign: Loads = NOTHING,
        held: Plan | None = None,
    ) -> Plan:
        """A plan over what works when it is done; if something broke or was lost meanwhile, another, all within one
        deadline. Raises RefusedError."""
        seconds, time_limit = self._deadline(order, soon=soon)
        try:
            async with asyncio.timeout(seconds):
                while True:
                    broken, without = self._broken(), lost()
                    trees, enough = ((), math.inf) if held is None else (held.trees, held.rate)
                    request = PlanRequest(
                        order, background, foreign, trees, enough, broken, without, seconds, time_limit
                    )
                    plan = await self._plans.plan(request)
                    if not hit(plan, self._broken(), lost()):
                        return plan
        except TimeoutError:
            raise RefusedError(
                f"no plan of job '{order.file.name}' was found within {seconds:g} s; name a simpler scheme"
            ) from None

    def _deadline(self, order: JobOrder, *, soon: bool) -> tuple[float, float]:
        """Seconds for all, and of them for a solver that has a time limit. `soon`: it is a repair, or one may wait for
        it."""
        if soon:
            return self._patience.repair, REPAIR_TIME_LIMIT_S
        own = order.file.options.get("time_limit", DEFAULT_TIME_LIMIT_S)
        limit = float(own) if isinstance(own, int | float) else DEFAULT_TIME_LIMIT_S
        return self._patience.plan + limit, limit

    def _background(self, name: str, standing: Iterable[Placement]) -> Loads:
        running = background_of(j for j in self._book.all() if j.name != name)
        return add_loads(running, _loads(standing))


def _loads(placements: Iterable[Placement]) -> Loads:
    return functools.reduce(add_loads, (p.plan.loads for p in placements), Loads())
