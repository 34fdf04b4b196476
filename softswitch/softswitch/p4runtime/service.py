# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The gRPC service p4.v1.P4Runtime: RPCs and streams."""
# ruff: noqa: N802 - the methods have the names of the RPCs

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

import grpc
from finsy.proto import p4r, p4r_grpc

from softswitch.errors import SwitchError
from softswitch.p4runtime import packetio
from softswitch.p4runtime.arbitration import Arbiter, Notice, Session
from softswitch.p4runtime.array_messages import fills_array
from softswitch.p4runtime.device import Device, Loaded
from softswitch.p4runtime.status import ERROR_SPACE, Code, StatusError, from_switch, invalid, write_details
from softswitch.state.entities import DigestEvent, IdleEvent

log = logging.getLogger(__name__)

API_VERSION = "1.5.0"
READ_BATCH = 256
# Updates of one request between yields to other requests.
WRITE_AT_ONCE = 256
# Queued messages from which packet-ins, digests and idle notifications are dropped.
STREAM_BACKLOG = 2048
# Queued messages from which the stream is ended: the client does not read.
STREAM_LOST = 2 * STREAM_BACKLOG
# Streams of all clients at once.
STREAMS_MAX = 256
# Time for a stream's first arbitration.
ARBITRATION_S = 10.0
# Time for which a client may read nothing of what waits for it.
UNREAD_S = 60.0
# Time for the status of a stream that is ended: a client that does not read never takes it.
STATUS_S = 5.0

Context = grpc.aio.ServicerContext[Any, Any]


@dataclass(eq=False)
class Stream(Session):
    """A controller's open StreamChannel."""

    outbox: asyncio.Queue[p4r.StreamMessageResponse] = field(default_factory=asyncio.Queue)
    dropped: int = 0
    lost: asyncio.Event = field(default_factory=asyncio.Event)

    def send(self, message: p4r.StreamMessageResponse, *, droppable: bool = True) -> None:
        waiting = self.outbox.qsize()
        if waiting >= (STREAM_BACKLOG if droppable else STREAM_LOST):
            self.dropped += 1
            if not droppable:
                self.lost.set()
            return
        self.outbox.put_nowait(message)


class P4RuntimeService(p4r_grpc.P4RuntimeServicer):
    """Serves one device. All methods run on the event loop, so requests are handled sequentially."""

    def __init__(
        self, device: Device, device_id: int, packet_out: Callable[[bytes], None], service: Callable[[], None]
    ) -> None:
        """`packet_out` runs a frame through the pipeline from the CPU port. `service` updates
        the data plane's clock, before requests that read it and after those that set its timers."""
        self._device = device
        self._device_id = device_id
        self._arbiter = Arbiter(device_id)
        self._packet_out = packet_out
        self._service = service
        self._closing = asyncio.Event()
        self._streams = 0
        self._digest_timer: asyncio.TimerHandle | None = None

    # --- RPCs ---

    async def Write(self, request: p4r.WriteRequest, context: Context) -> p4r.WriteResponse:
        try:
            self._require_device(request.device_id)
            self._require_primary(request)
            if request.atomicity != p4r.WriteRequest.CONTINUE_ON_ERROR:
                raise StatusError(Code.UNIMPLEMENTED, "only CONTINUE_ON_ERROR is supported")
            loaded = self._require_config()
        except StatusError as error:
            await _abort(context, error)
        self._service()
        results: list[StatusError | None] = []
        for update in request.updates:
            if fills_array(update.entity):
                results.append(await asyncio.to_thread(_attempt, loaded, update))
            else:
                results.append(_attempt(loaded, update))
            if len(results) % WRITE_AT_ONCE == 0:
                await asyncio.sleep(0)  # yields to other requests
        self._service()
        if any(results):
            details = (("grpc-status-details-bin", write_details(results)),)
            await context.abort(grpc.StatusCode.UNKNOWN, "Write failure.", details)
        return p4r.WriteResponse()

    async def Read(self, request: p4r.ReadRequest, context: Context) -> AsyncIterator[p4r.ReadResponse]:
        try:
            self._require_device(request.device_id)
            loaded = self._require_config()
            self._service()
            response = p4r.ReadResponse()
            for query in request.entities:
                for entity in loaded.forwarding.read(query):
                    response.entities.append(entity)
                    if len(response.entities) == READ_BATCH:
                        yield response
                        response = p4r.ReadResponse()
                        await asyncio.sleep(0)  # yields to other requests, however fast this client reads
                        if loaded.closed:
                            raise StatusError(Code.UNAVAILABLE, "the program was replaced during the read")
            if response.entities:
                yield response
        except StatusError as error:
            await _abort(context, error)

    async def SetForwardingPipelineConfig(
        self, request: p4r.SetForwardingPipelineConfigRequest, context: Context
    ) -> p4r.SetForwardingPipelineConfigResponse:
        try:
            self._require_device(request.device_id)
            config = request.config if request.HasField("config") else None
            await self._device.push(request.action, config, lambda: self._require_primary(request))
        except StatusError as error:
            await _abort(context, error)
        return p4r.SetForwardingPipelineConfigResponse()

    async def GetForwardingPipelineConfig(
        self, request: p4r.GetForwardingPipelineConfigRequest, context: Context
    ) -> p4r.GetForwardingPipelineConfigResponse:
        try:
            self._require_device(request.device_id)
        except StatusError as error:
            await _abort(context, error)
        response = p4r.GetForwardingPipelineConfigResponse()
        if (loaded := self._device.current) is not None:
            _select_config(request.response_type, loaded.config, response.config)
        return response

    async def Capabilities(
        self, request: p4r.CapabilitiesRequest, context: Context
    ) -> p4r.CapabilitiesResponse:
        return p4r.CapabilitiesResponse(p4runtime_api_version=API_VERSION)

    # gRPC also accepts a coroutine that writes itself; the stub does not.
    async def StreamChannel(  # type: ignore[override]
        self, requests: AsyncIterator[p4r.StreamMessageRequest], context: Context
    ) -> None:
        # Otherwise the first answer and the status would both send it, if the stream ends while that answer is
        # on its way: gRPC refuses the second one, and the client waits for ever.
        await context.send_initial_metadata(())
        try:
            await self._serve_stream(Stream(), requests, context)
        except StatusError as error:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(STATUS_S):
                    await _abort(context, error)

    # --- checks ---

    def _require_device(self, device_id: int) -> None:
        if device_id != self._device_id:
            raise StatusError(
                Code.NOT_FOUND, f"device id {device_id} is not served here; expected {self._device_id}"
            )

    def _require_primary(self, request: p4r.WriteRequest | p4r.SetForwardingPipelineConfigRequest) -> None:
        election_id = request.election_id if request.HasField("election_id") else None
        self._arbiter.require_primary(request.role, election_id)

    def _require_config(self) -> Loaded:
        if (loaded := self._device.current) is None:
            raise StatusError(Code.FAILED_PRECONDITION, "no forwarding pipeline config is set")
        return loaded

    # --- streams ---

    async def _serve_stream(
        self, stream: Stream, requests: AsyncIterator[p4r.StreamMessageRequest], context: Context
    ) -> None:
        """Until the client ends the stream. Its election id is free at the return, before the status is sent. Raises
        StatusError."""
        if self._streams >= STREAMS_MAX:
            raise StatusError(Code.RESOURCE_EXHAUSTED, f"there are already {STREAMS_MAX} streams")
        self._streams += 1
        receiver = asyncio.create_task(self._receive_requests(stream, requests))
        ends = [
            asyncio.create_task(_send_responses(stream, context)),
            asyncio.create_task(_raise_when_lost(stream)),
            asyncio.create_task(self._raise_at_shutdown()),
        ]
        try:
            done, _ = await asyncio.wait([receiver, *ends], return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                await task
        except StatusError as error:
            if stream.role is not None and not self._closing.is_set():
                log.warning("the stream with election id %s is ended: %s", stream.election_id, error.message)
            raise
        finally:
            for task in (receiver, *ends):
                task.cancel()
            self._streams -= 1
            self._notify(self._arbiter.leave(stream))

    async def _raise_at_shutdown(self) -> NoReturn:
        await self._closing.wait()
        raise StatusError(Code.UNAVAILABLE, "the switch is shutting down")

    async def _receive_requests(
        self, stream: Stream, requests: AsyncIterator[p4r.StreamMessageRequest]
    ) -> None:
        try:
            async with asyncio.timeout(ARBITRATION_S) as deadline:
                async for request in requests:
                    self._take(stream, request)
                    if stream.role is not None:
                        deadline.reschedule(None)
        except TimeoutError:
            raise StatusError(Code.DEADLINE_EXCEEDED, f"no arbitration within {ARBITRATION_S:g} s") from None

    def _take(self, stream: Stream, request: p4r.StreamMessageRequest) -> None:
        kind = request.WhichOneof("update")
        if kind == "arbitration":
            self._notify(self._arbiter.update(stream, request.arbitration))
            return
        try:
            self._handle(stream, kind, request)
        except StatusError as error:
            stream.send(_stream_error(kind, request, error))
        except SwitchError as error:
            stream.send(_stream_error(kind, request, from_switch(error)))

    def _handle(self, stream: Stream, kind: str | None, request: p4r.StreamMessageRequest) -> None:
        if not self._arbiter.is_primary(stream):
            raise StatusError(Code.PERMISSION_DENIED, "only the primary controller may send this")
        if (loaded := self._device.running) is None:
            raise StatusError(Code.FAILED_PRECONDITION, "no forwarding pipeline config is set")
        if kind == "packet":
            self._packet_out(packetio.packet_out(loaded.forwarding.schema.packet_out, request.packet))
        elif kind == "digest_ack":
            loaded.forwarding.digests.acknowledge(request.digest_ack)
        elif kind == "other":
            raise StatusError(Code.UNIMPLEMENTED, "no architecture-specific stream messages are supported")
        else:
            raise invalid("the stream message is empty")

    def _notify(self, notices: list[Notice]) -> None:
        for session, message in notices:
            assert isinstance(session, Stream)
            session.send(p4r.StreamMessageResponse(arbitration=message), droppable=False)

    def _broadcast(self, message: p4r.StreamMessageResponse) -> None:
        for session in self._arbiter.primaries():
            assert isinstance(session, Stream)
            session.send(message)

    # --- from the data plane ---

    def on_packet_in(self, frame: bytes) -> None:
        """Sends a frame of the CPU port to the primary controllers."""
        if (loaded := self._device.running) is None:
            return
        try:
            packet = packetio.packet_in(loaded.forwarding.schema.packet_in, frame)
        except StatusError as error:
            log.warning("%s", error.message)
            return
        self._broadcast(p4r.StreamMessageResponse(packet=packet))

    def on_events(self, events: list[DigestEvent | IdleEvent]) -> None:
        """Digests and idle entries of the running program."""
        if (loaded := self._device.running) is None:
            return
        idle: dict[str, p4r.IdleTimeoutNotification] = {}
        schema = loaded.forwarding.schema
        for event in events:
            if isinstance(event, DigestEvent):
                loaded.forwarding.digests.add(event, time.monotonic_ns())
            elif event.table in schema.tables.names:
                table = schema.tables.named(event.table)
                notice = idle.setdefault(event.table, p4r.IdleTimeoutNotification(timestamp=time.time_ns()))
                notice.table_entry.append(loaded.forwarding.tables.encode_key(table, event.entry))
        for notice in idle.values():
            self._broadcast(p4r.StreamMessageResponse(idle_timeout_notification=notice))
        self._send_digests()

    def _send_digests(self) -> None:
        if self._digest_timer is not None:
            self._digest_timer.cancel()
            self._digest_timer = None
        if (loaded := self._device.running) is None:
            return
        now = time.monotonic_ns()
        for digest in loaded.forwarding.digests.due(now):
            digest.timestamp = time.time_ns()
            self._broadcast(p4r.StreamMessageResponse(digest=digest))
        if (due := loaded.forwarding.digests.next_due_ns()) is not None:
            delay = max(0, due - now) / 1e9
            self._digest_timer = asyncio.get_running_loop().call_later(delay, self._send_digests)

    def close_streams(self) -> None:
        """Ends all StreamChannels, so that a shutdown does not wait for controllers."""
        self._closing.set()


def _attempt(loaded: Loaded, update: p4r.Update) -> StatusError | None:
    if loaded.closed:
        return StatusError(Code.UNAVAILABLE, "the program was replaced during the write")
    try:
        loaded.forwarding.write(update)
    except StatusError as error:
        return error
    return None


async def _send_responses(stream: Stream, context: Context) -> NoReturn:
    while True:
        message = await stream.outbox.get()
        try:
            async with asyncio.timeout(UNREAD_S):
                await context.write(message)
        except TimeoutError:
            raise StatusError(
                Code.RESOURCE_EXHAUSTED, f"the client has read nothing for {UNREAD_S:g} s"
            ) from None


async def _raise_when_lost(stream: Stream) -> NoReturn:
    await stream.lost.wait()
    raise StatusError(Code.RESOURCE_EXHAUSTED, f"{STREAM_LOST} messages are queued on this stream")


async def _abort(context: Context, error: StatusError) -> NoReturn:
    await context.abort(_GRPC_CODES[error.code], error.message)


_GRPC_CODES = {code.value[0]: code for code in grpc.StatusCode}


def _stream_error(
    kind: str | None, request: p4r.StreamMessageRequest, error: StatusError
) -> p4r.StreamMessageResponse:
    message = p4r.StreamError(canonical_code=error.code, message=error.message, space=ERROR_SPACE)
    if kind == "packet":
        message.packet_out.packet_out.CopyFrom(request.packet)
    elif kind == "digest_ack":
        message.digest_list_ack.digest_list_ack.CopyFrom(request.digest_ack)
    else:
        message.other.SetInParent()
    return p4r.StreamMessageResponse(error=message)


def _select_config(
    wanted: p4r.GetForwardingPipelineConfigRequest.ResponseType.ValueType,
    config: p4r.ForwardingPipelineConfig,
    out: p4r.ForwardingPipelineConfig,
) -> None:
    kinds = p4r.GetForwardingPipelineConfigRequest
    out.SetInParent()
    if config.HasField("cookie"):
        out.cookie.CopyFrom(config.cookie)
    if wanted in (kinds.ALL, kinds.P4INFO_AND_COOKIE):
        out.p4info.CopyFrom(config.p4info)
    if wanted in (kinds.ALL, kinds.DEVICE_CONFIG_AND_COOKIE):
        out.p4_device_config = config.p4_device_config
