# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Runs all switches of a fabric: a session for each, one version of the desired contents for all."""

from __future__ import annotations

import asyncio
import textwrap
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import finsy as fy

from netfold.controller.jobs.revisions import Revision
from netfold.controller.switches.connection import Connect
from netfold.controller.switches.desired_contents import DesiredContents
from netfold.controller.switches.endpoint import Endpoint, Pipeline
from netfold.controller.switches.entries import Contents
from netfold.controller.switches.finsy_adapter import FinsyConnection
from netfold.controller.switches.port_counters import PortCounts
from netfold.controller.switches.session import RPC_TIMEOUT_S, SessionEvents, SwitchSession
from netfold.controller.switches.switch_health import Health

MAX_POLLS_PER_S = 100
"""Maximum readings of port counters per second, of all switches together: about a tenth of a processor core."""
MAX_CAUSE = 200
"""Maximum characters of the error of a switch in another message, because it may be of any length."""


class FleetEvents(Protocol):
    """Events of switches, for the controller."""

    async def registers_lost(self, switch: str) -> None:
        """Handle empty registers of the switch. Returns when the store has new epochs for the jobs."""

    def has_revision(self, switch: str, revision: Revision) -> bool:
        """Whether the store has made this revision of the slots of the switch."""

    def switch_changed(self, switch: str) -> None:
        """Handle a change of the health of the switch."""

    def packet_in(self, switch: str, packet: fy.P4PacketIn) -> None: ...

    def port_changed(self, switch: str, port: int, down: bool) -> None: ...

    def ports_counted(self, switch: str, counts: PortCounts, sent_at: float) -> bool:
        """Handle port counts that were requested at `sent_at` (monotonic clock). Returns True while the load
        changes."""


@dataclass(frozen=True)
class FleetOptions:
    """Seconds between two audits of a switch, and between two readings of its port counters while its load does not
    change; and the RPC timeout."""

    audit_s: float = 30.0
    counter_poll_s: float = 1.0
    rpc_timeout_s: float = RPC_TIMEOUT_S


class Fleet:
    """Runs all sessions in `run` until it is canceled. `term`: the term of the leader; `connect` makes the connections
    of the sessions; `now`: the clock of the event loop."""

    def __init__(
        self,
        endpoints: Iterable[Endpoint],
        pipeline: Pipeline,
        term: int,
        events: FleetEvents,
        options: FleetOptions,
        *,
        connect: Connect = FinsyConnection,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        endpoints = tuple(endpoints)
        session_events = SessionEvents(
            events.registers_lost,
            events.has_revision,
            events.switch_changed,
            events.packet_in,
            events.port_changed,
            events.ports_counted,
        )
        self.sessions = {
            e.name: SwitchSession(
                e,
                pipeline,
                term,
                session_events,
                audit_s=options.audit_s,
                counter_poll_s=max(options.counter_poll_s, len(endpoints) / MAX_POLLS_PER_S),
                rpc_timeout_s=options.rpc_timeout_s,
                connect=connect,
                now=now,
            )
            for e in endpoints
        }
        self.version = 0

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for name, session in self.sessions.items():
                group.create_task(session.run(), name=f"switch {name}")

    def set_desired(self, contents: Mapping[str, Contents]) -> int:
        """Set every switch's desired contents; returns their version."""
        self.version += 1
        for name, session in self.sessions.items():
            session.set_desired(DesiredContents(self.version, contents[name]))
        return self.version

    def holds(self, switch: str, version: int) -> bool:
        """Whether the switch is connected and has the contents of that version or of a later one."""
        health = self.health(switch)
        return health.ready and health.applied >= version

    def health(self, switch: str) -> Health:
        return self.sessions[switch].health

    def not_ready_because(self, switch: str) -> str:
        """The reason why a switch is not ready, in one line; empty for a switch that is ready."""
        health = self.health(switch)
        return "" if health.ready else textwrap.shorten(health.error, MAX_CAUSE)

    def failure_cause(self, switch: str) -> str:
        """Address and last error of a switch, in one line."""
        address, error = self.sessions[switch].endpoint.address, self.health(switch).error
        return f"{address}: {textwrap.shorten(error, MAX_CAUSE)}" if error else address
