# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A network in which jobs run and others send, with a clock of its own and no switches: which jobs move, and when."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from netfold.controller.health.link_loads import Link, LinkLoad, planning_load
from netfold.controller.health.link_room import LinkRoom
from netfold.controller.health.reroute import Rerouter
from netfold.controller.jobs.file import ResolvedJob, resolve_job
from netfold.controller.jobs.records import JobRecord, JobState, Placement
from netfold.controller.lifecycle.capacity import RefusedError, background_of
from netfold.controller.lifecycle.member_status import Progress
from netfold.controller.planning.plan import Loads, Plan
from netfold.controller.scheduling.job_planner import PlanRequest, plan_job
from netfold.topologies.fabric import Fabric

STEP_S = 0.5


def job_file(name: str, first: int, count: int, **more: object) -> str:
    return job_of(name, range(first, first + count), **more)


def job_of(name: str, hosts: Iterable[int], **more: object) -> str:
    workers = ", ".join(f"h{i}" for i in hosts)
    rest = "".join(f"{k}: {v}\n" for k, v in more.items())
    return f"name: {name}\nworkers: [{workers}]\nparameter_servers: 0\nscheme: panama\n{rest}"


def kept_rate(fabric: Fabric, plan: Plan, cross_traffic: Mapping[Link, float]) -> float:
    """Returns the part of the plan's rate that cross traffic leaves on the fullest of its links, if all of that is the
    job's."""
    loads = plan.loads.links
    crossed = ((link, rate) for link, rate in cross_traffic.items() if loads.get(link, 0.0) > 0.0)
    return plan.rate * min([1.0, *(max(0.0, fabric.link(*k).rate - rate) / loads[k] for k, rate in crossed)])


@dataclass
class World:
    """A network in which jobs run and others send, without switches: what jobs get is what links leave them, and what
    is elastic takes what jobs leave. It is registry, loads and planner to the re-router."""

    fabric: Fabric
    now: float = 0.0
    jobs: dict[str, JobRecord] = field(default_factory=dict)
    orders: dict[str, ResolvedJob] = field(default_factory=dict)
    wanted: dict[Link, float] = field(default_factory=dict)
    """Rates that others want of links."""
    moves: list[tuple[float, str]] = field(default_factory=list)
    tried: list[tuple[float, str]] = field(default_factory=list)
    """Which job was to be planned again, and when."""
    told: dict[str, dict[str, Progress]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.room = LinkRoom(self.fabric, self, self, self)  # type: ignore[arg-type]
        self.rerouter = Rerouter(self.fabric, self, self.room, self, lambda: self.now)  # type: ignore[arg-type]

    # ---- the registry ---------------------------------------------------------------------------------------

    def all(self) -> list[JobRecord]:
        return list(self.jobs.values())

    def get(self, name: str) -> JobRecord:
        return self.jobs[name]

    def __contains__(self, name: object) -> bool:
        return name in self.jobs

    def resolved_job(self, name: str) -> ResolvedJob:
        return self.orders[name]

    # ---- what others send -------------------------------------------------------------------------------

    def cross_traffic(self) -> Loads:
        found = {}
        for link, wanted in self.wanted.items():
            rate = self.fabric.link(*link).rate
            if load := planning_load(min(wanted, rate - self.of_jobs(link)), rate):
                found[link] = load
        return Loads(links=found)

    def load(self, link: Link) -> LinkLoad:
        jobs = self.of_jobs(link)
        rate = self.fabric.link(*link).rate
        return LinkLoad(min(self.wanted.get(link, 0.0), rate - jobs), jobs)

    def of_jobs(self, link: Link) -> float:
        """Returns the rate of all jobs on a link: they press the others down to a tenth of it, and no further."""
        promised = sum(self.plan(j).loads.links.get(link, 0.0) for j in self.jobs)
        rate = self.fabric.link(*link).rate
        return min(promised, max(rate - self.wanted.get(link, 0.0), rate / 10))

    def rate(self, name: str) -> float:
        own = self.plan(name).loads.links
        promised: Counter[Link] = Counter()
        for job in self.jobs:
            promised.update(self.plan(job).loads.links)
        return self.promised(name) * min(1.0, *(self.of_jobs(k) / promised[k] for k in own))

    def plan(self, name: str):
        placement = self.jobs[name].placement
        assert placement is not None
        return placement.plan

    def promised(self, name: str) -> float:
        return float(self.plan(name).rate)

    # ---- what workers say ------------------------------------------------------------------------------

    def of(self, name: str) -> dict[str, Progress]:
        return self.told.get(name, {})

    # ---- the planner ------------------------------------------------------------------------------------

    def submit(self, text: str) -> None:
        resolved = resolve_job(text, self.fabric)
        name = resolved.file.name
        self.orders[name] = resolved
        plan = plan_job(self.fabric, PlanRequest(resolved, background_of(self.all()), self.cross_traffic()))
        placement = Placement(plan=plan, trees=(), epoch=1)
        self.jobs[name] = JobRecord(
            name=name, seq=len(self.jobs), spec_yaml=text, state=JobState.RUNNING, placement=placement
        )

    async def reroute(self, name: str, why: str, least: float, taken: Loads) -> bool:
        turn = (self.now, name)  # in which it is planned beside what others would take, and what they have
        if self.tried[-1:] != [turn]:
            self.tried.append(turn)
        others = background_of(j for j in self.all() if j.name != name)
        foreign = Loads(links={**self.cross_traffic().links, **taken.links})
        request = PlanRequest(self.orders[name], others, foreign, self.plan(name).trees)
        try:
            plan = plan_job(self.fabric, request)
        except RefusedError:
            return False
        if plan.rate < least:
            return False
        self.moves.append((self.now, name))
        job = self.jobs[name]
        placement = Placement(plan=plan, trees=(), epoch=job.epoch + 1)
        self.jobs[name] = job.model_copy(update={"placement": placement, "reason": why})
        return True

    def run(self, seconds: float, every: Callable[[], None] = lambda: None) -> None:
        async def whole() -> None:
            for _ in range(round(seconds / STEP_S)):
                self.now += STEP_S
                every()
                await self.rerouter.step()

        asyncio.run(whole())


def through(fabric: Fabric, spine: str, load: float) -> dict[Link, float]:
    """The same load on all of a spine's links."""
    near = [n for n in fabric.ports[spine] if not fabric.is_host(n)]
    return {pair: load for n in near for pair in ((n, spine), (spine, n))}


def both_ways(leaf: str, spine: str, load: float) -> dict[Link, float]:
    return {(leaf, spine): load, (spine, leaf): load}
