# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Moves jobs because of cross traffic, one at a time: the part of R-InArt that is not planning. link_room.py measures,
reroute_policy.py decides."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

from netfold.controller.health.link_loads import MAX_SHARE, Link
from netfold.controller.health.link_room import MIN_KEPT_FRACTION, LinkRoom
from netfold.controller.health.reroute_policy import MIN_GAIN, RerouteState
from netfold.controller.jobs.file import JobFile, Reroute
from netfold.controller.jobs.records import JobState
from netfold.controller.lifecycle.job_registry import JobRegistry, UnknownJobError
from netfold.controller.planning.plan import Loads
from netfold.controller.planning.residual_network import NO_LOADS
from netfold.topologies.fabric import Fabric

log = logging.getLogger(__name__)

REROUTE_PERIOD_S = 0.25
"""Seconds between decisions, which depend on how long a load lasts; one job is planned in each."""


class Mover(Protocol):
    async def reroute(self, name: str, why: str, min_rate: float, assumed_loads: Loads) -> bool:
        """Plan a job again around the cross traffic (`assumed_loads` on the links that it has), and move it if its rate
        is `min_rate` or more. Raises UnknownJobError."""


class Rerouter:
    """Reroutes jobs: `step` decides at one moment; `run` repeats it until it is canceled."""

    def __init__(
        self,
        fabric: Fabric,
        registry: JobRegistry,
        room: LinkRoom,
        mover: Mover,
        now: Callable[[], float] = time.monotonic,
        period_s: float = REROUTE_PERIOD_S,
    ) -> None:
        self._fabric = fabric
        self._registry = registry
        self._room = room
        self._mover = mover
        self._now = now
        self._period_s = period_s
        self._states: dict[str, RerouteState] = {}
        self._freed_at = -math.inf

    async def run(self) -> None:
        while True:
            await self.step()
            await asyncio.sleep(self._period_s)

    async def step(self) -> None:
        """Plan a job again. Of the jobs with a reason it is the one that was tried least recently, then the one that
        keeps the smallest fraction of its reserved rate."""
        now = self._now()
        cross_traffic = self._room.cross_traffic().links
        self._update_states(cross_traffic, now)
        kept = self._room.kept_fractions(cross_traffic)
        for name in sorted(self._states, key=lambda n: (self._states[n].tried_at, kept[n])):
            if self._job_file(name).reroute is Reroute.OFF:
                continue
            why = self._states[name].reason(
                self._fabric, kept[name], partial(self._max_rate, name), cross_traffic, self._freed_at, now
            )
            if why:
                await self._plan_again(name, why, kept[name], cross_traffic)
                return

    def _update_states(self, cross_traffic: Mapping[Link, float], now: float) -> None:
        running = {
            j.name: j.placement.plan
            for j in self._registry.all()
            if j.state is JobState.RUNNING and j.placement is not None
        }
        if self._states.keys() - running.keys():
            self._freed_at = now
        states = {
            name: self._states.get(name) or RerouteState(plan, dict(plan.assumed_cross_traffic.links))
            for name, plan in running.items()
        }
        for name, state in states.items():
            state.update(running[name], cross_traffic, now)
        self._states = states

    async def _plan_again(
        self, name: str, why: str, kept: float, cross_traffic: Mapping[Link, float]
    ) -> None:
        state = self._states[name]
        try:
            moved = await self._move(
                name, f"re-routed: {why}", MIN_GAIN * kept * state.plan.rate, cross_traffic
            )
        except UnknownJobError:
            return
        except Exception:  # a defect of a planner must not end the controller
            log.exception("job %s cannot be planned again", name)
            moved = False
        state.on_tried(kept, cross_traffic, self._now(), moved=moved)
        if not moved:
            return
        log.info("job %s is re-routed: %s", name, why)
        self._freed_at = state.moved_at
        if name in self._registry and (placement := self._registry.get(name).placement) is not None:
            state.plan = placement.plan

    async def _move(self, name: str, why: str, least: float, cross_traffic: Mapping[Link, float]) -> bool:
        """Try plans in this order: without all contested links, if nearly the maximum rate is left, as a job that sends
        little over a full queue waits for it; with contested links as full as cross traffic may make them; with the
        cross traffic as it is. Raises UnknownJobError."""
        rates = {link: self._fabric.link(*link).rate for link in self._room.contested_links(cross_traffic)}
        nearly_max = max(least, MIN_KEPT_FRACTION * self._max_rate(name))
        if rates and await self._mover.reroute(name, why, nearly_max, Loads(links=rates)):
            return True
        more = {k: MAX_SHARE * rate for k, rate in rates.items() if cross_traffic[k] < MAX_SHARE * rate}
        if more and await self._mover.reroute(name, why, least, Loads(links=more)):
            return True
        return await self._mover.reroute(name, why, least, NO_LOADS)

    def _max_rate(self, name: str) -> float:
        """A rate that no plan of the job can exceed."""
        file = self._job_file(name)
        workers = self._registry.resolved_job(name).workers
        links = [self._fabric.link(w, self._fabric.attachment(w)).rate for w in workers]
        return min([*links, math.inf if file.rate is None else file.rate])

    def _job_file(self, name: str) -> JobFile:
        return self._registry.resolved_job(name).file
