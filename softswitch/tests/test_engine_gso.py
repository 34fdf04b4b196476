# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Bursts of hosts whose offloads are on: programs, faults and captures see packets, receivers get whole bursts."""

from __future__ import annotations

import hashlib
import random
import select
import signal
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.utils import PcapReader
from testnet import (
    DEADLINE_S,
    ETH_P_ALL,
    Namespace,
    SwitchProcess,
    ip,
    kernel_only,
    needs_root,
    of_kind,
    packet_only,
    raise_receive_buffer,
    wait_for,
)

pytestmark = needs_root
PORTS = ("-i", "1@sw1", "-i", "2@sw2")
UDP_SEGMENT, UDP_GRO = 103, 104
SIZE, COUNT = 1000, 48
RUN_FRAMES = 32  # of what softswitch sends as one
PORT = 7000


class Hosts:
    """h1 and h2 in namespaces of their own, 10.9.0.1 and 10.9.0.2."""

    def __init__(self, switch: Namespace) -> None:
        self.switch = switch
        self._ends = Namespace(0), Namespace(0)
        for number, end in enumerate(self._ends, 1):
            ip("-n", switch.name, "link", "set", f"h{number}", "netns", end.name)
            end.run("ip", "link", "set", f"h{number}", "address", f"02:00:00:00:00:0{number}", "up")
            end.run("ip", "address", "add", f"10.9.0.{number}/24", "dev", f"h{number}")
        for number, end in enumerate(self._ends, 1):
            other = 3 - number
            end.run(
                "ip",
                "neighbor",
                "add",
                f"10.9.0.{other}",
                "lladdr",
                f"02:00:00:00:00:0{other}",
                "dev",
                f"h{number}",
            )

    def socket(self, number: int, kind: socket.SocketKind = socket.SOCK_DGRAM) -> socket.socket:
        with self._ends[number - 1].entered():
            made = socket.socket(socket.AF_INET, kind)
        made.settimeout(DEADLINE_S)
        if kind == socket.SOCK_DGRAM:
            raise_receive_buffer(made)
        made.bind((f"10.9.0.{number}", PORT))
        return made

    def raw(self, number: int) -> socket.socket:
        """All frames of a host's interface, unsegmented."""
        with self._ends[number - 1].entered():
            made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
            made.bind((f"h{number}", 0))
        raise_receive_buffer(made)
        made.settimeout(DEADLINE_S)
        return made

    def close(self) -> None:
        for end in self._ends:
            end.close()


@pytest.fixture
def hosts(namespace: Namespace) -> Iterator[Hosts]:
    made = Hosts(namespace)
    yield made
    made.close()


@pytest.fixture
def start(namespace: Namespace, start_switch, kind: str) -> Callable[..., SwitchProcess]:
    return lambda *arguments: start_switch(namespace, *of_kind(kind, (*PORTS, *arguments)), program="wire")


def datagrams(count: int = COUNT, size: int = SIZE) -> list[bytes]:
    chance = random.Random(count)
    return [struct.pack("!I", n) + chance.randbytes(size - 4) for n in range(count)]


def send_burst(sender: socket.socket, payloads: Sequence[bytes]) -> None:
    """Send the payloads as one datagram, which the device may segment."""
    segment = struct.pack("=H", len(payloads[0]))
    sender.sendmsg([b"".join(payloads)], [(socket.IPPROTO_UDP, UDP_SEGMENT, segment)], 0, ("10.9.0.2", PORT))


def received(receiver: socket.socket, count: int) -> list[bytes]:
    return [receiver.recv(65536) for _ in range(count)]


def ring_bytes(switch: SwitchProcess) -> int:
    """Memory of a switch's receive rings. The rings of AF_XDP, which are some pages, do not count."""
    maps = (line.split() for line in Path(f"/proc/{switch.process.pid}/maps").read_text().splitlines())
    ends = [row[0].split("-") for row in maps if row[-1].startswith("socket:")]
    sizes = [int(end, 16) - int(start, 16) for start, end in ends]
    return sum(size for size in sizes if size >= 1 << 20)


@packet_only
@pytest.mark.slow
def test_rings_of_many_ports_share_their_memory(
    namespace: Namespace, start: Callable[..., SwitchProcess]
) -> None:
    alone = start("--gso")
    assert ring_bytes(alone) == 2 * 32 << 20
    alone.kill()
    numbers = range(3, 65)
    for number in numbers:
        namespace.run("ip", "link", "add", f"more{number}", "type", "veth", "peer", "name", f"end{number}")
    switch = start("--gso", *(word for number in numbers for word in ("-i", f"{number}@more{number}")))
    assert ring_bytes(switch) == 512 << 20
    switch.kill()
    grown = start("--gso")
    with grown.control() as control:
        for number in numbers:
            control.request("add-port", port=number, interface=f"more{number}")
    usual = 2 << 20
    assert ring_bytes(grown) <= (512 << 20) + len(numbers) * usual


@kernel_only
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param((), marks=pytest.mark.slow),
        ("--gso",),
        pytest.param(("--gso", "--port-rate", "2=1gbit", "--port-queue", "2=64"), marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize(
    ("count", "size"),
    [
        pytest.param(COUNT, SIZE, id="beyond the ring's frames"),
        pytest.param(16, SIZE, id="in the ring with --gso"),
        pytest.param(COUNT, 20, id="in the ring"),
    ],
)
def test_a_burst_arrives_packet_by_packet_and_is_counted_so(
    start: Callable[..., SwitchProcess], hosts: Hosts, arguments: tuple[str, ...], count: int, size: int
) -> None:
    switch = start(*arguments)
    with hosts.socket(1) as one, hosts.socket(2) as two:
        send_burst(one, datagrams(count, size))
        assert received(two, count) == datagrams(count, size)
    for kind in ("link", "switch"):
        assert switch.port(1)[kind]["rx_packets"] == count
        assert switch.port(1)[kind]["rx_bytes"] == count * (42 + size)
        assert switch.port(2)[kind]["tx_packets"] == count
        assert switch.port(2)[kind]["tx_bytes"] == count * (42 + size)


@kernel_only
@pytest.mark.slow
@pytest.mark.parametrize("arguments", [(), ("--gso",)])
def test_a_thousand_small_packets_wait_for_a_switch_that_does_not_run(
    start: Callable[..., SwitchProcess], hosts: Hosts, arguments: tuple[str, ...]
) -> None:
    switch = start(*arguments)
    with hosts.socket(1) as one:
        switch.process.send_signal(signal.SIGSTOP)
        for _ in range(1000):
            one.sendto(bytes(4), ("10.9.0.2", PORT))
        switch.process.send_signal(signal.SIGCONT)

        def link() -> dict[str, int]:
            return switch.port(1)["link"]

        wait_for(lambda: link()["rx_packets"] + link()["rx_dropped"] >= 1000, "the packets")
    assert link()["rx_dropped"] == 0


def frames_seen(listener: socket.socket, packets: int, bytes_each: int) -> list[int]:
    """Lengths of the frames to UDP port PORT that make so many packets."""
    lengths: list[int] = []
    while sum((length - 42) // bytes_each for length in lengths) < packets:
        frame = listener.recv(70000)
        if frame[23:24] == b"\x11" and frame[36:38] == struct.pack("!H", PORT):
            lengths.append(len(frame))
    return lengths


@packet_only
def test_runs_leave_as_one_frame_where_that_is_wanted(
    start: Callable[..., SwitchProcess], hosts: Hosts
) -> None:
    switch = start("--gso")
    assert switch.port(2)["merges"]
    with hosts.socket(1) as one, hosts.raw(2) as listener:
        send_burst(one, datagrams())
        seen = frames_seen(listener, COUNT, SIZE)
    assert len(seen) < COUNT / 4
    assert max(seen) <= 42 + RUN_FRAMES * SIZE


@kernel_only
def test_runs_leave_packet_by_packet_where_it_is_not(
    start: Callable[..., SwitchProcess], hosts: Hosts
) -> None:
    switch = start()
    assert not switch.port(2)["merges"]
    with hosts.socket(1) as one, hosts.raw(2) as listener:
        send_burst(one, datagrams())
        assert frames_seen(listener, COUNT, SIZE) == [42 + SIZE] * COUNT


@kernel_only
def test_a_duplicate_is_what_a_run_was_given(start: Callable[..., SwitchProcess], hosts: Hosts) -> None:
    switch = start("--gso")
    with switch.control() as control:
        control.request("set-faults", port=2, direction="out", duplicate=1.0)
    with hosts.socket(1) as one, hosts.socket(2) as two:
        send_burst(one, datagrams())
        assert Counter(received(two, 2 * COUNT)) == Counter(dict.fromkeys(datagrams(), 2))


@packet_only
def test_a_receiver_with_gro_gets_whole_runs(start: Callable[..., SwitchProcess], hosts: Hosts) -> None:
    start("--gso")
    with hosts.socket(1) as one, hosts.socket(2) as two:
        two.setsockopt(socket.IPPROTO_UDP, UDP_GRO, 1)
        send_burst(one, datagrams())
        pieces: list[bytes] = []
        while sum(map(len, pieces)) < COUNT * SIZE:
            pieces.append(two.recv(65536))
    assert b"".join(pieces) == b"".join(datagrams())
    assert len(pieces) < COUNT / 4


@packet_only
def test_a_device_that_segments_nothing_gets_single_frames(
    start: Callable[..., SwitchProcess], hosts: Hosts, namespace: Namespace
) -> None:
    namespace.run("ethtool", "-K", "sw2", "tx-udp-segmentation", "off")
    switch = start("--gso")
    assert switch.port(1)["merges"]
    assert not switch.port(2)["merges"]
    assert "port 2: frames leave one by one: sw2 segments none" in switch.log()
    with hosts.socket(1) as one, hosts.socket(2) as two:
        send_burst(one, datagrams())
        assert received(two, COUNT) == datagrams()


@packet_only
def test_no_packet_is_lost_while_an_offload_is_switched(
    start: Callable[..., SwitchProcess], hosts: Hosts, namespace: Namespace
) -> None:
    switch = start("--gso")
    with hosts.socket(1) as one, hosts.socket(2) as two:
        for state in ("off", "on", "off"):
            namespace.run("ethtool", "-K", "sw2", "tx-udp-segmentation", state)
            for _ in range(3):
                send_burst(one, datagrams())
                assert received(two, COUNT) == datagrams()
    assert switch.port(2)["link"]["tx_dropped"] == 0


@kernel_only
@pytest.mark.slow
def test_faults_and_captures_are_those_of_packets(
    start: Callable[..., SwitchProcess], hosts: Hosts, tmp_path: Path
) -> None:
    """The same packets are lost as of a sender without offloads."""
    switch = start("--gso", "--pcap", tmp_path / "pcaps")
    runs: list[list[bytes]] = []
    with hosts.socket(1) as one, hosts.socket(2) as two, switch.control() as control:
        for in_bursts in (True, False):
            control.request("set-faults", port=1, direction="in", loss=0.3, seed=5)
            before = switch.port(1)["link"]["rx_packets"]
            if in_bursts:
                send_burst(one, datagrams())
            else:
                for payload in datagrams():
                    one.sendto(payload, ("10.9.0.2", PORT))
            wait_for(lambda b=before: switch.port(1)["link"]["rx_packets"] == b + COUNT, "the packets")
            control.request("set-faults", port=1, direction="in")
            one.sendto(b"end", ("10.9.0.2", PORT))
            run: list[bytes] = []
            while not run or run[-1] != b"end":
                run.append(two.recv(65536))
            runs.append(run)
    assert runs[0] == runs[1]
    assert 10 < len(runs[0]) < COUNT
    assert switch.stop() == 0
    with PcapReader(str(tmp_path / "pcaps" / "sw2_out.pcap")) as packets:
        captured = [bytes(p) for p in packets]
    payloads = [bytes(Ether(frame)[UDP].payload)[: Ether(frame)[UDP].len - 8] for frame in captured]
    assert payloads == [*runs[0], *runs[1]]
    for frame in captured:
        packet = Ether(frame)
        sums = packet[IP].chksum, packet[UDP].chksum
        del packet[IP].chksum, packet[UDP].chksum
        again = Ether(bytes(packet))
        assert sums == (again[IP].chksum, again[UDP].chksum)


@packet_only
def test_a_listener_on_the_switchs_end_sees_packets(
    start: Callable[..., SwitchProcess], hosts: Hosts, namespace: Namespace
) -> None:
    switch = start("--gso")
    with namespace.entered():
        tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        tap.bind(("sw2", 0))
    raise_receive_buffer(tap)
    with tap, hosts.socket(1) as one, hosts.socket(2) as two:
        tap.settimeout(DEADLINE_S)
        while switch.port(2)["merges"]:  # a busy port looks around ten times a second
            send_burst(one, datagrams())
            received(two, COUNT)
        while select.select([tap], [], [], 0)[0]:
            tap.recv(70000)
        send_burst(one, datagrams())
        assert frames_seen(tap, COUNT, SIZE) == [42 + SIZE] * COUNT


@kernel_only
@pytest.mark.parametrize("arguments", [(), ("--gso",)])
def test_a_tcp_stream_with_offloads_passes(
    start: Callable[..., SwitchProcess], hosts: Hosts, arguments: tuple[str, ...]
) -> None:
    switch = start(*arguments)
    data = random.Random(4).randbytes(4 << 20)
    digests: list[str] = []
    with hosts.socket(1, socket.SOCK_STREAM) as one, hosts.socket(2, socket.SOCK_STREAM) as two:
        two.listen()
        one.connect(("10.9.0.2", PORT))
        connection, _ = two.accept()
        connection.settimeout(DEADLINE_S)

        def read() -> None:
            digest, left = hashlib.sha256(), len(data)
            while left and (piece := connection.recv(1 << 16)):
                digest.update(piece)
                left -= len(piece)
            digests.append(digest.hexdigest())

        reader = threading.Thread(target=read)
        reader.start()
        one.sendall(data)
        reader.join(DEADLINE_S)
        connection.close()
    assert digests == [hashlib.sha256(data).hexdigest()]
    link = switch.port(1)["link"]
    assert link["rx_oversize"] == 0
    assert link["rx_bytes"] / link["rx_packets"] <= 1514
