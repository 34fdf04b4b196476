# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Checksums that a sender left to the hardware are completed before the program sees the frame."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet, Raw

SOURCE = Path(__file__).parents[2] / "softswitch" / "engine" / "checksum.c"


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory):
    path = tmp_path_factory.mktemp("checksum") / "checksum.so"
    subprocess.run(["gcc", "-O1", "-Wall", "-Werror", "-fPIC", "-shared", "-o", path, SOURCE], check=True)
    library = ctypes.CDLL(str(path))

    def run(frame: bytes) -> bytes:
        buffer = ctypes.create_string_buffer(frame, len(frame))
        library.complete_checksum(buffer, ctypes.c_uint32(len(frame)))
        return buffer.raw

    return run


NETWORKS = [IP(src="10.0.0.1", dst="10.0.0.2"), IPv6(src="fd00::1", dst="fd00::2")]


@pytest.mark.parametrize("network", NETWORKS, ids=["ipv4", "ipv6"])
@pytest.mark.parametrize("transport", [UDP(sport=7, dport=9), TCP(sport=7, dport=9)], ids=["udp", "tcp"])
@pytest.mark.parametrize("tags", [0, 1, 2])
@pytest.mark.parametrize("size", [0, 1, 63, 64])
def test_a_partial_checksum_is_completed(
    complete, network: Packet, transport: Packet, tags: int, size: int
) -> None:
    frame = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
    for _ in range(tags):
        frame = frame / Dot1Q(vlan=5)
    whole = bytes(frame / network / transport / Raw(bytes(range(size))))
    partial = bytearray(whole)
    at = len(whole) - size - (8 - 6 if isinstance(transport, UDP) else 20 - 16)
    partial[at : at + 2] = b"\x12\x34"
    assert complete(bytes(partial)) == whole


def test_a_padded_frame_is_summed_without_its_padding(complete) -> None:
    whole = bytes(Ether() / IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=7, dport=9)) + bytes(18)
    partial = whole[:40] + b"\xff\xff" + whole[42:]
    assert complete(partial) == whole


def test_a_fragment_is_left_alone(complete) -> None:
    frame = bytes(Ether() / IP(flags="MF") / UDP() / Raw(b"x" * 32))
    assert complete(frame) == frame


@settings(max_examples=300, deadline=None, print_blob=True)
@given(data=st.data())
def test_no_frame_is_read_or_changed_beyond_its_end(complete, data) -> None:
    network = bytes(data.draw(st.sampled_from(NETWORKS)) / UDP(sport=7, dport=9) / Raw(b"abc"))
    kind = b"\x08\x00" if network[0] >> 4 == 4 else b"\x86\xdd"
    frame = bytearray(bytes(12) + kind + network)
    for _ in range(data.draw(st.integers(0, 6))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(frame[: data.draw(st.integers(0, len(frame)))])
    result = complete(cut)
    assert len(result) == len(cut)
    assert sum(a != b for a, b in zip(cut, result, strict=True)) <= 2
