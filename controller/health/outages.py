# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What does not work now, and who has to give way to it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

from netfold.controller.jobs.records import JobRecord
from netfold.controller.lifecycle.patience import Patience
from netfold.controller.switches.desired import Broken
from netfold.controller.switches.fleet import Fleet

Later = Callable[..., None]
"""later(seconds, call, *arguments)"""

Uses = Callable[[JobRecord], bool]


LOOK_S = 1.0
"""Between two looks at a switch that answers and is not ready."""


class OutageEvents(Protocol):
    """What the controller does about outages."""

    def broken_changed(self) -> None:
        """Routes have to be computed again."""

    def give_way(self, uses: Uses, why: str, fail: bool) -> None:
        """Jobs that use what is broken move, or else (if `fail`) end."""

    def room(self) -> None:
        """Something works again: a waiting job may fit."""


class Outages:
    """`broken` is what planners and routes avoid."""

    def __init__(self, fleet: Fleet, patience: Patience, later: Later, events: OutageEvents) -> None:
        self.broken = Broken()
        self._fleet = fleet
        self._patience = patience
        self._later = later
        self._events = events
        self._up: set[str] = set()
        self._connecting: set[str] = set(fleet.sessions)
        self._all_known = asyncio.Event()

    def start(self) -> None:
        for switch in self._fleet.sessions:
            self._later(self._patience.start, self._never_came, switch)

    async def all_known(self) -> None:
        """Returns when each switch has been ready, or has been waited for in vain, since the start."""
        await self._all_known.wait()

    def switch_changed(self, switch: str) -> None:
        if self._fleet.health(switch).ready:
            self._up.add(switch)
            self._know(switch)
            if switch in self.broken.switches:
                self._set(Broken(self.broken.links, self.broken.switches - {switch}))
                self._events.room()
        elif switch in self._up:
            self._up.discard(switch)
            self._later(self._patience.reroute, self._still_away, switch)
            self._later(self._patience.restart, self._gone, switch)

    def links_changed(self, down: frozenset[frozenset[str]]) -> None:
        """All links between switches that are down now."""
        new = down - self.broken.links
        self._set(Broken(down, self.broken.switches))
        for link in new:
            self._events.give_way(_takes(link), f"link {'-'.join(sorted(link))} is down", True)
        if not new:
            self._events.room()

    def _never_came(self, switch: str) -> None:
        """A switch that has not been ready since the start; one that answers may take long to take its pipeline."""
        health = self._fleet.health(switch)
        if switch not in self._connecting:
            return
        if health.reached:
            self._later(LOOK_S, self._never_came, switch)
            return
        self._still_away(switch)
        self._later(self._patience.restart, self._gone, switch)
        self._know(switch)

    def _know(self, switch: str) -> None:
        self._connecting.discard(switch)
        if not self._connecting:
            self._all_known.set()

    def _still_away(self, switch: str) -> None:
        """Jobs that can move around a switch that is away do so; the others wait for it."""
        if self._fleet.health(switch).ready or switch in self.broken.switches:
            return
        self._set(Broken(self.broken.links, self.broken.switches | {switch}))
        self._events.give_way(lambda j: switch in j.nodes, f"switch {switch} is away", False)

    def _gone(self, switch: str) -> None:
        health, seconds = self._fleet.health(switch), self._patience.restart
        if health.ready or time.monotonic() - health.since < seconds * 0.9:
            return
        why = f"switch {switch} is away for {seconds:g} s ({health.error})"
        self._events.give_way(lambda j: switch in j.nodes, why, True)

    def _set(self, broken: Broken) -> None:
        self.broken = broken
        self._events.broken_changed()


def _takes(link: frozenset[str]) -> Uses:
    return lambda job: any(link in p.links for p in job.placements)
