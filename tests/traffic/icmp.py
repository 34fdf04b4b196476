# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Forged ICMP errors. As a program: prints total length and fragment field of the two packets that a socket sends
after a forged "fragmentation needed"."""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
import time

UNREACHABLE, TIME_EXCEEDED, PARAMETER_PROBLEM = 3, 11, 12
NEXT_MTU = 576
ERRORS = [
    *((UNREACHABLE, code) for code in range(16)),
    *((TIME_EXCEEDED, code) for code in range(2)),
    *((PARAMETER_PROBLEM, code) for code in range(3)),
]


def checksum(data: bytes) -> int:
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def forge(kind: int, code: int, source: str, destination: str, port: int) -> bytes:
    """The ICMP error for a datagram between these addresses, from and to `port`."""
    addresses = socket.inet_aton(source) + socket.inet_aton(destination)
    quoted = struct.pack("!BBHHHBBH", 0x45, 0, 1068, 1, 0x4000, 64, socket.IPPROTO_UDP, 0) + addresses
    quoted += struct.pack("!HHHH", port, port, 1048, 0)
    rest = NEXT_MTU if (kind, code) == (UNREACHABLE, 4) else 0
    header = struct.pack("!BBHI", kind, code, 0, rest)
    return struct.pack("!BBHI", kind, code, checksum(header + quoted), rest) + quoted


def main() -> None:
    from netfold.traffic.packets.transport import Address, UdpEndpoint  # noqa: PLC0415

    own, peer, port = "10.9.0.1", "10.9.0.2", 61670
    for command in (
        "link set lo up",
        "link add d0 type veth peer name d1",
        f"addr add {own}/24 dev d0",
        "link set d1 up",
        "link set d0 up arp off",
    ):
        subprocess.run(["ip", *command.split()], check=True)
    link = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
    link.bind(("d1", 0x0800))
    link.settimeout(10)
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as raw:
        for _ in range(2):  # the second socket is bound after the forgery
            endpoint = UdpEndpoint(Address(own, port), Address(peer, port))
            raw.sendto(forge(UNREACHABLE, 4, own, peer, port), (own, 0))
            time.sleep(0.2)
            with socket.socket(fileno=endpoint.detach()) as sock:
                try:
                    sock.send(bytes(1040))
                except OSError:  # the forged error, reported once
                    sock.send(bytes(1040))
            packet = link.recv(2000)
            sys.stdout.write(packet[2:4].hex() + packet[6:8].hex() + "\n")


if __name__ == "__main__":
    main()
