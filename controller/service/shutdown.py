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

from netfold.controller.service.interceptor import CallInterceptor, Handler, wrapped

if TYPE_CHECKING:
    Context = grpc.aio.ServicerContext[Any, Any]

END_S = 2.0


class CallsInFlight(CallInterceptor):
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

    async def changed(self, handler: Handler, details: grpc.HandlerCallDetails) -> Handler:
        if not handler:
            return handler
        return wrapped(handler, self._stream if handler.response_streaming else self._unary)

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
