# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Reads packets by job and verdict periodically from the switches. Differences between readings are summed, so that
totals stay right when a tree number is reused or a switch restarts at zero."""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Awaitable, Callable

from netfold.controller.jobs.records import JobRecord
from netfold.controller.switches.fleet import Fleet
from netfold.controller.switches.session import SwitchUnreachableError
from netfold.controller.switches.tables import NO_TREE, verdict_cell
from netfold.protocol.wire import Verdict

NO_JOB = ""

MIN_PAUSE_S = 0.05
"""Minimum seconds between two rounds: readings of a switch that is losing its connection fail at once, and its session
needs time to find the connection lost."""

SwitchTree = tuple[str, int]
"""Switch and tree."""


class Counters:
    """Totals of counters. `totals[switch, job, verdict]` and `trees[switch, tree][verdict]` count packets since this
    controller first read them. `jobs[switch, tree]` is the job of the tree at the last reading. `readings` counts
    complete readings. `wait()` returns at the next change of any job."""

    def __init__(
        self,
        fleet: Fleet,
        jobs: Callable[[], list[JobRecord]],
        wait: Callable[[], Awaitable[object]],
        period_s: float,
    ) -> None:
        self.totals: dict[tuple[str, str, Verdict], int] = defaultdict(int)
        self.trees: dict[SwitchTree, dict[Verdict, int]] = {}
        self.jobs: dict[SwitchTree, str] = {}
        self.readings = 0
        self._fleet = fleet
        self._jobs = jobs
        self._wait = wait
        self._period_s = period_s
        self._reading = defaultdict[str, asyncio.Lock](asyncio.Lock)
        self._raw: dict[SwitchTree, dict[Verdict, int]] = {}

    async def run(self) -> None:
        """Read until canceled. New trees are read at once, so that their first packets count."""
        while True:
            await self.refresh()
            await asyncio.sleep(MIN_PAUSE_S)
            deadline = asyncio.get_running_loop().time() + self._period_s
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(deadline):
                    while self._places().keys() <= self._raw.keys():
                        await self._wait()

    async def refresh(self) -> None:
        """Read all switches that are ready; the others keep their last values."""
        places = self.jobs = self._places()
        for stale in self._raw.keys() - places.keys():
            del self._raw[stale]
            self.trees.pop(stale, None)
        jobs = {NO_JOB, *(j.name for j in self._jobs())}
        for key in [k for k in self.totals if k[1] not in jobs]:
            del self.totals[key]
        by_switch: dict[str, dict[SwitchTree, str]] = defaultdict(dict)
        for place, job in places.items():
            by_switch[place[0]][place] = job
        for switch, of_switch in by_switch.items():
            with contextlib.suppress(SwitchUnreachableError):
                await self._read(switch, of_switch)
        self.readings += 1

    def _places(self) -> dict[SwitchTree, str]:
        """The job of each tree of each switch that is ready."""
        places = {(s, NO_TREE): NO_JOB for s in self._fleet.sessions}
        for job in self._jobs():
            for placement in job.placements:
                for planned, tree in zip(placement.trees, placement.plan.trees, strict=True):
                    switches = tree.touched & self._fleet.sessions.keys()
                    places.update({(s, planned.tree): job.name for s in switches})
        return {p: job for p, job in places.items() if self._fleet.health(p[0]).ready}

    async def _read(self, switch: str, places: dict[SwitchTree, str]) -> None:
        """Read a switch, one reading at a time: answers in the wrong order would look like a restart."""
        async with self._reading[switch]:
            await self._read_alone(switch, places)

    async def _read_alone(self, switch: str, places: dict[SwitchTree, str]) -> None:
        cells = {verdict_cell(tree, v): ((switch, tree), v) for _, tree in places for v in Verdict}
        counted = await self._fleet.sessions[switch].read_counters(cells)
        now: dict[SwitchTree, dict[Verdict, int]] = {p: {} for p in places}
        for index, (place, verdict) in cells.items():
            if index in counted:
                now[place][verdict] = counted[index][0]
        for place, raw in now.items():
            before = self._raw.get(place, raw)
            tree = self.trees.setdefault(place, dict.fromkeys(Verdict, 0))
            for verdict, packets in raw.items():
                old = before.get(verdict, 0)
                new = packets - old if packets >= old else packets  # the switch started from zero
                tree[verdict] += new
                self.totals[switch, places[place], verdict] += new
            self._raw[place] = raw
