# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Moves jobs because of cross traffic, one at a time: the part of R-InArt that is not planning. link_room.py measures.

A job is under-served if its links have no room for its reserved rate in addition to the cross traffic. It may gain if
cross traffic that its plan had to avoid has ended. It moves if the new plan gives MIN_GAIN more than it keeps in its
place. Moves end for these reasons:

- a job counts for other jobs with its reserved rate, not with the rate that it sends: no job follows the packets of
  another;
- a plan fits in addition to reserved rates and cross traffic, so a move takes nothing from other jobs and gives the job
  a tenth more: while cross traffic stays, no job can move for ever;
- while cross traffic comes and goes, each further move within FLAP_WINDOW_S waits twice as long as the one before;
- on a full link on which jobs are under-served, cross traffic counts as if it took all, as TCP will.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from netfold.controller.health.link_loads import MAX_SHARE, Link
from netfold.controller.health.link_room import MIN_KEPT_FRACTION, LinkRoom
from netfold.controller.jobs.file import JobFile, Reroute
from netfold.controller.jobs.records import JobState
from netfold.controller.lifecycle.job_registry import JobRegistry, UnknownJobError
from netfold.controller.planning.plan import Loads, Plan
from netfold.controller.planning.residual_network import NO_LOADS
from netfold.topologies.fabric import Fabric

log = logging.getLogger(__name__)

REROUTE_PERIOD_S = 0.25
"""Seconds between decisions, which depend on how long a load lasts; one job is planned in each."""

MIN_GAIN = 1.1
"""Minimum ratio of the rate after a move to the rate that is kept without it."""

FREED_FRACTION = 0.1
"""Fraction of a link's rate: when cross traffic has decreased by more, jobs that had to avoid it are planned again."""

DWELL_S, MAX_DWELL_S = 5.0, 80.0
"""Seconds that a job stays after a move; they double after each further move within FLAP_WINDOW_S."""

FLAP_WINDOW_S = 120.0

RETRY_S, MAX_RETRY_S = 2.0, 60.0
"""Seconds of delay after a plan that was not worth a move; it doubles while nothing changes. A plan is made at once if
the job keeps less than MIN_KEPT_FRACTION of the fraction that it kept then, or if another job has moved or ended, which
may free capacity."""


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


@dataclass
class RerouteState:
    """A running job in its present place.

    seen_cross_traffic  largest cross traffic by link since the job was last planned
    stays_until         it is not moved before
    moved_at            when it was last moved because of cross traffic
    tried_at            when it was last planned again, while it kept `kept` of its reserved rate
    retry_s             delay of the next plan after `tried_at`
    """

    plan: Plan
    seen_cross_traffic: dict[Link, float]
    stays_until: float = -math.inf
    dwell_s: float = DWELL_S
    moved_at: float = -math.inf
    tried_at: float = -math.inf
    kept: float = 1.0
    retry_s: float = RETRY_S

    def update(self, plan: Plan, cross_traffic: Mapping[Link, float], now: float) -> None:
        """Follow the placement of the job: a plan that another part of the controller made starts a new stay. The cross
        traffic that a plan assumed may have ended before the job runs, because workers take time to join."""
        if self.plan is not plan:
            self.plan = plan
            self.seen_cross_traffic = dict(plan.assumed_cross_traffic.links)
            self.stays_until = max(self.stays_until, now + DWELL_S)
        seen = self.seen_cross_traffic
        seen.update({k: max(load, seen.get(k, 0.0)) for k, load in cross_traffic.items()})

    def reason(
        self,
        fabric: Fabric,
        kept: float,
        max_rate: Callable[[], float],
        cross_traffic: Mapping[Link, float],
        freed_at: float,
        now: float,
    ) -> str:
        """The reason to plan the job again now; empty: it stays. `kept`: fraction of its reserved rate; `freed_at`:
        when a job last moved or ended; `max_rate()`: a rate that no plan of the job can exceed."""
        is_under_served = kept < MIN_KEPT_FRACTION
        if not is_under_served:
            self.retry_s = RETRY_S
        has_changed = freed_at > self.tried_at or kept < MIN_KEPT_FRACTION * self.kept
        if now < self.stays_until or (now < self.tried_at + RETRY_S and not has_changed):
            return ""
        is_freed = any(
            load - cross_traffic.get(link, 0.0) > FREED_FRACTION * fabric.link(*link).rate
            for link, load in self.seen_cross_traffic.items()
        )
        if is_under_served and (is_freed or has_changed or now >= self.tried_at + self.retry_s):
            return f"cross traffic leaves it {kept:.0%} of {self.plan.rate:g} {self.plan.unit}"
        if is_freed and kept * self.plan.rate * MIN_GAIN <= max_rate():
            return "cross traffic has decreased"
        return ""

    def on_tried(self, kept: float, cross_traffic: Mapping[Link, float], now: float, *, moved: bool) -> None:
        """Note that the job was planned again."""
        self.tried_at, self.kept, self.seen_cross_traffic = now, kept, dict(cross_traffic)
        if not moved:
            self.retry_s = min(2 * self.retry_s, MAX_RETRY_S)
            return
        is_flapping = now - self.moved_at < FLAP_WINDOW_S
        self.dwell_s = min(2 * self.dwell_s, MAX_DWELL_S) if is_flapping else DWELL_S
        self.stays_until, self.moved_at, self.retry_s = now + self.dwell_s, now, RETRY_S
