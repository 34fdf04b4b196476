# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Everything that is no gradient: an ordinary L3 switch, whether trees are installed or not (I7)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from netfold.controller.switches.tables import CPU_PORT
from tests.dataplane.bench import Bench
from tests.dataplane.fixtures import OWN_MAC, SETTINGS, UPLINK, root, sent
from tests.dataplane.frames import CE, TCP, UDP, Ip, arp_request, ethernet, mac, udp
from tests.dataplane.node import Neighbor, Route

EVERYTHING = {
    "UDP": ethernet(Ip(dst="10.0.0.2").pack(udp(b"data", 1234, 80, sum_=0xBEEF))),
    "TCP": ethernet(Ip(dst="10.0.0.2", protocol=TCP).pack(bytes(20))),
    "ICMP": ethernet(Ip(dst="10.0.0.2", protocol=1).pack(b"\x08\x00rest")),
    "empty": ethernet(Ip(dst="10.0.0.2", protocol=47).pack(b"")),
    "DSCP and CE": ethernet(Ip(dst="10.0.0.2", dscp=46, ecn=CE).pack(udp(b"x", 1, 2))),
    "large": ethernet(Ip(dst="10.0.0.2").pack(udp(bytes(1400), 1, 2))),
    "options": ethernet(Ip(dst="10.0.0.2", protocol=1, options=b"\x94\x04\x00\x00").pack(udp(b"x", 1, 2))),
    "fragment": ethernet(Ip(dst="10.0.0.2", flags_and_offset=0x00B9).pack(bytes(64))),
    "less specific": ethernet(Ip(dst="10.0.0.200").pack(udp(b"x", 1, 2))),
    "another switch": ethernet(Ip(dst="10.1.2.3").pack(udp(b"x", 1, 2))),
    "TTL 255": ethernet(Ip(dst="10.0.0.2", ttl=255).pack(udp(b"x", 1, 2))),
    "TTL 2": ethernet(Ip(dst="10.0.0.2", ttl=2).pack(udp(b"x", 1, 2))),
    "padded": ethernet(Ip(dst="10.0.0.2").pack(udp(b"x", 1, 2))) + bytes(17),
}
NOTHING = {
    "TTL 1": ethernet(Ip(dst="10.0.0.2", ttl=1).pack(udp(b"x", 1, 2))),
    "TTL 0": ethernet(Ip(dst="10.0.0.2", ttl=0).pack(udp(b"x", 1, 2))),
    "no route": ethernet(Ip(dst="192.0.2.1").pack(udp(b"x", 1, 2))),
    "bad checksum": ethernet(Ip(dst="10.0.0.2", checksum=0x1234).pack(udp(b"x", 1, 2))),
    "bad checksum with options": ethernet(
        Ip(dst="10.0.0.2", protocol=1, options=bytes(4), checksum=0x1234).pack(b"")
    ),
    "TCP cut short": ethernet(Ip(dst="10.0.0.2", protocol=TCP).pack(b"ab")),
    "UDP cut short": ethernet(Ip(dst="10.0.0.2").pack(bytes(7))),
    "lanes cut short": sent(1)[:35] + b"\x41" + sent(1)[36:-4],  # of no job, as its ports are not equal
    "options cut short": ethernet(Ip(dst="10.0.0.2", options=bytes(8)).pack(b"")[:24]),
    "IPv6": ethernet(bytes(40), 0x86DD),
    "VLAN": ethernet(b"\x00\x01\x08\x00" + Ip(dst="10.0.0.2").pack(b""), 0x8100),
    "no payload": ethernet(b""),
    "IP cut short": ethernet(Ip(dst="10.0.0.2").pack(b"")[:12]),
    "ARP cut short": arp_request("10.0.0.2")[:40],
    "ARP for a host far away": arp_request("192.0.2.1"),
    "ARP reply": arp_request("10.0.0.2", operation=2),
}
PORTS = {"UDP": 2, "less specific": 3, "another switch": UPLINK, "TTL 255": 2, "TTL 2": 2}


@pytest.mark.parametrize("trees", [(), (root(3), root(2, tree=9, base=64))], ids=["no trees", "with trees"])
def test_everything_is_forwarded_with_or_without_trees(bench: Bench, trees: tuple):
    bench.install(*SETTINGS, *trees)
    for name, frame in EVERYTHING.items():
        ((port, out),) = bench.send(1, frame)
        assert port == PORTS.get(name, 2)
        assert out[22] == frame[22] - 1  # TTL
        assert len(out) == max(len(frame), bench.device.least_bytes)
    bench.check_counters()
    assert not bench.oracle.verdicts


@pytest.mark.parametrize("name", NOTHING)
def test_what_cannot_be_forwarded_is_dropped(bench: Bench, name: str):
    if name.endswith("cut short") and len(NOTHING[name]) < bench.device.least_bytes:
        pytest.skip("Ethernet pads it, so it is not cut when it arrives")
    if name == "bad checksum with options" and not bench.device.parses_options:
        pytest.skip("the checksum stays wrong, and the receiver's to find")
    bench.install(*SETTINGS)
    assert bench.send(1, NOTHING[name]) == []


def test_frames_go_out_with_the_addresses_of_the_link(bench: Bench):
    bench.install(*SETTINGS)
    ((_, to_host),) = bench.send(1, EVERYTHING["UDP"])
    assert to_host[:12] == mac("02:00:00:00:00:02") + mac("02:00:00:00:01:02")
    ((_, to_switch),) = bench.send(1, EVERYTHING["another switch"])
    assert to_switch[:12] == mac("02:00:00:00:02:04") + mac("02:00:00:00:01:04")


def test_a_port_without_a_known_neighbor_keeps_the_addresses(bench: Bench):
    bench.install(Route("10.0.0.0/8", (6,)))
    ((port, out),) = bench.send(1, EVERYTHING["UDP"])
    assert (port, out[:12]) == (6, EVERYTHING["UDP"][:12])


def test_arp_requests_are_answered_with_the_switch_s_own_address(bench: Bench):
    bench.install(*SETTINGS)
    request = arp_request("10.0.3.4")
    ((port, answer),) = bench.send(1, request)
    assert port == 1
    assert answer[:12] == mac("02:00:00:00:00:01") + mac(OWN_MAC)
    assert answer[20:42] == b"\0\2" + mac(OWN_MAC) + bytes([10, 0, 3, 4]) + mac("02:00:00:00:00:01") + bytes(
        [10, 0, 0, 1]
    )


@pytest.mark.parametrize(
    "frame", [sent(1), arp_request("10.0.0.2"), EVERYTHING["UDP"], NOTHING["TTL 1"], NOTHING["IPv6"]]
)
def test_the_controller_sends_out_of_any_port(bench: Bench, frame: bytes):
    bench.install(*SETTINGS, root(1))
    for port in (1, 6):
        header = (port << 7).to_bytes(2, "big")
        assert bench.send(CPU_PORT, header + frame) == [(port, bench.padded(port, frame))]
    bench.check_counters()
    assert not bench.oracle.verdicts


def test_equal_routes_share_flows_and_keep_each_together(bench: Bench):
    bench.install(*(Neighbor(port, "02:00:00:00:01:00", f"02:00:00:00:02:{port:02x}") for port in (5, 6, 7)))
    bench.device.insert(Route("10.0.0.0/8", (5, 6, 7)).entities())
    taken: Counter[int] = Counter()
    for flow in range(120):
        packet = Ip(src=f"10.{flow}.0.1", dst="10.0.0.9", protocol=(UDP, TCP)[flow % 2])
        frame = ethernet(packet.pack(udp(b"x" * 20, 1000 + flow, 80)))
        ((port, out),) = bench.device.inject(1, frame)
        assert bench.device.inject(2, frame) == [(port, out)]
        assert out[:6] == mac(f"02:00:00:00:02:{port:02x}")
        taken[port] += 1
    assert set(taken) == {5, 6, 7}
    assert min(taken.values()) >= 20  # 40 each on average


FLOW = {"src": "10.1.0.1", "dst": "10.0.0.9", "protocol": TCP, "ports": (1000, 80)}
FIVE_TUPLE: dict[str, list[dict[str, Any]]] = {
    "source address": [{**FLOW, "src": f"10.1.0.{n}"} for n in range(60)],
    "destination address": [{**FLOW, "dst": f"10.0.0.{n}"} for n in range(60)],
    "protocol": [{**FLOW, "protocol": n, "src": f"10.2.{m}.1"} for m in range(20) for n in (UDP, TCP, 132)],
    "source port": [{**FLOW, "ports": (1000 + n, 80)} for n in range(60)],
    "destination port": [{**FLOW, "ports": (1000, 80 + n)} for n in range(60)],
    "source port of UDP": [{**FLOW, "protocol": UDP, "ports": (1000 + n, 80)} for n in range(60)],
    "destination port of UDP": [{**FLOW, "protocol": UDP, "ports": (1000, 80 + n)} for n in range(60)],
    "ports of the range, unequal": [
        {**FLOW, "protocol": UDP, "ports": (0xF000 + n, 0xF0FF)} for n in range(60)
    ],
}


def way_of(bench: Bench, flow: dict[str, Any], fragment: int = 0) -> int:
    packet = Ip(src=flow["src"], dst=flow["dst"], protocol=flow["protocol"], flags_and_offset=fragment)
    ((port, _),) = bench.device.inject(1, ethernet(packet.pack(udp(b"x" * 20, *flow["ports"]))))
    return port


@pytest.mark.parametrize("part", FIVE_TUPLE)
def test_each_part_of_the_five_tuple_alone_parts_flows(bench: Bench, part: str):
    """Flows that differ in nothing else leave by every way."""
    bench.device.insert(Route("10.0.0.0/8", (5, 6, 7)).entities())
    flows = FIVE_TUPLE[part]
    if part == "protocol":  # of some flows that are alike but for it, not all take the same way
        ways = [{way_of(bench, f) for f in flows[n : n + 3]} for n in range(0, len(flows), 3)]
        assert any(len(found) > 1 for found in ways)
    else:
        assert {way_of(bench, flow) for flow in flows} == {5, 6, 7}


def test_all_fragments_of_a_datagram_take_one_way(bench: Bench):
    bench.device.insert(Route("10.0.0.0/8", (5, 6, 7)).entities())
    for number in range(30):
        flow = {**FLOW, "protocol": UDP, "ports": (1000 + number, 80)}
        assert len({way_of(bench, flow, fragment) for fragment in (0x2000, 0x2005, 0x000A)}) == 1
