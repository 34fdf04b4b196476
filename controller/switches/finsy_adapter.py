# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Adapts finsy to a session: `FinsyConnection` is a SwitchConnection over gRPC. All use of finsy's internals is
in this file.

finsy ends every RPC after 10 s, also a pipeline push, and offers no option for it. So `TimeoutSwitch` replaces the
client that finsy makes (`Switch._p4client`, in the hook `Switch._switch_start`) by a subclass, whose stub
(`P4Client._stub`) passes timeouts of its own. And finsy's `read` makes objects of its own of each entity, at ten times
the cost of the RPC: `read_responses` returns the responses as they are. The schema (`Switch._p4schema`) is one whose
P4Info is parsed already: finsy parses the text anew for each switch and connection, which takes longer than the rest of
a connection, and most switches of a fabric have the same one. Nothing of finsy is patched."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from pathlib import Path
from typing import Any

import finsy as fy
from finsy import pbutil
from finsy.p4client import P4Client
from finsy.proto import p4i, p4r

from netfold.controller.switches.connection import CallTimeouts, ConnectionRequest
from netfold.controller.switches.endpoint import Endpoint, Tls
from netfold.controller.switches.entries import Codec, Contents, Entity
from netfold.controller.switches.install import Op, WriteBatch
from netfold.controller.switches.management import is_reset
from netfold.controller.switches.port_counters import PortCounts, PortReader
from netfold.controller.switches.server_forms import pad_packet_to_width, pad_to_width

_PUSH = "SetForwardingPipelineConfig"
_LOST = "Internal error from Core"
"""Message of gRPC with the code INTERNAL, raised by a write to a stream whose call is over."""

LATE_POLL_S = 0.05
"""Seconds between two looks at a lease, which a thread renews."""

MAX_TEXTS = 16
"""Maximum number of programs whose P4Info is kept."""


def log_state_changes_only() -> None:
    """Silence finsy, which logs a traceback for each attempt that fails; a session logs each change of the state of its
    switch."""
    logging.getLogger("finsy").setLevel(logging.CRITICAL + 1)


class FinsyConnection:
    """A SwitchConnection over gRPC. What changes the switch waits for `may_write`: another controller may lead, and a
    switch that forgets election ids takes the writes of both (docs/decisions/0080)."""

    def __init__(self, request: ConnectionRequest, may_write: Callable[[], bool] = lambda: True) -> None:
        endpoint = self._endpoint = request.endpoint
        options = fy.SwitchOptions(
            p4force=request.must_push,
            device_id=endpoint.device_id,
            initial_election_id=request.election_id,
            channel_credentials=None if endpoint.tls is None else credentials(endpoint.tls),
            ready_handler=lambda _: request.on_ready(self),
        )
        schema = read_schema(request.pipeline.p4info, request.pipeline.blob)
        switch = self._switch = TimeoutSwitch(
            endpoint.name, endpoint.address, options, schema, request.timeouts, may_write
        )
        self._may_write = may_write
        self._codec = Codec(switch.p4info)
        self._decoded: dict[bytes, Entity | None] = {}
        """The entities of the last reading. Most are as they were, and to decode one takes as long as to read many."""
        self.rpc_lock = switch.rpc_lock

        def on_port(port: fy.SwitchPort, *, down: bool) -> None:
            if str(port.id).isdigit():
                request.on_port(int(port.id), down)

        switch.ee.add_listener(fy.SwitchEvent.CHANNEL_UP, lambda _: request.on_up())
        switch.ee.add_listener(fy.SwitchEvent.CHANNEL_DOWN, lambda _: request.on_down())
        switch.ee.add_listener(fy.SwitchEvent.PORT_DOWN, lambda _, port: on_port(port, down=True))
        switch.ee.add_listener(fy.SwitchEvent.PORT_UP, lambda _, port: on_port(port, down=False))

    @property
    def is_up(self) -> bool:
        return self._switch.is_up

    @property
    def is_primary(self) -> bool:
        return self._switch.is_primary

    async def open(self) -> None:
        try:
            await self._switch.__aenter__()
        except asyncio.CancelledError:  # finsy's own, after a push that failed
            if (error := self._switch.push_error) is None or is_task_canceled():
                raise
            raise error from None

    async def close(self) -> None:
        self._switch.cancel_stream()
        await self._switch.__aexit__(None, None, None)

    async def is_listening(self) -> bool:
        host, _, port = self._endpoint.address.rpartition(":")
        try:
            _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
        except (OSError, ValueError):
            return False
        writer.close()
        return True

    async def has_pipeline(self) -> bool:
        reply = await self._switch._get_pipeline_config_request()
        return bool(reply.config.cookie.cookie == self._switch.p4info.p4cookie)

    def create_task(self, work: Coroutine[Any, Any, None]) -> None:
        self._switch.create_task(work)

    def packets(self) -> AsyncIterator[fy.P4PacketIn]:
        return self._switch.read_packets(queue_size=1024)

    async def read(self) -> Contents:
        known, self._decoded = self._decoded, {}
        for kind in self._codec.reads(one_shot=self._endpoint.one_shot):
            async with self.rpc_lock:
                responses = await self._switch.read_responses(self._switch.read_request([kind]))
            for held in (held for response in responses for held in response.entities):
                raw = held.SerializeToString()
                self._decoded[raw] = known[raw] if raw in known else self._decode(held)
        return {entity.key: entity for entity in self._decoded.values() if entity is not None}

    def _decode(self, held: p4r.Entity) -> Entity | None:
        return self._codec.decode(fy.p4entity.decode_entity(held, self._switch.p4info))

    async def write(self, batch: WriteBatch) -> None:
        encoded = [self._encode(e) for e in batch.entities]
        async with self.rpc_lock:
            await self._write(batch.op, encoded)

    async def _write(self, op: Op, encoded: list[p4r.Entity]) -> None:
        if op is Op.MODIFY:
            await self._switch.modify(encoded)
            return
        if op is Op.DELETE:
            await self._switch.delete(encoded, strict=False)
            return
        await self._switch.insert(encoded)
        groups = [e for e in encoded if e.HasField("packet_replication_engine_entry")]
        if groups:
            # BMv2 keeps its multicast groups over a pipeline push, but its server forgets them: they cannot be read,
            # and a group that is inserted again adds its copies to the old ones. Deleting the group empties it.
            await self._switch.delete(groups)
            await self._switch.insert(groups)

    def _encode(self, entity: Entity) -> p4r.Entity:
        encoded = self._codec.encode(entity).encode(self._switch.p4info)
        return pad_to_width(encoded, self._switch.p4info) if self._endpoint.full_width else encoded

    async def read_counters(self, cells: Iterable[int]) -> dict[int, tuple[int, int]]:
        counter = self._switch.p4info.counters["verdicts"].id
        request = p4r.ReadRequest(device_id=self._endpoint.device_id)
        for at in cells:
            entry = p4r.CounterEntry(counter_id=counter, index=p4r.Index(index=at))
            request.entities.add(counter_entry=entry)
        counts: dict[int, tuple[int, int]] = {}
        for response in await self._switch.read_responses(request):
            for held in response.entities:
                cell, data = held.counter_entry, held.counter_entry.data
                if cell.counter_id == counter:
                    counts[cell.index.index] = data.packet_count, data.byte_count
        return counts

    def port_counters(self, rx_ports: Iterable[int], tx_ports: Iterable[int]) -> FinsyPortCounters:
        return FinsyPortCounters(self._switch, self._endpoint, rx_ports, tx_ports)

    async def send_packet(self, payload: bytes, egress_port: int) -> None:
        if is_reset(payload):
            await until(self._may_write)
        packet = fy.P4PacketOut(payload, egress_port=egress_port, padding=0)
        request = packet.encode_update(self._switch.p4info)
        assert isinstance(request, p4r.StreamMessageRequest)
        if self._endpoint.full_width:
            request = pad_packet_to_width(request, self._switch.p4info)
        await self._switch.write([request])


class FinsyPortCounters:
    """PortCounters over gRPC."""

    def __init__(
        self, switch: TimeoutSwitch, endpoint: Endpoint, rx_ports: Iterable[int], tx_ports: Iterable[int]
    ) -> None:
        self._switch = switch
        self._reader = PortReader(
            switch.p4info, endpoint.device_id, endpoint.lanes, tuple(rx_ports), tuple(tx_ports)
        )

    def __bool__(self) -> bool:
        return bool(self._reader)

    async def read(self) -> PortCounts:
        responses = await self._switch.read_responses(self._reader.request) if self._reader else ()
        return self._reader.counts(responses)


class TimeoutSwitch(fy.Switch):  # type: ignore[misc]  # final for type checkers; finsy offers no other way
    """A switch with own timeouts. `rpc_lock` is held for each RPC on the contents of the switch, so that one of them
    does not delay another one into its timeout."""

    def __init__(
        self,
        name: str,
        address: str,
        options: fy.SwitchOptions,
        schema: fy.P4Schema,
        timeouts: CallTimeouts,
        may_write: Callable[[], bool],
    ) -> None:
        super().__init__(name, address, options)
        self._p4schema = schema
        self._timeouts = timeouts
        self._may_write = may_write
        self._client: _TimeoutClient | None = None
        self.rpc_lock = asyncio.Lock()

    @property
    def push_error(self) -> fy.P4ClientError | None:
        """The error of the push of the pipeline, if the switch has refused it."""
        return None if self._client is None else self._client.push_error

    def _switch_start(self) -> None:
        """Replace the client; finsy calls this after it has made its own."""
        credentials = self.options.channel_credentials
        self._p4client = self._client = _TimeoutClient(self.address, credentials, wait_for_ready=False)
        self._client.timeouts, self._client.may_write = self._timeouts, self._may_write
        super()._switch_start()  # type: ignore[no-untyped-call]

    def cancel_stream(self) -> None:
        """Cancel the stream immediately: a close that is canceled, because it takes too long, would leave the stream
        open."""
        stream = None if self._p4client is None else self._p4client._stream
        if stream is not None:
            stream.cancel()

    def read_request(self, wanted: Sequence[fy.p4entity.P4Entity]) -> p4r.ReadRequest:
        entities = fy.p4entity.encode_entities(wanted, self.p4info)
        return p4r.ReadRequest(device_id=self.device_id, entities=entities)

    async def read_responses(self, request: p4r.ReadRequest) -> list[p4r.ReadResponse]:
        assert self._p4client is not None
        return [response async for response in self._p4client.request_iter(request)]


class _TimeoutClient(P4Client):
    """finsy's client with own timeouts. It writes one message to the stream at a time: grpc.aio ends a stream at a
    write that begins before another is over, as probes and slot readings do on a busy machine."""

    timeouts: CallTimeouts
    may_write: Callable[[], bool]
    push_error: fy.P4ClientError | None = None

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._writing = asyncio.Lock()

    async def send(self, msg: p4r.StreamMessageRequest) -> None:
        async with self._writing:
            await super().send(msg)

    async def request(self, msg: Any) -> Any:
        if isinstance(msg, p4r.WriteRequest | p4r.SetForwardingPipelineConfigRequest):
            await until(self.may_write)
        try:
            return await super().request(msg)
        except fy.P4ClientError as error:
            if isinstance(msg, p4r.SetForwardingPipelineConfigRequest):
                self.push_error = error
            raise

    async def open(self, **options: Any) -> None:
        await super().open(**options)
        self._stub = _TimeoutStub(self._stub, self.timeouts)  # type: ignore[assignment]


class _TimeoutStub:
    """P4Runtime's stub; an RPC that has a timeout gets one of `CallTimeouts` instead."""

    def __init__(self, stub: Any, timeouts: CallTimeouts) -> None:
        self._stub = stub
        self._timeouts = timeouts

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._stub, name)
        seconds = self._timeouts.push_s if name == _PUSH else self._timeouts.call_s

        def call(*arguments: Any, **named: Any) -> Any:
            return method(*arguments, **named | ({"timeout": seconds} if "timeout" in named else {}))

        return call


async def until(may_write: Callable[[], bool]) -> None:
    """Wait for the lease of this controller. It ends the connection if it does not get it back."""
    while not may_write():
        await asyncio.sleep(LATE_POLL_S)


def credentials(tls: Tls) -> fy.GRPCCredentialsTLS:
    return fy.GRPCCredentialsTLS(
        cacert=tls.ca, cert=tls.cert, private_key=tls.key, target_name_override=tls.server_name
    )


def is_task_canceled() -> bool:
    """True if this task was canceled; False if only an RPC within it was."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def is_late(error: fy.P4ClientError) -> bool:
    """Whether only the time of the RPC is over: the switch may still answer."""
    return error.code is fy.GRPCStatusCode.DEADLINE_EXCEEDED


def error_text(error: fy.P4ClientError) -> str:
    """Code and message of the first refused update, or else of the RPC; messages of gRPC itself are rephrased."""
    for detail in error.details.values():
        return f"{detail.canonical_code.name}: {detail.message}"
    if is_late(error):
        return "it did not answer in time"
    if error.message == _LOST:
        return "the connection was lost"
    if (
        error.code is fy.GRPCStatusCode.UNAVAILABLE
    ):  # gRPC names the address, and each layer, before the cause
        return f"no connection: {error.message.rpartition(': ')[2]}"
    return f"{error.code.name}: {error.message}"


def read_schema(p4info: Path, blob: Path | None = None) -> fy.P4Schema:
    """The schema of a program. Schemas of the same text share the message, which callers must not change. Raises the
    exceptions of the parser of the file."""
    return fy.P4Schema(_parse(p4info.read_text("utf-8")), blob)


@functools.lru_cache(maxsize=MAX_TEXTS)
def _parse(text: str) -> p4i.P4Info:
    return pbutil.from_text(text, p4i.P4Info)
