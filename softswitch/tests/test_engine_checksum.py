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
def complete(tmp_path_factory: pytest.TempPathFactory):
    path = tmp_path_factory.mktemp("checksum") / "checksum.so"
    subprocess.run(["gcc", "-O1", "-Wall", "-Werror", "-fPIC", "-shared", "-o", path, SOURCE], check=True)
    library = ctypes.CDLL(str(path))

    def run(frame: bytes, start: int, offset: int) -> bytes:
        buffer = ctypes.create_string_buffer(frame, len(frame))
        library.ss_complete_checksum(
            buffer, ctypes.c_uint32(len(frame)), ctypes.c_uint32(start), ctypes.c_uint32(offset)
        )
        return buffer.raw

    return run


@pytest.mark.parametrize("network", [IP(src="10.0.0.1", dst="10.0.0.2"), IPv6(src="fd00::1", dst="fd00::2")])
@pytest.mark.parametrize("transport", [UDP(sport=7, dport=9), TCP(sport=7, dport=9)], ids=["udp", "tcp"])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 63, 64, 1400])
def test_a_partial_checksum_is_completed(complete, network: Packet, transport: Packet, size: int) -> None:
    whole = bytes(Ether() / network / transport / Raw((bytes(range(256)) * 6)[:size]))
    offset, header = (6, 8) if isinstance(transport, UDP) else (16, 20)
    start = len(whole) - size - header
    addresses = whole[26:34] if isinstance(network, IP) else whole[22:54]
    protocol = 17 if isinstance(transport, UDP) else 6
    partial = bytearray(whole)
    pseudo = addresses + struct.pack("!HH", protocol, size + header)
    partial[start + offset : start + offset + 2] = struct.pack("!H", folded(pseudo))
    assert complete(bytes(partial), start, offset) == whole


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
