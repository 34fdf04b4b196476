# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A port without a rate on a link that is slow: the program sees what the kernel and the device have not sent."""

from __future__ import annotations

import itertools
import random
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import netfold_case
import pytest
from netfold_programs import COMPILED, needs_netfold
from running import running
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from softswitch.engine.engine import Engine
from softswitch.state.entities import ActionCall, Exact, TableEntry
from testnet import Host, Namespace, ethernet, ip, needs_root, wait_for

pytestmark = needs_root
STAMPED = 0x88B7
SIZE, FRAMES = 500, 12
CPU_PORT = 510
BURST_FRAMES = 4  # leave at once at most: a token bucket holds a frame of the MTU


def set_rate(namespace: Namespace, verb: str, rate: str, burst: int) -> None:
    limits = ("rate", rate, "burst", burst, "limit", 1_000_000)
    namespace.run("tc", "qdisc", verb, "dev", "link2", "root", "tbf", *limits)


@pytest.fixture
def namespace() -> Iterator[Namespace]:
    """sw2 is stacked on the link, as a VLAN is on a card: frames pass its own discipline by, not the link's."""
    made = Namespace()
    try:
        made.run("ip", "link", "set", "sw2", "down")
        made.run("ip", "link", "set", "sw2", "name", "link2")
        made.run("ip", "link", "set", "link2", "up")
        try:
            made.run(
                "ip", "link", "add", "link", "link2", "name", "sw2", "type", "macvlan", "mode", "passthru"
            )
            set_rate(made, "add", "8bit", 1600)
        except subprocess.CalledProcessError as error:
            pytest.skip(f"SKIPPED: no slow link: {error.stderr.strip()}")
        ip("-n", made.name, "link", "set", "sw2", "up")
        yield made
    finally:
        made.close()


@pytest.mark.parametrize("arguments", [(), ("--gso",)])
@pytest.mark.parametrize("is_captured", [False, True], ids=["past the stack", "through the stack"])
def test_a_queue_of_the_link_is_seen_by_the_program(
    namespace: Namespace, hosts: list[Host], start_switch, arguments: tuple[str, ...], is_captured: bool
) -> None:
    switch = start_switch(namespace, "-i", "1@sw1", "-i", "2@sw2", *arguments, program="wire")
    one, two = hosts
    if is_captured:
        namespace.end("sw2")
    for number in range(1, FRAMES + 1):
        one.send(ethernet(STAMPED, bytes(SIZE - 14)))
        # Frames of one batch see the same queue.
        wait_for(lambda n=number: switch.port(2)["link"]["tx_packets"] == n, "the frame")
    waiting = switch.port(2)["switch"]["queue_depth"]
    assert waiting > 0
    set_rate(namespace, "change", "1gbit", 16000)
    one.send(ethernet(STAMPED, bytes(SIZE - 14)))  # the link looks at its rate when a frame comes
    stamps = [struct.unpack_from("!III", frame, 14) for frame in two.receive_many(FRAMES + 1)]
    depths = [enqueued for enqueued, _, _ in stamps]
    assert depths[0] == 0
    # A frame that is still on its way through the kernel counts, too.
    assert all(later >= earlier - 1 for earlier, later in itertools.pairwise(depths))
    # All that were sent before wait, but for a burst.
    assert depths[FRAMES] - waiting in (0, 1)
    assert FRAMES - BURST_FRAMES <= depths[FRAMES] <= FRAMES
    waits = [waited for _, _, waited in stamps]
    assert waits[0] == 0
    assert waits[-1] > 0


@needs_netfold
def test_netfold_marks_packets_that_meet_the_queue_of_a_link(
    namespace: Namespace, hosts: list[Host], cache_dir: Path
) -> None:
    """The port has no rate, and the threshold is a microsecond of waiting."""
    p4_json = (COMPILED / "netfold-v1model-32.json").read_bytes()
    mark = ActionCall(f"{netfold_case.OUT}delivery.set_ecn_threshold", {"depth": netfold_case.by(1, 32)})
    ip_packet = IP(src="10.0.1.1", dst="10.0.2.1", tos=2) / UDP(sport=5, dport=6) / Raw(bytes(SIZE - 42))
    frame = bytes(Ether(src="02:00:00:00:00:01", dst="02:aa:00:00:00:01") / ip_packet)
    one, two = hosts
    with running(p4_json, cache_dir) as (pipeline, switch), namespace.entered():
        netfold_case.setup(pipeline, random.Random(1))
        entry = TableEntry({"port": Exact(netfold_case.by(2, 9))}, mark)
        pipeline.table_insert(f"{netfold_case.OUT}delivery.ecn_thresholds", entry)
        engine = Engine(switch, CPU_PORT, cache_dir)
        try:
            engine.add_port(1, "sw1")
            engine.add_port(2, "sw2")
            engine.start()
            for number in range(1, FRAMES + 1):
                one.send(frame)
                wait_for(lambda n=number: engine.ports()[1].counters["tx_packets"] == n, "the frame")
            set_rate(namespace, "change", "1gbit", 16000)
            one.send(frame)
            arrived = two.receive_many(FRAMES + 1)
        finally:
            engine.close()
    marks = [Ether(data)[IP].tos & 3 for data in arrived]
    assert marks[0] == 2
    assert marks == sorted(marks)
    assert marks.count(3) >= FRAMES - BURST_FRAMES
