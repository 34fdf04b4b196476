# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""One run: faults beside requests, then rest, then the check of what etcd has written down meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from tests.ha.checker import Checker
from tests.ha.client import Client
from tests.ha.drawing import RUN_S, Fault, FaultKind, Victim, Way, faults_of
from tests.ha.history import HistoryReader
from tests.ha.system import MEMBERS, POLL_S, REST_S, System
from tests.simulation.world import ViolationError

OVERTAKEN_S = 15.0
"""Seconds within which another controller has to lead."""
RETURNED_S = 2.0
"""Seconds for which the one that was stopped may not reach etcd."""
FLUTTER_S = (0.15, 0.05)
"""Seconds for which a process that flutters is stopped, and goes on."""


class Runs:
    """Runs on one system, one after the other. `report` gets each step. `aclose` ends the members of jobs."""

    def __init__(self, system: System, report: Callable[[str], None]) -> None:
        self._system = system
        self._report = report
        self._history = HistoryReader(system.state)
        self.checker = Checker()
        self.client = Client(system.where, self.checker.add)

    async def aclose(self) -> None:
        self._history.close()
        await self.client.close()

    async def begin(self) -> None:
        """Wait until the system is at rest for the first time. Raises ViolationError."""
        await self._system.rest(self.client.members)
        await self._check()

    async def run(self, seed: int) -> None:
        """Raises ViolationError."""
        faults = faults_of(seed)
        async with asyncio.TaskGroup() as group:
            for fault in faults:
                group.create_task(self._make(fault))
            group.create_task(self.client.run(seed, RUN_S))
        self._system.heal()
        if not await self.client.until_acknowledged(REST_S):
            raise ViolationError(f"no request is acknowledged within {REST_S:g} s of the last fault")
        await self._system.rest(self.client.members)
        await self._check()

    async def _check(self) -> None:
        for revision in await asyncio.to_thread(lambda: list(self._history.read())):
            self.checker.take(revision)
        self.checker.check_requests()
        for switch, terms in self._system.switches.writers().items():
            self.checker.check_writers(switch, terms)

    # ---- faults --------------------------------------------------------------------------------------

    async def _make(self, fault: Fault) -> None:
        await asyncio.sleep(fault.at_s)
        victims = await self._victims(fault.victim)
        self._report(f"{fault}: {', '.join(victims)}")
        match fault.kind:
            case FaultKind.STEP_DOWN:
                await self.client.step_down()
            case FaultKind.FLUTTER:
                await self._flutter(victims, fault.for_s)
            case FaultKind.RETURN:
                await self._overtake(fault, victims[0])
            case _:
                self._set(fault, victims, begins=True)
                await asyncio.sleep(fault.for_s)
                self._set(fault, victims, begins=False)

    async def _victims(self, victim: Victim) -> list[str]:
        controllers = self._system.controllers_by_role()
        if victim in (Victim.LEADER, Victim.STANDBY):
            return [controllers[victim is Victim.STANDBY]]
        if victim is Victim.ALL:
            return controllers
        members = await self._system.members_by_role()
        return {
            Victim.FIRST_MEMBER: members[:1],
            Victim.OTHER_MEMBER: members[1:2],
            Victim.MAJORITY: members[:2],
            Victim.BOTH: [controllers[0], members[0]],
        }[victim]

    def _set(self, fault: Fault, victims: list[str], *, begins: bool) -> None:
        """Let a fault begin, or end."""
        system = self._system
        for name in victims:
            match fault.kind:
                case FaultKind.KILL:
                    (system.kill if begins else system.start)(name)
                case FaultKind.PAUSE:
                    (system.pause if begins else system.resume)(name)
                case FaultKind.JUMP:
                    system.jump(name, is_ahead=begins)
                case FaultKind.LOSS:
                    system.machines.lose(name, fault.share if begins else 0.0)
                case FaultKind.CUT:
                    for pair in _pairs(fault, name):
                        (system.machines.cut if begins else system.machines.mend)(*pair)

    async def _flutter(self, victims: list[str], for_s: float) -> None:
        until = asyncio.get_running_loop().time() + for_s
        while asyncio.get_running_loop().time() < until:
            for change, pause_s in zip((self._system.pause, self._system.resume), FLUTTER_S, strict=True):
                for name in victims:
                    change(name)
                await asyncio.sleep(pause_s)

    async def _overtake(self, fault: Fault, first: str) -> None:
        """Stop the leader, and kill the one that has led since for some time when the first one goes on."""
        system, pairs = self._system, list(_pairs(fault, first))
        system.pause(first)
        for _ in range(round(OVERTAKEN_S / POLL_S)):
            others = [c for c in system.controllers.values() if c.leads and c.name != first]
            if others:
                await asyncio.sleep(fault.for_s)
                for pair in pairs:
                    system.machines.cut(*pair)
                system.kill(others[0].name)
                break
            await asyncio.sleep(POLL_S)
        system.resume(first)
        await asyncio.sleep(RETURNED_S)
        for pair in pairs:
            system.machines.mend(*pair)


def _pairs(fault: Fault, name: str) -> Iterator[tuple[str, str]]:
    """Sender and receiver of the packets that are lost."""
    others = [member for member in MEMBERS if member != name]
    for other in others if fault.all else others[-1:]:
        if fault.way in (Way.OUT, Way.BOTH):
            yield name, other
        if fault.way in (Way.IN, Way.BOTH):
            yield other, name
