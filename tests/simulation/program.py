# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A training program in the simulation: a job and the processes of its members, which compute for so long and leave."""

from __future__ import annotations

from dataclasses import dataclass, field

from netfold.controller.jobs.records import Placement, Transport
from netfold.controller.jobs.submitter import TenantLimits
from netfold.controller.service.identities import Identity, Role
from netfold.controller.switches.entries import Entity
from tests.simulation.member import Member


@dataclass(frozen=True)
class JobSpec:
    """A job as a scenario submits it. `work_s`: seconds that its members compute."""

    name: str
    workers: tuple[str, ...]
    scheme: str
    rate: int
    queue: bool
    priority: int
    is_elastic: bool
    work_s: float
    transport: Transport = Transport.UDP
    quorum: int = 0
    min_rate: int = 0
    """0: the controller's default, with which a job takes nearly any rate that is left."""
    slots: int = 0
    """0: as many as its rate needs."""
    tenant: str = ""
    weight: float = 1.0
    max_s: float = 0.0
    """0: it may run for ever."""

    @property
    def caller(self) -> Identity:
        role = Role.USER if self.tenant else Role.OPERATOR
        return Identity(self.tenant, self.tenant, role, limits=TenantLimits(weight=self.weight))

    @property
    def text(self) -> str:
        policy = "continue" if self.is_elastic else "fail"
        quorum = f"quorum: {self.quorum}\n" if self.quorum else ""
        min_rate = f"min_rate: {self.min_rate}\n" if self.min_rate else ""
        max_s = f"max_s: {self.max_s}\n" if self.max_s else ""
        slots = f"slots: {self.slots}\n" if self.slots else ""
        return (
            f"name: {self.name}\nworkers: [{', '.join(self.workers)}]\nscheme: {self.scheme}\nrate: {self.rate}\n"
            f"priority: {self.priority}\non_worker_loss: {policy}\njoin_s: 30\n"
            f"transport: {self.transport}\n{quorum}{min_rate}{slots}{max_s}"
        )


def job(name: str, *workers: str, **changes: object) -> JobSpec:
    chosen = {
        "scheme": "panama", "rate": 40, "queue": True, "priority": 0, "is_elastic": False, "work_s": 5.0, **changes,
    }  # fmt: skip
    return JobSpec(name, workers, **chosen)  # type: ignore[arg-type]


def greedy(name: str, *workers: str, rate: int, **changes: object) -> JobSpec:
    """A job of one tree that takes no less than its rate."""
    return job(name, *workers, rate=rate, min_rate=rate, scheme="switchml", **changes)


@dataclass
class Program:
    """`early`: workers that left before the work was done; `absent`: that do not start. `excuses`: what befell the job
    itself, so that it may fail. By epoch: `placements`; their `allocations`; their `entities` with their switches;
    `losses` of each switch's registers when the members got the epoch, whose sums do not survive another; the switches
    that are `carrying` its packets, and the state of all switches in which they were. `took_part`: by host the
    processes that had an assignment; `in_epoch`: by host and epoch the first one. `replaced`: processes beside which
    another one of their host was started."""

    spec: JobSpec
    members: dict[str, Member] = field(default_factory=dict)
    added: set[str] = field(default_factory=set)
    early: set[str] = field(default_factory=set)
    absent: set[str] = field(default_factory=set)
    work_left_s: float = 0.0
    excuses: list[str] = field(default_factory=list)
    is_acknowledged: bool = False
    is_canceled: bool = False
    state: str = ""
    placements: dict[int, Placement] = field(default_factory=dict)
    entities: dict[int, list[tuple[str, Entity]]] = field(default_factory=dict)
    losses: dict[int, dict[str, int]] = field(default_factory=dict)
    allocations: dict[int, int] = field(default_factory=dict)
    carrying: dict[int, tuple[object, set[str]]] = field(default_factory=dict)
    took_part: dict[str, set[Member]] = field(default_factory=dict)
    in_epoch: dict[tuple[str, int], Member] = field(default_factory=dict)
    replaced: list[Member] = field(default_factory=list)

    def on_restore(self) -> None:
        """The controller's store is an older one: what it says of the job may contradict all that it said since."""
        self.excuses.append("the store was restored")
        self.state = ""
        self.placements.clear()
        self.entities.clear()
        self.losses.clear()
        self.allocations.clear()
        self.carrying.clear()
        self.took_part.clear()
        self.in_epoch.clear()

    @property
    def workers(self) -> set[str]:
        return {*self.spec.workers, *self.added}

    @property
    def alive(self) -> list[Member]:
        return [m for m in (*self.members.values(), *self.replaced) if m.is_alive]
