# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Write and Read of every kind of entity: what is written is read back, what is wrong is refused with its reason."""
# ruff: noqa: F401 - fixtures are imported, and named by the parameters that ask for them

from __future__ import annotations

import grpc
import pytest
from controlled import C, expect, refusals, switch
from finsy.proto import p4r
from kinds import (
    action,
    between,
    clone,
    counter,
    digest,
    entry,
    exact,
    forward,
    group,
    ids,
    lpm,
    member,
    meter,
    meter_config,
    multicast,
    register,
    ternary,
    value_set,
)
from p4runtime_client import Client, delete, insert, modify


def wrong_updates() -> dict[grpc.StatusCode, list[tuple[p4r.Update, str]]]:
    """By the code of the refusal: updates, and words of the message."""
    return {
        C.INVALID_ARGUMENT: [
            (insert(p4r.Entity(table_entry=p4r.TableEntry(table_id=5))), "no table with id 5"),
            (insert(entry("forward", act=action("send", 1))), "must be given"),
            (insert(entry("forward", exact(2, 1), act=action("send", 1))), "id 2"),
            (insert(entry("forward", exact(1, 1), exact(1, 1), act=action("send", 1))), "twice"),
            (insert(entry("forward", lpm(1, 1, 48), act=action("send", 1))), "not lpm"),
            (insert(entry("forward", exact(1, 1))), "needs an action"),
            (insert(entry("forward", exact(1, 1), act=action("police"))), "not allowed"),
            (insert(entry("forward", exact(1, 1), act=action("send"))), "needs parameter 'port'"),
            (insert(entry("forward", exact(1, 1), act=action("send", 1, 2))), "id 2"),
            (insert(forward(1, priority=3)), "set it to 0"),
            (insert(forward(1, is_const=True)), "is_const"),
            (insert(forward(1, idle_timeout_ns=-1)), "negative"),
            (insert(forward(1, meter_config=meter_config(1, 1, 1, 1))), "no direct meter"),
            (insert(forward(1, time_since_last_hit=p4r.TableEntry.IdleTimeout())), "for reading"),
            (insert(forward(1, is_default_action=True)), "neither match"),
            (insert(entry("police_table", act=action("police"))), "priority 0"),
            (
                insert(entry("police_table", act=action("police"), priority=1, idle_timeout_ns=5)),
                "idle timeout",
            ),
            (
                insert(entry("police_table", ternary(1, 1, 0), act=action("police"), priority=1)),
                "mask is zero",
            ),
            (
                insert(entry("police_table", ternary(1, 3, 1), act=action("police"), priority=1)),
                "outside the mask",
            ),
            (insert(entry("police_table", between(2, 9, 8), act=action("police"), priority=1)), "is empty"),
            (
                insert(entry("police_table", between(2, 0, 0xFFFF), act=action("police"), priority=1)),
                "every value",
            ),
            (
                insert(
                    entry("police_table", counter_data=p4r.CounterData(), act=action("police"), priority=1)
                ),
                "no direct counter",
            ),
            (insert(entry("routes", lpm(1, 0x1200, 0))), "prefix length 0"),
            (insert(refer("routes", lpm(1, 0x1234, 8), member_id=1)), "beyond the prefix"),
            (insert(entry("routes", lpm(1, 0x1200, 8), act=action("ignore"))), "takes no action"),
            (delete(entry("forward", is_default_action=True)), "only be modified"),
            (insert(entry("forward", act=action("send", 1), is_default_action=True)), "only be modified"),
            (p4r.Update(entity=forward(1)), "type is not set"),
            (insert(p4r.Entity()), "no entity"),
            (insert(counter("ports", 1, 1)), "only be modified"),
            (delete(register("totals", 1, b"\0")), "only be modified"),
            (modify(counter("ports", -1, 1)), "negative"),
            (modify(counter("ports", 1, -5)), "negative"),
            (modify(meter("rates", 1, (5, 1, 4, 1))), "below cir"),
            (modify(meter("rates", 1, (-5, 1, 4, 1))), "negative"),
            (modify(register("totals", 1)), "needs data"),
            (insert(value_set(1)), "only be modified"),
            (insert(multicast(0, (1, 1))), "wildcard"),
            (insert(multicast(1, (1, 1), (1, 1))), "twice"),
            (insert(multicast(1, (1, 70000))), "instance"),
            (insert(clone(0, (1, 1))), "wildcard"),
            (insert(digest(max_timeout_ns=-1)), "negative"),
            (insert(member(0)), "wildcard"),
            (insert(group(1, profile="kept")), "no selector"),
            (insert(group(1, weight=0, max_size=-1)), "max_size"),
        ],
        C.PERMISSION_DENIED: [
            (insert(entry("forward", exact(1, 1), act=action("drop"))), "may not be an entry"),
            (insert(entry("fixed", exact(1, 7), act=action("learn"))), "constant"),
            (delete(entry("fixed", exact(1, 0x88B5))), "constant"),
            (modify(entry("fixed", exact(1, 0x88B5), act=action("learn"))), "constant"),
            (
                modify(entry("fixed", act=action("learn"), is_default_action=True)),
                "default action is constant",
            ),
            (modify(entry("routes", is_default_action=True)), "constant"),
        ],
        C.UNIMPLEMENTED: [(insert(p4r.Entity(extern_entry=p4r.ExternEntry())), "extern")],
        C.OUT_OF_RANGE: [
            (modify(counter("ports", 16, 1)), "beyond the last, 15"),
            (modify(meter("rates", 8, (1, 1, 1, 1))), "beyond the last, 7"),
            (modify(register("totals", 64, b"\1")), "beyond the last, 63"),
            (modify(register("totals", 1, b"\1\0\0\0\0")), "32 bits"),
            (modify(register("signed_totals", 1, b"\x00\x80\x00")), "signed"),
        ],
        C.RESOURCE_EXHAUSTED: [(modify(value_set(1, 2, 3, 4, 5)), "holds 4 members")],
        C.ALREADY_EXISTS: [(modify(value_set(1, 1)), "twice")],
        C.NOT_FOUND: [
            (modify(multicast(1, (1, 1))), ""),
            (delete(clone(1)), ""),
            (modify(digest()), "not enabled"),
            (delete(member(3)), ""),
            (insert(group(1, 99)), ""),
        ],
    }


async def test_what_is_wrong_is_refused_with_its_reason_and_changes_nothing(client: Client) -> None:
    before = await snapshot(client)
    cases = [(update, code, words) for code, rows in wrong_updates().items() for update, words in rows]
    wrong = []
    for part in (cases[:30], cases[30:]):
        answers = await refusals(client, *(update for update, _, _ in part))
        for (got, message), (update, code, words) in zip(answers, part, strict=True):
            if got != code.value[0] or words not in message:
                wrong.append((update, got, message, code, words))
    assert not wrong
    assert await snapshot(client) == before


async def snapshot(client: Client) -> list[p4r.Entity]:
    """All that can be read."""
    default = entry("", is_default_action=True)
    return await client.read(
        entry(""),
        default,
        counter(""),
        meter(""),
        register(""),
        p4r.Entity(action_profile_member=p4r.ActionProfileMember()),
        p4r.Entity(action_profile_group=p4r.ActionProfileGroup()),
        p4r.Entity(packet_replication_engine_entry=p4r.PacketReplicationEngineEntry()),
        p4r.Entity(value_set_entry=p4r.ValueSetEntry()),
        p4r.Entity(digest_entry=p4r.DigestEntry()),
    )


async def test_a_batch_goes_on_after_an_error_and_reports_each_update(client: Client) -> None:
    answers = await refusals(
        client, insert(forward(1)), insert(forward(1)), insert(forward(2)), delete(forward(9))
    )
    assert [code for code, _ in answers] == [0, C.ALREADY_EXISTS.value[0], 0, C.NOT_FOUND.value[0]]
    assert len(await client.read(entry("forward"))) == 2


async def test_a_long_list_of_errors_fits_in_a_status(client: Client) -> None:
    answers = await refusals(client, *(insert(entry("forward", act=action("send", 1))) for _ in range(60)))
    assert {code for code, _ in answers} == {C.INVALID_ARGUMENT.value[0]}


async def test_other_atomicities_are_unimplemented(client: Client) -> None:
    for mode in (p4r.WriteRequest.ROLLBACK_ON_ERROR, p4r.WriteRequest.DATAPLANE_ATOMIC):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await client.write(insert(forward(1)), atomicity=mode)
        assert caught.value.code() is C.UNIMPLEMENTED
    assert await client.read(entry("forward")) == []


async def test_counters_and_meters(client: Client) -> None:
    assert len(await client.read(counter(""))) == 16
    await client.write(modify(counter("ports", 3, 7, 700)))
    assert await client.read(counter("ports", 3)) == [counter("ports", 3, 7, 700)]
    assert sum(e.counter_entry.data.packet_count for e in await client.read(counter("ports"))) == 7
    await client.write(modify(counter("ports", None, 1, 2)))
    assert {e.counter_entry.data.byte_count for e in await client.read(counter("ports"))} == {2}
    await client.write(modify(counter("ports", 3)))
    assert await client.read(counter("ports", 3)) == [counter("ports", 3, 1, 2)], (
        "without data nothing changes"
    )
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await client.read(counter("ports", 16))
    assert caught.value.code() is C.OUT_OF_RANGE

    assert [e.meter_entry.HasField("config") for e in await client.read(meter("rates"))] == [False] * 8
    await client.write(modify(meter("rates", 2, (10, 1, 20, 2))))
    assert await client.read(meter("rates", 2)) == [meter("rates", 2, (10, 1, 20, 2))]
    await client.write(modify(meter("rates")))
    assert not (await client.read(meter("rates", 2)))[0].meter_entry.HasField("config")


async def test_registers_are_read_and_written(client: Client) -> None:
    assert len(await client.read(register(""))) == 64 + 8
    await client.write(
        modify(register("totals", 5, b"\xff\xff\xff\xff")), modify(register("signed_totals", 1, b"\xfe"))
    )
    assert await client.read(register("totals", 5)) == [register("totals", 5, b"\xff\xff\xff\xff")]
    assert await client.read(register("signed_totals", 1)) == [register("signed_totals", 1, b"\xfe")]
    cells = [e.register_entry.data.bitstring for e in await client.read(register("totals"))]
    assert cells == [b"\xff\xff\xff\xff" if n == 5 else b"\0" for n in range(64)]
    await client.write(modify(register("totals", None, b"\x09")))
    assert {e.register_entry.data.bitstring for e in await client.read(register("totals"))} == {b"\x09"}
    await client.write(modify(register("totals", None, b"\0")))
    assert {e.register_entry.data.bitstring for e in await client.read(register("totals"))} == {b"\0"}
    wrong = p4r.RegisterEntry(register_id=ids()["totals"], index=p4r.Index(index=1))
    wrong.data.bool = True
    await expect(client, modify(p4r.Entity(register_entry=wrong)), C.INVALID_ARGUMENT, "bitstring")


def refer(table: str, match: p4r.FieldMatch, member_id: int = 0, group_id: int = 0) -> p4r.Entity:
    made = entry(table, match)
    if group_id:
        made.table_entry.action.action_profile_group_id = group_id
    else:
        made.table_entry.action.action_profile_member_id = member_id
    return made


async def test_members_and_groups(client: Client) -> None:
    await client.write(insert(member(1, 1)), insert(member(2, 2)))
    await client.write(insert(group(1, 1, 2)))
    await expect(client, insert(member(1)), C.ALREADY_EXISTS)
    await expect(client, insert(group(1, 1)), C.ALREADY_EXISTS)
    await client.write(modify(member(2, 5)))
    everyone = p4r.Entity(action_profile_member=p4r.ActionProfileMember())
    assert await client.read(everyone) == [member(1, 1), member(2, 5)]
    all_groups = p4r.Entity(action_profile_group=p4r.ActionProfileGroup())
    assert await client.read(all_groups) == [group(1, 1, 2)]
    await client.write(insert(refer("routes", lpm(1, 0x1200, 8), group_id=1)))
    await client.write(insert(refer("routes", lpm(1, 0x1300, 8), member_id=1)))
    assert await client.read(entry("routes", lpm(1, 0x1200, 8))) == [
        refer("routes", lpm(1, 0x1200, 8), group_id=1)
    ]
    await expect(client, insert(refer("routes", lpm(1, 0x1400, 8), group_id=9)), C.NOT_FOUND)
    await expect(client, insert(refer("routes", lpm(1, 0x1400, 8), member_id=9)), C.NOT_FOUND)
    await expect(client, delete(member(2)), C.FAILED_PRECONDITION, "group")
    await expect(client, delete(group(1)), C.FAILED_PRECONDITION, "in use")
    await expect(client, modify(group(1, 1, max_size=4)), C.INVALID_ARGUMENT, "max_size")
    await client.write(modify(group(1, 1, weight=3)))
    assert await client.read(all_groups) == [group(1, 1, weight=3)]
    await client.write(delete(member(2)))
    await expect(client, delete(member(1)), C.FAILED_PRECONDITION)
    for prefix in (0x1200, 0x1300):
        await client.write(delete(entry("routes", lpm(1, prefix, 8))))
    await client.write(delete(group(1)))
    await client.write(delete(member(1)))
    assert await client.read(everyone, all_groups) == []


def one_shot(match: p4r.FieldMatch, *weighted: tuple[int, int]) -> p4r.Entity:
    made = entry("routes", match)
    for port, weight in weighted:
        added = made.table_entry.action.action_profile_action_set.action_profile_actions.add(weight=weight)
        added.action.CopyFrom(action("set_port", port))
    return made


async def test_one_shot_action_sets(client: Client) -> None:
    both = one_shot(lpm(1, 0x1200, 8), (1, 1), (2, 3), (2, 3))
    await client.write(insert(both))
    assert await client.read(entry("routes")) == [both]
    hidden = (p4r.Entity(action_profile_member=p4r.ActionProfileMember()),)
    assert await client.read(*hidden, p4r.Entity(action_profile_group=p4r.ActionProfileGroup())) == []
    await client.write(insert(member(1)))
    await expect(client, insert(refer("routes", lpm(1, 0x1300, 8), member_id=1)), C.INVALID_ARGUMENT, "mixed")
    await expect(client, insert(one_shot(lpm(1, 0x1400, 8), (1, 0))), C.INVALID_ARGUMENT, "weight")
    await client.write(modify(one_shot(lpm(1, 0x1200, 8), (9, 1))))
    assert await client.read(entry("routes")) == [one_shot(lpm(1, 0x1200, 8), (9, 1))]
    await client.write(delete(entry("routes", lpm(1, 0x1200, 8))))
    await client.write(insert(refer("routes", lpm(1, 0x1300, 8), member_id=1)))
    await expect(client, insert(one_shot(lpm(1, 0x1400, 8), (1, 1))), C.INVALID_ARGUMENT, "mixed")
    kept = one_shot(lpm(1, 0x1400, 8), (1, 1))
    kept.table_entry.table_id = ids()["kept_routes"]
    kept.table_entry.match[0].CopyFrom(exact(1, 1))
    await expect(client, insert(kept), C.INVALID_ARGUMENT, "takes no action_profile_action_set")


async def test_multicast_groups_and_clone_sessions(client: Client) -> None:
    await client.write(insert(multicast(1, (1, 0), (2, 7), metadata=b"flood")), insert(multicast(2, (5, 1))))
    await client.write(insert(clone(9, (510, 0), length=64, cos=2)))
    assert await client.read(multicast(1)) == [multicast(1, (1, 0), (2, 7), metadata=b"flood")]
    assert len(await client.read(multicast(0))) == 2
    await client.write(modify(multicast(1, (3, 0))))
    assert await client.read(multicast(1)) == [multicast(1, (3, 0))]
    await expect(client, insert(multicast(1, (1, 1))), C.ALREADY_EXISTS)
    assert await client.read(clone(0)) == [clone(9, (510, 0), length=64, cos=2)]
    await client.write(modify(clone(9, (3, 1))))
    assert await client.read(clone(9)) == [clone(9, (3, 1))]
    await client.write(delete(multicast(1)), delete(multicast(2)), delete(clone(9)))
    assert (
        await client.read(p4r.Entity(packet_replication_engine_entry=p4r.PacketReplicationEngineEntry()))
        == []
    )


async def test_value_sets_and_digest_settings(client: Client) -> None:
    await client.write(modify(value_set(0x1234, 0x88B5)))
    assert await client.read(p4r.Entity(value_set_entry=p4r.ValueSetEntry())) == [value_set(0x1234, 0x88B5)]
    await client.write(modify(value_set()))
    assert await client.read(value_set()) == [value_set()]

    all_digests = p4r.Entity(digest_entry=p4r.DigestEntry())
    assert await client.read(all_digests) == []
    await client.write(insert(digest(1000, 5, 2000)))
    await expect(client, insert(digest()), C.ALREADY_EXISTS)
    assert await client.read(all_digests) == [digest(1000, 5, 2000)]
    await client.write(modify(digest(1, 2, 3)))
    assert await client.read(all_digests) == [digest(1, 2, 3)]
    await client.write(delete(digest()))
    assert await client.read(all_digests) == []


async def test_reads_that_make_no_sense_are_refused(client: Client) -> None:
    for query, code in (
        (p4r.Entity(), C.INVALID_ARGUMENT),
        (entry("", exact(1, 1)), C.INVALID_ARGUMENT),
        (p4r.Entity(table_entry=p4r.TableEntry(table_id=3)), C.INVALID_ARGUMENT),
        (p4r.Entity(counter_entry=p4r.CounterEntry(counter_id=3)), C.INVALID_ARGUMENT),
        (p4r.Entity(register_entry=p4r.RegisterEntry(register_id=3)), C.INVALID_ARGUMENT),
    ):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await client.read(query)
        assert caught.value.code() is code
    assert await client.read(p4r.Entity(extern_entry=p4r.ExternEntry())) == []
