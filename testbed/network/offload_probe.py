# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Tests whether this kernel carries bursts of UDP packets whole between a switch and a host, and cuts them rightly.

Tried on a veth pair of its own, since kernels differ: packet sockets know such frames from Linux 6.2 on, and some
versions cut them wrongly (docs/decisions/0041).
"""

from __future__ import annotations

import contextlib
import socket
import struct
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from netfold.testbed.network.tools import tool

_TIMEOUT_S = 10.0
_ALL_PROTOCOLS = 3
_SOL_PACKET, _VNET_HDR, _QDISC_BYPASS = 263, 15, 20
_HEADER = struct.Struct("=BBHHHH")
"""struct virtio_net_hdr (linux/virtio_net.h)."""
_NEEDS_CHECKSUM, _UDP_SEGMENTS = 1, 5
_FRONT, _ETHERNET = 42, 14
_PORT = 40_000
_PAYLOADS = (b"a" * 100, b"b" * 100, b"c" * 60)


def refusal(name: str) -> str | None:
    """None if bursts pass; else the reason. `name`: prefix of the pair's interfaces."""
    near, far = f"{name}-probe0", f"{name}-probe1"
    try:
        with _veth_pair(near, far), _listener(far) as listener, _sender(near) as sender:
            sender.send(_burst())
            if (lengths := _received(listener, 1)) != [_FRONT + sum(map(len, _PAYLOADS))]:
                return f"a burst arrived as frames of {lengths} bytes"
            _run("ethtool", "-K", near, "tx-udp-segmentation", "off", "gso", "on")
            sender.setsockopt(_SOL_PACKET, _QDISC_BYPASS, 0)
            sender.send(_burst())
            if (lengths := _received(listener, len(_PAYLOADS))) != [_FRONT + len(p) for p in _PAYLOADS]:
                return f"a burst was cut into frames of {lengths} bytes"
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    return None


@contextmanager
def _veth_pair(near: str, far: str) -> Iterator[None]:
    _run("ip", "link", "add", near, "type", "veth", "peer", "name", far)
    try:
        for end in (near, far):
            _run("ip", "link", "set", "dev", end, "arp", "off", "up")
        yield
    finally:
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            _run("ip", "link", "del", "dev", near)


def _run(program: str, *arguments: str) -> None:
    subprocess.run([tool(program), *arguments], check=True, capture_output=True, timeout=_TIMEOUT_S)


def _packet_socket(interface: str, protocol: int) -> socket.socket:
    made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(protocol))
    made.setsockopt(_SOL_PACKET, _VNET_HDR, 1)
    made.bind((interface, protocol))
    made.settimeout(_TIMEOUT_S)
    return made


def _listener(interface: str) -> socket.socket:
    return _packet_socket(interface, _ALL_PROTOCOLS)


def _sender(interface: str) -> socket.socket:
    made = _packet_socket(interface, 0)
    made.setsockopt(_SOL_PACKET, _QDISC_BYPASS, 1)
    return made


def _burst() -> bytes:
    payload = b"".join(_PAYLOADS)
    addresses = socket.inet_aton("10.0.0.1") + socket.inet_aton("10.0.0.2")
    udp_bytes = 8 + len(payload)
    pseudo = _sum16(addresses + struct.pack("!HH", socket.IPPROTO_UDP, udp_bytes))
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + udp_bytes, 1, 0x4000, 64, socket.IPPROTO_UDP, 0) + addresses
    ip = ip[:10] + struct.pack("!H", 0xFFFF ^ _sum16(ip)) + ip[12:]
    udp = struct.pack("!HHHH", _PORT, _PORT, udp_bytes, pseudo)
    header = _HEADER.pack(_NEEDS_CHECKSUM, _UDP_SEGMENTS, _FRONT, len(_PAYLOADS[0]), _ETHERNET + 20, 6)
    return header + b"\2\0\0\0\0\2\2\0\0\0\0\1\x08\0" + ip + udp + payload


def _received(listener: socket.socket, count: int) -> Sequence[int]:
    """Lengths of the next `count` frames of the burst, 0 for one with a wrong checksum. Raises TimeoutError."""
    lengths: list[int] = []
    deadline = time.monotonic() + _TIMEOUT_S
    while len(lengths) < count:
        if time.monotonic() > deadline:
            raise TimeoutError("a burst was lost")
        data = listener.recv(1 << 16)
        header, frame = _HEADER.unpack_from(data), data[_HEADER.size :]
        if frame[36:38] == struct.pack("!H", _PORT):
            complete = header[0] & _NEEDS_CHECKSUM or _is_right(frame)
            lengths.append(len(frame) if complete else 0)
    return lengths


def _is_right(frame: bytes) -> bool:
    pseudo = frame[26:34] + struct.pack("!HH", socket.IPPROTO_UDP, len(frame) - 34)
    return _sum16(frame[14:34]) == 0xFFFF and _sum16(pseudo + frame[34:]) == 0xFFFF


def _sum16(data: bytes) -> int:
    """RFC 1071, not complemented."""
    words: tuple[int, ...] = struct.unpack(f"!{(len(data) + 1) // 2}H", data + bytes(len(data) % 2))
    total = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total
