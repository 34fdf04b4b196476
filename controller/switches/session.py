# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Keeps the connection to one switch over P4Runtime: connects, pushes the pipeline, reconciles, connects again.

Every connection follows one path (`SwitchSession._connection`): handshake and pipeline push (connection.py),
`_on_channel_ready`, Reconciler.adopt, Reconciler.run concurrently with PortCounterPoller.run. Any error ends the
connection, and `run` starts the next."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

import finsy as fy
import grpc
from finsy.gnmiclient import GNMIClientError

from netfold.controller.jobs.revisions import Revision
from netfold.controller.switches.connection import (
    CallTimeouts,
    Connect,
    ConnectionRequest,
    PortCounters,
    SwitchConnection,
)
from netfold.controller.switches.deadline import Deadline
from netfold.controller.switches.desired_contents import DesiredContents, DesiredContentsInbox
from netfold.controller.switches.election import controller_election_id
from netfold.controller.switches.endpoint import Endpoint, Pipeline
from netfold.controller.switches.finsy_adapter import FinsyConnection, error_text, is_late, is_task_canceled
from netfold.controller.switches.port_counters import AnswerError, PortCounterPoller, PortCounts
from netfold.controller.switches.reconciler import ForeignStateError, InstalledState, Reconciler
from netfold.controller.switches.server_forms import expand_action_sets
from netfold.controller.switches.switch_health import Health, HealthReporter

log = logging.getLogger(__name__)

MIN_RECONNECT_S, MAX_RECONNECT_S = 0.1, 1.0
"""Seconds of backoff between two connections: only an attempt shows whether the switch answers."""
CLOSE_TIMEOUT_S = 5.0

RPC_TIMEOUT_S = 5.0
PUSH_FACTOR, CALL_FACTOR = 6.0, 2.0
"""Timeouts of a pipeline push, and of RPCs that read or write tables, as multiples of the RPC timeout."""

MAX_PATIENCE = 6.0
"""Maximum factor of all timeouts. It doubles if a switch did not answer in time, which may only be slow, until a
reading of its counters takes less than the RPC timeout."""

LISTENING_S = 2.0
"""Seconds for the machine of a switch to take a connection, which its kernel does however busy the switch is."""

KEEPALIVE_CELL = 0
"""Cell of the counter `verdicts` that is read as keepalive if there are no port counters."""


CLOSED_CHANNEL_ERRORS = (AssertionError, asyncio.InvalidStateError, grpc.aio.UsageError)
"""Exceptions of an RPC whose channel was closed before: finsy asserts that its client is open."""


class SwitchUnreachableError(Exception):
    """The switch is not connected, or (`silent`) takes connections and does not answer in time."""

    def __init__(self, message: str = "", *, silent: bool = False) -> None:
        super().__init__(message)
        self.silent = silent


@dataclass(frozen=True)
class SessionEvents:
    """Called by a session; the first argument is the switch.

    registers_lost  awaited before the first write into a switch whose registers are empty
    has_revision  whether the store has made a revision of the switch's slots that the switch names
    health_changed  after each change of its health
    packet_in       with each packet that the switch sends to the controller
    port_changed    with a port and whether it is down, from switches that report ports
    ports_counted   with port counts and when they were requested (monotonic clock); returns True while the load changes
    """

    registers_lost: Callable[[str], Awaitable[None]]
    has_revision: Callable[[str, Revision], bool]
    health_changed: Callable[[str], None]
    packet_in: Callable[[str, fy.P4PacketIn], None]
    port_changed: Callable[[str, int, bool], None]
    ports_counted: Callable[[str, PortCounts, float], bool]


class SwitchSession:
    """Connects in `run` until it is canceled. `term`: the term of the leader; `counter_poll_s`: seconds between two
    readings of the port counters; `rpc_timeout_s`: see PUSH_FACTOR. `connect` makes a connection; `now`: the clock of
    the event loop."""

    def __init__(
        self,
        endpoint: Endpoint,
        pipeline: Pipeline,
        term: int,
        events: SessionEvents,
        *,
        audit_s: float = 30.0,
        counter_poll_s: float = 1.0,
        rpc_timeout_s: float = RPC_TIMEOUT_S,
        connect: Connect = FinsyConnection,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.endpoint = endpoint
        self.pipeline = endpoint.pipeline or pipeline
        self._opened_with = self.pipeline
        self.refused_pipelines = 0
        """Connections since `replace_pipeline` whose program the switch refused, or whose P4Info cannot be read."""
        self._term = term
        self._streams = 0
        self._events = events
        self._connect = connect
        self._now = now
        self._reporter = HealthReporter(endpoint.name, endpoint.address, events.health_changed, now)
        self._inbox = DesiredContentsInbox()
        self._audit_s = audit_s
        self._counter_poll_s = counter_poll_s
        self._rpc_timeout_s = rpc_timeout_s
        self._patience = 1.0
        self._closing = asyncio.Event()
        self._must_push = False
        self._connected: SwitchConnection | None = None

    @property
    def health(self) -> Health:
        return self._reporter.health

    def set_desired(self, desired: DesiredContents) -> None:
        if not self.endpoint.one_shot:
            desired = replace(desired, contents=expand_action_sets(desired.contents))
        self._inbox.put(desired)

    @property
    def is_ready_with_pipeline(self) -> bool:
        """Whether the switch is ready, on a connection that pushed `pipeline` if the switch had another one."""
        return self.health.ready and self._opened_with is self.pipeline

    def replace_pipeline(self, pipeline: Pipeline) -> None:
        """Connect anew, and push another program, which empties the switch."""
        self.pipeline, self.refused_pipelines = pipeline, 0
        self._reporter.set_failed("its program is replaced")
        self._closing.set()

    async def has_pipeline(self) -> bool:
        """Whether the switch reports the program that was pushed. Raises SwitchUnreachableError."""
        connection = self._usable_connection()
        with self._reachable("its program cannot be read"):
            async with Deadline(self._timeout_s()):
                return await connection.has_pipeline()

    async def run(self) -> None:
        pause = MIN_RECONNECT_S
        while True:
            began = self._now()
            try:
                await self._connection()
            except fy.P4ClientError as error:
                self._set_failed(error_text(error), silent=is_late(error))
            except SwitchUnreachableError as error:
                self._set_failed(str(error), silent=error.silent)
            except GNMIClientError as error:  # finsy first requests the ports
                self._reporter.set_failed(f"{error.code.name}: {error.message}")
            except asyncio.CancelledError:
                if is_task_canceled():
                    raise
                self._reporter.set_failed("the connection was lost")
            except Exception as error:
                # protocol violations and assertions of finsy, a malformed answer: one switch must not end all
                self._reporter.set_failed(str(error) or type(error).__name__)
            is_lasting = self._now() - began > MAX_RECONNECT_S
            pause = MIN_RECONNECT_S if is_lasting else min(2 * pause, MAX_RECONNECT_S)
            await asyncio.sleep(pause)

    def _set_failed(self, error: str, *, silent: bool) -> None:
        self._reporter.set_failed(error, silent=silent)
        if silent:
            self._patience = min(2 * self._patience, MAX_PATIENCE)

    def _timeout_s(self, factor: float = 1.0) -> float:
        return factor * self._patience * self._rpc_timeout_s

    async def read_counters(self, cells: Iterable[int]) -> dict[int, tuple[int, int]]:
        """Read (packets, bytes) of cells of the counter `verdicts`, at least one. Raises SwitchUnreachableError."""
        connection = self._usable_connection()
        with self._reachable("its counters cannot be read"):
            async with Deadline(self._timeout_s()):
                return await connection.read_counters(cells)

    async def read_ports(self, rx_ports: Iterable[int], tx_ports: Iterable[int]) -> PortCounts:
        """Read the received bytes of `rx_ports` and the sent bytes of `tx_ports`. Raises SwitchUnreachableError."""
        counters = self._usable_connection().port_counters(rx_ports, tx_ports)
        try:
            return await self._read_port_counters(counters)
        except AnswerError as error:
            raise SwitchUnreachableError(f"switch {self.endpoint.name}: {error}") from error

    async def _read_port_counters(self, counters: PortCounters) -> PortCounts:
        with self._reachable("its counters cannot be read"):
            async with Deadline(self._timeout_s()):
                return await counters.read()

    async def packet_out(self, payload: bytes, egress_port: int = 0) -> None:
        """Send by a port, or (0) let the switch process the packet as if it came from the CPU port. Raises
        SwitchUnreachableError."""
        connection = self._usable_connection()
        with self._reachable("it takes no packet"):
            async with Deadline(self._timeout_s()):
                await connection.send_packet(payload, egress_port)

    # ---- the connection --------------------------------------------------------------------------

    async def _connection(self) -> None:
        """Keep one connection until it is lost or an error ends it."""
        self._closing.clear()
        self._opened_with = self.pipeline
        self._streams += 1
        opening = Deadline(min(self._timeout_s(), PUSH_FACTOR * self._rpc_timeout_s))

        def on_up() -> None:
            self._reporter.set_reached()
            opening.extend(self._timeout_s(PUSH_FACTOR))

        request = ConnectionRequest(
            self.endpoint,
            self._opened_with,
            controller_election_id(self._term, self._streams),
            CallTimeouts(self._timeout_s(PUSH_FACTOR), self._timeout_s(CALL_FACTOR)),
            self._must_push,
            on_up,
            self._closing.set,
            lambda port, down: self._events.port_changed(self.endpoint.name, port, down),
            self._on_channel_ready,
        )
        try:
            connection = self._connect(request)
        except Exception:  # a P4Info that finsy or the codec cannot read
            self.refused_pipelines += 1
            raise
        try:
            await self._open(connection, opening)
            try:
                await self._closing.wait()
            finally:
                self._connected = None
                if self.health.ready or not self.health.error:
                    self._reporter.set_failed("the connection was lost")
                with suppress(TimeoutError):
                    async with asyncio.timeout(CLOSE_TIMEOUT_S):
                        await connection.close()
        finally:
            self._connected = None
            self.health.reached = False

    async def _open(self, connection: SwitchConnection, opening: Deadline) -> None:
        """Connect. The first timeout is short, because a switch that restarts during the handshake may never answer it.
        Raises SwitchUnreachableError."""
        began = self._now()
        try:
            async with opening:
                await connection.open()
        except fy.P4ClientError as error:
            self.refused_pipelines += self.health.reached and not is_late(error)
            raise
        except TimeoutError as error:
            raise SwitchUnreachableError(
                f"it did not answer for {self._now() - began:.0f} s",
                silent=await self._is_listening(connection),
            ) from error

    async def _is_listening(self, connection: SwitchConnection) -> bool:
        try:
            async with Deadline(LISTENING_S):
                return await connection.is_listening()
        except TimeoutError:
            return False

    async def _on_channel_ready(self, connection: SwitchConnection) -> None:
        """Serve a channel that is up, after arbitration is decided and the pipeline is there. Canceled when the channel
        breaks or another controller becomes primary."""
        if not connection.is_primary:
            self._connected = None
            self._reporter.set_failed("another controller is primary", preempted=True)
            return
        await self._until_error(lambda: self._serve(connection))

    async def _until_error(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run a part of the connection; the connection ends with it."""
        try:
            await work()
        except fy.P4ClientError as error:
            self._set_failed(error_text(error), silent=is_late(error))
        except ForeignStateError as error:
            self._must_push = True
            self._reporter.set_failed(f"{error}; the pipeline is pushed again")
        except SwitchUnreachableError as error:
            self._set_failed(str(error), silent=error.silent)
        except asyncio.CancelledError:
            # an RPC in progress when its channel closes raises this, though this task was not canceled
            if is_task_canceled():
                raise
            self._reporter.set_failed("the connection was lost")
        except CLOSED_CHANNEL_ERRORS:
            log.debug("%s: an RPC on a closed channel", self.endpoint.name, exc_info=True)
            self._reporter.set_failed("the connection was lost")
        except Exception as error:  # an answer that finsy or the codec cannot read
            log.exception("%s: the session failed", self.endpoint.name)
            self._reporter.set_failed(str(error) or type(error).__name__)
        finally:
            # also when finsy canceled this task: it may do so without an event that the channel is down
            self._closing.set()

    async def _serve(self, connection: SwitchConnection) -> None:
        was_pushed, self._must_push = self._must_push, False
        self._connected = connection
        connection.create_task(self._read_packets(connection))
        installed = InstalledState(connection, self.endpoint.marker, self.endpoint.management_tree)
        reconciler = Reconciler(
            installed,
            self._inbox,
            self._reporter,
            self._events.registers_lost,
            self._events.has_revision,
            self._audit_s,
            self._now,
        )
        await reconciler.adopt(was_pushed=was_pushed)
        connection.create_task(self._until_error(lambda: self._poll_counters(connection)))
        await reconciler.run()

    async def _read_packets(self, connection: SwitchConnection) -> None:
        async for packet in connection.packets():
            self._events.packet_in(self.endpoint.name, packet)

    async def _poll_counters(self, connection: SwitchConnection) -> None:
        endpoint = self.endpoint
        counters = connection.port_counters(endpoint.rx_ports, endpoint.tx_ports)

        async def poll() -> bool:
            async with connection.rpc_lock:
                sent_at = self._now()
                if counters:
                    counts = await self._read_port_counters(counters)
                else:
                    await self.read_counters([KEEPALIVE_CELL])
            if self._now() - sent_at < self._rpc_timeout_s:
                self._patience = 1.0
            if not counters:
                return False
            return self._events.ports_counted(endpoint.name, counts, sent_at)

        try:
            await PortCounterPoller(poll, self._counter_poll_s, self._now).run()
        except AnswerError as error:
            raise SwitchUnreachableError(f"switch {endpoint.name}: {error}") from error

    # ---- errors of one RPC -----------------------------------------------------------------------

    def _usable_connection(self) -> SwitchConnection:
        if self._connected is None or not self._connected.is_up:
            raise SwitchUnreachableError(f"switch {self.endpoint.name} is not connected: {self.health.error}")
        return self._connected

    @contextmanager
    def _reachable(self, failure: str) -> Iterator[None]:
        """Turn the errors of an RPC into SwitchUnreachableError."""
        name = self.endpoint.name
        try:
            yield
        except TimeoutError as error:
            raise SwitchUnreachableError(
                f"switch {name}: {failure} within {self._timeout_s():g} s", silent=True
            ) from error
        except fy.P4ClientError as error:
            raise SwitchUnreachableError(
                f"switch {name}: {failure}: {error_text(error)}", silent=is_late(error)
            ) from error
        except (asyncio.CancelledError, *CLOSED_CHANNEL_ERRORS) as error:
            # the channel was closed during this RPC, or before it
            if isinstance(error, asyncio.CancelledError) and is_task_canceled():
                raise
            raise SwitchUnreachableError(f"switch {name}: {failure}: it is not connected") from error
