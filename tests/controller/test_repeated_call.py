# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A call made again and again, against gRPC's own server, and against servers that say what no server should."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import grpc
import pytest

from netfold.controller.switches.repeated_call import (
    ANSWER_MAX,
    END_STREAM,
    FRAME_MAX,
    CallError,
    Frame,
    RepeatedCall,
    connect,
    frame,
)

METHOD = "/a.Service/Read"
REQUEST = b"which" * 100
LATEST_S = 20.0

Said = asyncio.Queue[list[bytes] | str]
"""Answers, and why there will be none."""


class Server(grpc.GenericRpcHandler):
    """Answers with the request, several times, and then with large ones; a request that says so is refused."""

    def service(self, details):
        return grpc.unary_stream_rpc_method_handler(self.read) if details.method == METHOD else None

    async def read(self, request: bytes, context: grpc.aio.ServicerContext) -> AsyncIterator[bytes]:
        if request == b"refuse":
            await context.abort(grpc.StatusCode.NOT_FOUND, "no such thing")
        for _ in range(2):
            yield request
        yield bytes(100_000)


@asynccontextmanager
async def served() -> AsyncIterator[int]:
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((Server(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield port
    finally:
        await server.stop(None)


async def opened(port: int, request: bytes = REQUEST) -> tuple[RepeatedCall, Said]:
    said = Said()
    call = RepeatedCall(METHOD, f"127.0.0.1:{port}", request, said.put_nowait, said.put_nowait)
    await connect(call, "127.0.0.1", port, None, "")
    return call, said


async def heard(call: RepeatedCall, said: Said) -> list[bytes] | str:
    call.collect()
    return await asyncio.wait_for(said.get(), LATEST_S)


def test_each_call_is_answered_also_after_more_than_a_windows_bytes():
    async def scenario() -> None:
        async with served() as port:
            call, said = await opened(port)
            for _ in range(200):  # 100 kB of requests, 20 MB of answers
                call.ask()
                assert await heard(call, said) == [REQUEST, REQUEST, bytes(100_000)]
            call.close()
            assert said.empty()

    asyncio.run(scenario())


def test_what_is_refused_or_not_there_fails():
    async def scenario() -> None:
        async with served() as port:
            call, said = await opened(port, b"refuse")
            call.ask()
            assert isinstance(await heard(call, said), str)
            assert not call.connected
        with pytest.raises(CallError):
            await opened(port)
        with pytest.raises(CallError, match="does not fit"):
            RepeatedCall(METHOD, "", bytes(1 << 14), print, print)

    asyncio.run(scenario())


def test_a_server_that_stops_is_told_of_with_the_next_question():
    async def scenario() -> None:
        async with served() as port:
            call, said = await opened(port)
            call.ask()
            await heard(call, said)
        call.ask()
        assert isinstance(await heard(call, said), str)
        assert said.empty()
        assert not call.connected

    asyncio.run(scenario())


ANSWER = frame(Frame.DATA, 0, 1, struct.pack("!BI", 0, 2) + b"ok") + frame(Frame.HEADERS, 5, 1)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        frame(Frame.HEADERS, 5, 1),
        frame(Frame.DATA, 1, 1, struct.pack("!BI", 0, 9) + b"cut off"),
        frame(Frame.DATA, 1, 1, struct.pack("!BI", 1, 2) + b"??"),
        frame(Frame.GOAWAY, 0, 0, bytes(8)),
        frame(Frame.RST_STREAM, 0, 1, bytes(4)),
        frame(Frame.SETTINGS, 0, 0, struct.pack("!HI", 4, 10)),
        ANSWER + ANSWER,
    ],
)
def test_what_is_no_answer_is_not_taken_for_one(answer: bytes):
    async def scenario() -> None:
        async with said_by(answer) as port:
            call, said = await opened(port)
            call.ask()
            while not isinstance(what := await heard(call, said), str):
                assert what == [b"ok"]
            assert not call.connected

    asyncio.run(scenario())


def test_an_answer_may_come_in_any_pieces_and_padded():
    async def scenario() -> None:
        padded = frame(Frame.DATA, 8, 1, bytes([3]) + struct.pack("!BI", 0, 2) + b"ok" + bytes(3))
        whole = frame(Frame.PING, 0, 0, bytes(8)) + padded + frame(Frame.HEADERS, 5, 1)
        for size in (1, 7, len(whole)):
            async with said_by(*(whole[at : at + size] for at in range(0, len(whole), size))) as port:
                call, said = await opened(port)
                call.ask()
                assert await heard(call, said) == [b"ok"]
                call.close()

    asyncio.run(scenario())


def test_an_answer_that_is_too_long_is_none_also_where_it_ends():
    async def scenario() -> None:
        piece = bytes(FRAME_MAX)
        first = struct.pack("!BI", 0, ANSWER_MAX) + piece[5:]
        rest = ANSWER_MAX // FRAME_MAX - 1
        last = frame(Frame.DATA, END_STREAM, 1, piece[:5])
        async with said_by(
            frame(Frame.DATA, 0, 1, first), *[frame(Frame.DATA, 0, 1, piece)] * rest, last
        ) as port:
            call, said = await opened(port)
            call.ask()
            assert isinstance(await heard(call, said), str)
            assert said.empty()
            assert not call.waits

    asyncio.run(scenario())


def test_a_server_that_asks_for_ever_and_reads_nothing_is_given_up():
    async def scenario() -> None:
        async with said_by(*[frame(Frame.PING, 0, 0, bytes(FRAME_MAX))] * 4000, reads=False) as port:
            call, said = await opened(port)
            call.ask()
            assert await heard(call, said) == "the switch does not read"
            assert not call.connected

    asyncio.run(scenario())


@asynccontextmanager
async def said_by(*pieces: bytes, reads: bool = True) -> AsyncIterator[int]:
    """A server that says this, whatever it is asked, and then listens, unless it never `reads`."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        if not reads:
            cast(asyncio.ReadTransport, writer.transport).pause_reading()
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
        while await reader.read(1 << 16):
            pass
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
