# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Which client is primary: the rules of the P4Runtime specification, over gRPC, on a device without a program."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import grpc
import pytest
from controlled import served
from finsy.proto import p4r
from google.protobuf import any_pb2
from p4runtime_client import Client
from softswitch.p4runtime.arbitration import STREAMS_PER_ROLE

OK, NOT_FOUND, ALREADY_EXISTS = 0, 5, 6


@pytest.fixture
def address() -> AbstractAsyncContextManager[str]:
    return served_address()


@asynccontextmanager
async def served_address() -> AsyncIterator[str]:
    async with served() as (_, address):
        yield address


def facts(update: p4r.MasterArbitrationUpdate) -> tuple[int, int]:
    assert update.device_id == 1
    return update.status.code, update.election_id.high << 64 | update.election_id.low


async def test_the_highest_election_id_leads_and_all_are_told(address: str) -> None:
    async with Client(address) as low, Client(address) as high, Client(address) as mute:
        low.arbitrate(3)
        assert facts(await low.receive_arbitration()) == (OK, 3)
        mute.arbitrate(None)
        assert facts(await mute.receive_arbitration()) == (ALREADY_EXISTS, 3)
        high.arbitrate(1 << 70)
        assert facts(await high.receive_arbitration()) == (OK, 1 << 70)
        assert facts(await low.receive_arbitration()) == (ALREADY_EXISTS, 1 << 70)
        assert facts(await mute.receive_arbitration()) == (ALREADY_EXISTS, 1 << 70)


async def test_without_an_election_id_no_client_leads(address: str) -> None:
    async with Client(address) as client:
        client.arbitrate(None)
        update = await client.receive_arbitration()
        assert update.status.code == NOT_FOUND
        assert not update.HasField("election_id")
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await client.write()
        assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED


async def test_election_id_zero_is_an_election_id(address: str) -> None:
    async with Client(address) as client:
        client.arbitrate(0)
        update = await client.receive_arbitration()
        assert facts(update) == (OK, 0)
        assert update.HasField("election_id")


async def test_when_the_primary_leaves_no_client_leads_until_one_comes_as_high(address: str) -> None:
    async with Client(address) as backup:
        async with Client(address) as primary:
            await primary.become_primary(10)
            backup.arbitrate(5)
            assert facts(await backup.receive_arbitration()) == (ALREADY_EXISTS, 10)
        assert facts(await backup.receive_arbitration()) == (NOT_FOUND, 10)
        backup.arbitrate(9)
        assert facts(await backup.receive_arbitration()) == (NOT_FOUND, 10)
        backup.arbitrate(10)
        assert facts(await backup.receive_arbitration()) == (OK, 10)


async def test_a_primary_may_step_down(address: str) -> None:
    async with Client(address) as first, Client(address) as second:
        await first.become_primary(10)
        second.arbitrate(9)
        await second.receive_arbitration()
        first.arbitrate(8)
        assert facts(await first.receive_arbitration()) == (NOT_FOUND, 10)
        assert facts(await second.receive_arbitration()) == (NOT_FOUND, 10)
        second.arbitrate(11)
        assert facts(await second.receive_arbitration()) == (OK, 11)
        assert facts(await first.receive_arbitration()) == (ALREADY_EXISTS, 11)


async def test_two_controllers_that_outbid_each_other_end_with_one_primary(address: str) -> None:
    async with Client(address) as a, Client(address) as b:
        for bid in range(1, 200):
            (a if bid % 2 else b).arbitrate(bid)
        last = (OK, 199)
        while facts(await a.receive_arbitration()) != last:
            pass
        while facts(await b.receive_arbitration()) != (ALREADY_EXISTS, 199):
            pass
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await b.write()
        assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
        with pytest.raises(grpc.aio.AioRpcError) as accepted:
            await a.write()
        assert accepted.value.code() is grpc.StatusCode.FAILED_PRECONDITION, "no program is loaded yet"


@pytest.mark.parametrize(
    ("arbitrate", "code"),
    [
        (lambda c: c.arbitrate(7, device_id=99), grpc.StatusCode.NOT_FOUND),
        (lambda c: c.arbitrate(10), grpc.StatusCode.INVALID_ARGUMENT),
    ],
    ids=["another device", "an election id in use"],
)
async def test_a_first_message_that_ends_the_stream(
    address: str, arbitrate: Callable[[Client], None], code: grpc.StatusCode
) -> None:
    async with Client(address) as primary, Client(address) as client:
        await primary.become_primary(10)
        arbitrate(client)
        assert await client.end() is code
        primary.arbitrate(10)
        assert facts(await primary.receive_arbitration()) == (OK, 10), "the primary noticed nothing"


@pytest.mark.parametrize(
    "arbitrate",
    [lambda c: c.arbitrate(7, device_id=99), lambda c: c.arbitrate(7, role="other")],
    ids=["another device", "another role"],
)
async def test_a_live_stream_keeps_device_and_role(address: str, arbitrate: Callable[[Client], None]) -> None:
    async with Client(address) as client:
        await client.become_primary(5)
        arbitrate(client)
        assert await client.end() is grpc.StatusCode.FAILED_PRECONDITION


@pytest.mark.parametrize("ending", ["half-closed", "refused"])
async def test_a_stream_ends_although_its_first_answer_is_on_its_way(address: str, ending: str) -> None:
    for _ in range(20):
        async with Client(address) as client:
            client.arbitrate(5)
            if ending == "refused":
                client.arbitrate(5, device_id=99)
                assert await client.end() is grpc.StatusCode.FAILED_PRECONDITION
            else:
                assert await client.finish() is grpc.StatusCode.OK


async def test_a_role_config_is_refused_since_no_scheme_is_agreed(address: str) -> None:
    async with Client(address) as client:
        update = p4r.MasterArbitrationUpdate(
            device_id=1, role=p4r.Role(name="x", config=any_pb2.Any(type_url="a/b"))
        )
        client.send(arbitration=update)
        assert await client.end() is grpc.StatusCode.INVALID_ARGUMENT


async def test_each_role_has_its_own_primary(address: str) -> None:
    async with Client(address) as default, Client(address) as monitor:
        await default.become_primary(10)
        monitor.arbitrate(1, role="monitor")
        update = await monitor.receive_arbitration()
        assert facts(update) == (OK, 1)
        assert update.role.name == "monitor"
        monitor.role = "unheard-of"
        with pytest.raises(grpc.aio.AioRpcError) as unknown:
            await monitor.write()
        assert unknown.value.code() is grpc.StatusCode.NOT_FOUND


async def test_streams_are_bounded(address: str) -> None:
    clients = [Client(address) for _ in range(STREAMS_PER_ROLE + 1)]
    for client in clients:
        await client.__aenter__()
    try:
        for client in clients[:-1]:
            client.arbitrate(None)
            await client.receive_arbitration()
        clients[-1].arbitrate(None)
        assert await clients[-1].end() is grpc.StatusCode.RESOURCE_EXHAUSTED
    finally:
        for client in clients:
            await client.__aexit__(None, None, None)


async def test_requests_for_another_device_are_not_found(address: str) -> None:
    async with Client(address, device_id=2) as client:
        for request in (client.write(), client.read(p4r.Entity()), client.push(None)):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await request
            assert refused.value.code() is grpc.StatusCode.NOT_FOUND
            assert "expected 1" in (refused.value.details() or "")


async def test_without_a_program_there_is_nothing_to_read_or_to_get(address: str) -> None:
    async with Client(address) as client:
        await client.become_primary()
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await client.read(p4r.Entity(table_entry=p4r.TableEntry()))
        assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        config = await client.stub.GetForwardingPipelineConfig(
            p4r.GetForwardingPipelineConfigRequest(device_id=1)
        )
        assert not config.HasField("config")
        version = await client.stub.Capabilities(p4r.CapabilitiesRequest())
        assert version.p4runtime_api_version.startswith("1.")


async def test_stream_messages_of_a_backup_are_refused_with_a_stream_error(address: str) -> None:
    async with Client(address) as client:
        client.arbitrate(None)
        await client.receive_arbitration()
        client.send(packet=p4r.PacketOut(payload=b"hello"))
        error = (await client.receive()).error
        assert error.canonical_code == grpc.StatusCode.PERMISSION_DENIED.value[0]
        assert error.packet_out.packet_out.payload == b"hello"


async def test_a_shutdown_ends_the_streams() -> None:
    async with served() as (_, address):
        client = Client(address)
        await client.__aenter__()
        await client.become_primary()
    assert await client.end() is grpc.StatusCode.UNAVAILABLE
    await client.__aexit__(None, None, None)
