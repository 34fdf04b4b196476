# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Effects of a forged "fragmentation needed" on the path MTU of sockets and routes. A program for a network namespace
of its own, because route exceptions last for ten minutes: prints a `PathMtus` as JSON."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import subprocess
import sys
from dataclasses import asdict, dataclass

from netfold.traffic.packets.transport import Address, TransportError, UdpEndpoint, check_mtu
from tests.traffic.off_path import FRAGMENTATION_NEEDED, UNREACHABLE, Flow, forge

OWN, PEER, LOCKED_PEER, PORT = "10.9.0.1", "10.9.0.2", "10.9.0.3", 61670
PAYLOAD_BYTES = 1040
_IP_MTU = 14  # not in Python's socket module


@dataclass(frozen=True)
class PathMtus:
    """`packets`: total length and fragment field of what an old and a new socket send after the forgery. `route`,
    `locked`: path MTU of a plain socket, on a plain and on a locked route. `too_long`: how a packet above the
    interface's MTU is refused."""

    packets: list[tuple[int, int]]
    route: int
    locked: int
    too_long: str


def _ip(command: str) -> None:
    subprocess.run(["ip", *command.split()], check=True)


def _send_forgery(peer: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as raw:
        raw.sendto(forge(UNREACHABLE, FRAGMENTATION_NEEDED, Flow(OWN, peer, PORT, PORT)), (OWN, 0))


def _send(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):  # the forged error, which is reported once
        sock.send(bytes(PAYLOAD_BYTES))
        return
    sock.send(bytes(PAYLOAD_BYTES))


def _packets_after_forgery(link: socket.socket) -> list[tuple[int, int]]:
    found = []
    for _ in range(2):  # the second socket is bound after the forgery
        endpoint = UdpEndpoint(Address(OWN, PORT), Address(PEER, PORT))
        _send_forgery(PEER)
        with socket.socket(fileno=endpoint.detach()) as sock:
            _send(sock)
        length, fragment = struct.unpack("!HxxH", link.recv(2000)[2:8])
        found.append((length, fragment))
    return found


def _path_mtu_after_forgery(peer: str) -> int:
    """Returns the path MTU of a socket that believes in path MTUs."""
    for _ in range(2):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.bind((OWN, PORT))
            sock.connect((peer, PORT))
            _send_forgery(peer)
            mtu = sock.getsockopt(socket.IPPROTO_IP, _IP_MTU)
    return mtu


def _refusal_of_the_interface() -> str:
    check_mtu(Address(PEER, PORT), PAYLOAD_BYTES)  # its route's path MTU is too small, its interface's is not
    _ip("link set d0 mtu 1000")
    try:
        check_mtu(Address(PEER, PORT), PAYLOAD_BYTES)
    except TransportError as error:
        return str(error)
    return ""


def main() -> None:
    for command in (
        "link set lo up",
        "link add d0 type veth peer name d1",
        f"addr add {OWN}/24 dev d0",
        "link set d1 up",
        "link set d0 up arp off",
        f"route add {LOCKED_PEER} dev d0 mtu lock 1500",
    ):
        _ip(command)
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800)) as link:
        link.bind(("d1", 0x0800))
        link.settimeout(10)
        packets = _packets_after_forgery(link)
    mtus = _path_mtu_after_forgery(PEER), _path_mtu_after_forgery(LOCKED_PEER)
    json.dump(asdict(PathMtus(packets, *mtus, _refusal_of_the_interface())), sys.stdout)


if __name__ == "__main__":
    main()
