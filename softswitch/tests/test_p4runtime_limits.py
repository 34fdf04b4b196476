# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Clients that flood a switch with connections, streams and bytes, or do not read, keep no other client from it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import grpc
import pytest
from controlled import served
from finsy.proto import p4r, p4r_grpc
from p4runtime_client import DEADLINE_S, Client
from softswitch.p4runtime import service as limits
from softswitch.p4runtime.service import P4RuntimeService, Stream
from softswitch.process import CONNECTIONS_MAX
from testnet import SwitchProcess, wait_for

PACKET = p4r.StreamMessageResponse(packet=p4r.PacketIn(payload=bytes(1 << 15)))
BLOCKED = 1000
"""Packets that fill a connection's buffers several times."""


@pytest.fixture
def switch(start_switch) -> SwitchProcess:
    return start_switch(None, "--log-level", "debug")


async def until(condition: Callable[[], bool], what: str) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not condition():
            await asyncio.sleep(0.01)
    assert condition(), what


async def block(service: P4RuntimeService) -> Stream:
    """Sends to the primary, whose client does not read, until packets wait."""
    (stream,) = service._arbiter.primaries()
    assert isinstance(stream, Stream)
    for _ in range(BLOCKED):
        stream.send(PACKET)
    before = -1
    while (left := stream.outbox.qsize()) != before:
        before = left
        await asyncio.sleep(0.5)
    assert left > 0
    return stream


async def test_a_stream_that_is_not_read_is_ended_and_its_election_id_is_free(monkeypatch) -> None:
    monkeypatch.setattr(limits, "UNREAD_S", 0.5)

    async with served() as (service, address), Client(address) as deaf, Client(address) as next_one:
        await deaf.become_primary(7)
        await block(service)
        await until(lambda: not service._arbiter.primaries(), "the stream is ended")
        await next_one.become_primary(7)


@pytest.mark.parametrize("end", ["by the switch", "by the client"])
async def test_a_stream_that_ends_while_its_client_does_not_read_frees_its_election_id(end: str) -> None:
    async with served() as (service, address), Client(address) as next_one, Client(address) as deaf:
        await deaf.become_primary(7)
        stream = await block(service)
        if end == "by the switch":
            stream.lost.set()
        else:
            deaf._call.cancel()
        await until(lambda: not service._arbiter.primaries(), "the id is free")
        await next_one.become_primary(7)


async def test_a_client_that_reads_slowly_keeps_its_stream(monkeypatch) -> None:
    monkeypatch.setattr(limits, "UNREAD_S", 5.0)

    async with served() as (service, address), Client(address) as slow:
        await slow.become_primary(7)
        stream = await block(service)
        for _ in range(BLOCKED):
            assert (await slow.receive()).packet.payload == PACKET.packet.payload
        assert service._arbiter.primaries() == [stream]


async def test_a_stream_without_arbitration_is_ended(monkeypatch) -> None:
    monkeypatch.setattr(limits, "ARBITRATION_S", 0.2)

    async with served() as (_, address), Client(address) as silent, Client(address) as primary:
        await primary.become_primary(7)
        assert await silent.end() is grpc.StatusCode.DEADLINE_EXCEEDED
        primary.arbitrate(8)
        assert (await primary.receive_arbitration()).status.code == 0, (
            "that of a client that has said so goes on"
        )


async def test_a_flood_of_streams_is_refused_and_keeps_no_controller_out(switch: SwitchProcess) -> None:
    async with Client(switch.address) as controller:
        await controller.become_primary(7)
        # A connection of its own for each part: it has a limit too.
        options = [("grpc.use_local_subchannel_pool", 1)]
        channels = [grpc.aio.insecure_channel(switch.address, options=options) for _ in range(8)]
        stubs = [cast(Any, p4r_grpc.P4RuntimeStub(c)) for c in channels]  # type: ignore[no-untyped-call]
        calls = [s.StreamChannel() for s in stubs for _ in range(limits.STREAMS_MAX // 4)]

        def refused() -> list[Any]:
            return [c for c in calls if c.done()]

        await until(lambda: len(refused()) > limits.STREAMS_MAX, "half of them is refused")
        codes = {await call.code() for call in refused()}
        assert grpc.StatusCode.RESOURCE_EXHAUSTED in codes
        controller.arbitrate(8)
        assert (await controller.receive_arbitration()).status.code == 0, "an open stream goes on"
        for channel in channels:
            await channel.close()
        async with Client(switch.address) as other:
            await other.become_primary(9)
    assert "Traceback" not in switch.log()


@pytest.mark.slow
async def test_a_flood_of_idle_connections_is_refused_and_keeps_no_controller_out(
    switch: SwitchProcess,
) -> None:
    def files() -> int:
        return len(list(Path(f"/proc/{switch.process.pid}/fd").iterdir()))

    path = switch.address.removeprefix("unix:")
    before = files()

    async with Client(switch.address) as controller:
        await controller.become_primary(7)
        with ExitStack() as stack:
            for _ in range(2 * CONNECTIONS_MAX):
                connection = stack.enter_context(socket.socket(socket.AF_UNIX))
                await asyncio.to_thread(connection.connect, path)
            assert files() < before + CONNECTIONS_MAX + 20
            controller.arbitrate(8)
            assert (await controller.receive_arbitration()).status.code == 0, "an open stream goes on"
            await until(lambda: files() < before + 20, "without a handshake they are closed")
            async with Client(switch.address) as other:
                await other.become_primary(9)
    assert "Traceback" not in switch.log()


@pytest.mark.parametrize("name", ["Write", "Read", "StreamChannel"])
async def test_a_message_that_cannot_be_decoded_is_one_line_of_log(switch: SwitchProcess, name: str) -> None:
    before = len(switch.log())
    async with grpc.aio.insecure_channel(switch.address) as channel:
        kinds = {"Write": channel.stream_unary, "Read": channel.stream_stream}
        call = kinds.get(name, channel.stream_stream)(f"/p4.v1.P4Runtime/{name}")(iter([b"\xff\xff"]))
        assert await asyncio.wait_for(call.code(), DEADLINE_S) is not grpc.StatusCode.OK
    async with Client(switch.address) as client:
        await client.become_primary(7)
    wait_for(lambda: "DecodeError" in switch.log(), "a line")
    (line,) = switch.log()[before:].splitlines()
    assert name in line
