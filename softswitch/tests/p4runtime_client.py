# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A bare P4Runtime client for the tests: it sends what it is told, right or wrong, and keeps what it gets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any

import grpc
from finsy.proto import p4r, p4r_grpc, rpc_status

DEADLINE_S = 120.0


def election(number: int) -> p4r.Uint128:
    return p4r.Uint128(high=number >> 64, low=number & (1 << 64) - 1)


def write_errors(error: grpc.aio.AioRpcError) -> list[p4r.Error]:
    """The p4.v1.Error of each update of a failed Write."""
    metadata = dict(error.trailing_metadata() or ())
    status = rpc_status.Status.FromString(metadata["grpc-status-details-bin"])  # type: ignore[arg-type]
    errors = []
    for detail in status.details:
        errors.append(p4r.Error())
        assert detail.Unpack(errors[-1])
    return errors


class Client:
    """One connection with one stream. Every wait has a deadline."""

    def __init__(
        self, address: str, device_id: int = 1, credentials: grpc.ChannelCredentials | None = None
    ) -> None:
        self.device_id = device_id
        self.election_id: int | None = None
        self.role = ""
        options = (("grpc.max_metadata_size", 1 << 20), ("grpc.max_receive_message_length", -1))
        if credentials is None:
            self._channel = grpc.aio.insecure_channel(address, options=options)
        else:
            self._channel = grpc.aio.secure_channel(address, credentials, options=options)
        self.stub: Any = p4r_grpc.P4RuntimeStub(self._channel)  # type: ignore[no-untyped-call]
        self._requests: asyncio.Queue[p4r.StreamMessageRequest | None] = asyncio.Queue()
        self._call: Any = None

    async def __aenter__(self) -> Client:
        self._call = self.stub.StreamChannel(self._outgoing())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._call is not None:
            self._call.cancel()
        await self._channel.close()

    async def _outgoing(self) -> AsyncIterator[p4r.StreamMessageRequest]:
        while (request := await self._requests.get()) is not None:
            yield request

    def send(self, **update: Any) -> None:
        self._requests.put_nowait(p4r.StreamMessageRequest(**update))

    def arbitrate(
        self, election_id: int | None, *, role: str | None = None, device_id: int | None = None
    ) -> None:
        update = p4r.MasterArbitrationUpdate(device_id=self.device_id if device_id is None else device_id)
        if election_id is not None:
            update.election_id.CopyFrom(election(election_id))
        if role is not None:
            update.role.name = role
            self.role = role
        self.election_id = election_id
        self.send(arbitration=update)

    async def receive(self) -> p4r.StreamMessageResponse:
        message = await asyncio.wait_for(self._call.read(), DEADLINE_S)
        assert message is not grpc.aio.EOF, "the server ended the stream"
        return message

    async def receive_arbitration(self) -> p4r.MasterArbitrationUpdate:
        message = await self.receive()
        assert message.WhichOneof("update") == "arbitration", message
        return message.arbitration

    async def become_primary(self, election_id: int = 1) -> None:
        self.arbitrate(election_id)
        assert (await self.receive_arbitration()).status.code == 0

    async def finish(self) -> grpc.StatusCode:
        """Sends no more, and waits for the server to end the stream: then the election id is free again."""
        self._requests.put_nowait(None)
        return await self.end()

    async def end(self) -> grpc.StatusCode:
        """Waits for the server to end the stream; the code that it gave."""
        try:
            while await asyncio.wait_for(self._call.read(), DEADLINE_S) is not grpc.aio.EOF:
                pass
        except grpc.aio.AioRpcError:
            pass
        return await asyncio.wait_for(self._call.code(), DEADLINE_S)

    async def write(self, *updates: p4r.Update, **fields: Any) -> None:
        request = p4r.WriteRequest(device_id=self.device_id, role=self.role, updates=updates)
        if self.election_id is not None:
            request.election_id.CopyFrom(election(self.election_id))
        for name, value in fields.items():
            setattr(request, name, value)
        await self.stub.Write(request, timeout=DEADLINE_S)

    async def read(self, *queries: p4r.Entity) -> list[p4r.Entity]:
        request = p4r.ReadRequest(device_id=self.device_id, entities=queries)
        entities: list[p4r.Entity] = []
        async for response in self.stub.Read(request, timeout=DEADLINE_S):
            entities.extend(response.entities)
        return entities

    async def push(
        self,
        config: p4r.ForwardingPipelineConfig | None,
        action: int = p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
    ) -> None:
        request = p4r.SetForwardingPipelineConfigRequest(
            device_id=self.device_id,
            role=self.role,
            action=action,
            config=config,  # type: ignore[arg-type]
        )
        if self.election_id is not None:
            request.election_id.CopyFrom(election(self.election_id))
        await self.stub.SetForwardingPipelineConfig(request, timeout=60)


@asynccontextmanager
async def connected(address: str, config: p4r.ForwardingPipelineConfig) -> AsyncIterator[Client]:
    """A primary controller whose program the switch runs."""
    async with Client(address) as client:
        await client.become_primary()
        await client.push(config)
        yield client


def insert(entity: p4r.Entity) -> p4r.Update:
    return p4r.Update(type=p4r.Update.INSERT, entity=entity)


def modify(entity: p4r.Entity) -> p4r.Update:
    return p4r.Update(type=p4r.Update.MODIFY, entity=entity)


def delete(entity: p4r.Entity) -> p4r.Update:
    return p4r.Update(type=p4r.Update.DELETE, entity=entity)


def codes(errors: Iterable[p4r.Error]) -> list[int]:
    return [error.canonical_code for error in errors]
