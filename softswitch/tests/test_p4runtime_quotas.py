# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Limits of the memory and time that one client takes of a switch."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path

import pytest
from finsy.proto import p4i, p4r, p4t, rpc_status
from google.protobuf import text_format
from kinds import config, counter
from mutations import base
from p4runtime_client import Client, modify
from running import PROGRAMS, running
from softswitch.admin.client import ControlClient, ControlSocketError
from softswitch.p4runtime import arbitration, digests, status
from softswitch.p4runtime.arbitration import Arbiter, Session
from softswitch.p4runtime.change import Change
from softswitch.p4runtime.digests import Digests
from softswitch.p4runtime.p4data import P4DataCodec
from softswitch.p4runtime.schema import Schema
from softswitch.p4runtime.service import STREAM_BACKLOG, STREAM_LOST, Stream
from softswitch.p4runtime.status import Code, StatusError, write_details
from softswitch.state import tables
from softswitch.state.entities import ActionCall, CounterData, DigestEvent, Exact, MeterConfig, TableEntry


def arbitrate(role: str, election_id: int = 1) -> p4r.MasterArbitrationUpdate:
    message = p4r.MasterArbitrationUpdate(device_id=1, election_id=p4r.Uint128(low=election_id))
    message.role.name = role
    return message


def test_roles_come_and_go_without_end_and_those_that_are_held_stay() -> None:
    arbiter = Arbiter(1)
    held = Session()
    arbiter.update(held, arbitrate("held", 9))
    for number in range(10 * arbitration.ROLES_MAX):
        passing = Session()
        arbiter.update(passing, arbitrate(f"role {number}"))
        arbiter.leave(passing)
    assert len(arbiter._roles) <= arbitration.ROLES_MAX
    arbiter.require_primary("held", p4r.Uint128(low=9))
    for number in range(arbitration.ROLES_MAX - 2):
        arbiter.update(Session(), arbitrate(f"kept {number}"))
    with pytest.raises(StatusError) as refused:
        arbiter.update(Session(), arbitrate("one more"))
    assert refused.value.code is Code.RESOURCE_EXHAUSTED


def test_a_role_without_a_stream_remembers_its_highest_election_id() -> None:
    arbiter = Arbiter(1)
    first, second = Session(), Session()
    arbiter.update(first, arbitrate("r", 7))
    arbiter.leave(first)
    arbiter.update(second, arbitrate("r", 6))
    assert not arbiter.is_primary(second)


def test_the_notices_of_a_stream_that_is_not_read_are_bounded() -> None:
    stream = Stream()
    for _ in range(3 * STREAM_LOST):
        stream.send(p4r.StreamMessageResponse(), droppable=False)
    assert stream.outbox.qsize() == STREAM_LOST
    assert stream.lost.is_set()
    other = Stream()
    for _ in range(3 * STREAM_LOST):
        other.send(p4r.StreamMessageResponse())
    assert other.outbox.qsize() == STREAM_BACKLOG
    assert not other.lost.is_set()


class Silent:
    """A pipeline of which digests only are asked."""

    def digest_enable(self, _name: str, _enabled: bool) -> None: ...


def learner(ack_timeout_ns: int) -> Digests:
    info = text_format.Parse((PROGRAMS / "kinds.p4info.txtpb").read_text(), p4i.P4Info())
    made = Digests(Schema(info), Silent())  # type: ignore[arg-type]
    config = p4r.DigestEntry.Config(ack_timeout_ns=ack_timeout_ns, max_list_size=1)
    made.write(Change.INSERT, p4r.DigestEntry(digest_id=info.digests[0].preamble.id, config=config))
    return made


def event(number: int) -> DigestEvent:
    return DigestEvent("seen_t", (number.to_bytes(4, "big"), b"\1"), 0)


def test_digests_without_an_answer_are_remembered_to_a_bound_and_each_told_once() -> None:
    made = learner(10**12)
    sent = 0
    for number in range(20_000):
        made.add(event(number), number)
        made.add(event(number), number)
        sent += len(made.due(number))
    assert sent == 20_000
    (enabled,) = made._enabled.values()
    assert len(enabled.unacknowledged) == digests.UNACKNOWLEDGED_MAX
    assert len(enabled.held) == digests.UNACKNOWLEDGED_MAX
    made.add(event(19_999), 20_000)
    assert made.due(20_000) == []
    made.add(event(3), 20_000)
    (again,) = made.due(20_000)
    assert len(again.data) == 1


def test_a_list_whose_time_is_up_or_that_is_acknowledged_may_be_told_again() -> None:
    made = learner(100)
    made.add(event(1), 0)
    (first,) = made.due(0)
    made.add(event(1), 99)
    assert made.due(99) == []
    made.add(event(1), 101)
    (second,) = made.due(101)
    made.acknowledge(p4r.DigestListAck(digest_id=second.digest_id, list_id=second.list_id))
    made.add(event(1), 102)
    assert len(made.due(102)) == 1
    assert first.list_id != second.list_id


@pytest.mark.parametrize("count", [1, 150, 200, 2000, 20_000])
def test_the_details_of_a_write_fit_in_what_a_client_takes(count: int) -> None:
    results = [StatusError(Code.INVALID_ARGUMENT, "x" * 3000) if i % 2 else None for i in range(count)]
    packed = write_details(results)
    assert len(packed) <= status.DETAILS_BUDGET < 8192
    told = rpc_status.Status.FromString(packed)
    assert len(told.details) == count or f"of {count} updates" in told.message
    assert len(told.details) > min(count, 100) - 1
    error = p4r.Error()
    for i, detail in enumerate(told.details):
        detail.Unpack(error)
        assert error.canonical_code == (Code.INVALID_ARGUMENT if i % 2 else Code.OK)


def test_types_without_end_and_fields_without_measure_are_refused() -> None:
    types = p4t.P4TypeInfo()
    types.new_types["loop"].original_type.new_type.name = "loop"
    spec = p4t.P4DataTypeSpec()
    spec.new_type.name = "loop"
    with pytest.raises(RecursionError):
        P4DataCodec(types).check(spec)
    info = text_format.Parse((PROGRAMS / "kinds.p4info.txtpb").read_text(), p4i.P4Info())
    info.tables[0].match_fields[0].bitwidth = (1 << 31) - 1
    with pytest.raises(StatusError, match="at most 16384"):
        Schema(info)


def test_a_table_holds_no_more_than_the_switch_gives(
    cache_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "ENTRIES_MAX", 3)
    with running(json.dumps(base("kinds")).encode(), cache_dir) as (pipeline, _):
        call = ActionCall("KindsIngress.send", {"port": b"\1"})
        for number in range(3):
            pipeline.table_insert(
                "KindsIngress.forward", TableEntry({"hdr.ethernet.dst": Exact(bytes([number]))}, call)
            )
        with pytest.raises(Exception, match="is full: 3 entries"):
            pipeline.table_insert(
                "KindsIngress.forward", TableEntry({"hdr.ethernet.dst": Exact(b"\x09")}, call)
            )


def test_a_wildcard_fills_an_array_at_once(cache_dir: Path) -> None:
    tree = base("kinds")
    tree["counter_arrays"][1]["size"] = tree["meter_arrays"][1]["size"] = 1 << 20
    with running(json.dumps(tree).encode(), cache_dir) as (pipeline, _):
        every = range(1 << 20)
        pipeline.counter_fill("KindsIngress.ports", every, CounterData(3, 4))
        pipeline.counter_write("KindsIngress.ports", 77, CounterData(5, 6))
        assert pipeline.counter_cells("KindsIngress.ports", range(76, 79)) == [
            CounterData(3, 4),
            CounterData(5, 6),
            CounterData(3, 4),
        ]
        assert pipeline.counter_read("KindsIngress.ports", (1 << 20) - 1) == CounterData(3, 4)
        slow, fast = MeterConfig(1, 1, 1, 1), MeterConfig(2, 2, 2, 2)
        pipeline.meter_fill("KindsIngress.rates", every, slow)
        pipeline.meter_write("KindsIngress.rates", 5, fast)
        pipeline.meter_write("KindsIngress.rates", 6, None)
        found = [pipeline.meter_read("KindsIngress.rates", index) for index in (4, 5, 6, (1 << 20) - 1)]
        assert found == [slow, fast, None, slow]
        pipeline.meter_fill("KindsIngress.rates", every, None)
        assert pipeline.meter_read("KindsIngress.rates", 5) is None


async def test_others_have_their_turn_while_a_large_array_is_filled(start_switch) -> None:
    large = config()
    tree = base("kinds")
    tree["counter_arrays"][1]["size"] = 1 << 23
    large.p4_device_config = json.dumps(tree).encode()
    next(c for c in large.p4info.counters if c.preamble.alias == "ports").size = 1 << 23

    switch = start_switch(None)
    async with Client(switch.address) as client:
        await client.become_primary()
        await client.push(large)
        filling = asyncio.create_task(client.write(modify(counter("ports", None, 3, 4))))
        looks = 0
        while not filling.done():
            await client.read(counter("ports", 5))
            looks += 1
        await filling
        assert looks > 3
        (last,) = await client.read(counter("ports", (1 << 23) - 1))
        assert last.counter_entry.data.packet_count == 3


def test_the_control_socket_is_its_users_alone_and_names_do_not_lead_out_of_a_folder(
    start_switch, tmp_path: Path
) -> None:
    switch = start_switch(None, "--pcap", tmp_path / "in")
    assert stat.S_IMODE(switch.control_path.stat().st_mode) == 0o600
    for name in ("../../x", "..", "a/b", "a b", "x\n"):
        with (
            ControlClient(switch.control_path) as control,
            pytest.raises(ControlSocketError, match="plain name"),
        ):
            control.request("add-port", port=1, interface=name)
    assert list((tmp_path / "in").iterdir()) == []
    assert not list(tmp_path.rglob("*x_in.pcap"))
