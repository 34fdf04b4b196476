# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A simulated switch, and the connections that controllers have to it. It dies, hangs, answers late or twice, comes
back empty, forgets elections, loses streams, refuses any part of a batch."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import finsy as fy
import grpc
import numpy as np

from netfold.controller.switches.connection import ConnectionRequest
from netfold.controller.switches.entries import Contents
from netfold.controller.switches.install import Op, WriteBatch, apply
from netfold.controller.switches.port_counters import PortCounts
from tests.simulation.faults import Draws
from tests.simulation.history import History
from tests.simulation.process import Process

Result = TypeVar("Result")

PACKET_BYTES = 200

Direction = tuple[bool, int]
"""Of a port: whether packets arrive there, and its number."""


def rpc_error(code: grpc.StatusCode, text: str) -> fy.P4ClientError:
    nothing = grpc.aio.Metadata()
    return fy.P4ClientError(grpc.aio.AioRpcError(code, nothing, nothing, text), "simulated")


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
        self.has_pipeline = False
        self.losses = 0  # of all that the registers held
        self.is_up = True
        self.down_since = -1e9
        self.up_since = -1e9
        self.refused_at = -1e9
        self.is_refusing = False  # connections; packets get through
        self.is_running = asyncio.Event()  # cleared: it hangs
        self.is_running.set()
        self.highest_id = 0
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
        self.contents, self.registers, self.has_pipeline = {}, {}, False
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

    # ---- P4Runtime ------------------------------------------------------------------------------------

    @property
    def primary(self) -> SimulatedConnection | None:
        best = max(self.connections, key=lambda c: c.request.election_id, default=None)
        return best if best is not None and best.request.election_id >= self.highest_id else None

    def arbitrate(self) -> None:
        ids = [*(c.request.election_id for c in self.connections), *(r.election_id for r in self.rogues)]
        self.highest_id = max([self.highest_id, *ids])
        for connection in list(self.connections):
            connection.on_arbitration()

    def push_pipeline(self) -> None:
        self.contents, self.registers, self.has_pipeline = {}, {}, True
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
        if self.is_up and self.is_running.is_set() and self.contents and self.primary is not None:
            self.primary.packet_in(port, payload)
            if self.draws.happens("answer", self.draws.intensity.twice):
                self.primary.packet_in(port, payload)


@dataclass(frozen=True)
class Rogue:
    """A program that is no controller of the store, and writes nothing."""

    election_id: int


class SimulatedConnection:
    """See SwitchConnection."""

    def __init__(
        self, switch: SimulatedSwitch, request: ConnectionRequest, process: Process, cpu_port: int
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
        if self.is_primary and (self.request.must_push or not self.switch.has_pipeline):
            await self._rpc(self._push, self.request.timeouts.push_s)

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

    async def read(self) -> Contents:
        async with self.rpc_lock:
            return await self._rpc(lambda: dict(self.switch.contents))

    async def write(self, batch: WriteBatch) -> None:
        async with self.rpc_lock:
            await self._rpc(lambda: self._write(batch), is_write=True)

    async def read_counters(self, cells: Iterable[int]) -> dict[int, tuple[int, int]]:
        wanted = list(cells)
        return await self._rpc(lambda: dict.fromkeys(wanted, (0, 0)))

    def port_counters(self, rx_ports: Iterable[int], tx_ports: Iterable[int]) -> SimulatedPortCounters:
        return SimulatedPortCounters(self, self.switch, tuple(rx_ports), tuple(tx_ports))

    async def send_packet(self, payload: bytes, egress_port: int) -> None:
        await self._rpc(lambda: self._send(payload, egress_port))

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
        loop.call_later(
            self._draws.delay_s("packet in"), self._take, fy.P4PacketIn(payload, metadata=metadata)
        )

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
            self._process.context.copy().run(self._on_down)

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
        self.switch.push_pipeline()

    def _write(self, batch: WriteBatch) -> None:
        if self.request.election_id < self.switch.highest_id or not self.switch.has_pipeline:
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
        await asyncio.sleep(self._draws.delay_s(f"way to {self.switch.name}"))


class Call(Generic[Result]):
    """A call on its way to a switch and back: timers instead of tasks, as nearly all that a run does is calls. `answer`
    has its result or error. It belongs to the world: what is on its way when its process dies may still arrive."""

    def __init__(
        self, connection: SimulatedConnection, effect: Callable[[], Result], *, is_write: bool
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self.answer: asyncio.Future[Result] = self._loop.create_future()
        self._connection = connection
        self._switch = connection.switch
        self._draws = self._switch.draws
        self._effect = effect
        self._is_write = is_write
        self._travels: asyncio.TimerHandle | None = None
        self._times_out: asyncio.TimerHandle | None = None

    def start(self, timeout_s: float) -> None:
        self._travel(self._arrive)
        self._times_out = self._later(timeout_s, self._time_out)

    def _time_out(self) -> None:
        self._fail(rpc_error(grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded"))

    def on_broken(self) -> None:
        """The channel breaks. What is on its way may still arrive, as is drawn in `abandon`."""
        if self._draws.happens("kind of loss", 0.3):
            self.answer.cancel()
        else:
            self._fail(rpc_error(grpc.StatusCode.UNAVAILABLE, "the channel broke"))

    def abandon(self) -> None:
        """The caller waits no longer."""
        assert self._times_out is not None
        self._times_out.cancel()
        if self._travels is None:
            return
        if not (self._is_write and self._draws.happens("late write", self._draws.intensity.late_write)):
            self._travels.cancel()
            self._travels = None

    def _arrive(self) -> None:
        if self._switch.is_running.is_set():
            self._take_effect()
        else:
            self._loop.create_task(self._arrive_later(), context=contextvars.Context())

    async def _arrive_later(self) -> None:
        """When the switch hangs no longer."""
        await self._switch.is_running.wait()
        if self._travels is not None:
            self._take_effect()

    def _take_effect(self) -> None:
        draws, connection, switch = self._draws, self._connection, self._switch
        if draws.happens("rpc", draws.intensity.rpc_error):
            self._fail(rpc_error(grpc.StatusCode.INTERNAL, "a fault of the switch"))
            return
        try:
            if draws.happens("stream", draws.intensity.stream_loss):
                switch.history.add(switch.name, "the stream is lost")
                if self._is_write and draws.happens("which half", 0.5):
                    self._effect()
                connection.drop()
            lands = self._is_write and draws.happens("in flight", 0.3)
            if (connection.is_broken and not lands) or not switch.is_up:
                self._fail(rpc_error(grpc.StatusCode.UNAVAILABLE, "the channel broke"))
                return
            result = self._effect()
        except fy.P4ClientError as error:
            self._fail(error)
        else:
            self._travel(lambda: self._succeed(result))

    def _succeed(self, result: Result) -> None:
        self._travels = None
        if not self.answer.done():
            self.answer.set_result(result)

    def _fail(self, error: fy.P4ClientError) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)

    def _travel(self, then: Callable[[], None]) -> None:
        self._travels = self._later(self._draws.delay_s(f"way to {self._switch.name}"), then)

    def _later(self, seconds: float, then: Callable[[], None]) -> asyncio.TimerHandle:
        return self._loop.call_later(seconds, then, context=contextvars.Context())


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
