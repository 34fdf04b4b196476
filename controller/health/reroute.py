# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Who moves because of what others send, and when: R-InArt's part that is not a plan.

A job is **squeezed** if the links of its trees do not have room for what it was promised beside foreign load; it **may
gain** if load that was there when it was last planned has gone. Either is a reason to plan it again, and it moves if
that gives `GAIN` more than it keeps where it is. Why this ends:

- other jobs count with what they are promised and not with what they send, so nobody runs after another's packets;
- a plan fits beside those promises and beside foreign load, so a move takes nothing from anybody, and gives the mover a
  tenth more: while foreign load stays as it is, no job can move for ever;
- when foreign load comes and goes, each further move within `CALM_S` has to wait twice as long as the last;
- what others send over a full link that jobs are squeezed on counts as if they took all of it, as TCP will.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from netfold.controller.health.foreign import MOST
from netfold.controller.health.link_loads import Link, LinkLoads
from netfold.controller.jobs.file import JobFile, Reroute
from netfold.controller.jobs.records import JobRecord, JobState
from netfold.controller.lifecycle.book import Book, UnknownJobError
from netfold.controller.lifecycle.presence import Presence
from netfold.controller.planning.network import NOTHING
from netfold.controller.planning.plan import Loads, Plan
from netfold.topologies.fabric import Fabric

log = logging.getLogger(__name__)

SQUEEZED = 0.9
"""Of its promise: whoever keeps less is planned again."""

MARKED, RESENT = 0.1, 0.05
"""Of a tree's results: with more marks or repeated packets it suffers, and a link of it that is full and that others
send over leaves it no more than jobs get there now, though that be less than what the others' bytes say."""

FULL = 0.9
"""Of a link: what so much is sent over has no room left."""

GAIN = 1.1
"""What a move has to give, over what is kept without it."""

EASED = 0.1
"""Of a link's rate: when so much of foreign load has gone, jobs that had to do with less are planned again."""

DWELL_S, LONGEST_DWELL_S = 5.0, 80.0
"""After a move a job stays for so long, and for twice as long with every further move within CALM_S."""

CALM_S = 120.0

AGAIN_S, LONGEST_AGAIN_S = 2.0, 60.0
"""After a plan that was not worth a move the next is made so much later, and twice as late each time while nothing
changes. At once, if the job keeps even less than `SQUEEZED` of what it kept then, as loads become known bit by bit;
or if another job has moved or gone, which may have made room."""

LOOK_S = 0.25


class Mover(Protocol):
    async def reroute(self, name: str, why: str, least: float, taken: Loads) -> bool:
        """Plan a job again beside what others send, or would take of some links, and move it if its rate is `least`
        or more. Raises UnknownJobError."""


@dataclass
class _Stay:
    """A job where it is. `until`: it is not moved before; `tried`: when it was last planned again, while it kept `kept`
    of its promise, for `again` seconds or until something changes. `seen` is the most foreign load since then, by
    link."""

    plan: Plan
    seen: dict[Link, float]
    until: float = -math.inf
    dwell: float = DWELL_S
    moved: float = -math.inf
    tried: float = -math.inf
    kept: float = 1.0
    again: float = AGAIN_S


class Rerouter:
    """`look` decides at one moment; `run` looks until it is canceled."""

    def __init__(
        self,
        fabric: Fabric,
        book: Book,
        loads: LinkLoads,
        mover: Mover,
        presence: Presence,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fabric = fabric
        self._book = book
        self._loads = loads
        self._mover = mover
        self._presence = presence
        self._now = now
        self._stays: dict[str, _Stay] = {}
        self._room = -math.inf  # when a job left its place last

    async def run(self) -> None:
        while True:
            await self.look()
            await asyncio.sleep(LOOK_S)

    async def look(self) -> None:
        """Plan a job again: of those with a reason the one that waited longest, and then the one that keeps least."""
        foreign = self.foreign().links
        running = {
            j.name: j.placement.plan
            for j in self._book.all()
            if j.state is JobState.RUNNING and j.placement is not None
        }
        if self._stays.keys() - running.keys():
            self._room = self._now()
        self._stays = {name: self._stay(name, plan, foreign) for name, plan in running.items()}
        kept = self.kept(foreign)
        for name in sorted(running, key=lambda n: (self._stays[n].tried, kept[n])):
            why = self._reason(name, kept[name], foreign)
            if why:
                await self._plan_again(name, why, kept[name], foreign)
                return

    def foreign(self) -> Loads:
        """What others send, as plans have to reckon with it: what is counted, and on full links of trees that suffer
        all that jobs do not get."""
        counted = self._loads.foreign().links
        pressed: dict[Link, float] = {}
        for link in counted:
            load, rate = self._loads.load(link), self._fabric.link(*link).rate
            if load.foreign + load.jobs >= FULL * rate and rate - load.jobs > counted[link]:
                pressed[link] = min(rate - load.jobs, MOST * rate)
        if not pressed:
            return Loads(links=counted)
        suffering = {link for job in self._book.all() for link in self._suffering(job)}
        return Loads(links={**counted, **{k: load for k, load in pressed.items() if k in suffering}})

    def _suffering(self, job: JobRecord) -> Iterator[Link]:
        """The links of a job's trees of which a worker says that they suffer."""
        if job.state is not JobState.RUNNING or job.placement is None:
            return
        told = [t for progress in self._presence.of(job.name).values() for t in progress.lately]
        hit = {t.tree for t in told if t.marks > MARKED or t.losses > RESENT}
        for planned, tree in zip(job.placement.trees, job.placement.plan.trees, strict=False):
            if planned.tree in hit:
                yield from tree.down
                yield from (hop for edge in tree.edges for hop in pairwise(edge.path))

    def kept(self, foreign: Mapping[Link, float]) -> dict[str, float]:
        """By installed job: the part of its promise that its links have room for, 0 to 1."""
        plans = self._installed()
        promised = _promised(plans.values(), foreign)
        left = {
            link: max(0.0, self._fabric.link(*link).rate - foreign[link]) / load
            for link, load in promised.items()
            if load > 0
        }
        return {
            name: min([1.0, *(part for link, part in left.items() if link in plan.loads.links)])
            for name, plan in plans.items()
        }

    def _installed(self) -> dict[str, Plan]:
        return {
            j.name: j.placement.plan
            for j in self._book.all()
            if j.state.installed and j.placement is not None
        }

    def _stay(self, name: str, plan: Plan, foreign: Mapping[Link, float]) -> _Stay:
        """What is known of a job where it is. Whoever else moved it had a reason. What its plan left to others may
        be gone before it runs: workers take their time to come."""
        stay = self._stays.get(name)
        if stay is None:
            stay = _Stay(plan, dict(plan.beside.links))
        if stay.plan is not plan:
            stay.plan, stay.seen = plan, dict(plan.beside.links)
            stay.until = max(stay.until, self._now() + DWELL_S)
        stay.seen.update({k: max(load, stay.seen.get(k, 0.0)) for k, load in foreign.items()})
        return stay

    def _reason(self, name: str, kept: float, foreign: Mapping[Link, float]) -> str:
        """Why to plan a job again now; nothing: it stays."""
        stay, now = self._stays[name], self._now()
        if kept >= SQUEEZED:
            stay.again = AGAIN_S
        changed = self._room > stay.tried or kept < SQUEEZED * stay.kept
        if now < stay.until or self._order(name).reroute is Reroute.OFF:
            return ""
        if now < stay.tried + AGAIN_S and not changed:
            return ""
        eased = any(
            load - foreign.get(link, 0.0) > EASED * self._fabric.link(*link).rate
            for link, load in stay.seen.items()
        )
        if kept < SQUEEZED and (eased or changed or now >= stay.tried + stay.again):
            return f"the traffic of others leaves it {kept:.0%} of {stay.plan.rate:g} {stay.plan.unit}"
        if eased and kept * stay.plan.rate * GAIN <= self._most(name):
            return "others send less"
        return ""

    async def _move(self, name: str, why: str, least: float, foreign: Mapping[Link, float]) -> bool:
        """Off all contested links if that leaves it nearly all it can have, as whoever sends a little over a full queue
        waits for it; else beside what others would take of them; else beside what they have. Raises UnknownJobError."""
        rates = {link: self._fabric.link(*link).rate for link in self._contested(foreign)}
        nearly = max(least, SQUEEZED * self._most(name))
        if rates and await self._mover.reroute(name, why, nearly, Loads(links=rates)):
            return True
        more = {link: MOST * rate for link, rate in rates.items() if foreign[link] < MOST * rate}
        if more and await self._mover.reroute(name, why, least, Loads(links=more)):
            return True
        return await self._mover.reroute(name, why, least, NOTHING)

    def _contested(self, foreign: Mapping[Link, float]) -> set[Link]:
        """Full links between switches that leave jobs less than they were promised. What others send there is what
        jobs let them: TCP takes, some seconds later, what a job leaves. (A host's link no plan can leave.)"""
        promised = _promised(self._installed().values(), foreign)
        found = set()
        for link, load in foreign.items():
            if any(self._fabric.is_host(end) for end in link):
                continue
            rate, now = self._fabric.link(*link).rate, self._loads.load(link)
            full = now.foreign + now.jobs >= FULL * rate
            if full and rate - load < SQUEEZED * promised[link]:
                found.add(link)
        return found

    def _most(self, name: str) -> float:
        """No plan of the job can have a greater rate."""
        file = self._order(name)
        workers = self._book.order(name).workers
        links = [self._fabric.link(w, self._fabric.attachment(w)).rate for w in workers]
        return min([*links, math.inf if file.rate is None else file.rate])

    def _order(self, name: str) -> JobFile:
        return self._book.order(name).file

    async def _plan_again(self, name: str, why: str, kept: float, foreign: Mapping[Link, float]) -> None:
        stay = self._stays[name]
        try:
            moved = await self._move(name, f"re-routed: {why}", GAIN * kept * stay.plan.rate, foreign)
        except UnknownJobError:
            return
        except Exception:  # a planner's defect must not end the controller of all
            log.exception("job %s cannot be planned again", name)
            moved = False
        now = self._now()
        stay.tried, stay.kept, stay.seen = now, kept, dict(foreign)
        if not moved:
            stay.again = min(2 * stay.again, LONGEST_AGAIN_S)
            return
        log.info("job %s is re-routed: %s", name, why)
        stay.dwell = min(2 * stay.dwell, LONGEST_DWELL_S) if now - stay.moved < CALM_S else DWELL_S
        stay.until, stay.moved, stay.again = now + stay.dwell, now, AGAIN_S
        self._room = now
        if name in self._book and (placement := self._book.get(name).placement) is not None:
            stay.plan = placement.plan


def _promised(plans: Iterable[Plan], links: Iterable[Link]) -> Counter[Link]:
    """What jobs may send over each of these links."""
    promised: Counter[Link] = Counter()
    for plan in plans:
        promised.update({k: plan.loads.links[k] for k in links if k in plan.loads.links})
    return promised
