# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Invariants of controllers that share a store: one at a time commits and changes switches, and another one leads
soon."""

from __future__ import annotations

import asyncio
import contextvars
from typing import TYPE_CHECKING

from netfold.controller.jobs.etcd_engine import GROUPS
from tests.simulation.lasting import Lasting
from tests.simulation.loop import VirtualLoop
from tests.simulation.process import Process
from tests.simulation.switch import SimulatedSwitch

if TYPE_CHECKING:
    from tests.simulation.cluster import Cluster

VACANT_S = 14.0
"""So long may no controller lead while one is whole, and etcd has a majority: one whose renewals
arrive, and which gets no answers, stands by five seconds after the end of its lease by its own clock."""
HUNG_S = 25.0
"""So long where one that hangs has the lease, whose thread renews it for ten seconds more."""


STEPPED_DOWN_S = 1.4
"""So soon another one leads once one has stepped down, where nothing has failed for a while: before its lease would
have ended by itself."""


class Leaders:
    """Adds to the world's violations."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._world = cluster.world
        self._heads: set[str] = set()
        self._term = 0
        self._vacant: Lasting[str] = Lasting()
        self._hung: Lasting[str] = Lasting()
        cluster.stores.etcd.on_head = self._on_head
        self._world.on_change = self._on_change

    def on_restore(self) -> None:
        self._heads, self._term = set(), 0

    def _on_head(self, head: str) -> None:
        """The terms of commits that etcd has accepted never fall, and each number is there once."""
        term = int(head.partition(":")[0])
        if term < self._term:
            self._note(f"a commit of term {term} is accepted after one of {self._term}")
        if head in self._heads:
            self._note(f"the commit {head} is accepted twice")
        self._term = max(term, self._term)
        self._heads.add(head)

    def _on_change(self, process: Process, switch: SimulatedSwitch) -> None:
        """No controller changes a switch while another one has the lease."""
        leader = self._cluster.leader
        if leader is not None and leader.process is not process:
            self._note(f"{process.name} changes {switch.name} while {leader.name} leads")

    def look(self) -> None:
        """At all times. A controller leads soon, if one can."""
        whole = [r.name for r in self._cluster.replicas if r.is_whole]
        if not self._cluster.stores.etcd.has_majority or self._leads:
            whole = []
        leader = self._cluster.leader
        hangs = leader is not None and leader.process is not None and leader.process.is_hung
        for name in self._vacant.update([] if hangs else whole, VACANT_S) + self._hung.update(whole, HUNG_S):
            self._note(f"no controller has led for long, and {name} could")

    def on_step_down(self) -> None:
        """The leader does, on request."""
        now, loop, leader = (
            self._world.clock.monotonic_s(),
            asyncio.get_running_loop(),
            self._cluster.leader,
        )
        assert isinstance(loop, VirtualLoop)
        if now < self._world.busy_until or self._cluster.way.faults or loop.tick_s:
            return  # each call takes a tick
        others = [(r, r.process) for r in self._cluster.replicas if r is not leader]

        def look() -> None:
            able = [r.name for r, process in others if r.is_whole and r.process is process]
            if able and now >= self._world.busy_until and self._cluster.leader in (None, leader):
                self._note(f"a controller has stepped down, and {able} do not lead")

        loop.call_later(STEPPED_DOWN_S, look, context=contextvars.Context())

    @property
    def _leads(self) -> bool:
        leader = self._cluster.leader
        return leader is not None and leader.leads and self._world.process is leader.process

    def wrong_at_rest(self) -> str:
        """Name how the leader's memory differs from etcd; "": not at all."""
        if not self._leads:
            return "no controller leads"
        memory, kept = self._world.store._db, self._cluster.stores.read()
        for table in GROUPS:
            rows, found = ({*map(repr, d.execute(f"SELECT * FROM {table}"))} for d in (memory, kept))
            if rows != found:
                return (
                    f"of {table} memory has {sorted(rows - found)[:3]}, and etcd {sorted(found - rows)[:3]}"
                )
        return ""

    def _note(self, text: str) -> None:
        self._world.violations.append(text)
