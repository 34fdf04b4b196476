# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""All switches of a fabric: a session for each, one target for all."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import finsy as fy

from netfold.controller.switches.endpoint import Endpoint, Health, Pipeline, Target
from netfold.controller.switches.entries import Contents
from netfold.controller.switches.port_counters import PortCounts
from netfold.controller.switches.session import ANSWER_S, SwitchSession

SIGNS_OF_LIFE = 200
"""At most so many a second, of all switches together."""

LOOKS_S = 0.25
"""So often it is looked whose ports are to be read, and who has answered."""


class FleetEvents(Protocol):
    """What the controller hears of its switches."""

    async def registers_lost(self, switch: str) -> None:
        """The switch's registers are empty; returns when the jobs' epochs are raised in the store."""

    def switch_changed(self, switch: str) -> None:
        """Its health is another."""

    def packet_in(self, switch: str, packet: fy.P4PacketIn) -> None: ...

    def port_changed(self, switch: str, port: int, down: bool) -> None: ...

    def ports_counted(self, switch: str, counts: PortCounts, asked: float) -> bool:
        """It was asked then, by a monotonic clock. True if what its ports carry is changing."""


@dataclass(frozen=True)
class FleetOptions:
    """Seconds between two audits of a switch, between two signs of life, and between two readings of its ports'
    counters while nothing changes; and that a switch may take for an answer."""

    audit_s: float = 30.0
    alive_s: float = 0.5
    look_s: float = 1.0
    answer_s: float = ANSWER_S


class Fleet:
    """`run` keeps all sessions going until it is canceled."""

    def __init__(
        self,
        endpoints: Iterable[Endpoint],
        pipeline: Pipeline,
        election_id: int,
        events: FleetEvents,
        options: FleetOptions,
    ) -> None:
        endpoints = tuple(endpoints)
        alive_s = max(options.alive_s, len(endpoints) / SIGNS_OF_LIFE)
        lost: Callable[[str], Awaitable[None]] = events.registers_lost
        self.sessions = {
            e.name: SwitchSession(
                e,
                pipeline,
                election_id,
                lost=lost,
                changed=events.switch_changed,
                packet_in=events.packet_in,
                port_down=events.port_changed,
                counted=events.ports_counted,
                audit_s=options.audit_s,
                alive_s=alive_s,
                look_s=max(options.look_s, len(endpoints) / SIGNS_OF_LIFE),
                answer_s=options.answer_s,
            )
            for e in endpoints
        }
        self.version = 0

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for name, session in self.sessions.items():
                group.create_task(session.run(), name=f"switch {name}")
            group.create_task(self._look())

    async def _look(self) -> None:
        """At all switches in one turn of the loop: what a processor has at hand for one it has for the next."""
        while True:
            await asyncio.sleep(LOOKS_S)
            now = time.monotonic()
            for session in self.sessions.values():
                session.look(now)

    def aim(self, wanted: Mapping[str, Contents]) -> int:
        """Give every switch its new contents; returns the target's version."""
        self.version += 1
        for name, session in self.sessions.items():
            session.aim(Target(self.version, wanted[name]))
        return self.version

    def holds(self, switch: str, version: int) -> bool:
        """The switch is connected and holds that target or a later one."""
        health = self.health(switch)
        return health.ready and health.applied >= version

    def health(self, switch: str) -> Health:
        return self.sessions[switch].health
