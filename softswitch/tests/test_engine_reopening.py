# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Ports that cannot open again: the log and the status have the reason, once a change."""

from __future__ import annotations

import os
import re
import select
import socket
import struct
from collections.abc import Callable

import pytest
from softswitch.build.native import default_cache_dir
from softswitch.engine import xdp
from softswitch.engine.abi import engine_library
from testnet import Namespace, SwitchProcess, needs_root, of_kind, port_name, wait_for

pytestmark = needs_root
PORTS = ("-i", "1@sw1", "-i", "2@sw2")
RTMGRP_LINK, IFF_PROMISC = 1, 0x100
IFI_CHANGE = 28  # offset in a message of the kernel


@pytest.fixture
def start(namespace: Namespace, start_switch) -> Callable[[str], SwitchProcess]:
    return lambda kind: start_switch(namespace, *of_kind(kind, PORTS), program="wire")


def logged(switch: SwitchProcess) -> list[str]:
    return re.findall(r"port 2.*(?:is down|is open).*", switch.log())


def wait_for_log(switch: SwitchProcess, *lines: str) -> None:
    wait_for(lambda: len(logged(switch)) >= len(lines), "the log")
    assert logged(switch) == list(lines)


def test_a_port_whose_interface_has_another_name_is_down_until_the_name_is_back(
    start: Callable[[str], SwitchProcess], namespace: Namespace, kind: str
) -> None:
    switch = start(kind)
    reason = "the device is absent" if kind == "dpdk" else "the interface is absent"
    name = port_name(kind, 2)
    absent, back = f"port 2 is down: {name}: {reason}", f"port 2: {name} is open"
    namespace.run("ip", "link", "set", "sw2", "name", "other")
    wait_for_log(switch, absent)
    assert switch.port(2)["error"] == reason
    namespace.run("ip", "link", "set", "sw1", "mtu", "1400")  # a change that is none of the port
    namespace.run("ip", "link", "set", "other", "name", "sw2")
    wait_for_log(switch, absent, back)
    assert switch.port(2)["error"] == ""
    assert switch.port(2)["up"]


def promiscuity_changes(events: socket.socket) -> int:
    """How often an interface became promiscuous or ceased to be."""
    changed = []
    while select.select([events], [], [], 0)[0]:
        changed.append(struct.unpack_from("=I", events.recv(65536), IFI_CHANGE)[0])
    return changed.count(IFF_PROMISC)


@pytest.mark.parametrize("kind", ["xdp"], indirect=True)
def test_an_mtu_that_a_port_cannot_carry_is_the_reason(
    start: Callable[[str], SwitchProcess], namespace: Namespace, kind: str
) -> None:
    switch = start(kind)
    with namespace.entered():
        events = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        events.bind((0, RTMGRP_LINK))
    too_large = "port 2 is down: sw2: AF_XDP carries an MTU of up to 3818"
    namespace.run("ip", "link", "set", "sw2", "mtu", "9000")
    wait_for_log(switch, too_large)
    namespace.run("ip", "link", "set", "sw2", "mtu", "1500")
    wait_for_log(switch, too_large, "port 2: sw2 is open")
    # A change that a failing try made would be the reason for the next try.
    assert promiscuity_changes(events) == 2
    events.close()


@pytest.mark.parametrize("kind", ["xdp"], indirect=True)
def test_a_port_is_tried_again_though_nothing_is_reported(
    start: Callable[[str], SwitchProcess], namespace: Namespace, kind: str
) -> None:
    """Another program leaves the interface without an event of the kernel."""
    switch = start(kind)
    namespace.run("ip", "link", "set", "sw2", "name", "other")
    wait_for(lambda: not switch.port(2)["up"], "port 2 down")
    foreign = xdp.load(default_cache_dir(), 1, "a test")
    with namespace.entered():
        index = socket.if_nametoindex("other")
        link = engine_library(default_cache_dir()).ss_xdp_attach(foreign.program, index)
    assert link >= 0
    namespace.run("ip", "link", "set", "other", "name", "sw2")
    wait_for(lambda: any("in use" in line for line in logged(switch)), "the reason")
    assert "in use" in switch.port(2)["error"]
    os.close(link)
    foreign.close()
    wait_for(lambda: switch.port(2)["up"], "port 2 up")
    assert [line for line in logged(switch) if "in use" in line] == [
        "port 2 is down: sw2: the interface's XDP hook or queue is in use (ip link show)"
    ]


@pytest.mark.parametrize(("receives", "sends"), [(2, 2), (1, 2), (2, 1)])
def test_queues_that_do_not_fit_the_threads_are_an_error_at_the_start(
    namespace: Namespace, start_switch, kind: str, receives: int, sends: int
) -> None:
    threads = 1 if receives == sends else 2
    namespace.remove_link(2)
    queues = ("numrxqueues", 2, "numtxqueues", 2)
    namespace.run("ip", "link", "add", "sw2", *queues, "type", "veth", "peer", "name", "h2", *queues)
    namespace.run("ethtool", "-L", "sw2", "rx", receives, "tx", sends)
    arguments = (*of_kind(kind, ("-i", "2@sw2")), "--threads", threads)
    reasons = {
        "xdp": "one receive queue of the interface for each",
        "dpdk": "a queue of the device in each direction",
    }
    if kind == "xdp" or (kind == "dpdk" and threads > 1):
        with pytest.raises(AssertionError, match=reasons[kind]):
            start_switch(namespace, *arguments, program="wire")
    else:
        start_switch(namespace, *arguments, program="wire")
