# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Requests with anything in them: each is answered with a canonical code, nothing of a refused update stays, and the
switch goes on."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator

import grpc
import pytest
from finsy.proto import p4r
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st
from kinds import config, ids
from p4runtime_client import Client, write_errors
from testnet import SwitchProcess

UNANSWERABLE = {grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL, grpc.StatusCode.UNAVAILABLE}


@pytest.fixture(scope="module")
def switch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SwitchProcess]:
    process = SwitchProcess(None, tmp_path_factory.mktemp("switch"), "--log-level", "warn")
    yield process
    assert "Traceback" not in process.log()
    assert process.stop() == 0


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.Runner]:
    """One event loop for all examples. grpc.aio has one completion queue for all loops: what a canceled call of one
    example leaves there is handled in the next one, and would meet a loop that is closed."""
    with asyncio.Runner() as runner:
        yield runner


class Maker:
    """Fills messages with what is nearly right: known ids, plausible numbers, and now and then something else."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._ids = list(ids().values())

    def fill(self, message: Message, depth: int = 0) -> Message:
        oneofs: set[str] = set()
        for field in message.DESCRIPTOR.fields:
            one = field.containing_oneof
            if one is not None:
                if one.name in oneofs or self._random.random() < 0.5:
                    continue
                oneofs.add(one.name)
            elif self._random.random() < 0.25:
                continue
            self._set(message, field, depth)
        return message

    def _set(self, message: Message, field: FieldDescriptor, depth: int) -> None:
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            is_map = field.message_type.GetOptions().map_entry
            if depth > 6 or is_map or field.message_type.full_name == "google.protobuf.Any":
                return
            inner = getattr(message, field.name)
            if field.is_repeated:
                for _ in range(self._random.choice((0, 1, 1, 2, 3))):
                    self.fill(inner.add(), depth + 1)
            else:
                inner.SetInParent()
                self.fill(inner, depth + 1)
        elif field.is_repeated:
            getattr(message, field.name).extend(
                self._value(field) for _ in range(self._random.choice((0, 1, 2)))
            )
        else:
            setattr(message, field.name, self._value(field))

    def _value(self, field: FieldDescriptor) -> object:
        choose = self._random.choice
        if field.type == FieldDescriptor.TYPE_BYTES:
            return choose(
                (
                    b"",
                    b"\0",
                    b"\1",
                    b"\2",
                    b"\1\xff",
                    b"\x88\xb5",
                    bytes(5),
                    b"\xff" * 9,
                    self._random.randbytes(6),
                )
            )
        if field.type == FieldDescriptor.TYPE_STRING:
            return choose(("", "x"))
        if field.type == FieldDescriptor.TYPE_BOOL:
            return choose((False, False, True))
        if field.type == FieldDescriptor.TYPE_ENUM:
            return choose([value.number for value in field.enum_type.values])
        if field.name.endswith("_id") and field.name not in (
            "field_id",
            "param_id",
            "member_id",
            "group_id",
            "session_id",
        ):
            return choose((0, 1, *self._ids, *self._ids))
        numbers = [0, 1, 1, 2, 3, 7, 8, 63, 64, 510, 511, 512, 65535, 65536, 2**31 - 1]
        signed = field.type in (FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_INT64)
        return choose([*numbers, -1, -(2**31)] if signed else [*numbers, 2**32 - 1])

    def damage(self, message: Message) -> None:
        """Sets one field anywhere inside to something else."""
        while inner := [part for _, value in message.ListFields() for part in _messages(value)]:
            if self._random.random() < 0.3:
                break
            message = self._random.choice(inner)
            if not message.DESCRIPTOR.fields:  # such as P4BoolType
                return
        field = self._random.choice(message.DESCRIPTOR.fields)
        message.ClearField(field.name)
        if self._random.random() < 0.8:
            self._set(message, field, 4)


def _messages(value: object) -> list[Message]:
    if isinstance(value, Message):
        return [value]
    return [part for part in value if isinstance(part, Message)] if isinstance(value, Iterable) else []


async def outcome(call: Awaitable[object]) -> grpc.aio.AioRpcError | None:
    """How a call was refused; None if it was not."""
    try:
        await call
    except grpc.aio.AioRpcError as refused:
        note(str(refused))
        return refused
    return None


async def everything(client: Client) -> bytes:
    kinds = ("table_entry", "counter_entry", "meter_entry", "register_entry", "action_profile_member")
    queries = []
    for kind in (
        *kinds,
        "action_profile_group",
        "packet_replication_engine_entry",
        "value_set_entry",
        "digest_entry",
    ):
        queries.append(p4r.Entity())
        getattr(queries[-1], kind).SetInParent()
    return b"".join(entity.SerializeToString(deterministic=True) for entity in await client.read(*queries))


async def session(address: str, case: Callable) -> None:
    async with Client(address) as client:
        # A session that failed may still be there for the switch: each one takes over from it.
        await client.become_primary(time.monotonic_ns())
        await client.push(config())
        try:
            await case(client)
        finally:
            await client.finish()


def few(examples: int) -> settings:
    return settings(
        max_examples=examples,
        deadline=None,
        phases=(Phase.explicit, Phase.reuse, Phase.generate),  # a smaller seed makes no smaller message
        print_blob=True,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )


seeds = st.integers(0, 2**32)


@pytest.mark.slow
@few(50)
@given(seed=seeds)
def test_any_write_is_answered_and_a_refused_one_leaves_nothing(
    switch: SwitchProcess, loop: asyncio.Runner, seed: int
) -> None:
    write_anything(switch, loop, seed)


@pytest.mark.long
@pytest.mark.timeout(3600)
@few(3000)
@given(seed=seeds)
def test_many_writes_are_answered_and_refused_ones_leave_nothing(
    switch: SwitchProcess, loop: asyncio.Runner, seed: int
) -> None:
    write_anything(switch, loop, seed)


def write_anything(switch: SwitchProcess, loop: asyncio.Runner, seed: int) -> None:
    maker = Maker(seed)

    async def case(client: Client) -> None:
        for _ in range(8):
            update = p4r.Update()
            maker.fill(update)
            before = await everything(client)
            note(str(update))
            if (refused := await outcome(client.write(update))) is not None:
                assert refused.code() is grpc.StatusCode.UNKNOWN
                (error,) = write_errors(refused)
                assert error.canonical_code not in (0, 2, 13)
                assert error.message
                assert await everything(client) == before

    loop.run(session(switch.address, case))


@few(50)
@given(seed=seeds)
def test_any_read_or_stream_message_is_answered(
    switch: SwitchProcess, loop: asyncio.Runner, seed: int
) -> None:
    maker = Maker(seed)

    async def case(client: Client) -> None:
        for _ in range(8):
            query = p4r.Entity()
            maker.fill(query)
            note(str(query))
            if (refused := await outcome(client.read(query))) is not None:
                assert refused.code() not in UNANSWERABLE
                assert refused.details()
            request = p4r.StreamMessageRequest()
            maker.fill(request)
            if (kind := request.WhichOneof("update")) not in (None, "arbitration"):
                client.send(**{kind: getattr(request, kind)})
        client.send(packet=p4r.PacketOut(metadata=[p4r.PacketMetadata(metadata_id=77)]))
        while (message := await client.receive()).error.packet_out.packet_out.metadata[:1] != [
            p4r.PacketMetadata(metadata_id=77)
        ]:
            assert message.WhichOneof("update") in ("error", "packet", "digest", "idle_timeout_notification")

    loop.run(session(switch.address, case))


@few(80)
@given(seed=seeds)
def test_a_damaged_p4info_is_refused_or_taken(switch: SwitchProcess, loop: asyncio.Runner, seed: int) -> None:
    maker = Maker(seed)
    pushed = p4r.ForwardingPipelineConfig()
    pushed.CopyFrom(config())
    for _ in range(1 + seed % 3):
        maker.damage(pushed.p4info)

    async def case(client: Client) -> None:
        if (refused := await outcome(client.push(pushed))) is not None:
            assert refused.code() is grpc.StatusCode.INVALID_ARGUMENT
            assert refused.details()
        assert (refused := await outcome(everything(client))) is None or refused.code() not in UNANSWERABLE

    loop.run(session(switch.address, case))


@few(12)
@given(data=st.data())
def test_a_damaged_device_config_is_refused_or_runs(
    switch: SwitchProcess, loop: asyncio.Runner, data: st.DataObject
) -> None:
    pushed = p4r.ForwardingPipelineConfig()
    pushed.CopyFrom(config())
    blob = bytearray(pushed.p4_device_config)
    start = data.draw(st.integers(0, len(blob) - 40))
    blob[start : start + data.draw(st.integers(1, 40))] = data.draw(st.binary(max_size=8))
    pushed.p4_device_config = bytes(blob)

    async def case(client: Client) -> None:
        if (refused := await outcome(client.push(pushed))) is not None:
            assert refused.code() is grpc.StatusCode.INVALID_ARGUMENT
            assert refused.details()
        await everything(client)

    loop.run(session(switch.address, case))
