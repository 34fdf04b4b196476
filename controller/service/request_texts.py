# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Makes texts of clients plain: they enter reasons, the store, logs, and from there the terminals of others. So each
text has a maximum length, and no control characters, which terminals obey."""

from __future__ import annotations

import grpc
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from netfold.controller.service.interceptor import CallInterceptor, Handler, replaced

MAX_TEXT = 500
"""Maximum characters of a text. All names are shorter, so a text that is cut names nothing."""

FILES = frozenset({"spec_yaml"})
"""Fields that are not shown as text: a job file has limits of its own."""


def plain_text(text: str, most: int = MAX_TEXT) -> str:
    """The text in one line of at most `most` printable characters."""
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


class PlainTexts(CallInterceptor):
    """Interceptor of a server that makes the texts of all requests plain."""

    async def changed(self, handler: Handler, details: grpc.HandlerCallDetails) -> Handler:
        if not handler:
            return handler
        read = handler.request_deserializer
        assert read is not None

        def read_plain(data: bytes) -> Message:
            message: Message = read(data)
            make_plain(message)
            return message

        return replaced(handler, request_deserializer=read_plain)
