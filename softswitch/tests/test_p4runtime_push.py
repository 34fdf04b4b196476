# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Pushes: under traffic, wrong ones, saved ones, ones that keep the state; controllers that come and go."""
# ruff: noqa: F401, F811 - fixtures are imported, and named by the parameters that ask for them

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable
from pathlib import Path

import grpc
import pytest
from attached import DATA, TAGGED, arrival, hosts, learn_frame, learned, namespace, switch
from finsy.proto import p4r
from kinds import action, clone, config, counter, digest, entry, forward, ids, multicast, register, value_set
from p4runtime_client import Client, insert, modify
from testnet import Host, SwitchProcess, ethernet, needs_root

pytestmark = needs_root
Push = p4r.SetForwardingPipelineConfigRequest


class Traffic:
    """Frames from host 1 to host 2, one after another, until it ends; counts those that arrive."""

    def __init__(self, source: Host, sink: Host, frame: bytes) -> None:
        self.received = 0
        self._stop = threading.Event()
        self._frame = frame
        self._ends = (source, sink)
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        source, sink = self._ends
        while not self._stop.is_set():
            source.send(self._frame)
            if sink.receive(0.05) == self._frame:
                self.received += 1

    async def more(self) -> None:
        """Waits until another ten have come."""
        target = self.received + 10
        for _ in range(2000):
            if self.received >= target:
                return
            await asyncio.sleep(0.01)
        raise AssertionError("no frame arrives")

    def __enter__(self) -> Traffic:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


async def refused(push: Awaitable[None]) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await push
    return caught.value.code(), caught.value.details() or ""


def broken(what: str) -> p4r.ForwardingPipelineConfig:
    made = p4r.ForwardingPipelineConfig()
    made.CopyFrom(config())
    if what == "other p4info":
        made.p4info.CopyFrom(config("wire").p4info)
        made.p4info.tables.add().preamble.name = "nowhere"
        made.p4info.tables[0].preamble.id = 1
    elif what == "empty p4info":
        made.p4info.Clear()
    elif what == "no device config":
        made.p4_device_config = b""
    elif what == "not json":
        made.p4_device_config = b"\x7fELF"
    elif what == "half a json":
        made.p4_device_config = made.p4_device_config[: len(made.p4_device_config) // 2]
    elif what == "unknown extern":
        made.p4_device_config = made.p4_device_config.replace(b'"mark_to_drop"', b'"levitate"')
    return made


async def test_a_program_larger_than_grpc_takes_by_default_is_taken(
    client: Client, hosts: list[Host]
) -> None:
    """gRPC's default is 4 MiB, which programs with floats come near."""
    large = p4r.ForwardingPipelineConfig()
    large.CopyFrom(config())
    large.p4_device_config += b" " * (5 << 20)

    await client.push(large)
    await client.write(insert(forward(5, 2)))
    with Traffic(hosts[0], hosts[1], ethernet(DATA, bytes(46), dst=5)) as traffic:
        await traffic.more()


@pytest.mark.parametrize(
    "what", ["other p4info", "empty p4info", "no device config", "not json", "half a json", "unknown extern"]
)
async def test_a_push_that_fails_leaves_the_old_program_running(
    client: Client, hosts: list[Host], what: str
) -> None:
    await client.write(insert(forward(5, 2)))
    with Traffic(hosts[0], hosts[1], ethernet(DATA, bytes(46), dst=5)) as traffic:
        await traffic.more()
        for kind in (Push.VERIFY, Push.VERIFY_AND_SAVE, Push.VERIFY_AND_COMMIT, Push.RECONCILE_AND_COMMIT):
            code, message = await refused(client.push(broken(what), kind))
            assert code is grpc.StatusCode.INVALID_ARGUMENT, message
            assert message
        await traffic.more()
    assert len(await client.read(entry("forward"))) == 1
    got = await client.stub.GetForwardingPipelineConfig(p4r.GetForwardingPipelineConfigRequest(device_id=1))
    assert got.config == config()


async def test_a_push_under_traffic(client: Client, hosts: list[Host]) -> None:
    await client.write(insert(forward(5, 2)))
    with Traffic(hosts[0], hosts[1], ethernet(DATA, bytes(46), dst=5)) as traffic:
        for _ in range(5):
            await traffic.more()
            await client.push(config(), Push.RECONCILE_AND_COMMIT)
            await traffic.more()
            await client.push(config("wire"))
            await traffic.more()
            await client.push(config())
            await client.write(insert(forward(5, 2)))


async def test_verify_save_and_commit(client: Client, hosts: list[Host]) -> None:
    assert (await refused(client.push(None, Push.COMMIT)))[0] is grpc.StatusCode.NOT_FOUND
    assert (await refused(client.push(None)))[0] is grpc.StatusCode.INVALID_ARGUMENT
    assert (await refused(client.push(config(), 0)))[0] is grpc.StatusCode.INVALID_ARGUMENT
    await client.write(insert(forward(5, 2)))
    await client.push(config("wire"), Push.VERIFY)
    frame = ethernet(DATA, bytes(46), dst=5)
    await client.push(config(), Push.VERIFY_AND_SAVE)
    assert await client.read(entry("forward")) == [], "the saved program has its own state"
    await client.write(insert(forward(5, 3)))
    hosts[0].send(frame)
    assert await arrival(hosts[1]) == frame, "packets still meet the running one"
    assert (await refused(client.push(config(), Push.COMMIT)))[0] is grpc.StatusCode.INVALID_ARGUMENT
    await client.push(None, Push.COMMIT)
    hosts[0].send(frame)
    assert await arrival(hosts[2]) == frame


async def test_reconcile_keeps_the_state(client: Client, hosts: list[Host]) -> None:
    member = p4r.ActionProfileMember(
        action_profile_id=ids()["spread"], member_id=1, action=action("set_port", 3)
    )
    group = p4r.ActionProfileGroup(action_profile_id=ids()["spread"], group_id=1)
    group.members.add(member_id=1, weight=2)
    route = entry("routes")
    route.table_entry.action.action_profile_group_id = 1
    await client.write(insert(p4r.Entity(action_profile_member=member)))
    await client.write(insert(p4r.Entity(action_profile_group=group)))
    await client.write(
        insert(route),
        insert(forward(5, 2, metadata=b"kept")),
        modify(entry("forward", act=action("drop"), is_default_action=True, metadata=b"default")),
        insert(multicast(4, (1, 1), metadata=b"flood")),
        insert(clone(7, (3, 0))),
        modify(value_set(TAGGED)),
        insert(digest(0, 1, 0)),
        modify(register("totals", 3, b"\x05")),
        modify(counter("ports", 2, 9, 90)),
    )
    queries = (
        entry("", counter_data=p4r.CounterData()),
        entry("", is_default_action=True),
        register(""),
        counter(""),
        p4r.Entity(action_profile_member=p4r.ActionProfileMember()),
        p4r.Entity(action_profile_group=p4r.ActionProfileGroup()),
        p4r.Entity(packet_replication_engine_entry=p4r.PacketReplicationEngineEntry()),
        p4r.Entity(value_set_entry=p4r.ValueSetEntry()),
        p4r.Entity(digest_entry=p4r.DigestEntry()),
    )
    before = await client.read(*queries)
    await client.push(config(), Push.RECONCILE_AND_COMMIT)
    assert await client.read(*queries) == before
    hosts[0].send(learn_frame(5))
    assert learned(await client.receive()) == [(5, 1)]
    assert await arrival(hosts[1]) == learn_frame(5)
    before = await client.read(*queries)
    code, message = await refused(client.push(config("wire"), Push.RECONCILE_AND_COMMIT))
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert "cannot be kept" in message
    assert await client.read(*queries) == before


async def test_config_reads_by_kind(client: Client) -> None:
    kinds = p4r.GetForwardingPipelineConfigRequest

    for kind, parts in (
        (kinds.ALL, {"p4info", "p4_device_config", "cookie"}),
        (kinds.COOKIE_ONLY, {"cookie"}),
        (kinds.P4INFO_AND_COOKIE, {"p4info", "cookie"}),
        (kinds.DEVICE_CONFIG_AND_COOKIE, {"p4_device_config", "cookie"}),
    ):
        got = await client.stub.GetForwardingPipelineConfig(kinds(device_id=1, response_type=kind))
        assert {field.name for field, _ in got.config.ListFields()} == parts
        assert got.config.cookie.cookie == 42


async def test_a_controller_that_is_gone_and_back_finds_its_entries(
    switch: SwitchProcess, hosts: list[Host]
) -> None:
    async with Client(switch.address) as client:
        await client.become_primary(5)
        await client.push(config())
        await client.write(insert(forward(5, 2)))
    hosts[0].send(ethernet(DATA, bytes(46), dst=5))
    assert await arrival(hosts[1]) == ethernet(DATA, bytes(46), dst=5), "packets need no controller"
    async with Client(switch.address) as client:
        client.arbitrate(1)
        assert (await client.receive_arbitration()).status.code != 0, "too low: the highest seen counts"
        await client.become_primary(5)
        assert len(await client.read(entry("forward"))) == 1


def compiles(pid: int | str) -> bool:
    """Does this process, or one that any of its threads started, run gcc now?"""
    for started in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for child in started.read_text().split():
                if Path(f"/proc/{child}/comm").read_text().strip() in ("gcc", "cc1") or compiles(child):
                    return True
    return False


async def test_a_client_that_gives_up_on_a_push_leaves_the_switch_as_it_was(
    start_switch, tmp_path: Path
) -> None:
    switch = start_switch(None, "--cache-dir", tmp_path / "cache", program="wire")

    async with Client(switch.address) as client:
        await client.become_primary()
        push = asyncio.create_task(client.push(config()))
        while not compiles(switch.process.pid):
            await asyncio.sleep(0.005)
        push.cancel()
        got = await client.stub.GetForwardingPipelineConfig(
            p4r.GetForwardingPipelineConfigRequest(device_id=1)
        )
        assert got.config.p4info.pkg_info.name == "softswitch-test-wire"
        await client.push(config())
        await client.write(insert(forward(5, 2)))
    assert switch.stop() == 0
    assert "Traceback" not in switch.log()


@pytest.mark.slow
async def test_a_primary_that_loses_its_place_during_a_push_does_not_commit(
    start_switch, tmp_path: Path
) -> None:
    """With a cold cache the translation takes a second or two, in which another controller can take over."""
    switch = start_switch(None, "--cache-dir", tmp_path / "cache")

    async with Client(switch.address) as first, Client(switch.address) as second:
        await first.become_primary(1)
        push = asyncio.create_task(refused(first.push(config())))
        while not compiles(switch.process.pid):
            await asyncio.sleep(0.005)
        await second.become_primary(2)
        code, _ = await push
        assert code is grpc.StatusCode.PERMISSION_DENIED
        got = await second.stub.GetForwardingPipelineConfig(
            p4r.GetForwardingPipelineConfigRequest(device_id=1)
        )
        assert not got.HasField("config")
