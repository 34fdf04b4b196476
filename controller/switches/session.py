# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""One switch over P4Runtime: connect, push the pipeline, read back, and keep it as it should be.

There is one path for all of it. After every (re)connect the switch is read; whatever differs from the
target is written; then the session waits for a new target, or for the next audit, which reads again. An
error of any kind leads back to reading.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

import finsy as fy
import grpc
from finsy.gnmiclient import GNMIClientError
from finsy.proto import p4r

from netfold.controller.switches.endpoint import Endpoint, Health, Pipeline, Target
from netfold.controller.switches.holding import ForeignStateError, Holding
from netfold.controller.switches.install import steps
from netfold.controller.switches.manners import asked_to_stop, cause, credentials, read, read_raw
from netfold.controller.switches.patient import CallTimes, PatientSwitch
from netfold.controller.switches.port_counters import AnswerError, PortCounts, PortReader
from netfold.controller.switches.port_watch import PortWatch
from netfold.controller.switches.selectors import spelled_out
from netfold.controller.switches.widths import widened_packet

log = logging.getLogger(__name__)

FIRST_RETRY_S, LAST_RETRY_S = 0.1, 1.0
CONNECT_S, CLOSE_S = 30.0, 5.0
ANSWER_S = 5.0
"""`CONNECT_S` is for a pipeline to be pushed, once the switch has answered at all. Who gives a switch longer to answer
gives it as many times longer for a push."""

CALLS = 2
"""As many times as long may a call take that has more to do than to answer: a table that is read, entries written."""

SOON = 0.3
"""Of what a switch may take to answer: longer than that takes no reading that goes well."""

SURE_S = 10.0
"""A switch whose ports are read by a connection of their own shows by that that it lives; whether the one of gRPC does
is found out so often."""


class SwitchAwayError(Exception):
    """The switch cannot be asked now."""


class SwitchSession:
    """Runs until canceled. `lost(name)` is awaited before anything is written into a switch whose
    registers are empty; `changed()` is called after every change of `health`; `packet_in` gets what the
    switch sends up; `counted` what its ports counted and when that was asked, and it says whether it changes."""

    def __init__(
        self,
        endpoint: Endpoint,
        pipeline: Pipeline,
        election_id: int,
        *,
        lost: Callable[[str], Awaitable[None]],
        changed: Callable[[str], None],
        packet_in: Callable[[str, fy.P4PacketIn], None],
        port_down: Callable[[str, int, bool], None],
        counted: Callable[[str, PortCounts, float], bool],
        audit_s: float = 30.0,
        alive_s: float = 0.5,
        look_s: float = 1.0,
        answer_s: float = ANSWER_S,
    ) -> None:
        self.endpoint = endpoint
        self.health = Health()
        pipeline = endpoint.pipeline or pipeline
        self._options = fy.SwitchOptions(
            p4info=pipeline.p4info,
            p4blob=pipeline.blob,
            device_id=endpoint.device_id,
            initial_election_id=election_id,
            channel_credentials=None if endpoint.tls is None else credentials(endpoint.tls),
            ready_handler=self._ready,
        )
        self._lost = lost
        self._changed = changed
        self._packet_in = packet_in
        self._port_down = port_down
        self._counted = counted
        self._audit_s = audit_s
        self._alive_s = alive_s
        self._look_s = look_s
        self._target: Target | None = None
        self._renewed = asyncio.Event()
        self._closing = asyncio.Event()
        self._force = False
        self._answer_s = answer_s
        self._connect_s = self._answer_s * CONNECT_S / ANSWER_S
        self._patience_s = self._answer_s
        self._times = CallTimes(self._connect_s, CALLS * self._answer_s)
        self._switch: fy.Switch | None = None
        self._ports: PortReader | None = None
        self._watch: PortWatch | None = None
        self._alive_at = 0.0
        self._told_of_grpc = False

    def aim(self, target: Target) -> None:
        """Give the switch a new target."""
        if not self.endpoint.one_shot:
            target = replace(target, contents=spelled_out(target.contents))
        self._target = target
        self._renewed.set()

    async def run(self) -> None:
        pause = FIRST_RETRY_S
        while True:
            began = time.monotonic()
            try:
                await self._connected()
            except fy.P4ClientError as error:
                self._down(cause(error))
            except GNMIClientError as error:  # finsy asks for the ports at first
                self._down(f"{error.code.name}: {error.message}")
            except asyncio.CancelledError:
                if asked_to_stop():
                    raise
                self._down("the connection was lost")
            except Exception as error:
                # finsy's protocol violations and assertions, a malformed answer: what one switch does to its connection
                # must not end the controller of all
                self._down(str(error) or type(error).__name__)
            pause = FIRST_RETRY_S if time.monotonic() - began > LAST_RETRY_S else min(2 * pause, LAST_RETRY_S)
            await asyncio.sleep(pause)

    async def read_counters(self, cells: Iterable[int]) -> dict[int, tuple[int, int]]:
        """At least one cell of the counter `verdicts`: (packets, bytes). Raises SwitchAwayError."""
        switch = self._online()
        wanted = [fy.P4CounterEntry("verdicts", index=c) for c in cells]
        found: dict[int, tuple[int, int]] = {}
        with self._answering("its counters cannot be read"):
            async with asyncio.timeout(self._answer_s):
                async for e in read(switch, wanted):
                    if isinstance(e, fy.P4CounterEntry) and e.index is not None:
                        found[e.index] = (e.packet_count, e.byte_count)
        return found

    def look(self, now: float) -> None:
        """Read its ports' counters, if it is time to; `now` is of a monotonic clock."""
        if self._watch is not None:
            self._watch.look(now)

    async def packet_out(self, payload: bytes, egress_port: int = 0) -> None:
        """Send by a port, or (0) let the switch take the packet as if it had come in from the CPU port. Raises
        SwitchAwayError."""
        switch = self._online()
        with self._answering("it takes no packet"):
            async with asyncio.timeout(self._answer_s):
                packet = fy.P4PacketOut(payload, egress_port=egress_port, padding=0)
                request = packet.encode_update(switch.p4info)
                assert isinstance(request, p4r.StreamMessageRequest)
                wide = self.endpoint.full_width
                await switch.write([widened_packet(request, switch.p4info) if wide else request])

    @contextmanager
    def _answering(self, otherwise: str) -> Iterator[None]:
        try:
            yield
        except TimeoutError as error:
            raise SwitchAwayError(
                f"switch {self.endpoint.name}: {otherwise} within {self._answer_s:g} s"
            ) from error
        except fy.P4ClientError as error:
            raise SwitchAwayError(f"switch {self.endpoint.name}: {otherwise}: {cause(error)}") from error
        except (
            asyncio.CancelledError,
            AssertionError,
            asyncio.InvalidStateError,
            grpc.aio.UsageError,
        ) as error:
            # the channel was closed under this call, or before it: finsy asserts that its client is open
            if isinstance(error, asyncio.CancelledError) and asked_to_stop():
                raise
            raise SwitchAwayError(f"switch {self.endpoint.name}: {otherwise}: it is not connected") from error

    # ---- the connection --------------------------------------------------------------------------

    async def _connected(self) -> None:
        """One connection, until it is lost or of no more use."""
        options = self._options(p4force=self._force)
        switch = PatientSwitch(self.endpoint.name, self.endpoint.address, options, self._times)
        self._closing.clear()
        switch.ee.add_listener(fy.SwitchEvent.CHANNEL_DOWN, lambda _: self._closing.set())
        switch.ee.add_listener(fy.SwitchEvent.PORT_DOWN, lambda _, port: self._port(port.id, down=True))
        switch.ee.add_listener(fy.SwitchEvent.PORT_UP, lambda _, port: self._port(port.id, down=False))
        try:
            await self._open(switch)
            try:
                await self._closing.wait()
            finally:
                self._switch = None
                if self._watch is not None:
                    self._watch.close()
                if self.health.ready or not self.health.error:
                    self._down("the connection was lost")
                async with asyncio.timeout(CLOSE_S):
                    await switch.__aexit__(None, None, None)
        finally:
            self._switch = None
            self.health.reached = False

    async def _open(self, switch: fy.Switch) -> None:
        """Raises SwitchAwayError. A switch that is cut off during the handshake may never answer it, and be back long
        before: so it is asked anew soon, and less soon each time, for it may just be slow."""
        clock = asyncio.get_running_loop().time
        began = clock()

        def answered(_: fy.Switch) -> None:
            self.health.reached = True
            if not deadline.expired():
                deadline.reschedule(clock() + self._connect_s)

        switch.ee.add_listener(fy.SwitchEvent.CHANNEL_UP, answered)
        try:
            async with asyncio.timeout(self._patience_s) as deadline:
                await switch.__aenter__()
        except TimeoutError as error:
            self._patience_s = min(2 * self._patience_s, self._connect_s)
            raise SwitchAwayError(f"it did not answer for {clock() - began:.0f} s") from error
        self._patience_s = self._answer_s

    async def _ready(self, switch: fy.Switch) -> None:
        """finsy's ready handler: the channel is up, arbitration is decided, the pipeline is there.
        Canceled when the channel breaks or another controller becomes primary; what it meets itself ends
        the connection."""
        if not switch.is_primary:
            self._switch = None
            self._down("another controller is primary")
            return
        try:
            await self._serve(switch)
        except fy.P4ClientError as error:
            self._down(cause(error))
        except ForeignStateError as error:
            self._force = True
            self._down(f"{error}; the pipeline is pushed again")
        except SwitchAwayError as error:
            self._down(str(error))
        except asyncio.CancelledError:
            # a call that is under way when its channel closes ends like this, and nobody canceled this task
            if asked_to_stop():
                raise
            self._down("the connection was lost")
        except Exception as error:  # an answer that finsy or the codec cannot read
            log.exception("%s: the session broke", self.endpoint.name)
            self._down(str(error) or type(error).__name__)
        finally:
            # also when finsy canceled this task: it may do so without saying that the channel is down
            self._closing.set()

    async def _serve(self, switch: fy.Switch) -> None:
        pushed, self._force = self._force, False
        self._switch = switch
        known = self.endpoint
        self._ports = PortReader(switch.p4info, known.device_id, known.incoming, known.outgoing)
        if self._watch is not None:
            self._watch.close()
        self._watch = PortWatch(
            self._ports, self._look_s, SOON * self._answer_s, self._count, self._doubt, self._by_grpc
        )
        switch.create_task(self._listen(switch))
        holding = Holding(switch, self.endpoint)
        await self._adopt(holding, pushed)
        await self._keep(switch, holding)

    async def _listen(self, switch: fy.Switch) -> None:
        async for packet in switch.read_packets(queue_size=1024):
            self._packet_in(self.endpoint.name, packet)

    async def _adopt(self, holding: Holding, pushed: bool) -> None:
        """Find out what the switch holds, and whether its registers can hold sums of ours. What is there although its
        pipeline was `pushed` just now is nobody's, and goes as any drift does."""
        await holding.read()
        if holding.marked:
            wanted = await self._next_target(0)
            self.health.repaired += holding.lacks(wanted.contents)
            return
        if holding.held and not pushed:
            raise ForeignStateError(f"{len(holding.held)} entries are there that are not of this store")
        await self._lost(self.endpoint.name)

    async def _keep(self, switch: fy.Switch, holding: Holding) -> None:
        failures = 0
        while True:
            target = await self._next_target(0)
            try:
                await self._converge(holding, target)
            except fy.P4ClientError as error:
                failures += 1
                self.health.error = cause(error)
                log.warning("%s: a write failed: %s", self.endpoint.name, self.health.error)
                await holding.read()
                with suppress(TimeoutError):
                    pause = min(FIRST_RETRY_S * 2 ** (failures - 1), LAST_RETRY_S)
                    await asyncio.wait_for(self._next_target(target.version), pause)
                continue
            failures = 0
            self._up(target.version)
            await self._wait(switch, holding, target.version)

    async def _converge(self, holding: Holding, target: Target) -> None:
        began = time.monotonic()
        for step in steps(holding.held, target.contents):
            await holding.write(step)
            self.health.converge_s = time.monotonic() - began

    async def _wait(self, switch: fy.Switch, holding: Holding, version: int) -> None:
        """Until there is a newer target; meanwhile a sign of life now and then, and an audit more rarely."""
        audited = time.monotonic()
        while self._target is None or self._target.version <= version:
            self._renewed.clear()
            left = max(0.0, self._alive_at - time.monotonic())
            with suppress(TimeoutError):
                async with asyncio.timeout(min(left, self._audit_s)):
                    await self._renewed.wait()
            if time.monotonic() >= self._alive_at:
                self._alive_at = time.monotonic() + self._alive_s
                await self._sign_of_life(switch)
            if time.monotonic() - audited >= self._audit_s:
                audited = time.monotonic()
                await self._audit(holding)
                if self._target is None or holding.lacks(self._target.contents):
                    return

    async def _sign_of_life(self, switch: fy.Switch) -> None:
        """Raises SwitchAwayError. A switch that hangs closes no connection; and finsy may lose its own reader without
        saying so, when the stream is canceled from below. What is asked for is what is of use: its ports' counters.
        Then they are read more cheaply, if the switch lets us."""
        if not self._ports:
            await self.read_counters([0])
            return
        self._online()
        asked = time.monotonic()
        with self._answering("its counters cannot be read"):
            async with asyncio.timeout(self._answer_s):
                answers = await read_raw(switch, self._ports.request)
        try:
            self._count(self._ports.counts(a.SerializeToString() for a in answers), asked)
        except AnswerError as error:
            raise SwitchAwayError(f"switch {self.endpoint.name}: {error}") from error
        if self._watch is not None and await self._watch.open(self.endpoint):
            self._alive_at = time.monotonic() + SURE_S

    def _count(self, counts: PortCounts, asked: float) -> bool:
        return self._counted(self.endpoint.name, counts, asked)

    def _doubt(self) -> None:
        """Its counters do not come: gRPC is to say why, at once."""
        self._alive_at = 0.0
        self._renewed.set()

    def _by_grpc(self, why: str) -> None:
        """Said once: it is a defect of one side, or what lies between, and costs the controller six times as much."""
        if not self._told_of_grpc:
            self._told_of_grpc = True
            log.warning("%s: its ports' counters are read by gRPC from now on: %s", self.endpoint.name, why)

    async def _audit(self, holding: Holding) -> None:
        drift = await holding.read()
        self.health.audits += 1
        self.health.repaired += drift
        if drift:
            log.warning("%s: %d entries had drifted", self.endpoint.name, drift)
        if not holding.marked:
            if holding.held:
                raise ForeignStateError("the entry that marks this store is gone")
            await self._lost(self.endpoint.name)

    async def _next_target(self, after: int) -> Target:
        while self._target is None or self._target.version <= after:
            self._renewed.clear()
            await self._renewed.wait()
        return self._target

    # ---- what others see -------------------------------------------------------------------------

    def _online(self) -> fy.Switch:
        if self._switch is None or not self._switch.is_up:
            raise SwitchAwayError(f"switch {self.endpoint.name} is not connected: {self.health.error}")
        return self._switch

    def _port(self, name: str, *, down: bool) -> None:
        if str(name).isdigit():
            self._port_down(self.endpoint.name, int(name), down)

    def _up(self, version: int) -> None:
        if not self.health.ready:
            self.health.since = time.monotonic()
        self.health.ready, self.health.applied, self.health.error = True, version, ""
        self._changed(self.endpoint.name)

    def _down(self, error: str) -> None:
        if self.health.ready:
            self.health.since = time.monotonic()
            log.warning("%s: %s", self.endpoint.name, error)
        self.health.ready, self.health.error = False, error
        self._changed(self.endpoint.name)
