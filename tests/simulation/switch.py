# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A simulated switch. It dies, hangs, answers late or twice, comes back empty, forgets elections, loses streams,
refuses any part of a batch."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import grpc

from netfold.controller.switches.endpoint import Pipeline
from netfold.controller.switches.entries import Contents
from netfold.controller.switches.install import Op, WriteBatch, apply
from tests.simulation.call import rpc_error
from tests.simulation.faults import Draws
from tests.simulation.history import History

if TYPE_CHECKING:
    from tests.simulation.connection import SimulatedConnection

PACKET_BYTES = 200

REFUSED, MUTE = "refused", "mute"
"""Programs: one that no switch takes, and one with which a switch answers nothing."""

Direction = tuple[bool, int]
"""A direction at a port: whether packets arrive there, and its number."""


class SimulatedSwitch:
    """`contents` are its tables, `registers[block]` the greatest epoch that each block of slots has seen packets of.
    `deliver(switch, port, payload)` carries a packet that leaves by a port."""

    def __init__(self, name: str, draws: Draws, history: History) -> None:
        self.name = name
        self.draws = draws
        self.history = history
        self.contents: Contents = {}
        self.changes = 0  # of its contents
        self.registers: dict[int, tuple[int, object]] = {}
        self.pipeline: Pipeline | None = None
        self.losses = 0  # of all that the registers held
        self.is_up = True
        self.down_since = -1e9
        self.up_since = -1e9
        self.refused_at = -1e9
        self.is_refusing = False  # connections; packets get through
        self.is_running = asyncio.Event()  # cleared: it hangs
        self.is_running.set()
        self.delay_s = 0.0  # each way takes up to so much longer: it is slow
        self.highest_id = 0
        self.is_forgetful = False  # of ids whose connections are gone, as BMv2 and softswitch
        self.connections: list[SimulatedConnection] = []
        self.rogues: list[Rogue] = []
        self.rx: dict[int, int] = {}
        self.tx: dict[int, int] = {}
        self.cross_traffic: dict[Direction, float] = {}  # bytes a second
        self._cross_bytes: dict[Direction, float] = {}
        self._cross_counted_at = 0.0
        self.deliver: Callable[[str, int, bytes], None] = lambda switch, port, payload: None

    # ---- faults ---------------------------------------------------------------------------------------

    def drop_connections(self) -> None:
        for connection in list(self.connections):
            connection.drop()

    def stop(self) -> None:
        """As by a power cut: all is gone."""
        self.is_up = False
        self.changes += 1
        self.down_since = asyncio.get_running_loop().time()
        self.contents, self.registers, self.pipeline = {}, {}, None
        self.rx, self.tx, self.highest_id = {}, {}, 0
        self._cross_bytes = {}
        self.rogues.clear()
        self.is_running.set()
        self.drop_connections()

    def start(self) -> None:
        self.is_up = True
        self.up_since = asyncio.get_running_loop().time()

    def forget_elections(self) -> None:
        """The server restarts, its tables stay."""
        self.highest_id = 0
        self.drop_connections()

    def drift(self, where: float) -> str:
        """An entry is lost, as by a reader of hardware that writes; `where` in [0, 1) chooses it. Returns which."""
        keys = list(self.contents)
        if not keys:
            return "nothing"
        self.changes += 1
        return str(self.contents.pop(keys[int(where * len(keys))]))

    def elect_rogue(self) -> Rogue:
        """Another program becomes primary."""
        rogue = Rogue(self.highest_id + 1)
        self.rogues.append(rogue)
        self.arbitrate()
        return rogue

    def dismiss(self, rogue: Rogue) -> None:
        if rogue in self.rogues:
            self.rogues.remove(rogue)
            self.highest_id = 0
            self.arbitrate()

    # ---- cross traffic --------------------------------------------------------------------------------

    def set_cross_traffic(self, direction: Direction, bytes_per_s: float) -> None:
        self.count_cross_traffic()
        self.cross_traffic[direction] = bytes_per_s

    def count_cross_traffic(self) -> dict[Direction, float]:
        """Until now."""
        now = asyncio.get_running_loop().time()
        seconds, self._cross_counted_at = now - max(self._cross_counted_at, self.up_since), now
        for direction, rate in self.cross_traffic.items() if self.is_up else ():
            self._cross_bytes[direction] = self._cross_bytes.get(direction, 0.0) + rate * seconds
        return self._cross_bytes

    def way_s(self, name: str) -> float:
        """How long a message to or from the switch takes."""
        slowness = self.draws.of("slowness").uniform(0, self.delay_s) if self.delay_s else 0.0
        return self.draws.delay_s(name) + slowness

    # ---- P4Runtime ------------------------------------------------------------------------------------

    @property
    def primary(self) -> SimulatedConnection | None:
        best = max(self.connections, key=lambda c: c.request.election_id, default=None)
        return best if best is not None and best.request.election_id >= self.highest_id else None

    def arbitrate(self) -> None:
        ids = [*(c.request.election_id for c in self.connections), *(r.election_id for r in self.rogues)]
        self.highest_id = max([0 if self.is_forgetful else self.highest_id, *ids])
        for connection in list(self.connections):
            connection.on_arbitration()

    def push_pipeline(self, pipeline: Pipeline) -> None:
        """Raises fy.P4ClientError for a program that the switch does not take; it is as before then."""
        if pipeline.p4info.name == REFUSED:
            raise rpc_error(grpc.StatusCode.INVALID_ARGUMENT, "no such program")
        self.contents, self.registers, self.pipeline = {}, {}, pipeline
        self.changes += 1
        self.losses += 1
        self.rx, self.tx, self._cross_bytes = {}, {}, {}

    def write(self, batch: WriteBatch) -> None:
        """Raises fy.P4ClientError at the first update that is refused; those before it are written."""
        self.changes += 1
        for entity in batch.entities:
            if self.draws.happens("refused update", self.draws.intensity.refused_update):
                self.refused_at = asyncio.get_running_loop().time()
                raise rpc_error(grpc.StatusCode.UNKNOWN, "RESOURCE_EXHAUSTED: no room")
            is_there = entity.key in self.contents
            if batch.op is Op.INSERT and is_there:
                raise rpc_error(grpc.StatusCode.UNKNOWN, f"ALREADY_EXISTS: {entity}")
            if batch.op is Op.MODIFY and not is_there:
                raise rpc_error(grpc.StatusCode.UNKNOWN, f"NOT_FOUND: {entity}")
            apply(self.contents, WriteBatch(batch.op, (entity,)))

    def receive(self, port: int, payload: bytes) -> None:
        """A READ from a neighbor (port > 0) or from the controller: answered to the controller."""
        self.rx[port] = self.rx.get(port, 0) + PACKET_BYTES
        if self.pipeline is not None and self.pipeline.p4info.name == MUTE:
            return
        if self.is_up and self.is_running.is_set() and self.contents and self.primary is not None:
            self.primary.packet_in(port, payload)
            if self.draws.happens("answer", self.draws.intensity.twice):
                self.primary.packet_in(port, payload)


@dataclass(frozen=True)
class Rogue:
    """A program that is no controller of the store, and writes nothing."""

    election_id: int
