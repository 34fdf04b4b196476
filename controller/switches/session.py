# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The connection to one switch over P4Runtime: connect, push the pipeline, reconcile, connect again.

Every connection follows one path (`SwitchSession._connection`): handshake and pipeline push (finsy),
`_on_channel_ready`, Reconciler.adopt, Reconciler.run beside PortCounterPoller.run. Any error ends the connection, and
`run` starts the next."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import finsy as fy
import grpc
from finsy.gnmiclient import GNMIClientError
from finsy.proto import p4r

from netfold.controller.switches.desired_contents import DesiredContents, DesiredContentsInbox
from netfold.controller.switches.endpoint import Endpoint, Pipeline
from netfold.controller.switches.finsy_adapter import (
    CallTimeouts,
    TimeoutSwitch,
    credentials,
    error_text,
    is_task_canceled,
)
from netfold.controller.switches.installed_state import ForeignStateError, InstalledState
from netfold.controller.switches.port_counter_poller import PortCounterPoller
from netfold.controller.switches.port_counters import AnswerError, PortCounts, PortReader
from netfold.controller.switches.reconciler import Reconciler
from netfold.controller.switches.selectors import expand_action_sets
from netfold.controller.switches.switch_health import Health, HealthReporter
from netfold.controller.switches.widths import pad_packet_to_width

log = logging.getLogger(__name__)

MIN_RECONNECT_S, MAX_RECONNECT_S = 0.1, 1.0
CLOSE_TIMEOUT_S = 5.0

RPC_TIMEOUT_S = 5.0
PUSH_FACTOR, CALL_FACTOR = 6.0, 2.0
"""Timeouts of a pipeline push, and of RPCs that read or write tables, as multiples of the RPC timeout."""

KEEPALIVE_CELL = 0
"""Cell of the counter `verdicts` that is read as keepalive where there are no port counters."""


class SwitchUnreachableError(Exception):
    """The switch is not connected, or does not answer in time."""


@dataclass(frozen=True)
class SessionEvents:
    """Called by a session; the first argument is the switch.

    registers_lost  awaited before the first write into a switch whose registers are empty
    health_changed  after each change of its health
    packet_in       with each packet that the switch sends to the controller
    port_changed    with a port and whether it is down, from switches that report ports
    ports_counted   with port counts and when they were requested (monotonic clock); returns True while the load changes
    """

    registers_lost: Callable[[str], Awaitable[None]]
    health_changed: Callable[[str], None]
    packet_in: Callable[[str, fy.P4PacketIn], None]
    port_changed: Callable[[str, int, bool], None]
    ports_counted: Callable[[str, PortCounts, float], bool]


class SwitchSession:
    """`run` connects until it is canceled. `counter_poll_s`: seconds between two readings of the port counters;
    `rpc_timeout_s`: see PUSH_FACTOR."""

    def __init__(
        self,
        endpoint: Endpoint,
        pipeline: Pipeline,
        election_id: int,
        events: SessionEvents,
        *,
        audit_s: float = 30.0,
        counter_poll_s: float = 1.0,
        rpc_timeout_s: float = RPC_TIMEOUT_S,
    ) -> None:
        self.endpoint = endpoint
        pipeline = endpoint.pipeline or pipeline
        self._options = fy.SwitchOptions(
            p4info=pipeline.p4info,
            p4blob=pipeline.blob,
            device_id=endpoint.device_id,
            initial_election_id=election_id,
            channel_credentials=None if endpoint.tls is None else credentials(endpoint.tls),
            ready_handler=self._on_channel_ready,
        )
        self._events = events
        self._reporter = HealthReporter(endpoint.name, events.health_changed)
        self._inbox = DesiredContentsInbox()
        self._audit_s = audit_s
        self._counter_poll_s = counter_poll_s
        self._rpc_timeout_s = rpc_timeout_s
        self._push_timeout_s = PUSH_FACTOR * rpc_timeout_s
        self._handshake_timeout_s = rpc_timeout_s
        self._closing = asyncio.Event()
        self._must_push = False
        self._switch: TimeoutSwitch | None = None

    @property
    def health(self) -> Health:
        return self._reporter.health

    def set_desired(self, desired: DesiredContents) -> None:
        if not self.endpoint.one_shot:
            desired = replace(desired, contents=expand_action_sets(desired.contents))
        self._inbox.put(desired)

    async def run(self) -> None:
        pause = MIN_RECONNECT_S
        while True:
            began = time.monotonic()
            try:
                await self._connection()
            except fy.P4ClientError as error:
                self._reporter.set_failed(error_text(error))
            except GNMIClientError as error:  # finsy first requests the ports
                self._reporter.set_failed(f"{error.code.name}: {error.message}")
            except asyncio.CancelledError:
                if is_task_canceled():
                    raise
                self._reporter.set_failed("the connection was lost")
            except Exception as error:
                # protocol violations and assertions of finsy, a malformed answer: one switch must not end all
                self._reporter.set_failed(str(error) or type(error).__name__)
            is_lasting = time.monotonic() - began > MAX_RECONNECT_S
            pause = MIN_RECONNECT_S if is_lasting else min(2 * pause, MAX_RECONNECT_S)
            await asyncio.sleep(pause)

    async def read_counters(self, cells: Iterable[int]) -> dict[int, tuple[int, int]]:
        """(packets, bytes) of cells of the counter `verdicts`, at least one. Raises SwitchUnreachableError."""
        switch = self._connected_switch()
        wanted = [fy.P4CounterEntry("verdicts", index=c) for c in cells]
        counts: dict[int, tuple[int, int]] = {}
        with self._reachable("its counters cannot be read"):
            async with asyncio.timeout(self._rpc_timeout_s):
                async for e in switch.read_entities(wanted):
                    if isinstance(e, fy.P4CounterEntry) and e.index is not None:
                        counts[e.index] = (e.packet_count, e.byte_count)
        return counts

    async def read_ports(self, rx_ports: Iterable[int], tx_ports: Iterable[int]) -> PortCounts:
        """Arrivals at `rx_ports` and departures from `tx_ports` now. Raises SwitchUnreachableError."""
        switch = self._connected_switch()
        reader = PortReader(switch.p4info, self.endpoint.device_id, rx_ports, tx_ports)
        try:
            return reader.counts(await self._read_responses(switch, reader.request) if reader else ())
        except AnswerError as error:
            raise SwitchUnreachableError(f"switch {self.endpoint.name}: {error}") from error

    async def _read_responses(
        self, switch: TimeoutSwitch, request: p4r.ReadRequest
    ) -> Sequence[p4r.ReadResponse]:
        with self._reachable("its counters cannot be read"):
            async with asyncio.timeout(self._rpc_timeout_s):
                return await switch.read_responses(request)

    async def packet_out(self, payload: bytes, egress_port: int = 0) -> None:
        """Send by a port, or (0) let the switch process the packet as if it came from the CPU port. Raises
        SwitchUnreachableError."""
        switch = self._connected_switch()
        with self._reachable("it takes no packet"):
            async with asyncio.timeout(self._rpc_timeout_s):
                packet = fy.P4PacketOut(payload, egress_port=egress_port, padding=0)
                request = packet.encode_update(switch.p4info)
                assert isinstance(request, p4r.StreamMessageRequest)
                if self.endpoint.full_width:
                    request = pad_packet_to_width(request, switch.p4info)
                await switch.write([request])

    # ---- the connection --------------------------------------------------------------------------

    async def _connection(self) -> None:
        """One connection, until it is lost or an error ends it."""
        timeouts = CallTimeouts(self._push_timeout_s, CALL_FACTOR * self._rpc_timeout_s)
        options = self._options(p4force=self._must_push)
        switch = TimeoutSwitch(self.endpoint.name, self.endpoint.address, options, timeouts)
        self._closing.clear()
        switch.ee.add_listener(fy.SwitchEvent.CHANNEL_DOWN, lambda _: self._closing.set())
        switch.ee.add_listener(fy.SwitchEvent.PORT_DOWN, lambda _, port: self._on_port(port.id, down=True))
        switch.ee.add_listener(fy.SwitchEvent.PORT_UP, lambda _, port: self._on_port(port.id, down=False))
        try:
            await self._open(switch)
            try:
                await self._closing.wait()
            finally:
                self._switch = None
                if self.health.ready or not self.health.error:
                    self._reporter.set_failed("the connection was lost")
                async with asyncio.timeout(CLOSE_TIMEOUT_S):
                    await switch.__aexit__(None, None, None)
        finally:
            self._switch = None
            self.health.reached = False

    async def _open(self, switch: TimeoutSwitch) -> None:
        """Connect; raises SwitchUnreachableError. A switch that restarts during the handshake may never answer it. So
        the first timeout is short, and doubles with each attempt, as the switch may only be slow."""
        clock = asyncio.get_running_loop().time
        began = clock()

        def on_channel_up(_: fy.Switch) -> None:
            self.health.reached = True
            if not deadline.expired():
                deadline.reschedule(clock() + self._push_timeout_s)

        switch.ee.add_listener(fy.SwitchEvent.CHANNEL_UP, on_channel_up)
        try:
            async with asyncio.timeout(self._handshake_timeout_s) as deadline:
                await switch.__aenter__()
        except TimeoutError as error:
            self._handshake_timeout_s = min(2 * self._handshake_timeout_s, self._push_timeout_s)
            raise SwitchUnreachableError(f"it did not answer for {clock() - began:.0f} s") from error
        self._handshake_timeout_s = self._rpc_timeout_s

    async def _on_channel_ready(self, switch: fy.Switch) -> None:
        """finsy's ready handler: the channel is up, arbitration is decided, the pipeline is there. Canceled when the
        channel breaks or another controller becomes primary."""
        assert isinstance(switch, TimeoutSwitch)
        if not switch.is_primary:
            self._switch = None
            self._reporter.set_failed("another controller is primary")
            return
        await self._until_error(self._serve(switch))

    async def _until_error(self, work: Coroutine[object, object, None]) -> None:
        """Run a part of the connection; its end is the end of the connection."""
        try:
            await work
        except fy.P4ClientError as error:
            self._reporter.set_failed(error_text(error))
        except ForeignStateError as error:
            self._must_push = True
            self._reporter.set_failed(f"{error}; the pipeline is pushed again")
        except SwitchUnreachableError as error:
            self._reporter.set_failed(str(error))
        except asyncio.CancelledError:
            # an RPC in progress when its channel closes raises this, though this task was not canceled
            if is_task_canceled():
                raise
            self._reporter.set_failed("the connection was lost")
        except Exception as error:  # an answer that finsy or the codec cannot read
            log.exception("%s: the session failed", self.endpoint.name)
            self._reporter.set_failed(str(error) or type(error).__name__)
        finally:
            # also when finsy canceled this task: it may do so without an event that the channel is down
            self._closing.set()

    async def _serve(self, switch: TimeoutSwitch) -> None:
        was_pushed, self._must_push = self._must_push, False
        self._switch = switch
        switch.create_task(self._read_packets(switch))
        installed = InstalledState(switch, self.endpoint)
        reconciler = Reconciler(
            installed, self._inbox, self._reporter, self._events.registers_lost, self._audit_s
        )
        await reconciler.adopt(was_pushed=was_pushed)
        switch.create_task(self._until_error(self._poll_counters(switch)))
        await reconciler.run()

    async def _read_packets(self, switch: TimeoutSwitch) -> None:
        async for packet in switch.read_packets(queue_size=1024):
            self._events.packet_in(self.endpoint.name, packet)

    async def _poll_counters(self, switch: TimeoutSwitch) -> None:
        endpoint = self.endpoint
        reader = PortReader(switch.p4info, endpoint.device_id, endpoint.rx_ports, endpoint.tx_ports)

        async def read(request: p4r.ReadRequest) -> tuple[Sequence[p4r.ReadResponse], float]:
            async with switch.rpc_lock:
                sent_at = time.monotonic()
                return await self._read_responses(switch, request), sent_at

        async def keepalive() -> None:
            async with switch.rpc_lock:
                await self.read_counters([KEEPALIVE_CELL])

        def on_counts(counts: PortCounts, sent_at: float) -> bool:
            return self._events.ports_counted(endpoint.name, counts, sent_at)

        try:
            await PortCounterPoller(reader, read, keepalive, on_counts, self._counter_poll_s).run()
        except AnswerError as error:
            raise SwitchUnreachableError(f"switch {endpoint.name}: {error}") from error

    # ---- errors of one RPC -----------------------------------------------------------------------

    def _connected_switch(self) -> TimeoutSwitch:
        if self._switch is None or not self._switch.is_up:
            raise SwitchUnreachableError(f"switch {self.endpoint.name} is not connected: {self.health.error}")
        return self._switch

    @contextmanager
    def _reachable(self, failure: str) -> Iterator[None]:
        """Turns the errors of an RPC into SwitchUnreachableError."""
        name = self.endpoint.name
        try:
            yield
        except TimeoutError as error:
            raise SwitchUnreachableError(
                f"switch {name}: {failure} within {self._rpc_timeout_s:g} s"
            ) from error
        except fy.P4ClientError as error:
            raise SwitchUnreachableError(f"switch {name}: {failure}: {error_text(error)}") from error
        except (
            asyncio.CancelledError,
            AssertionError,
            asyncio.InvalidStateError,
            grpc.aio.UsageError,
        ) as error:
            # the channel was closed during this RPC, or before it: finsy asserts that its client is open
            if isinstance(error, asyncio.CancelledError) and is_task_canceled():
                raise
            raise SwitchUnreachableError(f"switch {name}: {failure}: it is not connected") from error

    def _on_port(self, name: str, *, down: bool) -> None:
        if str(name).isdigit():
            self._events.port_changed(self.endpoint.name, int(name), down)
