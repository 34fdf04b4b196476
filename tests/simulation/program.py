# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A training program in the simulation: a job and the processes of its members, which compute for so long and leave."""

from __future__ import annotations

from dataclasses import dataclass, field

from netfold.controller.jobs.records import Placement
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

    @property
    def text(self) -> str:
        policy = "continue" if self.is_elastic else "fail"
        return (
            f"name: {self.name}\nworkers: [{', '.join(self.workers)}]\nscheme: {self.scheme}\nrate: {self.rate}\n"
            f"priority: {self.priority}\non_worker_loss: {policy}\njoin_s: 30\n"
        )


@dataclass
class Program:
    """`excuses`: what befell the job itself, so that it may fail. By epoch: `placements`; `entities` with their
    switches; `losses` of each switch's registers when the members got the epoch, whose sums do not survive another."""

    spec: JobSpec
    members: dict[str, Member] = field(default_factory=dict)
    work_left_s: float = 0.0
    excuses: list[str] = field(default_factory=list)
    is_acknowledged: bool = False
    is_canceled: bool = False
    state: str = ""
    placements: dict[int, Placement] = field(default_factory=dict)
    entities: dict[int, list[tuple[str, Entity]]] = field(default_factory=dict)
    losses: dict[int, dict[str, int]] = field(default_factory=dict)

    @property
    def alive(self) -> list[Member]:
        return [m for m in self.members.values() if m.is_alive]
