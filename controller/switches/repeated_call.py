# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""One gRPC call that is made again and again with the same request, over a connection of its own.

What HTTP/2 wants said of such a call is the same each time but for the stream's number, and so it is encoded once. gRPC
for Python takes several times as long for an empty call as this takes in all (docs/decisions/0029). It answers,
or it fails and does not say why: then gRPC is asked, which does.

HTTP/2: RFC 9113, HPACK: RFC 7541, gRPC over it: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md
"""

from __future__ import annotations

import asyncio
import os
import ssl
import struct
from collections.abc import Callable
from enum import IntEnum
from typing import cast

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
FRAME_MAX = 1 << 14
"""Bytes of a frame's payload that each side has to take."""

FIRST_CREDIT = (1 << 16) - 1
"""Bytes that may be sent to a server, of a connection and of a stream, before it says more."""

ROOM = 1 << 30
"""Bytes that a server may send us; what it used is given back when this much of it is gone:"""
GIVE_BACK = 1 << 20

ROOM_ONCE = 1 << 14
"""Bytes that are taken from a socket at once."""

PIECES_MAX = 16
"""That are taken at once: a server that never stops must not keep the event loop from all else."""

LAST_STREAM = (1 << 31) - 1
ANSWER_MAX = 1 << 20
"""Bytes: ten times what a request of one frame can ask for."""

_HEAD = struct.Struct("!HBBBI")  # length (16 bits, 8 bits), type, flags, stream
_LITERAL_MAX = 126


class Frame(IntEnum):
    DATA = 0
    HEADERS = 1
    RST_STREAM = 3
    SETTINGS = 4
    PING = 6
    GOAWAY = 7
    WINDOW_UPDATE = 8
    CONTINUATION = 9


class Setting(IntEnum):
    HEADER_TABLE_SIZE = 1
    ENABLE_PUSH = 2
    INITIAL_WINDOW_SIZE = 4


END_STREAM = ACK = 1
END_HEADERS = 4
PADDED = 8


class CallError(Exception):
    """There is no answer, and no more of this connection; ask by other means."""


def frame(kind: Frame, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return _HEAD.pack(len(payload) >> 8, len(payload) & 255, kind, flags, stream) + payload


def _text(value: str) -> bytes:
    if len(value) > _LITERAL_MAX:
        raise CallError(f"'{value[:20]}...' is too long for a header")
    return bytes([len(value)]) + value.encode()


def request_headers(method: str, authority: str, secure: bool) -> bytes:
    """Literals and the static table alone: nothing that the connection would have to remember."""
    return (
        b"\x83"  # :method POST
        + (b"\x87" if secure else b"\x86")  # :scheme
        + b"\x04" + _text(method)  # :path
        + b"\x01" + _text(authority)  # :authority
        + b"\x0f\x10" + _text("application/grpc")  # content-type
        + b"\x00" + _text("te") + _text("trailers")
    )  # fmt: skip


class RepeatedCall(asyncio.BufferedProtocol):
    """`ask` makes the call once more, one at a time, and `collect`, some time later, takes what has come: an answer
    comes in several pieces, and waking up for each costs more than all else. `heard` gets the messages of the answer,
    encoded; `failed` is called once, when there will be no answer any more, from where `ask`, `collect` or an event of
    the connection is handled."""

    def __init__(
        self,
        method: str,
        authority: str,
        request: bytes,
        heard: Callable[[list[bytes]], None],
        failed: Callable[[str], None],
        *,
        secure: bool = False,
    ) -> None:
        """`method`: as in `/package.Service/Method`. Raises CallError if the request does not fit one frame."""
        message = struct.pack("!BI", 0, len(request)) + request
        if len(message) > FRAME_MAX:
            raise CallError(f"a request of {len(request)} bytes does not fit one frame")
        self.waits = False
        self._headers = request_headers(method, authority, secure)
        self._message = message
        self._heard = heard
        self._failed = failed
        self._transport: asyncio.Transport | None = None
        self._readable = -1  # where a connection is not encrypted: its descriptor
        self._stream = -1
        self._credit = FIRST_CREDIT
        self._taken = 0
        self._room = memoryview(bytearray(ROOM_ONCE))
        self._received = bytearray()
        self._body = bytearray()

    @property
    def connected(self) -> bool:
        return self._transport is not None

    def ask(self) -> None:
        assert self._transport is not None
        assert not self.waits
        self._stream += 2
        if self._credit < len(self._message) or self._stream > LAST_STREAM:
            self._fail("the connection is used up")
            return
        self._credit -= len(self._message)
        self._body.clear()
        self.waits = True
        self._transport.write(
            frame(Frame.HEADERS, END_HEADERS, self._stream, self._headers)
            + frame(Frame.DATA, END_STREAM, self._stream, self._message)
        )

    def collect(self) -> None:
        """Take what is here, and listen until the answer is."""
        if self._transport is None or not self.waits or self._transport.is_reading():
            return
        if self._readable >= 0:
            self._take()
        if self._transport is not None and self.waits:
            self._transport.resume_reading()

    def _take(self) -> None:
        """Without the event loop, which the transport has for that, and which costs more than all else here."""
        try:
            for _ in range(PIECES_MAX):
                if not self.waits or not (size := os.readv(self._readable, [self._room])):
                    return
                self.buffer_updated(size)
        except (BlockingIOError, InterruptedError):
            pass
        except OSError as error:
            self._fail(f"the connection was lost: {error}")

    def close(self) -> None:
        """Nobody is told of it."""
        if self._transport is not None:
            self._transport.abort()
        self._transport = None
        self.waits = False

    # ---- asyncio.BufferedProtocol -------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if transport.get_extra_info("sslcontext") is None:
            self._readable = transport.get_extra_info("socket").fileno()
        wanted = {Setting.HEADER_TABLE_SIZE: 0, Setting.ENABLE_PUSH: 0, Setting.INITIAL_WINDOW_SIZE: ROOM}
        settings = b"".join(struct.pack("!HI", key, value) for key, value in wanted.items())
        self._transport.write(
            PREFACE
            + frame(Frame.SETTINGS, 0, 0, settings)
            + frame(Frame.WINDOW_UPDATE, 0, 0, struct.pack("!I", ROOM - FIRST_CREDIT))
        )

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(f"the connection was lost: {exc or 'closed'}")

    def pause_writing(self) -> None:
        """What we wrote is not taken: not from us who write so little, so somebody lets us answer PINGs for ever."""
        self._fail("the switch does not read")

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._room

    def buffer_updated(self, nbytes: int) -> None:
        self._received += self._room[:nbytes]
        at, received = 0, self._received
        while self._transport is not None and len(received) - at >= _HEAD.size:
            high, low, kind, flags, stream = _HEAD.unpack_from(received, at)
            length = high << 8 | low
            if length > FRAME_MAX:
                self._fail(f"a frame of {length} bytes")
                return
            end = at + _HEAD.size + length
            if end > len(received):
                break
            self._frame(kind, flags, stream, bytes(received[at + _HEAD.size : end]))
            at = end
        del received[:at]

    # ---- frames -----------------------------------------------------------------------------------------

    def _frame(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind == Frame.DATA:
            self._data(flags, stream, payload)
        elif kind == Frame.SETTINGS and not flags & ACK:
            self._settings(payload)
        elif kind == Frame.PING and not flags & ACK:
            self._write(frame(Frame.PING, ACK, 0, payload))
        elif kind == Frame.WINDOW_UPDATE and stream == 0 and len(payload) == 4:
            self._credit += int.from_bytes(payload) & LAST_STREAM
        elif kind == Frame.GOAWAY or (kind == Frame.RST_STREAM and stream == self._stream):
            self._fail("the switch refused the call")
        if kind in (Frame.DATA, Frame.HEADERS) and flags & END_STREAM and stream == self._stream:
            self._end()

    def _data(self, flags: int, stream: int, payload: bytes) -> None:
        self._taken += len(payload)
        if self._taken >= GIVE_BACK:
            self._write(frame(Frame.WINDOW_UPDATE, 0, 0, struct.pack("!I", self._taken)))
            self._taken = 0
        if stream != self._stream:
            return
        if flags & PADDED:
            payload = payload[1 : len(payload) - payload[0]] if payload else payload
        self._body += payload
        if len(self._body) > ANSWER_MAX:
            self._fail("an answer without an end")

    def _settings(self, payload: bytes) -> None:
        """Of them only a window that a request does not fit in is of concern."""
        for at in range(0, len(payload) - 5, 6):
            key, value = struct.unpack_from("!HI", payload, at)
            if key == Setting.INITIAL_WINDOW_SIZE and value < len(self._message):
                self._fail("the switch's window is smaller than a request")
                return
        self._write(frame(Frame.SETTINGS, ACK, 0))

    def _end(self) -> None:
        """Of what went wrong only the switch's trailers would speak; an answer without messages is none."""
        found, at, body = [], 0, bytes(self._body)
        while at + 5 <= len(body):
            compressed, length = struct.unpack_from("!BI", body, at)
            if compressed or at + 5 + length > len(body):
                break
            found.append(body[at + 5 : at + 5 + length])
            at += 5 + length
        if not found or at != len(body) or not self.waits:
            self._fail("an answer that is none")
            return
        self.waits = False
        if self._transport is not None:
            self._transport.pause_reading()
        self._heard(found)

    def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def _fail(self, why: str) -> None:
        if self._transport is not None:
            self.close()
            self._failed(why)


async def connect(call: RepeatedCall, host: str, port: int, tls: ssl.SSLContext | None, name: str) -> None:
    """`name`: of the server, in its certificate. Raises CallError."""
    loop = asyncio.get_running_loop()
    try:
        await loop.create_connection(
            lambda: call, host, port, ssl=tls, server_hostname=name if tls is not None else None
        )
    except OSError as error:
        raise CallError(f"{host}:{port}: {error}") from error
