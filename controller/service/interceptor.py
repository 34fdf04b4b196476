# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Base of the server's interceptors, which change the handlers of calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import grpc

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"

if TYPE_CHECKING:
    _Interceptor = grpc.aio.ServerInterceptor[Any, Any]
else:
    _Interceptor = grpc.aio.ServerInterceptor


class CallInterceptor(_Interceptor):
    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler:
        return await self.changed(await continuation(handler_call_details), handler_call_details)

    async def changed(self, handler: Handler, details: grpc.HandlerCallDetails) -> Handler:
        """The handler in place of `handler`, which is None for an unknown method. gRPC's types leave None out."""
        raise NotImplementedError


def replaced(handler: Handler, **parts: Any) -> Handler:
    return handler._replace(**parts)  # type: ignore[attr-defined,no-any-return]  # a named tuple


def wrapped(handler: Handler, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Handler:
    """The handler with its method in `wrap`."""
    taken, given = (
        "stream" if s else "unary" for s in (handler.request_streaming, handler.response_streaming)
    )
    name = f"{taken}_{given}"
    return replaced(handler, **{name: wrap(getattr(handler, name))})
