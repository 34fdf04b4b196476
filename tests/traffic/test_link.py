# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Workers and a parameter server without network interfaces: each has one end of a link and makes its frames itself.
scapy makes and reads frames independently; a hub in place of a switch joins the links."""

from __future__ import annotations

import json
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pytest
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.l2 import ARP, Ether

from netfold.protocol.environment import Variable
from netfold.protocol.wire import Kind, Packet
from netfold.traffic.membership.assignment import Assignment, TreeAssignment
from netfold.traffic.packets.host_link import HostLink
from netfold.traffic.packets.transport import TransportError
from netfold.traffic.server.server import ParameterServer
from netfold.traffic.worker.worker import Worker
from tests.traffic.rig import Members
from tests.traffic.serving import serving

PORT, LANES, SLOTS = 61500, 8, 8
GATEWAY = "02:00:0a:ff:00:01"
SERVER = "10.1.0.9"
FAST = 1e9
DEADLINE_S = 20.0


def mac(address: str) -> str:
    return "02:00:" + ":".join(f"{int(part):02x}" for part in address.split("."))


class End:
    """The switch's end of the link of the host with this address."""

    def __init__(self, address: str, rate_bps: float = FAST) -> None:
        self.socket, self._host = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.settimeout(DEADLINE_S)
        self.address = address
        self.link = HostLink(self._host.fileno(), address, mac(address), GATEWAY, rate_bps)

    def close(self) -> None:
        self.socket.close()
        self._host.close()


@pytest.fixture
def ends() -> Iterator[Callable[..., End]]:
    with ExitStack() as opened:

        def end(*arguments: object) -> End:
            made = End(*arguments)
            opened.callback(made.close)
            return made

        yield end


def assignment(rank: int, workers: int, children: tuple[int, ...] = ()) -> Assignment:
    tree = TreeAssignment(
        tree=7, share=1.0, slots=SLOTS, window=SLOTS // 2, child=rank, destination=SERVER, children=children
    )
    return Assignment("t", 1, PORT, LANES, rank, workers, (tree,))


def server_at(end: End, workers: int) -> ParameterServer:
    return ParameterServer(assignment(0, workers, tuple(range(workers))), link=end.link)


class Hub:
    """In place of the switches: contributions go to the server, a result to all workers, as a switch rewrites it."""

    def __init__(self, server: End, workers: list[End]) -> None:
        self._server, self._workers = server, workers
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._forward)
        self.contributions: list[bytes] = []

    def __enter__(self) -> Hub:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _forward(self) -> None:
        sockets = [end.socket for end in (self._server, *self._workers)]
        while not self._stopped.is_set():
            for ready in select.select(sockets, [], [], 0.05)[0]:
                frame = ready.recv(65536)
                if ready is self._server.socket:
                    for worker in self._workers:
                        worker.socket.send(readdressed(frame, worker.address))
                else:
                    self.contributions.append(frame)
                    self._server.socket.send(readdressed(frame, SERVER))


def readdressed(frame: bytes, address: str) -> bytes:
    packet = Ether(frame)
    packet.src, packet.dst, packet[IP].dst = GATEWAY, mac(address), address
    del packet[IP].chksum
    return bytes(packet)


def test_workers_and_their_server_add_up_over_links(ends: Callable[..., End]) -> None:
    server, workers = ends(SERVER), [ends(f"10.1.0.{n}") for n in (1, 2, 3)]
    members = [Members(assignment(rank, 3)) for rank in range(3)]
    arrays = [np.arange(1000, dtype=np.int32) * (rank + 1) for rank in range(3)]
    with ExitStack() as stack:
        stack.enter_context(serving(server_at(server, 3)))
        hub = stack.enter_context(Hub(server, workers))
        team = [
            stack.enter_context(Worker(m, link=end.link)) for m, end in zip(members, workers, strict=True)
        ]
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(lambda w, a: w.all_reduce(a, DEADLINE_S), team, arrays))
    for array in arrays:
        assert (array == np.arange(1000) * 6).all()
    assert len(hub.contributions) >= 3 * 125
    frame = Ether(hub.contributions[0])
    ip, udp = frame[IP], frame[UDP]
    assert (frame.src, frame.dst) == (mac(ip.src), GATEWAY)
    assert (ip.dst, ip.tos, str(ip.flags), ip.ttl) == (SERVER, 2, "DF", 64)
    assert (udp.sport, udp.dport, udp.chksum) == (PORT, PORT, 0)
    again = IP(bytes(ip))
    del again.chksum
    assert IP(bytes(again)).chksum == ip.chksum
    assert len(bytes(frame)) == 14 + ip.len


def gradient(child: int, lane: int, slot: int = 1) -> bytes:
    return Packet(Kind.GRADIENT, 7, 1, 0, slot, child, (lane,) * LANES).pack()


def frame_of(payload: bytes, source: str = "10.1.0.1", **changes: object) -> Ether:
    """Returns a frame from the switch to the server; `changes`: of the IP header."""
    ip = IP(src=source, dst=SERVER, tos=2, flags="DF", **changes)
    return Ether(src=GATEWAY, dst=mac(SERVER)) / ip / UDP(sport=PORT, dport=PORT, chksum=0) / payload


def spoiled(frame: Ether, at: int) -> bytes:
    raw = bytearray(bytes(frame))
    raw[at] ^= 1
    return bytes(raw)


FIRST = gradient(0, 5)
WITH_CHECKSUM = Ether(bytes(frame_of(FIRST)))
del WITH_CHECKSUM[UDP].chksum
NOT_FOR_THE_PORT = {
    "short": bytes(20),
    "empty": b"",
    "of another station": bytes(Ether(dst=mac("10.1.0.8")) / frame_of(FIRST).payload),
    "arp": bytes(Ether(dst=mac(SERVER)) / ARP()),
    "icmp": bytes(Ether(dst=mac(SERVER)) / IP(dst=SERVER) / ICMP()),
    "of another address": bytes(frame_of(FIRST)).replace(
        socket.inet_aton(SERVER), socket.inet_aton("10.1.0.8")
    ),
    "of another port": bytes(
        Ether(dst=mac(SERVER)) / IP(dst=SERVER, src="10.1.0.1") / UDP(sport=PORT, dport=PORT + 1) / FIRST
    ),
    "a fragment": bytes(Ether(dst=mac(SERVER)) / IP(dst=SERVER, src="10.1.0.1", flags="MF") / UDP() / FIRST),
    "with a wrong header checksum": spoiled(frame_of(FIRST), 24),
    "with a wrong UDP checksum": spoiled(WITH_CHECKSUM, 60),
    "cut off": bytes(frame_of(FIRST))[:-4],
    "too long": bytes(frame_of(FIRST + bytes(2000))),
}


@pytest.mark.parametrize("kind", NOT_FOR_THE_PORT)
def test_what_a_host_would_drop_is_dropped(ends: Callable[..., End], kind: str) -> None:
    """The contribution of child 0 is in `FIRST` in a frame that no host takes; child 1's alone completes no sum."""
    end = ends(SERVER)
    with serving(server_at(end, 2)):
        end.socket.send(NOT_FOR_THE_PORT[kind])
        end.socket.send(bytes(frame_of(gradient(1, 7), "10.1.0.2")))
        end.socket.send(bytes(frame_of(gradient(0, 1), "10.1.0.1")))
        result = Ether(end.socket.recv(65536))
    assert Packet.parse(bytes(result[UDP].payload)).lane == (8,) * LANES


def test_a_right_checksum_is_taken_and_a_mark_is_seen(ends: Callable[..., End]) -> None:
    end = ends(SERVER)
    with serving(server_at(end, 2)):
        end.socket.send(bytes(Ether(bytes(WITH_CHECKSUM))))
        marked = frame_of(gradient(1, 7), "10.1.0.2")
        marked[IP].tos = 3
        end.socket.send(bytes(marked))
        result = Ether(end.socket.recv(65536))
    packet = Packet.parse(bytes(result[UDP].payload))
    assert packet.lane == (12,) * LANES
    assert packet.flags, "the congestion mark of a contribution is in the sum"
    assert (result[IP].dst, result.dst) == ("10.1.0.2", GATEWAY)


def test_frames_leave_at_the_rate_of_the_link(ends: Callable[..., End]) -> None:
    """The server answers each retransmission: 300 answers of 100 bytes or more at 1 Mbit/s."""
    end = ends(SERVER, 1e6)
    with serving(server_at(end, 1)):
        end.socket.send(bytes(frame_of(FIRST)))
        size = len(end.socket.recv(65536))
        began = time.monotonic()
        for _ in range(300):
            end.socket.send(bytes(frame_of(FIRST)))
        for _ in range(300):
            end.socket.recv(65536)
        seconds = time.monotonic() - began
    least = (300 * size - 4 * size - 250) * 8 / 1e6
    assert seconds >= least


def test_a_worker_outlives_a_link_that_nothing_reads(ends: Callable[..., End]) -> None:
    """The switch is down, its end of the link stays: packets fill the socket, and the call times out."""
    end = ends("10.1.0.1")
    end.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    with Worker(Members(assignment(0, 2)), link=end.link) as worker, pytest.raises(TimeoutError):
        worker.all_reduce(np.zeros(100_000, np.int32), 1.0)


def test_a_new_epoch_keeps_the_link(ends: Callable[..., End]) -> None:
    server, one = ends(SERVER), ends("10.1.0.1")
    members = Members(assignment(0, 1))
    with serving(server_at(server, 1)) as root, Hub(server, [one]), Worker(members, link=one.link) as worker:
        for epoch in (1, 2, 3):
            root.assign(replace(assignment(0, 1, (0,)), epoch=epoch))
            members.change(replace(assignment(0, 1), epoch=epoch))
            array = np.ones(500, np.float32)
            worker.all_reduce(array, DEADLINE_S)
            assert (array == 1).all()


def test_the_link_is_described_by_the_environment(ends: Callable[..., End]) -> None:
    link = ends("10.1.0.1").link
    assert HostLink.from_environment(link.environment()) == link
    assert HostLink.from_environment({}) is None


@pytest.mark.parametrize(
    "change", [{"descriptor": 9999}, {"address": "h1"}, {"mac": "02:00"}, {"more": 1}, {"mac": "no"}]
)
def test_what_describes_no_link_is_an_error(ends: Callable[..., End], change: dict[str, object]) -> None:
    text = json.loads(ends("10.1.0.1").link.environment()[Variable.LINK]) | change
    with pytest.raises(TransportError, match=Variable.LINK):
        HostLink.from_environment({Variable.LINK: json.dumps(text)})
