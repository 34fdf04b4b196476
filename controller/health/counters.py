# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What the switches counted, by job: read now and then, and added up so that a tree number that is used again, or a
switch that starts from zero, does not disturb the totals."""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Awaitable, Callable

from netfold.controller.jobs.records import JobRecord
from netfold.controller.switches.fleet import Fleet
from netfold.controller.switches.session import SwitchAwayError
from netfold.controller.switches.verdicts import NO_TREE, cell
from netfold.traffic.packets.wire import Verdict

NO_JOB = ""

BREATH_S = 0.05
"""A switch that is about to be found away refuses at once: without a breath nobody would get to find it so."""

SwitchTree = tuple[str, int]
"""Switch and tree."""


class Counters:
    """`totals[switch, job, verdict]` and `trees[switch, tree][verdict]` in packets, since they were first seen by this
    controller. `wait` returns what to await for the next change of any job."""

    def __init__(
        self,
        fleet: Fleet,
        jobs: Callable[[], list[JobRecord]],
        wait: Callable[[], Awaitable[object]],
        period_s: float,
    ) -> None:
        self.totals: dict[tuple[str, str, Verdict], int] = defaultdict(int)
        self.trees: dict[SwitchTree, dict[Verdict, int]] = {}
        self._fleet = fleet
        self._jobs = jobs
        self._wait = wait
        self._period_s = period_s
        self._reading = defaultdict[str, asyncio.Lock](asyncio.Lock)
        self._raw: dict[SwitchTree, dict[Verdict, int]] = {}

    async def run(self) -> None:
        """Until canceled; new trees are read at once, so that their first packets count."""
        while True:
            await self.refresh()
            await asyncio.sleep(BREATH_S)
            deadline = asyncio.get_running_loop().time() + self._period_s
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(deadline):
                    while self._places().keys() <= self._raw.keys():
                        await self._wait()

    async def refresh(self) -> None:
        """Read all that can be read now; what is away keeps its last values."""
        places = self._places()
        for gone in self._raw.keys() - places.keys():
            del self._raw[gone]
            self.trees.pop(gone, None)
        known = {NO_JOB, *(j.name for j in self._jobs())}
        for key in [k for k in self.totals if k[1] not in known]:
            del self.totals[key]
        for switch in self._fleet.sessions:
            mine = {p: job for p, job in places.items() if p[0] == switch}
            with contextlib.suppress(SwitchAwayError):
                await self._read(switch, mine)

    def _places(self) -> dict[SwitchTree, str]:
        """Every tree of every switch that answers, with its job."""
        places = {(s, NO_TREE): NO_JOB for s in self._fleet.sessions}
        for job in self._jobs():
            for placement in job.placements:
                for planned, tree in zip(placement.trees, placement.plan.trees, strict=True):
                    nodes = {n for pair in tree.down for n in pair} | {n for e in tree.edges for n in e.path}
                    places.update({(n, planned.tree): job.name for n in nodes if n in self._fleet.sessions})
        return {p: job for p, job in places.items() if self._fleet.health(p[0]).ready}

    async def _read(self, switch: str, places: dict[SwitchTree, str]) -> None:
        """One read of a switch at a time: answers that overtake each other would look like a switch that restarted."""
        async with self._reading[switch]:
            await self._read_alone(switch, places)

    async def _read_alone(self, switch: str, places: dict[SwitchTree, str]) -> None:
        cells = {cell(tree, v): ((switch, tree), v) for _, tree in places for v in Verdict}
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
