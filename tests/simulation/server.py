# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""gRPC between the controller's service and its clients: calls and streams with delays, which end when the controller
dies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, NoReturn

import grpc

from netfold.controller.service.access import LOCAL
from netfold.controller.service.access_control import IdentifiedCall
from netfold.controller.service.identities import Identity
from netfold.controller.service.servicer import Service
from netfold.protocol import netfold_pb2 as pb
from tests.simulation.faults import Draws
from tests.simulation.process import Process


class RpcError(Exception):
    """A call ended with a status code. `is_lost_by_controller`: its handler was canceled, which no client asked for."""

    def __init__(self, code: grpc.StatusCode, text: str, *, is_lost_by_controller: bool = False) -> None:
        self.code = code
        self.is_lost_by_controller = is_lost_by_controller
        super().__init__(f"{code.name}: {text}")


class CallContext:
    """The part of grpc.aio.ServicerContext that the service uses."""

    async def abort(self, code: grpc.StatusCode, text: str) -> NoReturn:
        raise RpcError(code, text)


class Server:
    """The service of one controller process, until it has `ended`, as the process has at the latest."""

    def __init__(
        self, service: Service, process: Process, draws: Draws, ended: asyncio.Event | None = None
    ) -> None:
        self._service = service
        self._process = process
        self._draws = draws
        self._ended = ended or process.killed
        self._streams: dict[JoinStream, None] = {}

    async def call(self, name: str, request: Any, caller: Identity = LOCAL) -> Any:
        """Raises RpcError."""
        await asyncio.sleep(self._draws.delay_s("call"))
        if self._ended.is_set():
            raise RpcError(grpc.StatusCode.UNAVAILABLE, "connection refused")
        context = IdentifiedCall(CallContext(), caller, self._service)
        answer = self._process.spawn(getattr(self._service, name)(request, context))
        ended = asyncio.create_task(self._ended.wait())
        try:
            await asyncio.wait([answer, ended], return_when=asyncio.FIRST_COMPLETED)
            if self._ended.is_set():
                raise RpcError(grpc.StatusCode.UNAVAILABLE, "the connection was lost")
            if answer.cancelled():
                raise RpcError(grpc.StatusCode.CANCELLED, "the call was canceled", is_lost_by_controller=True)
            return answer.result()
        finally:
            ended.cancel()
            if not answer.done():
                answer.cancel()

    def join(self) -> JoinStream:
        stream = JoinStream(self._service, self._process, self._draws, self._ended)
        self._streams = {s: None for s in (*self._streams, stream) if s.is_open}
        return stream

    def cut_streams(self) -> None:
        """End a connection at which nothing arrives any more. The controller notices nothing."""
        for stream in self._streams:
            stream.cut(half_open=True)


class JoinStream:
    """A member's stream. `send` and `receive` raise RpcError once it is broken; messages keep their order."""

    def __init__(self, service: Service, process: Process, draws: Draws, ended: asyncio.Event) -> None:
        self._draws = draws
        self._process = process
        self._ended = ended
        self._requests: asyncio.Queue[pb.MemberUpdate | None] = asyncio.Queue()
        self._updates: asyncio.Queue[pb.ControllerUpdate | RpcError | None] = asyncio.Queue()
        self._last_request = self._last_update = 0.0
        self._end: RpcError | None = None
        if not ended.is_set():
            self._handler = process.spawn(self._handle(service))
            self._watch = asyncio.create_task(self._watch_end())
        else:
            self._end = RpcError(grpc.StatusCode.UNAVAILABLE, "connection refused")

    def send(self, message: pb.MemberUpdate) -> None:
        if self._end is None:
            self._last_request = self._later(self._last_request, self._requests, message)

    async def receive(self) -> pb.ControllerUpdate | None:
        """None: the controller ended the stream in order."""
        if self._end is not None and self._updates.empty():
            raise self._end
        found = await self._updates.get()
        if isinstance(found, RpcError):
            self._end = found
            raise found
        return found

    def finish(self) -> None:
        """No more messages of the member."""
        if self._end is None:
            self._last_request = self._later(self._last_request, self._requests, None)

    def cut(self, *, half_open: bool) -> None:
        """The connection breaks. Half open: the controller notices nothing."""
        self._stop(RpcError(grpc.StatusCode.UNAVAILABLE, "the stream broke"))
        if not half_open and self._process.is_alive:
            self._handler.cancel()

    def close(self) -> None:
        if self._end is None:
            self._end = RpcError(grpc.StatusCode.CANCELLED, "closed")
            self._watch.cancel()
            if self._process.is_alive:
                self._handler.cancel()

    def _stop(self, error: RpcError) -> None:
        if self._end is None:
            self._end = error
            self._watch.cancel()
            self._updates.put_nowait(error)

    @property
    def is_open(self) -> bool:
        return self._end is None

    async def _watch_end(self) -> None:
        await self._ended.wait()
        self._stop(RpcError(grpc.StatusCode.UNAVAILABLE, "the connection was lost"))
        if self._process.is_alive:
            self._handler.cancel()

    async def _handle(self, service: Service) -> None:
        end: RpcError | None = None
        try:
            async for update in service.JoinJob(self._read(), CallContext()):
                self._deliver(update)
        except RpcError as error:
            end = error
        except Exception as error:
            end = RpcError(grpc.StatusCode.UNKNOWN, repr(error))
        self._deliver(end)

    def _deliver(self, update: pb.ControllerUpdate | RpcError | None) -> None:
        if self._process.is_alive and self._end is None:
            self._last_update = self._later(self._last_update, self._updates, update)

    async def _read(self) -> AsyncIterator[pb.MemberUpdate]:
        while (message := await self._requests.get()) is not None:
            yield message

    def _later(self, last: float, queue: asyncio.Queue[Any], message: object) -> float:
        loop = asyncio.get_running_loop()
        at = max(last + 1e-9, loop.time() + self._draws.delay_s("stream"))
        return loop.call_at(at, queue.put_nowait, message).when()
