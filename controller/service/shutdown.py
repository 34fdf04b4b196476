# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Ends the service in order: calls in flight end with UNAVAILABLE, on which members retry, and not with an exception in
the log of the server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import grpc

if TYPE_CHECKING:
    _Interceptor = grpc.aio.ServerInterceptor[Any, Any]
    Handler = grpc.RpcMethodHandler[Any, Any]
    Context = grpc.aio.ServicerContext[Any, Any]
else:
    _Interceptor = grpc.aio.ServerInterceptor


END_S = 2.0


class CallsInFlight(_Interceptor):
    """Interceptor of a server that records its calls, to end them before it stops."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._is_stopping = False

    async def end(self) -> None:
        """Cancel all calls, and wait for their ends, at most `END_S` seconds."""
        self._is_stopping = True
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=END_S)

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler:
        handler = await continuation(handler_call_details)
        if not handler:  # None, which gRPC's types leave out: no such method
            return handler
        codecs = {
            "request_deserializer": handler.request_deserializer,
            "response_serializer": handler.response_serializer,
        }
        if handler.stream_stream:
            return grpc.stream_stream_rpc_method_handler(self._stream(handler.stream_stream), **codecs)
        if handler.unary_stream:
            return grpc.unary_stream_rpc_method_handler(self._stream(handler.unary_stream), **codecs)
        assert handler.unary_unary is not None
        return grpc.unary_unary_rpc_method_handler(self._unary(handler.unary_unary), **codecs)

    def _unary(self, method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def call(request: Any, context: Context) -> Any:
            with self._counted():
                try:
                    return await method(request, context)
                except asyncio.CancelledError:
                    if not self._is_stopping:
                        raise
                return await _refuse(context)

        return call

    def _stream(self, method: Callable[..., Any]) -> Callable[..., AsyncIterator[Any]]:
        async def call(request: Any, context: Context) -> AsyncIterator[Any]:
            with self._counted():
                try:
                    async for message in method(request, context):
                        yield message
                    return
                except asyncio.CancelledError:
                    if not self._is_stopping:
                        raise
                await _refuse(context)

        return call

    @contextmanager
    def _counted(self) -> Iterator[None]:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            yield
        finally:
            self._tasks.discard(task)


async def _refuse(context: Context) -> NoReturn:
    await context.abort(grpc.StatusCode.UNAVAILABLE, "the controller is stopping")
    raise AssertionError("abort raises")
