# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The engine in a switch process: frames over veth links, ports that come and go, faults, rates, captures, the end."""

from __future__ import annotations

import contextlib
import signal
import socket
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.utils import PcapReader
from softswitch.admin.client import ControlSocketError
from test_engine_checksum import folded
from testnet import (
    DEADLINE_S,
    ETH_P_ALL,
    Namespace,
    SwitchProcess,
    ethernet,
    kernel_only,
    needs_root,
    of_kind,
    packet_only,
    port_name,
    wait_for,
)

pytestmark = needs_root
PORTS = ("-i", "1@sw1", "-i", "2@sw2")
DATA, STAMPED = 0x88B5, 0x88B7


@pytest.fixture
def start(namespace: Namespace, start_switch, kind: str) -> Callable[..., SwitchProcess]:
    return lambda *arguments: start_switch(namespace, *of_kind(kind, arguments), program="wire")


def numbered(count: int, size: int = 60) -> list[bytes]:
    return [ethernet(DATA, struct.pack("!I", n) + bytes(size - 18)) for n in range(count)]


def test_frames_of_every_length_pass_unchanged_both_ways(start, hosts) -> None:
    start(*PORTS)
    one, two = hosts
    for length in (14, 15, 59, 60, 61, 64, 127, 512, 1099, 1513, 1514):
        frame = ethernet(DATA, bytes(i & 255 for i in range(length - 14)))
        one.send(frame)
        assert two.receive() == frame
        two.send(frame)
        assert one.receive() == frame


def test_a_burst_keeps_its_order_and_is_counted(start, hosts) -> None:
    switch = start(*PORTS)
    one, two = hosts
    burst = numbered(500)
    for frame in burst:
        one.send(frame)
    assert two.receive_many(500) == burst
    port = switch.port(1)
    assert (port["link"]["rx_packets"], port["link"]["rx_bytes"]) == (500, 500 * 60)
    assert port["switch"]["rx_packets"] == 500
    assert switch.port(2)["link"]["tx_packets"] == 500


def captured(path: Path) -> list[bytes]:
    with PcapReader(str(path)) as packets:
        return [bytes(packet) for packet in packets]


def test_vlan_tags_stay_where_they_were(start, hosts, tmp_path: Path, kind: str) -> None:
    switch = start(*PORTS, "--pcap", tmp_path / "pcaps")
    one, two = hosts
    tagged = ethernet(0x8100, struct.pack("!HH", 0x6005, DATA) + bytes(46))
    double = ethernet(0x88A8, struct.pack("!HHHH", 7, 0x8100, 9, DATA) + bytes(46))
    frames = [tagged] if kind == "dpdk" else [tagged, double]  # the driver takes each tag for 802.1Q
    for frame in frames:
        one.send(frame)
        assert (
            two.receive() is not None
        )  # without the outer tag: the kernel puts it beside the frame here too
    assert switch.stop() == 0
    for name in (f"{port_name(kind, 1)}_in", f"{port_name(kind, 2)}_out"):
        assert captured(tmp_path / "pcaps" / f"{name}.pcap") == frames


def test_a_partial_checksum_of_the_kernel_is_completed(start, namespace: Namespace, hosts) -> None:
    start(*PORTS)
    namespace.run("ip", "address", "add", "10.9.0.1/24", "dev", "h1")
    namespace.run("ip", "neighbor", "add", "10.9.0.2", "lladdr", "02:00:00:00:00:02", "dev", "h1")
    assert "tx-checksumming: on" in namespace.run("ethtool", "-k", "h1"), "else this tests nothing"
    script = "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'sum me up', ('10.9.0.2', 99))"
    namespace.run("python3", "-c", script)
    received = hosts[1].receive()
    assert received is not None
    udp = received[34:]
    pseudo = received[26:34] + struct.pack("!HH", 17, len(udp))
    assert folded(pseudo + udp) == 0xFFFF


@packet_only
def test_the_kernel_says_which_checksum_is_to_be_completed(start, namespace: Namespace, hosts) -> None:
    """A tunnel's inner one, and the outer one is right (or 0) already."""
    start(*PORTS)
    inner = bytes(
        Ether(src="02:00:00:00:00:05") / IP(src="1.1.1.1", dst="2.2.2.2") / UDP(sport=7, dport=9) / b"inside"
    )
    outer = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP(src="10.0.0.1", dst="10.0.0.2")
    whole = bytes(outer / UDP(sport=1, dport=4789, chksum=0) / bytes(8) / inner)
    begin, field = len(whole) - len(inner) + 34, 6
    pseudo = inner[26:34] + struct.pack("!HH", 17, len(inner) - 34)
    partial = bytearray(whole)
    partial[begin + field : begin + field + 2] = struct.pack("!H", folded(pseudo))
    for tag in (b"", struct.pack("!HH", 0x8100, 5)):
        header = struct.pack("=BBHHHH", 1, 0, 0, 0, begin + len(tag), field)  # VIRTIO_NET_HDR_F_NEEDS_CSUM
        with namespace.entered(), socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
            sender.setsockopt(263, 15, 1)  # SOL_PACKET, PACKET_VNET_HDR
            sender.bind(("h1", 0))
            sender.send(header + bytes(partial[:12]) + tag + bytes(partial[12:]))
        received = hosts[1].receive()
        assert received is not None
        if len(received) > len(whole):
            received = received[:12] + received[16:]
        assert received == whole


def test_an_interface_that_goes_and_comes_back_is_bound_again(start, namespace: Namespace, hosts) -> None:
    switch = start(*PORTS)
    one, two = hosts
    for _ in range(3):
        namespace.remove_link(2)
        wait_for(lambda: not switch.port(2)["up"], "port 2 down")
        one.send(numbered(1)[0])
        namespace.add_link(2)
        wait_for(lambda: switch.port(2)["up"], "port 2 up")
        two.close()
        two = namespace.host(2)
        one.send(numbered(2)[1])
        assert two.receive() == numbered(2)[1]
    assert switch.port(2)["link"]["tx_dropped"] >= 1


def test_a_frame_above_the_mtu_of_its_way_out_is_counted(start, namespace: Namespace, hosts) -> None:
    """One VLAN tag may exceed the MTU."""
    namespace.run("ip", "link", "set", "sw2", "mtu", "1000")
    switch = start(*PORTS)
    one, two = hosts
    tagged, fitting = ethernet(0x8100, struct.pack("!HH", 5, DATA) + bytes(1000)), ethernet(DATA, bytes(1000))
    for frame in (fitting + b"x", tagged + b"x", tagged, fitting):
        one.send(frame)
    assert two.receive_many(2) == [fitting, fitting]  # the kernel keeps the tag apart
    link = switch.port(2)["link"]
    assert (link["tx_oversize"], link["tx_packets"], link["tx_dropped"]) == (2, 2, 0)


def test_an_interface_that_was_down_works_when_it_is_up(
    start, namespace: Namespace, hosts, kind: str
) -> None:
    start(*PORTS)
    one, two = hosts
    namespace.run("ip", "link", "set", "sw2", "down")
    one.send(numbered(1)[0])
    namespace.run("ip", "link", "set", "sw2", "up")
    one.send(numbered(2)[1])
    while (received := two.receive(0.1 if kind == "dpdk" else DEADLINE_S)) != numbered(2)[1]:
        if received is None:  # the driver's first send has the error of the link that was down
            assert kind == "dpdk"
            one.send(numbered(2)[1])
    two.send(numbered(1)[0])
    assert one.receive() == numbered(1)[0]


@packet_only
def test_a_larger_mtu_is_followed_and_order_is_kept_among_sizes(start, namespace: Namespace, hosts) -> None:
    switch = start(*PORTS)
    one, two = hosts
    for number in (1, 2):
        for end in ("sw", "h"):
            namespace.run("ip", "link", "set", f"{end}{number}", "mtu", "9000")
    wait_for(lambda: switch.port(1)["up"] and switch.port(2)["up"], "the ports with the new MTU")
    burst = [ethernet(DATA, struct.pack("!I", n) + bytes(40 + n * 997 % 8900)) for n in range(60)]
    # The rings are changed when the switch hears of the MTU: until then long frames are counted and dropped.
    one.send(burst[8])
    while two.receive(0.05) is None:
        one.send(burst[8])
    while two.receive(0.05) is not None:
        pass
    for frame in burst:
        one.send(frame)
    assert two.receive_many(60) == burst


def test_ports_are_added_and_removed_at_run_time(start, namespace: Namespace, hosts) -> None:
    switch = start("-i", "1@sw1")
    one, two = hosts
    with switch.control() as control:
        control.request("add-port", port=2, interface="sw2")
        one.send(numbered(1)[0])
        assert two.receive() == numbered(1)[0]
        for port, interface, reason in ((2, "x", "in use"), (3, "sw2", "in use"), (510, "x", "CPU port")):
            with pytest.raises(ControlSocketError, match=reason):
                control.request("add-port", port=port, interface=interface)
        control.request("remove-port", port=2)
        with pytest.raises(ControlSocketError, match="no such port"):
            control.request("remove-port", port=2)
        one.send(numbered(1)[0])
        wait_for(
            lambda: control.request("stats")["engine"]["unknown_port"] == 1, "the frame to the removed port"
        )
        control.request("add-port", port=2, interface="later")
        assert not switch.port(2)["up"]
        namespace.run("ip", "link", "add", "later", "type", "veth", "peer", "name", "h3")
        wait_for(lambda: switch.port(2)["up"], "the interface that appeared")


def test_the_control_socket_refuses_what_it_does_not_know(start) -> None:
    switch = start(*PORTS)
    with switch.control() as control:
        assert control.request("info")["program"] == "softswitch-test-wire"
        for op, arguments, complaint in (
            ("fly", {}, "op|tag"),
            ("set-faults", {"port": 1, "direction": "in", "loss": 2}, "loss"),
            ("set-faults", {"port": 1, "direction": "up"}, "direction"),
            ("set-faults", {"port": 9, "direction": "in"}, "no such port"),
            ("set-rate", {"port": 1, "rate": "fast"}, "100mbit"),
            ("set-rate", {"port": 1, "rate": 1, "queue": 0}, "queue"),
            ("ports", {"extra": 1}, "extra"),
        ):
            with pytest.raises(ControlSocketError, match=complaint):
                control.request(op, **arguments)


@pytest.mark.parametrize(("port", "direction"), [(1, "in"), (2, "out")])
def test_seeded_faults_repeat(start, hosts, port: int, direction: str) -> None:
    switch = start(*PORTS)
    one, two = hosts
    end = ethernet(DATA, b"end of run" + bytes(40))
    runs = []
    with switch.control() as control:
        for number, seed in enumerate((7, 7, 8), 1):
            faults = {
                "loss": 0.2,
                "duplicate": 0.1,
                "reorder": 0.1,
                "reorder_hold_ns": 60 * 10**9,
                "seed": seed,
            }
            control.request("set-faults", port=port, direction=direction, **faults)
            for frame in numbered(300):
                one.send(frame)
            wait_for(
                lambda n=number: switch.port(1)["link"]["rx_packets"] >= n * 300 + (n - 1) * 4, "the burst"
            )
            control.request("set-faults", port=port, direction=direction)
            # Enough frames to overtake what is still held back.
            for _ in range(4):
                one.send(end)
            run = []
            while run.count(end) < 4:
                run.extend(two.receive_many(1))
            runs.append(run)
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]
    counts = switch.port(port)["faults"][direction]
    assert counts["lost"] > 100
    assert counts["duplicated"] > 30
    assert counts["reordered"] > 30


def test_corruption_changes_one_bit_of_a_frame(start, hosts) -> None:
    switch = start(*PORTS)
    one, two = hosts
    with switch.control() as control:
        control.request("set-faults", port=2, direction="out", corrupt=1.0, seed=3)
    sent = numbered(50)
    for frame in sent:
        one.send(frame)
    for before, after in zip(sent, two.receive_many(50), strict=True):
        assert bin(int.from_bytes(before, "big") ^ int.from_bytes(after, "big")).count("1") == 1


def test_a_delayed_frame_arrives_in_the_end(start, hosts) -> None:
    switch = start(*PORTS)
    one, two = hosts
    with switch.control() as control:
        control.request("set-faults", port=1, direction="in", delay_ns=30_000_000)
        control.request("set-faults", port=2, direction="out", delay_ns=30_000_000)
    settings = switch.port(1)["fault_settings"]
    assert (settings["in"]["delay_ns"], settings["out"]["delay_ns"]) == (30_000_000, 0)
    for frame in numbered(20):
        one.send(frame)
    assert two.receive_many(20) == numbered(20)
    assert switch.port(1)["faults"]["in"]["delayed"] == 20
    assert switch.port(2)["faults"]["out"]["delayed"] == 20


def stamps(frames: list[bytes]) -> list[tuple[int, int, int]]:
    return [struct.unpack_from("!III", frame, 14) for frame in frames]


def test_a_rate_makes_a_queue_that_the_program_sees(start, hosts) -> None:
    start(*PORTS, "--port-rate", "2=200kbit", "--port-queue", "2=1000")
    one, two = hosts
    for _ in range(40):
        one.send(ethernet(STAMPED, bytes(12 + 500 - 26)))
    seen = stamps(two.receive_many(40))
    assert [s[0] for s in seen] == sorted(s[0] for s in seen), (
        "the burst is faster than the link: the queue grows"
    )
    assert max(s[0] for s in seen) > 25
    assert seen[-1][2] > seen[5][2], "later frames of the burst waited longer"
    assert seen[-1][1] == 0, "the last one leaves an empty queue"


def test_a_full_queue_drops_the_tail_and_counts_it(start, hosts) -> None:
    switch = start(*PORTS)
    one, two = hosts
    with switch.control() as control:
        control.request("set-rate", port=2, rate="1mbit", queue=8)
        for frame in numbered(100, 1000):
            one.send(frame)
        wait_for(lambda: switch.port(1)["link"]["rx_packets"] == 100, "the burst")
        drops = switch.port(2)["switch"]["queue_drops"]
        assert drops > 50
        received = two.receive_many(100 - drops)
        assert received == sorted(received)
        control.request("set-rate", port=2, rate=0)
        one.send(numbered(1)[0])
        assert two.receive() == numbered(1)[0]


def test_captures_hold_what_each_port_saw(start, hosts, tmp_path: Path, kind: str) -> None:
    switch = start(*PORTS, "--pcap", tmp_path / "pcaps")
    one, two = hosts
    for frame in numbered(20):
        one.send(frame)
    two.receive_many(20)
    assert switch.stop() == 0
    ends = (1, "in", 20), (2, "out", 20), (1, "out", 0), (2, "in", 0)
    for name, count in ((f"{port_name(kind, port)}_{end}", count) for port, end, count in ends):
        assert captured(tmp_path / "pcaps" / f"{name}.pcap") == numbered(20)[:count], name


@packet_only
def test_a_listener_on_the_switchs_end_sees_both_directions(start, namespace: Namespace, hosts) -> None:
    start(*PORTS)
    one, two = hosts
    one.send(numbered(1)[0])
    assert two.receive() == numbered(1)[0]
    with namespace.entered():
        tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        tap.bind(("sw2", 0))
    tap.setblocking(False)
    # A busy port looks around ten times a second: what left before that went unseen.
    seen = b""
    while seen != numbered(2)[1]:
        one.send(numbered(2)[1])
        assert two.receive() == numbered(2)[1]
        with contextlib.suppress(BlockingIOError):
            seen = tap.recv(2048)
    tap.close()
    two.send(numbered(3)[2])
    assert one.receive() == numbered(3)[2]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_forwards_what_came_and_exits_with_0(start, hosts, number: signal.Signals) -> None:
    switch = start(*PORTS)
    one, two = hosts
    for frame in numbered(200):
        one.send(frame)
    switch.process.send_signal(number)
    assert two.receive_many(200) == numbered(200)
    assert switch.stop() == 0
    assert not switch.control_path.exists()
    assert "Traceback" not in switch.log()


@kernel_only
def test_an_idle_switch_sleeps(start) -> None:
    switch = start(*PORTS)
    with switch.control() as control:
        before = control.request("stats")["engine"]
        control.request("ports")
        after = control.request("stats")["engine"]
    assert after["batches"] == before["batches"], "nothing came, so nothing woke the data plane"


def test_what_is_wrong_at_the_start_is_said_and_exits_with_1(start, kind: str) -> None:
    with pytest.raises(AssertionError, match=f"port 510 on {port_name(kind, 1)}"):
        start("-i", "510@sw1")
