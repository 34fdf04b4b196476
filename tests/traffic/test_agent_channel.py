# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Both ends of the stream between a worker in C and its agent: whole messages come out, however the bytes travel."""

from __future__ import annotations

import ctypes
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from netfold.traffic.agent import messages
from netfold.traffic.agent.messages import BODY_BYTES, Header, MessageType, NewEpochMessage
from netfold.traffic.agent.worker_stream import WorkerEndedError, WorkerMessageError, WorkerStream
from netfold.traffic.engine.c_headers import Headers
from netfold.traffic.engine.native import build

FOLDER = Path(messages.__file__).parent
DEADLINE_S = 10.0


class ReceivedMessage(ctypes.Structure):
    _fields_ = Headers(FOLDER / "channel.h").fields("na_message")


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    library = ctypes.CDLL(str(build([FOLDER / "channel.c"], tmp_path_factory.mktemp("code"))))
    library.na_channel_open.restype = ctypes.c_void_p
    library.na_channel_close.argtypes = (ctypes.c_void_p,)
    library.na_send.argtypes = (ctypes.c_void_p, ctypes.c_uint32, ctypes.c_char_p, ctypes.c_size_t)
    library.na_receive.argtypes = (ctypes.c_void_p, ctypes.POINTER(ReceivedMessage), ctypes.c_double)
    return library


class Channel:
    """The worker's end."""

    def __init__(self, code: ctypes.CDLL, sock: socket.socket) -> None:
        self._code = code
        self.channel = code.na_channel_open(sock.detach())

    def send(self, kind: MessageType, body: bytes = b"") -> int:
        return int(self._code.na_send(self.channel, kind, body, len(body)))

    def receive(self, seconds: float = DEADLINE_S) -> tuple[int, ReceivedMessage]:
        message = ReceivedMessage()
        return self._code.na_receive(self.channel, ctypes.byref(message), seconds), message


@pytest.fixture
def ends(code: ctypes.CDLL) -> Iterator[tuple[Channel, socket.socket]]:
    ours, theirs = socket.socketpair()
    channel = Channel(code, ours)
    with theirs:
        yield channel, theirs
    code.na_channel_close(channel.channel)


def test_messages_of_a_worker_arrive_one_by_one(ends: tuple[Channel, socket.socket]):
    channel, agents = ends
    stream = WorkerStream(agents)
    channel.send(MessageType.READY)
    channel.send(MessageType.NEW_EPOCH, bytes(NewEpochMessage(epoch=7)))
    channel.send(MessageType.JOIN, b"job")
    first, second, third = (stream.receive(DEADLINE_S) for _ in range(3))
    assert first is not None
    assert second is not None
    assert third is not None
    assert (first.kind, first.body) == (MessageType.READY, b"")
    assert second.to(NewEpochMessage).epoch == 7
    assert (third.kind, third.text) == (MessageType.JOIN, "job")
    assert stream.receive(0.0) is None


def test_a_message_that_comes_in_pieces_is_received_whole(ends: tuple[Channel, socket.socket]):
    channel, agents = ends
    text = b"h" * 1000
    whole = bytes(Header(type=MessageType.ENDED, size=len(text))) + text
    for piece in (whole[:3], whole[3:500]):
        agents.sendall(piece)
        assert channel.receive(0.01)[0] == 0
    agents.sendall(whole[500:] + whole[:20])
    found, message = channel.receive()
    assert (found, message.type, message.size) == (1, MessageType.ENDED, len(text))
    assert ctypes.string_at(message.text) == text, "it ends with a zero, although the next one follows"
    assert channel.receive(0.01)[0] == 0
    agents.sendall(whole[20:])
    found, message = channel.receive()
    assert (found, ctypes.string_at(message.text)) == (1, text)


def test_sockets_come_with_their_assignment(ends: tuple[Channel, socket.socket]):
    channel, agents = ends
    stream = WorkerStream(agents)
    passed = os.eventfd(5, os.EFD_CLOEXEC)
    stream.send(MessageType.PREPARE)
    stream.send(MessageType.ASSIGN, b"a" * 40_000, [passed])
    stream.send(MessageType.DEPARTURES)
    os.close(passed)
    assert channel.receive()[1].socket_count == 0
    found, message = channel.receive()
    assert (found, message.size, message.socket_count) == (1, 40_000, 1)
    received = ctypes.cast(message.sockets, ctypes.POINTER(ctypes.c_int32))[0]
    assert os.eventfd_read(received) == 5
    os.close(received)
    assert channel.receive()[1].socket_count == 0


def test_nothing_follows_the_last_message(ends: tuple[Channel, socket.socket]):
    channel, agents = ends
    assert channel.send(MessageType.LEAVE) == 0
    assert channel.send(MessageType.READY) == 0
    message = WorkerStream(agents).receive(DEADLINE_S)
    assert message is not None
    assert message.kind is MessageType.LEAVE
    with pytest.raises(BlockingIOError):
        agents.recv(1, socket.MSG_DONTWAIT)


@pytest.mark.parametrize(
    "header", [Header(type=99, size=0), Header(type=MessageType.ENDED, size=BODY_BYTES + 1)]
)
def test_bytes_that_are_no_message_are_refused_at_both_ends(
    ends: tuple[Channel, socket.socket], header: Header
):
    channel, agents = ends
    agents.sendall(bytes(header))
    assert channel.receive()[0] == -1
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(bytes(header))
        with pytest.raises(WorkerMessageError):
            WorkerStream(theirs).receive(DEADLINE_S)


def test_an_end_that_is_closed_is_noticed(code: ctypes.CDLL):
    ours, theirs = socket.socketpair()
    channel, stream = Channel(code, ours), WorkerStream(theirs)
    code.na_channel_close(channel.channel)
    with pytest.raises(WorkerEndedError):
        stream.receive(DEADLINE_S)
    ours, agents = socket.socketpair()
    channel = Channel(code, ours)
    agents.close()
    assert channel.receive()[0] == -1
    assert channel.send(MessageType.READY) == -1
    code.na_channel_close(channel.channel)
    theirs.close()
