# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Ports on Unix datagram sockets: a switch that needs no rights, no interfaces and no namespaces."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from scapy.utils import PcapReader
from testnet import DEADLINE_S, SwitchProcess, ethernet, wait_for

DATA = 0x88B5
FRAME_MAX = 16384


class Link:
    """A host's end and the switch's, which stays open here while switches come and go."""

    def __init__(self) -> None:
        self.host, self.switch = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.host.settimeout(DEADLINE_S)

    def close(self) -> None:
        self.host.close()
        self.switch.close()


@pytest.fixture
def links() -> Iterator[tuple[Link, Link]]:
    pair = Link(), Link()
    yield pair
    for link in pair:
        link.close()


@pytest.fixture
def start(start_switch, links) -> Callable[..., SwitchProcess]:
    descriptors = [link.switch.fileno() for link in links]
    ports = [word for n, fd in enumerate(descriptors, 1) for word in ("--socket", f"{n}={fd}")]
    return partial(start_switch, None, *ports, program="wire", pass_fds=descriptors)


def numbered(count: int, size: int = 60) -> list[bytes]:
    return [ethernet(DATA, struct.pack("!I", n) + bytes(size - 18)) for n in range(count)]


def test_frames_of_every_length_pass_unchanged_both_ways(start, links) -> None:
    start()
    one, two = links
    for length in (14, 60, 1099, 1514, 9014, FRAME_MAX):
        frame = ethernet(DATA, bytes(i & 255 for i in range(length - 14)))
        one.host.send(frame)
        assert two.host.recv(65536) == frame
        two.host.send(frame)
        assert one.host.recv(65536) == frame


def test_a_burst_keeps_its_order_and_is_counted(start, links) -> None:
    switch = start()
    one, two = links
    one.host.settimeout(DEADLINE_S)
    burst = numbered(80)
    for frame in burst:
        one.host.send(frame)  # waits where the socket is full
    assert [two.host.recv(65536) for _ in burst] == burst
    port = switch.port(1)
    assert port["interface"] == "socket1"
    assert port["up"]
    assert port["oper_up"]
    assert (port["link"]["rx_packets"], port["link"]["rx_bytes"]) == (80, 80 * 60)
    assert switch.port(2)["link"]["tx_packets"] == 80


def test_a_frame_that_is_too_long_is_lost_and_counted(start, links) -> None:
    switch = start()
    one, two = links
    one.host.send(bytes(FRAME_MAX + 1))
    one.host.send(numbered(1)[0])
    assert two.host.recv(65536) == numbered(1)[0]
    assert switch.port(1)["link"]["rx_oversize"] == 1


def test_what_the_receiver_does_not_take_is_lost_and_the_others_pass(start, links) -> None:
    """A host that does not read must not hold up the switch."""
    switch = start()
    one, two = links
    two.switch.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    for frame in numbered(200, 1000):
        one.host.send(frame)
    wait_for(lambda: switch.port(1)["link"]["rx_packets"] == 200, "all frames are received")
    sent = switch.port(2)["link"]
    assert sent["tx_dropped"] > 0
    assert sent["tx_packets"] + sent["tx_dropped"] == 200
    two.host.send(numbered(1)[0])
    assert one.host.recv(65536) == numbered(1)[0]


def test_a_port_keeps_its_rate(start, links) -> None:
    """5 ms each at 1 Mbit/s, but for those that an idle line sends at once."""
    start("--port-rate", "2=1mbit", "--port-queue", "2=64")
    one, two = links
    began = time.monotonic()
    for frame in numbered(40, 625):
        one.host.send(frame)
    for _ in range(40):
        two.host.recv(65536)
    assert time.monotonic() - began > 0.15


def test_a_restarted_switch_takes_the_same_links_and_no_frame_from_before(start, links) -> None:
    one, two = links
    start().kill()
    one.host.send(numbered(1)[0])
    start()
    fresh = numbered(2)[1]
    one.host.send(fresh)
    assert two.host.recv(65536) == fresh


def test_a_frame_is_sent_twice_unchanged_though_others_leave_in_between(start, links) -> None:
    """A reordered frame that leaves between a frame and its duplicate takes no place of theirs."""
    switch = start()
    one, two = links
    burst = numbered(200)
    faults = {"duplicate": 1.0, "reorder": 0.3, "jitter_ns": 1000, "reorder_hold_ns": 10**9, "seed": 5}
    with switch.control() as control:
        control.request("set-faults", port=2, direction="out", **faults)
    for frame in burst:
        one.host.send(frame)
    arrived = Counter(two.host.recv(65536) for _ in range(2 * len(burst)))
    assert arrived == Counter(dict.fromkeys(burst, 2))


def test_captures_have_both_directions(start, links, tmp_path: Path) -> None:
    switch = start("--pcap", tmp_path / "pcaps")
    one, two = links
    one.host.send(numbered(1)[0])
    assert two.host.recv(65536)
    assert switch.stop() == 0
    for name in ("socket1_in", "socket2_out"):
        with PcapReader(str(tmp_path / "pcaps" / f"{name}.pcap")) as packets:
            assert [bytes(p) for p in packets] == numbered(1)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--socket", "1=9999"], "expected a Unix datagram socket"),
        (["--socket", "1=2"], "expected a Unix datagram socket"),
        (["--socket", "1=2", "--socket", "1=2"], "the port is given twice"),
        (["--socket", "1=2", "-i", "1@veth0"], "the port is given twice"),
        (["--socket", "1=x"], "expected a number"),
    ],
)
def test_what_is_no_port_is_one_line(arguments: list[str], reason: str) -> None:
    command = [sys.executable, "-c", "from softswitch.cli import main; main()", "--no-p4", *arguments]
    command += ["--grpc-server-addr", "127.0.0.1:0"]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
        env={**os.environ, "COLUMNS": "200"},
    )
    assert done.returncode != 0
    assert reason in done.stderr
