# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The connections that controllers have to simulated switches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from typing import Any

import finsy as fy
import grpc
import numpy as np

from netfold.controller.switches.connection import ConnectionRequest
from netfold.controller.switches.endpoint import Pipeline
from netfold.controller.switches.entries import Contents
from netfold.controller.switches.finsy_adapter import until
from netfold.controller.switches.install import WriteBatch
from netfold.controller.switches.management import is_reset
from netfold.controller.switches.port_counters import PortCounts
from tests.simulation.call import Call, Result, rpc_error
from tests.simulation.process import Process
from tests.simulation.switch import SimulatedSwitch


class SimulatedConnection:
    """See SwitchConnection."""

    def __init__(
        self,
        switch: SimulatedSwitch,
        request: ConnectionRequest,
        process: Process,
        cpu_port: int,
        may_write: Callable[[], bool] = lambda: True,
    ) -> None:
        self.request = request
        self.rpc_lock = asyncio.Lock()
        self.is_up = False
        self.is_primary = False
        self._is_open = False
        self.switch = switch
        self._process = process
        self._cpu_port = cpu_port
        self.is_broken = False
        self._calls: dict[Call[Any], None] = {}
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._packets: asyncio.Queue[fy.P4PacketIn] = asyncio.Queue(1024)
        self._draws = switch.draws
        self._may_write = may_write
        self.on_push: Callable[[SimulatedSwitch, Pipeline], None] = lambda switch, pipeline: None
        self.on_change: Callable[[], None] = lambda: None
        """Called when a change of the switch is sent."""

    # ---- what a session calls -------------------------------------------------------------------------

    async def open(self) -> None:
        try:
            await self._open()
        except BaseException:  # an attempt that fails leaves no stream
            await self.close()
            raise

    async def _open(self) -> None:
        self._process.check()
        await self._travel()
        if not self.switch.is_up or self.switch.is_refusing:
            raise rpc_error(grpc.StatusCode.UNAVAILABLE, "connection refused")
        await self.switch.is_running.wait()
        self._process.check()
        self.switch.connections.append(self)
        self.is_up = True
        self.request.on_up()
        self.switch.history.add(self.switch.name, f"connected to term {self.request.election_id}")
        self.switch.arbitrate()
        await self._rpc(lambda: None, self.request.timeouts.push_s)
        await self._prepare()
        self._start_ready()

    async def _prepare(self) -> None:
        has_other = self.switch.pipeline != self.request.pipeline
        if self.is_primary and (self.request.must_push or has_other):
            await self._change(self._push, self.request.timeouts.push_s)

    async def is_listening(self) -> bool:
        return self.switch.is_up and not self.switch.is_refusing

    async def close(self) -> None:
        if self in self.switch.connections:
            self.switch.connections.remove(self)
        self.is_up = self._is_open = False
        left = list(self._tasks)
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left)
        if self._process.is_alive:
            self.switch.arbitrate()

    def create_task(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(lambda t: self._tasks.pop(t, None))

    async def packets(self) -> AsyncIterator[fy.P4PacketIn]:
        while True:
            yield await self._packets.get()

    async def has_pipeline(self) -> bool:
        return await self._rpc(lambda: self.switch.pipeline == self.request.pipeline)

    async def read(self) -> Contents:
        async with self.rpc_lock:
            return await self._rpc(lambda: dict(self.switch.contents))

    async def write(self, batch: WriteBatch) -> None:
        async with self.rpc_lock:
            await self._change(lambda: self._write(batch), is_write=True)

    async def read_counters(self, cells: Iterable[int]) -> dict[int, tuple[int, int]]:
        wanted = list(cells)
        return await self._rpc(lambda: dict.fromkeys(wanted, (0, 0)))

    def port_counters(self, rx_ports: Iterable[int], tx_ports: Iterable[int]) -> SimulatedPortCounters:
        return SimulatedPortCounters(self, self.switch, tuple(rx_ports), tuple(tx_ports))

    async def send_packet(self, payload: bytes, egress_port: int) -> None:
        send = self._change if is_reset(payload) else self._rpc
        await send(lambda: self._send(payload, egress_port))

    # ---- what the switch calls ------------------------------------------------------------------------

    def on_arbitration(self) -> None:
        was_primary, self.is_primary = self.is_primary, self.switch.primary is self
        if self._is_open and was_primary != self.is_primary:
            for task in self._tasks:
                task.cancel()
            self._start_ready(must_prepare=True)

    def packet_in(self, port: int, payload: bytes) -> None:
        loop = asyncio.get_running_loop()
        metadata = {"ingress_port": port or self._cpu_port, "bitmap": 0}
        loop.call_later(self.switch.way_s("packet in"), self._take, fy.P4PacketIn(payload, metadata=metadata))

    def drop(self) -> None:
        """The channel breaks. Calls that are under way end with an error."""
        if self in self.switch.connections:
            self.switch.connections.remove(self)
        if self.is_broken:
            return
        self.is_broken = True
        self.is_up = False
        for call in list(self._calls):
            call.on_broken()
        if self._process.is_alive:
            self._process.call(self._on_down)

    def _on_down(self) -> None:
        self.request.on_down()
        for task in list(self._tasks):
            task.cancel()

    # ---- helpers --------------------------------------------------------------------------------------

    def _start_ready(self, *, must_prepare: bool = False) -> None:
        """As finsy: first, after a change of the primary, what is to be prepared, whose failure closes the channel."""
        self._is_open = True

        async def ready() -> None:
            try:
                if must_prepare:
                    await self._prepare()
            except fy.P4ClientError:
                self.drop()
            else:
                await self.request.on_ready(self)

        self._process.context.copy().run(lambda: self.create_task(ready()))

    def _push(self) -> None:
        self.switch.history.add(self.switch.name, "pipeline pushed")
        self.on_push(self.switch, self.request.pipeline)
        self.switch.push_pipeline(self.request.pipeline)

    def _write(self, batch: WriteBatch) -> None:
        if self.request.election_id < self.switch.highest_id or self.switch.pipeline is None:
            raise rpc_error(grpc.StatusCode.PERMISSION_DENIED, "not primary, or no pipeline")
        self.switch.write(batch)

    def _send(self, payload: bytes, egress_port: int) -> None:
        if self.switch.primary is self and self.switch.contents:
            if egress_port:
                self.switch.deliver(self.switch.name, egress_port, payload)
            else:
                self.switch.receive(0, payload)

    def _take(self, packet: fy.P4PacketIn) -> None:
        if self.is_up and not self._packets.full():
            self._packets.put_nowait(packet)

    async def _change(
        self, effect: Callable[[], None], seconds: float = 0.0, *, is_write: bool = False
    ) -> None:
        await until(self._may_write)
        self.on_change()
        await self._rpc(effect, seconds, is_write=is_write)

    async def _rpc(
        self, effect: Callable[[], Result], seconds: float = 0.0, *, is_write: bool = False
    ) -> Result:
        """One call: there, the effect, and back. Raises fy.P4ClientError; asyncio.CancelledError as gRPC does in a call
        whose channel closes."""
        self._process.check()
        call = Call(self, effect, is_write=is_write)
        self._calls[call] = None
        call.start(seconds or self.request.timeouts.call_s)
        try:
            return await call.answer
        finally:
            del self._calls[call]
            call.abandon()

    async def _travel(self) -> None:
        await asyncio.sleep(self.switch.way_s(f"way to {self.switch.name}"))


class SimulatedPortCounters:
    """See PortCounters."""

    def __init__(
        self,
        connection: SimulatedConnection,
        switch: SimulatedSwitch,
        rx: tuple[int, ...],
        tx: tuple[int, ...],
    ) -> None:
        self._connection = connection
        self._switch = switch
        self._rx, self._tx = rx, tx
        self._counts: PortCounts = np.zeros((len(rx) + len(tx), 2), np.int64)

    def __bool__(self) -> bool:
        return True

    async def read(self) -> PortCounts:
        counts = await self._connection._rpc(self._now)
        if not np.array_equal(counts, self._counts):
            self._counts = counts
        return self._counts

    def _now(self) -> PortCounts:
        """Bytes of cross traffic, and of others: probes."""
        switch, crossing = self._switch, self._switch.count_cross_traffic()
        rx = [(int(crossing.get((True, p), 0)), switch.rx.get(p, 0)) for p in self._rx]
        tx = [(int(crossing.get((False, p), 0)), switch.tx.get(p, 0)) for p in self._tx]
        return np.array([*rx, *tx], np.int64)
