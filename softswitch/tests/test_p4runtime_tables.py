# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Write and Read of table entries, default entries, direct counters and direct meters."""
# ruff: noqa: F401 - fixtures are imported, and named by the parameters that ask for them

from __future__ import annotations

import asyncio

import grpc
import pytest
from controlled import C, entries, expect, switch
from finsy.proto import p4r
from kinds import action, between, entry, exact, forward, ids, meter_config, optional, ternary
from p4runtime_client import Client, delete, insert, modify


async def test_table_entries_are_read_back_as_written(client: Client) -> None:
    written = [
        forward(0x0200_0000_0001, 3, controller_metadata=77, metadata=b"mine", idle_timeout_ns=10**9),
        entry("forward", exact(1, 9), act=action("to_controller", 5)),
        entry(
            "police_table",
            ternary(1, 3, 0x0F),
            between(2, 0x0800, 0x0900),
            optional(3, 5),
            act=action("police"),
            priority=4,
        ),
        entry("police_table", act=action("mirror", 300), priority=1),
    ]

    await client.write(*map(insert, written))
    for wanted in written:
        query = p4r.Entity()
        query.CopyFrom(wanted)
        query.table_entry.ClearField("action")
        assert await client.read(query) == [wanted]
    everything = entries(await client.read(entry("")))
    assert [e.table_entry for e in written] == [e for e in everything if not e.is_const]
    assert sum(e.is_const for e in everything) == 2, "the constant entries of `fixed`"
    assert len(await client.read(entry("police_table"))) == 2
    assert [e.priority for e in entries(await client.read(entry("police_table", priority=4)))] == [4]
    by_action = entry("forward")
    by_action.table_entry.action.action.action_id = ids()["to_controller"]
    assert entries(await client.read(by_action)) == [written[1].table_entry]
    assert len(await client.read(entry("", controller_metadata=77))) == 1
    assert len(await client.read(entry("", metadata=b"mine"))) == 1
    assert await client.read(forward(12345)) == []


async def test_modify_and_delete(client: Client) -> None:
    await client.write(insert(forward(1, 2, metadata=b"a")))
    await client.write(modify(forward(1, 7, metadata=b"b")))
    assert entries(await client.read(entry("forward"))) == [forward(1, 7, metadata=b"b").table_entry]
    await client.write(modify(entry("forward", exact(1, 1))))
    assert entries(await client.read(entry("forward"))) == [forward(1, 7, metadata=b"b").table_entry]
    nonsense = entry("forward", exact(1, 1), act=p4r.Action(action_id=123), metadata=b"ignored")
    await client.write(delete(nonsense))
    assert await client.read(entry("forward")) == []
    await expect(client, delete(forward(1)), C.NOT_FOUND)
    await expect(client, modify(forward(1)), C.NOT_FOUND)
    await expect(client, modify(entry("forward", exact(1, 1))), C.NOT_FOUND)


async def test_byte_strings_of_any_length_are_taken_and_the_shortest_sent(client: Client) -> None:
    padded = entry("forward", exact(1, bytes(9) + b"\x05"), act=action("send", bytes(6) + b"\x01\xff"))
    await client.write(insert(padded))
    assert entries(await client.read(entry("forward"))) == [forward(5, 0x1FF).table_entry]
    await expect(client, insert(forward(5)), C.ALREADY_EXISTS)
    for wrong in (b"", b"\x02\x00"):
        await expect(client, insert(entry("forward", exact(1, 6), act=action("send", wrong))), C.OUT_OF_RANGE)
        update = insert(entry("forward", exact(1, wrong + bytes(6) if wrong else b""), act=action("send", 1)))
        await expect(client, update, C.OUT_OF_RANGE)
    assert len(await client.read(entry("forward"))) == 1


async def test_a_full_table_says_so(client: Client) -> None:
    await client.write(*(insert(forward(n)) for n in range(1, 65)))
    await expect(client, insert(forward(65)), C.RESOURCE_EXHAUSTED)
    await client.write(delete(forward(64)), insert(forward(65)))


async def test_the_default_entry(client: Client) -> None:
    query = entry("forward", is_default_action=True)
    (original,) = entries(await client.read(query))
    assert original.action.action == action("to_controller", 1)
    changed = entry("forward", act=action("drop"), is_default_action=True, metadata=b"changed")
    await client.write(modify(changed))
    assert await client.read(query) == [changed]
    await client.write(modify(query))
    assert entries(await client.read(query)) == [original]
    assert len(await client.read(entry("", is_default_action=True))) == 5


async def test_direct_counters_and_meters(client: Client) -> None:
    counted = forward(1, counter_data=p4r.CounterData(packet_count=5, byte_count=600))
    await client.write(insert(counted), insert(forward(2)))
    assert entries(await client.read(entry("forward"))) == [forward(1).table_entry, forward(2).table_entry]
    asked = entry("forward", counter_data=p4r.CounterData())
    first, second = entries(await client.read(asked))
    assert first.counter_data.byte_count == 600
    assert second.HasField("counter_data")
    await client.write(modify(forward(1, 9)))
    assert entries(await client.read(asked))[0].counter_data.packet_count == 5, "a new action keeps the count"

    direct = p4r.DirectCounterEntry(table_entry=entry("forward", exact(1, 2)).table_entry)
    direct.data.packet_count = 8
    await client.write(modify(p4r.Entity(direct_counter_entry=direct)))
    assert await client.read(p4r.Entity(direct_counter_entry=direct)) == [
        p4r.Entity(direct_counter_entry=direct)
    ]
    wildcard = p4r.DirectCounterEntry(table_entry=entry("forward").table_entry)
    assert len(await client.read(p4r.Entity(direct_counter_entry=wildcard))) == 2
    await expect(client, insert(p4r.Entity(direct_counter_entry=direct)), C.INVALID_ARGUMENT)
    absent = p4r.DirectCounterEntry(table_entry=entry("forward", exact(1, 77)).table_entry)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await client.read(p4r.Entity(direct_counter_entry=absent))
    assert caught.value.code() is C.NOT_FOUND

    config_ = meter_config(1000, 100, 2000, 200)
    policed = entry("police_table", act=action("police"), priority=1, meter_config=config_)
    await client.write(insert(policed))
    asked = entry("police_table", priority=1, meter_config=p4r.MeterConfig())
    assert entries(await client.read(asked))[0].meter_config == config_
    key = entry("police_table", priority=1).table_entry
    await client.write(modify(p4r.Entity(direct_meter_entry=p4r.DirectMeterEntry(table_entry=key))))
    assert not entries(await client.read(asked))[0].HasField("meter_config"), "an unset config resets"


async def test_a_table_may_change_while_it_is_read(client: Client) -> None:
    await client.write(*(insert(forward(n)) for n in range(1, 65)))
    await client.write(
        *(insert(entry("police_table", act=action("police"), priority=n)) for n in range(1, 17))
    )

    async def change() -> None:
        for n in range(64, 0, -1):
            await client.write(delete(forward(n)))
            await client.write(insert(forward(1000 + n, counter_data=p4r.CounterData(packet_count=n))))

    changing = asyncio.create_task(change())
    asked = entry("", counter_data=p4r.CounterData(), meter_config=p4r.MeterConfig())
    while not changing.done():
        # An entry that goes between its selection and the reading of its counter is simply not there any more.
        read = [e for e in entries(await client.read(*[asked] * 20)) if e.table_id == ids()["forward"]]
        assert 20 * 62 <= len(read) <= 20 * 66
    await changing
