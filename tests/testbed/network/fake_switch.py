# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A stand-in switch: a router with fixed routes that looks like a gRPC server, for tests of the builder alone.

    fake_switch.py --grpc 127.0.0.1:9559 --mac MAC -i PORT@IFACE ... --route IP=PORT[@MAC] ...
    fake_switch.py --fail: says something and ends;  --mute: never opens its port

A route without MAC leads to another fake switch, which takes any destination MAC.
"""

from __future__ import annotations

import argparse
import contextlib
import select
import socket
import struct
import sys

_IPV4, _ARP = 0x0800, 0x0806
_REQUEST, _REPLY = 1, 2
_ANY_MAC = bytes(6)
_HTTP2_SETTINGS = b"\0\0\0\4\0\0\0\0\0"
"""An empty SETTINGS frame (RFC 9113, 6.5): to a gRPC client, a server that is ready."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--grpc")
    parser.add_argument("--mac")
    parser.add_argument("-i", dest="ports", action="append", default=[])
    parser.add_argument("--route", action="append", default=[])
    parser.add_argument("--fail", action="store_true")
    parser.add_argument("--mute", action="store_true")
    arguments = parser.parse_args()
    if arguments.fail:
        sys.exit("first line\nno such device: the moon")
    if arguments.mute:
        while True:
            select.select([], [], [])
    ports = _bind(arguments.ports)
    host, _, number = arguments.grpc.rpartition(":")
    server = socket.create_server((host, int(number)))
    forward(server, ports, _routes(arguments.route), _mac(arguments.mac))


def forward(
    server: socket.socket, ports: dict[int, socket.socket], routes: dict[bytes, tuple[int, bytes]], mac: bytes
) -> None:
    connections = []
    while True:
        for port in select.select([server, *ports.values()], [], [])[0]:
            if port is server:
                connections.append(server.accept()[0])
                connections[-1].sendall(_HTTP2_SETTINGS)
                continue
            try:
                frame, (_, _, kind, *_) = port.recvfrom(65535)
            except OSError:  # the link is down
                continue
            if kind == socket.PACKET_OUTGOING or len(frame) < 34:
                continue
            ether_type = struct.unpack_from("!H", frame, 12)[0]
            if ether_type == _ARP and struct.unpack_from("!H", frame, 20)[0] == _REQUEST:
                _send(port, _arp_reply(frame, mac))
            elif ether_type == _IPV4 and (route := routes.get(frame[30:34])):
                _send(ports[route[0]], route[1] + mac + frame[12:])


def _send(port: socket.socket, frame: bytes) -> None:
    with contextlib.suppress(OSError):  # the link is down
        port.send(frame)


def _arp_reply(frame: bytes, mac: bytes) -> bytes:
    head, sender, target_ip = frame[14:20], frame[22:32], frame[38:42]
    return sender[:6] + mac + frame[12:14] + head + struct.pack("!H", _REPLY) + mac + target_ip + sender


def _bind(ports: list[str]) -> dict[int, socket.socket]:
    bound = {}
    for text in ports:
        number, interface = text.split("@")
        bound[int(number)] = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        bound[int(number)].bind((interface, 0))
    return bound


def _routes(texts: list[str]) -> dict[bytes, tuple[int, bytes]]:
    routes = {}
    for text in texts:
        ip, _, way = text.partition("=")
        port, _, mac = way.partition("@")
        routes[socket.inet_aton(ip)] = (int(port), _mac(mac) if mac else _ANY_MAC)
    return routes


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


if __name__ == "__main__":
    main()
