# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Texts of clients: they come into reasons, the store, logs, and from there to the terminals of others. So no text is
longer than it may be there, and none has control characters, which terminals obey."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import grpc
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"

if TYPE_CHECKING:
    _Interceptor = grpc.aio.ServerInterceptor[Any, Any]
else:
    _Interceptor = grpc.aio.ServerInterceptor

MAX_TEXT = 500
"""Characters. All names are shorter: what is cut names nothing."""

FILES = frozenset({"spec_yaml"})
"""Fields that are no text to be shown: a job file has limits of its own."""


def plain_text(text: str, most: int = MAX_TEXT) -> str:
    """In one line of printable characters, at most `most`."""
    cut = text[:most]
    if not cut.isprintable():
        cut = "".join(c if c.isprintable() else repr(c)[1:-1] for c in cut)
    return cut if len(text) <= most and len(cut) <= most else f"{cut[: most - 3]}..."


def make_plain(message: Message) -> None:
    """Replace all texts of a request by plain ones."""
    for field, value in message.ListFields():
        if isinstance(value, Message):
            make_plain(value)
        elif field.type == FieldDescriptor.TYPE_MESSAGE:
            for part in value:
                make_plain(part)
        elif isinstance(value, str) and field.name not in FILES:
            setattr(message, field.name, plain_text(value))
        elif field.type == FieldDescriptor.TYPE_STRING and not isinstance(value, str):
            value[:] = map(plain_text, value)


class PlainTexts(_Interceptor):
    """An interceptor of a server: all requests have plain texts."""

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler:
        handler = await continuation(handler_call_details)
        if not handler:  # None, which gRPC's types leave out: no such method
            return handler
        read = handler.request_deserializer
        assert read is not None

        def read_plain(data: bytes) -> Message:
            message: Message = read(data)
            make_plain(message)
            return message

        return handler._replace(request_deserializer=read_plain)  # type: ignore[attr-defined,no-any-return]  # a named tuple
