# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Draws the faults of a run from its seed. Victims are roles, which are given to processes when a fault begins."""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum

RUN_S = 4.0
"""Seconds in which faults and requests begin."""
SHORT_S, LONG_S = (0.2, 3.0), (5.0, 12.0)
"""Bounds of the length of a fault. A long one outlives the lease, or a controller's patience with etcd."""
LONG_SHARE = 0.12


class FaultKind(StrEnum):
    """Kinds of faults. `FLUTTER` stops a process again and again, as a slow disk does. `RETURN` stops the leader until
    another one has led and is killed: where ids are forgotten, only the lease keeps it from writing. At first it
    may not reach etcd, which would end its lead."""

    KILL = "kill"
    PAUSE = "pause"
    FLUTTER = "flutter"
    CUT = "cut off"
    LOSS = "lose packets"
    JUMP = "set the clock of"
    STEP_DOWN = "step down"
    RETURN = "stop and overtake"


class Victim(StrEnum):
    """Groups of processes. The first controller is the one that leads, and the first member is etcd's leader."""

    LEADER = "the leader"
    STANDBY = "a standby"
    ALL = "all controllers"
    FIRST_MEMBER = "etcd's leader"
    OTHER_MEMBER = "a follower of etcd"
    MAJORITY = "two members of etcd"
    BOTH = "the leader and etcd's leader"


class Way(StrEnum):
    """Directions in which packets of a victim are lost."""

    OUT = "outward"
    IN = "inward"
    BOTH = "both ways"


@dataclass(frozen=True)
class Fault:
    """A fault that begins `at_s` after the run's start and lasts `for_s`. Of a cut and a return: `way`, and whether the
    victim is cut off from `all` members of etcd, or from one. `share`: of packets that are lost."""

    kind: FaultKind
    victim: Victim
    at_s: float
    for_s: float
    way: Way = Way.BOTH
    all: bool = True
    share: float = 0.0

    def __str__(self) -> str:
        words = f"{self.at_s:.2f} s: {self.kind} {self.victim} for {self.for_s:.2f} s"
        if self.kind in _CUT:
            words += f", {self.way}, from {'all members' if self.all else 'one member'}"
        return words + (f", {self.share:.0%}" if self.share else "")


_KINDS = {
    FaultKind.KILL: 5,
    FaultKind.PAUSE: 5,
    FaultKind.FLUTTER: 2,
    FaultKind.CUT: 6,
    FaultKind.LOSS: 2,
    FaultKind.JUMP: 2,
    FaultKind.STEP_DOWN: 2,
    FaultKind.RETURN: 2,
}
_VICTIMS = {
    Victim.LEADER: 8,
    Victim.STANDBY: 2,
    Victim.ALL: 1,
    Victim.FIRST_MEMBER: 4,
    Victim.OTHER_MEMBER: 2,
    Victim.MAJORITY: 2,
    Victim.BOTH: 3,
}
_CUT = (FaultKind.CUT, FaultKind.RETURN)
_OF_LEADERS = (FaultKind.STEP_DOWN, FaultKind.RETURN)
_OF_CONTROLLERS = (Victim.LEADER, Victim.STANDBY, Victim.ALL)


def faults_of(seed: int) -> list[Fault]:
    """The faults of a run, in the order of their beginning."""
    draws = random.Random(f"faults {seed}")
    faults = [_fault(draws) for _ in range(draws.choice((1, 1, 2, 2, 3)))]
    return sorted(faults, key=lambda fault: fault.at_s)


def _fault(draws: random.Random) -> Fault:
    (kind,) = draws.choices(list(_KINDS), list(_KINDS.values()))
    victims = {v: n for v, n in _VICTIMS.items() if kind is not FaultKind.JUMP or v in _OF_CONTROLLERS}
    (victim,) = draws.choices(list(victims), list(victims.values()))
    for_s = draws.uniform(*(LONG_S if draws.random() < LONG_SHARE else SHORT_S))
    return Fault(
        kind,
        Victim.LEADER if kind in _OF_LEADERS else victim,
        draws.uniform(0, RUN_S),
        0.0 if kind is FaultKind.STEP_DOWN else for_s,
        draws.choice(list(Way)) if kind in _CUT else Way.BOTH,
        draws.random() < 0.6 if kind in _CUT else True,
        draws.choice((0.05, 0.2, 0.5)) if kind is FaultKind.LOSS else 0.0,
    )
