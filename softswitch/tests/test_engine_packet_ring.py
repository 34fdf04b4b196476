# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The receive ring of a packet socket: frames that are longer than those of the ring keep their order and content."""

from __future__ import annotations

import ctypes
import json
import random
import socket
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from testnet import DEADLINE_S, ETH_P_ALL, Host, Namespace, ethernet, ip, needs_root, wait_for

pytestmark = needs_root

ENGINE = Path(__file__).parent.parent / "softswitch" / "engine"
SINK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint8), ctypes.c_uint32)
KIND = 0x1234
LONG, RING_BYTES = 1500, 8 << 20
NEEDS_CHECKSUM, UDP_L4, HEADERS = 1, 5, 42


class PacketRing(ctypes.Structure):
    """struct ss_packet_ring."""

    _fields_ = (
        ("memory", ctypes.c_void_p),
        ("frame_size", ctypes.c_uint32),
        ("frame_count", ctypes.c_uint32),
        ("next", ctypes.c_uint32),
        ("copy", ctypes.c_void_p),
    )


class Losses(ctypes.Structure):
    """struct ss_ring_losses."""

    _fields_ = (("oversize", ctypes.c_uint32), ("dropped", ctypes.c_uint32))


class Ring:
    """The ring of a socket at an interface of this namespace."""

    def __init__(self, folder: Path, interface: str) -> None:
        path = folder / "ring.so"
        flags = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared"]
        sources = [ENGINE / f"{name}.c" for name in ("packet_ring", "segments", "checksum")]
        subprocess.run(["gcc", *flags, "-o", path, *sources], check=True, timeout=60)
        self._code = ctypes.CDLL(str(path))
        self._ring = PacketRing()
        self.losses = Losses()
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        ring = ctypes.byref(self._ring)
        assert self._code.ss_ring_open(ring, self.socket.fileno(), LONG, RING_BYTES) == 0
        self.socket.bind((interface, ETH_P_ALL))

    def receive(self) -> list[bytes]:
        found: list[bytes] = []
        sink = SINK(lambda _, data, length: found.append(ctypes.string_at(data, length)))
        ring, losses = ctypes.byref(self._ring), ctypes.byref(self.losses)
        self._code.ss_ring_receive(ring, self.socket.fileno(), 64, sink, None, losses)
        return found

    def close(self) -> None:
        self._code.ss_ring_close(ctypes.byref(self._ring))
        self.socket.close()


@pytest.fixture
def space() -> Iterator[Namespace]:
    made = Namespace(1)
    for end in ("sw1", "h1"):
        ip("-n", made.name, "link", "set", end, "mtu", 9000)
    yield made
    made.close()


@pytest.fixture
def ring(space: Namespace, tmp_path: Path) -> Iterator[Ring]:
    with space.entered():
        made = Ring(tmp_path, "sw1")
    yield made
    made.close()


@pytest.fixture
def host(space: Namespace) -> Host:
    return space.host(1)


def has_carrier(space: Namespace, interface: str) -> bool:
    command = ["ip", "-n", space.name, "-json", "link", "show", interface]
    [link] = json.loads(subprocess.run(command, check=True, capture_output=True, timeout=DEADLINE_S).stdout)
    return link["operstate"] == "UP"


def run(count: int, size: int) -> bytes:
    """A super-frame of `count` datagrams, after its virtio_net_hdr."""
    frame = bytes(
        Ether(dst="ff:ff:ff:ff:ff:ff") / IP(dst="10.0.0.2") / UDP(dport=9) / Raw(bytes(count * size))
    )
    offload = struct.pack("=BBHHHH", NEEDS_CHECKSUM, UDP_L4, HEADERS, size, HEADERS - 8, 6)
    return offload + frame


def frames(*sizes: int) -> list[bytes]:
    chance = random.Random(3)
    return [ethernet(KIND, chance.randbytes(size)) for size in sizes]


def test_long_and_short_frames_keep_their_order(ring: Ring, host: Host) -> None:
    sent = frames(60, 8000, 100, 7000, 6000, 60)
    for frame in sent:
        host.send(frame)
    assert ring.receive() == sent


def test_a_pending_error_of_the_socket_takes_no_frames_place(
    space: Namespace, ring: Ring, host: Host
) -> None:
    """A link that goes down while frames wait is such an error: the next call fails, and leaves the queue."""
    sent = frames(8000, 7000, 60, 6000)
    for frame in sent:
        host.send(frame)
    ip("-n", space.name, "link", "set", "sw1", "down")
    assert ring.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0, "else this tests nothing"
    ip("-n", space.name, "link", "set", "sw1", "up")
    ip("-n", space.name, "link", "set", "sw1", "down")
    ip("-n", space.name, "link", "set", "sw1", "up")
    wait_for(lambda: has_carrier(space, "h1"), "the link")  # until then the host's kernel drops frames
    more = frames(5000, 60, 4000)
    for frame in more:
        host.send(frame)
    assert ring.receive() == [*sent, *more]
    assert ring.losses.dropped == 0


def test_a_run_that_the_socket_has_no_memory_for_counts_by_its_packets(
    space: Namespace, ring: Ring, host: Host
) -> None:
    ring.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 0)
    with space.entered(), socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as sender:
        sender.setsockopt(263, 15, 1)  # SOL_PACKET, PACKET_VNET_HDR
        sender.bind(("h1", 0))
        for _ in range(2):
            sender.send(run(count=9, size=1000))
    received = ring.receive()
    assert ring.losses.dropped == 18 - len(received)
    assert len(received) <= 9
    assert ring.losses.oversize == 0
