# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Connections that send nothing, and downloads that are aborted, keep no browser from the page."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import struct
import time
from urllib.parse import urlsplit

import pytest

from netfold.controller.recording.lines import event_line
from netfold.controller.web.source import RecordingReplay
from tests.web.test_server import LINES, TIMEOUT_S, Endless, get, served, shown


def waits(connection: socket.socket) -> bool:
    """Neither closed nor answered by the server."""
    try:
        connection.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK)
    except BlockingIOError:
        return True
    except ConnectionError:
        return False
    return False


@pytest.mark.parametrize("sent", [b"", b"GET / HT"], ids=["nothing", "a part of a request"])
def test_idle_connections_make_room_for_requests_and_are_closed(monkeypatch: pytest.MonkeyPatch, sent: bytes):
    monkeypatch.setattr("netfold.controller.web.web_server.MAX_CONNECTIONS", 8)
    monkeypatch.setattr("netfold.controller.web.web_server.REQUEST_S", 2.0)
    with shown() as address:
        where = urlsplit(address)
        with contextlib.ExitStack() as stack:
            idle = []
            for _ in range(40):
                idle.append(stack.enter_context(socket.create_connection((where.hostname, where.port))))
                idle[-1].sendall(sent)
            for _ in range(4):
                answer, _ = get(address, "/")
                assert answer.status == 200
            assert sum(map(waits, idle)) <= 8
            deadline = time.monotonic() + TIMEOUT_S
            while any(map(waits, idle)):
                assert time.monotonic() < deadline, "without a request they are closed"
                time.sleep(0.05)
            answer, _ = get(address, "/")
            assert answer.status == 200


async def test_connections_with_a_stream_are_kept_and_those_beyond_the_limit_closed(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("netfold.controller.web.web_server.MAX_CONNECTIONS", 3)
    monkeypatch.setattr("netfold.controller.web.web_server.REQUEST_S", 0.2)

    async def opened(address: str) -> tuple[bytes, asyncio.StreamReader, asyncio.StreamWriter]:
        where = urlsplit(address)
        reader, writer = await asyncio.open_connection(where.hostname, where.port)
        writer.write(f"GET /events HTTP/1.1\r\nHost: localhost:{where.port}\r\n\r\n".encode())
        try:
            return await reader.readline(), reader, writer
        except ConnectionError:
            return b"", reader, writer

    source = Endless()
    async with served(source) as address, asyncio.timeout(TIMEOUT_S):
        kept = [await opened(address) for _ in range(3)]
        assert all(b" 200 " in first for first, _, _ in kept)
        refused = await opened(address)
        assert refused[0] == b"", "closed without an answer"
        await asyncio.sleep(1.0)  # several times the limit of a connection without a request
        source.history.append([event_line(3.0, "job", "done")])
        for _, reader, _ in kept:
            await reader.readuntil(b'"done"')
        for _, _, writer in (*kept, refused):
            writer.close()
        while not (again := await opened(address))[0]:
            again[2].close()
        again[2].close()


def test_aborted_downloads_are_no_lines_of_log(caplog: pytest.LogCaptureFixture):
    lines = [LINES[0], *(event_line(float(n), "job", "x" * 1000) for n in range(20_000))]
    with shown(RecordingReplay(lines)) as address:
        where = urlsplit(address)
        for path in ("/recording.jsonl", "/events") * 5:
            with socket.create_connection((where.hostname, where.port)) as connection:
                connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
                connection.recv(1)
                linger = struct.pack("ii", 1, 0)  # a reset
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        answer, body = get(address, "/recording.jsonl")
        assert answer.status == 200
        assert len(body.splitlines()) == len(lines)
    assert [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING] == []
