# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Checksums that a sender left to the hardware are completed before the program sees the frame."""

from __future__ import annotations

import ctypes
import struct
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

SOURCE = Path(__file__).parents[1] / "softswitch" / "engine" / "checksum.c"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    path = tmp_path_factory.mktemp("checksum") / "checksum.so"
    subprocess.run(["gcc", "-O1", "-Wall", "-Werror", "-fPIC", "-shared", "-o", path, SOURCE], check=True)
    return ctypes.CDLL(str(path))


@pytest.fixture(scope="module")
def complete(library: ctypes.CDLL):
    """Completes the checksum that the kernel names."""

    def run(frame: bytes, start: int, offset: int) -> bytes:
        buffer = ctypes.create_string_buffer(frame, len(frame))
        library.ss_complete_checksum(
            buffer, ctypes.c_uint32(len(frame)), ctypes.c_uint32(start), ctypes.c_uint32(offset)
        )
        return buffer.raw

    return run


@pytest.fixture(scope="module")
def find(library: ctypes.CDLL):
    """Completes a checksum that the kernel does not name."""

    def run(frame: bytes) -> bytes:
        buffer = ctypes.create_string_buffer(frame, len(frame))
        library.ss_complete_partial(buffer, ctypes.c_uint32(len(frame)))
        return buffer.raw

    return run


@pytest.mark.parametrize("network", [IP(src="10.0.0.1", dst="10.0.0.2"), IPv6(src="fd00::1", dst="fd00::2")])
@pytest.mark.parametrize("transport", [UDP(sport=7, dport=9), TCP(sport=7, dport=9)], ids=["udp", "tcp"])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 63, 64, 1400])
def test_a_partial_checksum_is_completed(
    complete, find, network: Packet, transport: Packet, size: int
) -> None:
    whole = bytes(Ether() / network / transport / Raw((bytes(range(256)) * 6)[:size]))
    offset, header = (6, 8) if isinstance(transport, UDP) else (16, 20)
    start = len(whole) - size - header
    addresses = whole[26:34] if isinstance(network, IP) else whole[22:54]
    protocol = 17 if isinstance(transport, UDP) else 6
    partial = bytearray(whole)
    pseudo = addresses + struct.pack("!HH", protocol, size + header)
    partial[start + offset : start + offset + 2] = struct.pack("!H", folded(pseudo))
    assert complete(bytes(partial), start, offset) == whole
    tags = b"\x88\xa8\0\7\x81\0\0\5"
    for tag in (b"", tags[4:], tags):
        assert find(bytes(partial[:12]) + tag + bytes(partial[12:])) == whole[:12] + tag + whole[12:]
        assert find(whole[:12] + tag + whole[12:]) == whole[:12] + tag + whole[12:]
    damaged = whole[: start + offset] + b"\x12\x34" + whole[start + offset + 2 :]
    assert find(damaged) == damaged
    for length in range(start + header):
        assert find(whole[:length]) == whole[:length]


def test_a_sum_of_zero_is_sent_as_all_ones(complete) -> None:
    assert complete(b"\xff\xff\0\0", 0, 2) == b"\xff\xff\xff\xff"


@settings(max_examples=300, deadline=None, print_blob=True)
@given(frame=st.binary(max_size=80), start=st.integers(0, 100), offset=st.integers(0, 70000))
def test_no_frame_is_read_or_changed_beyond_its_end(complete, frame: bytes, start: int, offset: int) -> None:
    result = complete(frame, start, offset)
    assert len(result) == len(frame)
    changed = [i for i, (a, b) in enumerate(zip(frame, result, strict=True)) if a != b]
    assert set(changed) <= {start + offset, start + offset + 1}


def folded(data: bytes) -> int:
    """The sum of the 16-bit words (RFC 1071), not complemented."""
    total = sum(struct.unpack(f"!{(len(data) + 1) // 2}H", data + bytes(len(data) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total
