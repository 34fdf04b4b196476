# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Watch ports through P4Runtime, while interfaces lose their carrier, go, and come back."""
# ruff: noqa: F401, F811 - fixtures are imported, and named by the parameters that ask for them

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from attached import TAGGED, namespace, switch
from controlled import expect
from finsy.proto import p4r
from kinds import action, config, entry, group, lpm, member, value_set
from p4runtime_client import Client, insert, modify
from testnet import Host, Namespace, SwitchProcess, ethernet, needs_root, wait_for

pytestmark = needs_root

FRAMES = 32
BOTH, TWO, THREE, NONE = {2, 3}, {2}, {3}, set[int]()
Request = p4r.SetForwardingPipelineConfigRequest


@pytest.fixture
def hosts(namespace: Namespace) -> dict[int, Host]:
    return {number: namespace.host(number) for number in (1, 2, 3)}


def live(switch: SwitchProcess, number: int) -> bool:
    return bool(switch.port(number)["oper_up"])


def watching_group(**fields: int) -> p4r.Entity:
    """Member 1 watches port 2, member 2 port 3."""
    made = group(1, 1, 2, **fields)
    for choice, port in zip(made.action_profile_group.members, (b"\x02", b"\x03"), strict=True):
        choice.watch_port = port
    return made


def to_group() -> p4r.Entity:
    made = entry("routes", lpm(1, 0x1200, 8))
    made.table_entry.action.action_profile_group_id = 1
    return made


def one_shot(deprecated: bool = False) -> p4r.Entity:
    """Watches ports 2 and 3, by `watch_port` or by the deprecated `watch`."""
    made = entry("routes", lpm(1, 0x1200, 8))
    for port in (2, 3):
        watch: dict[str, Any] = {"watch": port} if deprecated else {"watch_port": bytes([port])}
        made.table_entry.action.action_profile_action_set.action_profile_actions.add(
            weight=1, action=action("set_port", port), **watch
        )
    return made


async def spread_over_ports(client: Client) -> None:
    await client.write(modify(value_set(TAGGED)))
    await client.write(insert(member(1, 2)), insert(member(2, 3)))
    await client.write(insert(watching_group()), insert(to_group()))


def lost(switch: SwitchProcess) -> int:
    """Frames for ports that are not there: what `routes` did nothing to is for port 0."""
    with switch.control() as control:
        return int(control.request("stats")["engine"]["unknown_port"])


def arrivals(switch: SwitchProcess, hosts: dict[int, Host]) -> set[int]:
    """The ports that the selector sends frames to, when it is known what became of each frame."""
    before, seen = lost(switch), Counter[int]()

    def all_seen() -> bool:
        for number, host in hosts.items():
            while host.receive(0) is not None:
                seen[number] += 1
        return seen.total() + lost(switch) - before == FRAMES

    for choice in range(FRAMES):
        hosts[1].send(ethernet(TAGGED, bytes([0x12, 0, 0, choice]) + bytes(42)))
    wait_for(all_seen, f"{FRAMES} frames")
    return set(+seen)


async def test_members_follow_the_carrier_of_their_port(
    client: Client, namespace: Namespace, switch: SwitchProcess, hosts: dict[int, Host]
) -> None:
    def set_link(number: int, state: str) -> None:
        namespace.run("ip", "link", "set", f"h{number}", state)
        wait_for(lambda: live(switch, number) == (state == "up"), f"port {number} {state}")
        hosts[number].close()
        hosts[number] = namespace.host(number)

    try:
        await spread_over_ports(client)
        assert arrivals(switch, hosts) == BOTH
        set_link(2, "down")
        assert switch.port(2)["up"], "still bound"
        assert arrivals(switch, {n: hosts[n] for n in (1, 3)}) == THREE
        set_link(2, "up")
        assert arrivals(switch, hosts) == BOTH
        set_link(3, "down")
        assert arrivals(switch, {n: hosts[n] for n in (1, 2)}) == TWO
        set_link(2, "down")
        assert arrivals(switch, {1: hosts[1]}) == NONE, "a group without a live member runs nothing"
        for number in (2, 3):
            set_link(number, "up")
        assert arrivals(switch, hosts) == BOTH
    finally:
        for number in (2, 3):
            namespace.run("ip", "link", "set", f"h{number}", "up")
            wait_for(lambda number=number: live(switch, number), f"port {number} up")


async def test_members_follow_ports_and_interfaces_that_go_and_come_back(
    client: Client, namespace: Namespace, switch: SwitchProcess, hosts: dict[int, Host]
) -> None:
    await spread_over_ports(client)
    with switch.control() as control:
        control.request("remove-port", port=3)
        assert arrivals(switch, hosts) == TWO
        control.request("add-port", port=3, interface="sw3")
    assert arrivals(switch, hosts) == BOTH
    namespace.remove_link(2)
    wait_for(lambda: not live(switch, 2), "port 2 down")
    hosts.pop(2).close()
    assert arrivals(switch, hosts) == THREE
    namespace.add_link(2)
    wait_for(lambda: live(switch, 2), "port 2 up")
    hosts[2] = namespace.host(2)
    assert arrivals(switch, hosts) == BOTH


@pytest.mark.slow
async def test_one_shot_sets_and_pushes_that_keep_the_state_watch_too(
    client: Client, switch: SwitchProcess, hosts: dict[int, Host]
) -> None:
    await spread_over_ports(client)
    with switch.control() as control:
        control.request("remove-port", port=3)
        await client.push(config(), Request.RECONCILE_AND_COMMIT)
        assert arrivals(switch, hosts) == TWO
        assert await client.read(p4r.Entity(action_profile_group=p4r.ActionProfileGroup())) == [
            watching_group()
        ]
        await client.push(config(), Request.VERIFY_AND_SAVE)
        await client.write(modify(value_set(TAGGED)), insert(one_shot()))
        await client.push(None, Request.COMMIT)
        assert await client.read(entry("routes")) == [one_shot()]
        assert arrivals(switch, hosts) == TWO
        control.request("add-port", port=3, interface="sw3")
    assert arrivals(switch, hosts) == BOTH


async def test_the_deprecated_watch_is_taken_as_watch_port(
    client: Client, switch: SwitchProcess, hosts: dict[int, Host]
) -> None:
    await client.write(modify(value_set(TAGGED)), insert(one_shot(deprecated=True)))
    assert await client.read(entry("routes")) == [one_shot()]
    with switch.control() as control:
        control.request("remove-port", port=3)
        assert arrivals(switch, hosts) == TWO
        control.request("add-port", port=3, interface="sw3")
    assert arrivals(switch, hosts) == BOTH


async def test_a_watch_port_that_cannot_be_is_refused(client: Client) -> None:
    await client.write(insert(member(1, 2)))
    for port, code in (
        (b"\x01\x00\x00", grpc.StatusCode.INVALID_ARGUMENT),
        (bytes([1, 0, 0, 0, 0]), grpc.StatusCode.OUT_OF_RANGE),
    ):
        wrong = group(1, 1)
        wrong.action_profile_group.members[0].watch_port = port
        await expect(client, insert(wrong), code, "watch port")
    negative = group(1, 1)
    negative.action_profile_group.members[0].watch = -1
    await expect(client, insert(negative), grpc.StatusCode.INVALID_ARGUMENT, "watch: -1")
    padded = group(1, 1)
    padded.action_profile_group.members[0].watch_port = b"\x00\x00\x02"
    await client.write(insert(padded))
    (read,) = await client.read(p4r.Entity(action_profile_group=p4r.ActionProfileGroup()))
    assert read.action_profile_group.members[0].watch_port == b"\x02"
