# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Messages of the stream while packets run: packets in and out, digests, idle entries, pushes under traffic."""
# ruff: noqa: F401, F811 - fixtures are imported, and named by the parameters that ask for them

from __future__ import annotations

import pytest
from attached import DATA, MEASURE, TAGGED, arrival, hosts, learn_frame, learned, namespace, switch
from finsy.proto import p4r
from kinds import (
    action,
    clone,
    counter,
    digest,
    entry,
    exact,
    forward,
    ids,
    multicast,
    register,
    ternary,
    value_set,
)
from p4runtime_client import Client, delete, insert, modify
from testnet import Host, ethernet, needs_root

pytestmark = needs_root


def packet_out(port: int, payload: bytes) -> p4r.PacketOut:
    return p4r.PacketOut(
        payload=payload, metadata=[p4r.PacketMetadata(metadata_id=1, value=port.to_bytes(2, "big"))]
    )


async def test_packet_out_and_packet_in(client: Client, hosts: list[Host]) -> None:
    frame = ethernet(DATA, b"x" * 46, dst=77)

    client.send(packet=packet_out(2, frame))
    assert await arrival(hosts[1]) == frame
    hosts[2].send(frame)
    packet = (await client.receive()).packet
    assert packet.payload == frame
    assert [(m.metadata_id, m.value) for m in packet.metadata] == [(1, b"\x03"), (2, b"\x01")]


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ([], "missing"),
        ([(1, b"\x01"), (1, b"\x01")], "twice"),
        ([(1, b"\x01"), (9, b"\x01")], "id 9"),
        ([(1, b"\x02\x00")], "9 bits"),
        ([(1, b"")], "empty"),
    ],
)
async def test_a_malformed_packet_out_is_answered_with_a_stream_error(
    client: Client, hosts, metadata, words: str
) -> None:
    wrong = p4r.PacketOut(
        payload=b"p", metadata=[p4r.PacketMetadata(metadata_id=i, value=v) for i, v in metadata]
    )
    client.send(packet=wrong)
    error = (await client.receive()).error
    assert error.canonical_code != 0
    assert words in error.message
    assert error.packet_out.packet_out == wrong
    client.send(packet=packet_out(1, ethernet(DATA, b"still alive")))
    assert await arrival(hosts[0]) == ethernet(DATA, b"still alive")


async def test_entries_steer_packets_and_counters_count_them(client: Client, hosts: list[Host]) -> None:
    frame = ethernet(DATA, bytes(50), dst=5)

    await client.write(insert(forward(5, 2)), insert(multicast(4, (1, 1), (3, 2))))
    hosts[0].send(frame)
    assert await arrival(hosts[1]) == frame
    asked = entry("forward", counter_data=p4r.CounterData())
    (read,) = await client.read(asked)
    assert (read.table_entry.counter_data.packet_count, read.table_entry.counter_data.byte_count) == (1, 64)
    await client.write(modify(entry("forward", exact(1, 5), act=action("group", 4))))
    hosts[1].send(frame)
    assert await arrival(hosts[0]) == frame
    assert await arrival(hosts[2]) == frame
    await client.write(delete(forward(5)))
    hosts[0].send(frame)
    assert (await client.receive()).packet.payload == frame


async def test_clones_registers_counters_and_value_sets_meet_packets(
    client: Client, hosts: list[Host]
) -> None:
    await client.write(insert(clone(7, (3, 0), length=20)))
    await client.write(
        insert(forward(5, 2)),
        insert(entry("police_table", ternary(1, 1, 511), act=action("mirror", 7), priority=1)),
    )
    frame = ethernet(MEASURE, bytes(50), dst=5)
    await client.write(modify(register("totals", 3, b"\x01\x00")))
    hosts[0].send(frame)
    assert await arrival(hosts[1]) == frame
    assert await arrival(hosts[2]) == frame[:20]
    assert await client.read(register("totals", 3)) == [register("totals", 3, b"\x01\x01")]
    assert await client.read(counter("ports", 3)) == [counter("ports", 3, 1, 64)]
    tagged = ethernet(TAGGED, bytes(50), dst=5)
    hosts[1].send(tagged)
    assert await arrival(hosts[1]) == tagged
    await client.write(modify(value_set(TAGGED)))
    member = p4r.ActionProfileMember(
        action_profile_id=ids()["spread"], member_id=1, action=action("set_port", 3)
    )
    await client.write(insert(p4r.Entity(action_profile_member=member)))
    route = entry("routes")
    route.table_entry.action.action_profile_member_id = 1
    await client.write(insert(route))
    hosts[1].send(tagged)
    assert await arrival(hosts[2]) == tagged


async def test_digests_are_gathered_until_the_list_is_full(client: Client, hosts: list[Host]) -> None:
    await client.write(insert(forward(5, 2)), insert(digest(3600 * 10**9, 3, 3600 * 10**9)))
    for source in (1, 1, 2, 2, 3, 4):
        hosts[0].send(learn_frame(source))
    first = await client.receive()
    assert learned(first) == [(1, 1), (2, 1), (3, 1)], "each once"
    for source in (1, 2, 5, 6):
        hosts[0].send(learn_frame(source))
    second = await client.receive()
    assert learned(second) == [(4, 1), (5, 1), (6, 1)], "a digest without an acknowledgment is not repeated"
    assert second.digest.list_id != first.digest.list_id
    client.send(digest_ack=p4r.DigestListAck(digest_id=ids()["seen_t"], list_id=first.digest.list_id))
    client.send(digest_ack=p4r.DigestListAck(digest_id=1, list_id=1))
    assert (await client.receive()).error.HasField("digest_list_ack"), (
        "the first acknowledgement is handled by now"
    )
    for source in (1, 4, 2, 3):
        hosts[0].send(learn_frame(source))
    assert learned(await client.receive()) == [(1, 1), (2, 1), (3, 1)]


async def test_a_digest_list_that_is_not_full_goes_after_its_timeout(
    client: Client, hosts: list[Host]
) -> None:
    await client.write(insert(forward(5, 2)), insert(digest(50_000_000, 100, 0)))
    for source in (1, 2):
        hosts[0].send(learn_frame(source))
    seen: list[tuple[int, int]] = []
    while len(seen) < 2:
        seen += learned(await client.receive())
    assert seen == [(1, 1), (2, 1)]
    await client.write(delete(digest()), insert(digest(0, 1, 0)))
    hosts[0].send(learn_frame(9))
    assert learned(await client.receive()) == [(9, 1)]


async def test_an_idle_entry_is_announced(client: Client, hosts: list[Host]) -> None:
    idle = forward(5, 2, idle_timeout_ns=20_000_000, metadata=b"idle", controller_metadata=3)
    await client.write(insert(idle), insert(forward(6, 2)))
    for _ in range(2):
        notice = (await client.receive()).idle_timeout_notification
        assert [e.match[0].exact.value for e in notice.table_entry] == [b"\x05"]
        assert notice.table_entry[0].metadata == b"idle"
        assert notice.table_entry[0].controller_metadata == 3
    asked = entry("forward", exact(1, 5), time_since_last_hit=p4r.TableEntry.IdleTimeout())
    (read,) = await client.read(asked)
    assert read.table_entry.time_since_last_hit.elapsed_ns > 0
