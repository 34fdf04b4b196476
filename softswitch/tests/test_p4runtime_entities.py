# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Write and Read of every kind of entity: what is written is read back, what is wrong is refused with its reason."""
# ruff: noqa: F401, F811 - fixtures are imported, and named by the parameters that ask for them

from __future__ import annotations

import grpc
import pytest
from controlled import C, expect, refusals, run, switch
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

WRONG_ENTRIES = [
    (
        lambda: insert(p4r.Entity(table_entry=p4r.TableEntry(table_id=5))),
        C.INVALID_ARGUMENT,
        "no table with id 5",
    ),
    (lambda: insert(entry("forward", act=action("send", 1))), C.INVALID_ARGUMENT, "must be given"),
    (lambda: insert(entry("forward", exact(2, 1), act=action("send", 1))), C.INVALID_ARGUMENT, "id 2"),
    (
        lambda: insert(entry("forward", exact(1, 1), exact(1, 1), act=action("send", 1))),
        C.INVALID_ARGUMENT,
        "twice",
    ),
    (lambda: insert(entry("forward", lpm(1, 1, 48), act=action("send", 1))), C.INVALID_ARGUMENT, "not lpm"),
    (lambda: insert(entry("forward", exact(1, 1))), C.INVALID_ARGUMENT, "needs an action"),
    (lambda: insert(entry("forward", exact(1, 1), act=action("police"))), C.INVALID_ARGUMENT, "not allowed"),
    (
        lambda: insert(entry("forward", exact(1, 1), act=action("send"))),
        C.INVALID_ARGUMENT,
        "needs parameter 'port'",
    ),
    (lambda: insert(entry("forward", exact(1, 1), act=action("send", 1, 2))), C.INVALID_ARGUMENT, "id 2"),
    (
        lambda: insert(entry("forward", exact(1, 1), act=action("drop"))),
        C.PERMISSION_DENIED,
        "may not be an entry",
    ),
    (lambda: insert(forward(1, priority=3)), C.INVALID_ARGUMENT, "set it to 0"),
    (lambda: insert(forward(1, is_const=True)), C.INVALID_ARGUMENT, "is_const"),
    (lambda: insert(forward(1, idle_timeout_ns=-1)), C.INVALID_ARGUMENT, "negative"),
    (
        lambda: insert(forward(1, meter_config=meter_config(1, 1, 1, 1))),
        C.INVALID_ARGUMENT,
        "no direct meter",
    ),
    (
        lambda: insert(forward(1, time_since_last_hit=p4r.TableEntry.IdleTimeout())),
        C.INVALID_ARGUMENT,
        "for reading",
    ),
    (lambda: insert(forward(1, is_default_action=True)), C.INVALID_ARGUMENT, "neither match"),
    (lambda: insert(entry("police_table", act=action("police"))), C.INVALID_ARGUMENT, "priority 0"),
    (
        lambda: insert(entry("police_table", act=action("police"), priority=1, idle_timeout_ns=5)),
        C.INVALID_ARGUMENT,
        "idle timeout",
    ),
    (
        lambda: insert(entry("police_table", ternary(1, 1, 0), act=action("police"), priority=1)),
        C.INVALID_ARGUMENT,
        "mask is zero",
    ),
    (
        lambda: insert(entry("police_table", ternary(1, 3, 1), act=action("police"), priority=1)),
        C.INVALID_ARGUMENT,
        "outside the mask",
    ),
    (
        lambda: insert(entry("police_table", between(2, 9, 8), act=action("police"), priority=1)),
        C.INVALID_ARGUMENT,
        "is empty",
    ),
    (
        lambda: insert(entry("police_table", between(2, 0, 0xFFFF), act=action("police"), priority=1)),
        C.INVALID_ARGUMENT,
        "every value",
    ),
    (
        lambda: insert(
            entry("police_table", counter_data=p4r.CounterData(), act=action("police"), priority=1)
        ),
        C.INVALID_ARGUMENT,
        "no direct counter",
    ),
    (lambda: insert(entry("routes", lpm(1, 0x1200, 0))), C.INVALID_ARGUMENT, "prefix length 0"),
    (
        lambda: insert(refer("routes", lpm(1, 0x1234, 8), member_id=1)),
        C.INVALID_ARGUMENT,
        "beyond the prefix",
    ),
    (
        lambda: insert(entry("routes", lpm(1, 0x1200, 8), act=action("ignore"))),
        C.INVALID_ARGUMENT,
        "takes no action",
    ),
    (lambda: insert(entry("fixed", exact(1, 7), act=action("learn"))), C.PERMISSION_DENIED, "constant"),
    (lambda: delete(entry("fixed", exact(1, 0x88B5))), C.PERMISSION_DENIED, "constant"),
    (lambda: modify(entry("fixed", exact(1, 0x88B5), act=action("learn"))), C.PERMISSION_DENIED, "constant"),
    (
        lambda: modify(entry("fixed", act=action("learn"), is_default_action=True)),
        C.PERMISSION_DENIED,
        "default action is constant",
    ),
    (lambda: modify(entry("routes", is_default_action=True)), C.PERMISSION_DENIED, "constant"),
    (lambda: delete(entry("forward", is_default_action=True)), C.INVALID_ARGUMENT, "only be modified"),
    (
        lambda: insert(entry("forward", act=action("send", 1), is_default_action=True)),
        C.INVALID_ARGUMENT,
        "only be modified",
    ),
    (lambda: p4r.Update(entity=forward(1)), C.INVALID_ARGUMENT, "type is not set"),
    (lambda: insert(p4r.Entity()), C.INVALID_ARGUMENT, "no entity"),
    (lambda: insert(p4r.Entity(extern_entry=p4r.ExternEntry())), C.UNIMPLEMENTED, "extern"),
    (lambda: insert(counter("ports", 1, 1)), C.INVALID_ARGUMENT, "only be modified"),
    (lambda: delete(register("totals", 1, b"\0")), C.INVALID_ARGUMENT, "only be modified"),
    (lambda: modify(counter("ports", -1, 1)), C.INVALID_ARGUMENT, "negative"),
    (lambda: modify(counter("ports", 16, 1)), C.OUT_OF_RANGE, "beyond the last, 15"),
    (lambda: modify(counter("ports", 1, -5)), C.INVALID_ARGUMENT, "negative"),
    (lambda: modify(meter("rates", 8, (1, 1, 1, 1))), C.OUT_OF_RANGE, "beyond the last, 7"),
    (lambda: modify(meter("rates", 1, (5, 1, 4, 1))), C.INVALID_ARGUMENT, "below cir"),
    (lambda: modify(meter("rates", 1, (-5, 1, 4, 1))), C.INVALID_ARGUMENT, "negative"),
    (lambda: modify(register("totals", 64, b"\1")), C.OUT_OF_RANGE, "beyond the last, 63"),
    (lambda: modify(register("totals", 1)), C.INVALID_ARGUMENT, "needs data"),
    (lambda: modify(register("totals", 1, b"\1\0\0\0\0")), C.OUT_OF_RANGE, "32 bits"),
    (lambda: modify(register("signed_totals", 1, b"\x00\x80\x00")), C.OUT_OF_RANGE, "signed"),
    (lambda: insert(value_set(1)), C.INVALID_ARGUMENT, "only be modified"),
    (lambda: modify(value_set(1, 2, 3, 4, 5)), C.RESOURCE_EXHAUSTED, "holds 4 members"),
    (lambda: modify(value_set(1, 1)), C.ALREADY_EXISTS, "twice"),
    (lambda: insert(multicast(0, (1, 1))), C.INVALID_ARGUMENT, "wildcard"),
    (lambda: insert(multicast(1, (1, 1), (1, 1))), C.INVALID_ARGUMENT, "twice"),
    (lambda: insert(multicast(1, (1, 70000))), C.INVALID_ARGUMENT, "instance"),
    (lambda: modify(multicast(1, (1, 1))), C.NOT_FOUND, ""),
    (lambda: delete(clone(1)), C.NOT_FOUND, ""),
    (lambda: insert(clone(0, (1, 1))), C.INVALID_ARGUMENT, "wildcard"),
    (lambda: modify(digest()), C.NOT_FOUND, "not enabled"),
    (lambda: insert(digest(max_timeout_ns=-1)), C.INVALID_ARGUMENT, "negative"),
    (lambda: insert(member(0)), C.INVALID_ARGUMENT, "wildcard"),
    (lambda: delete(member(3)), C.NOT_FOUND, ""),
    (lambda: insert(group(1, 99)), C.NOT_FOUND, ""),
    (lambda: insert(group(1, profile="kept")), C.INVALID_ARGUMENT, "no selector"),
    (lambda: insert(group(1, weight=0, max_size=-1)), C.INVALID_ARGUMENT, "max_size"),
]


def test_what_is_wrong_is_refused_with_its_reason_and_changes_nothing(run) -> None:
    async def case(client: Client) -> None:
        before = await snapshot(client)
        answers = await refusals(client, *(make() for make, _, _ in WRONG_ENTRIES[:30]))
        answers += await refusals(client, *(make() for make, _, _ in WRONG_ENTRIES[30:]))
        wrong = [
            (number, got, message, code, words)
            for number, ((got, message), (_, code, words)) in enumerate(
                zip(answers, WRONG_ENTRIES, strict=True)
            )
            if got != code.value[0] or words not in message
        ]
        assert not wrong
        assert await snapshot(client) == before

    run(case)


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


def test_a_batch_goes_on_after_an_error_and_reports_each_update(run) -> None:
    async def case(client: Client) -> None:
        answers = await refusals(
            client, insert(forward(1)), insert(forward(1)), insert(forward(2)), delete(forward(9))
        )
        assert [code for code, _ in answers] == [0, C.ALREADY_EXISTS.value[0], 0, C.NOT_FOUND.value[0]]
        assert len(await client.read(entry("forward"))) == 2

    run(case)


def test_a_long_list_of_errors_fits_in_a_status(run) -> None:
    async def case(client: Client) -> None:
        answers = await refusals(
            client, *(insert(entry("forward", act=action("send", 1))) for _ in range(60))
        )
        assert {code for code, _ in answers} == {C.INVALID_ARGUMENT.value[0]}

    run(case)


def test_other_atomicities_are_unimplemented(run) -> None:
    async def case(client: Client) -> None:
        for mode in (p4r.WriteRequest.ROLLBACK_ON_ERROR, p4r.WriteRequest.DATAPLANE_ATOMIC):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await client.write(insert(forward(1)), atomicity=mode)
            assert caught.value.code() is C.UNIMPLEMENTED
        assert await client.read(entry("forward")) == []

    run(case)


def test_counters_and_meters(run) -> None:
    async def case(client: Client) -> None:
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

    run(case)


def test_registers_are_read_and_written(run) -> None:
    async def case(client: Client) -> None:
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

    run(case)


def refer(table: str, match: p4r.FieldMatch, member_id: int = 0, group_id: int = 0) -> p4r.Entity:
    made = entry(table, match)
    if group_id:
        made.table_entry.action.action_profile_group_id = group_id
    else:
        made.table_entry.action.action_profile_member_id = member_id
    return made


def test_members_and_groups(run) -> None:
    async def case(client: Client) -> None:
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

    run(case)


def one_shot(match: p4r.FieldMatch, *weighted: tuple[int, int]) -> p4r.Entity:
    made = entry("routes", match)
    for port, weight in weighted:
        added = made.table_entry.action.action_profile_action_set.action_profile_actions.add(weight=weight)
        added.action.CopyFrom(action("set_port", port))
    return made


def test_one_shot_action_sets(run) -> None:
    async def case(client: Client) -> None:
        both = one_shot(lpm(1, 0x1200, 8), (1, 1), (2, 3), (2, 3))
        await client.write(insert(both))
        assert await client.read(entry("routes")) == [both]
        hidden = (p4r.Entity(action_profile_member=p4r.ActionProfileMember()),)
        assert await client.read(*hidden, p4r.Entity(action_profile_group=p4r.ActionProfileGroup())) == []
        await client.write(insert(member(1)))
        await expect(
            client, insert(refer("routes", lpm(1, 0x1300, 8), member_id=1)), C.INVALID_ARGUMENT, "mixed"
        )
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

    run(case)


def test_multicast_groups_and_clone_sessions(run) -> None:
    async def case(client: Client) -> None:
        await client.write(
            insert(multicast(1, (1, 0), (2, 7), metadata=b"flood")), insert(multicast(2, (5, 1)))
        )
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

    run(case)


def test_value_sets_and_digest_settings(run) -> None:
    async def case(client: Client) -> None:
        await client.write(modify(value_set(0x1234, 0x88B5)))
        assert await client.read(p4r.Entity(value_set_entry=p4r.ValueSetEntry())) == [
            value_set(0x1234, 0x88B5)
        ]
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

    run(case)


def test_reads_that_make_no_sense_are_refused(run) -> None:
    async def case(client: Client) -> None:
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

    run(case)
