# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Runs of frames become one frame, and are what they were when it is cut again."""

from __future__ import annotations

import ctypes
import random
import struct
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet, Raw

HERE = Path(__file__).parent
ENGINE = HERE.parent / "softswitch" / "engine"
HEADER = struct.Struct("=BBHHHH")  # struct virtio_net_hdr
NEEDS_CHECKSUM, TCPV4, TCPV6, UDP_L4 = 1, 1, 4, 5
SINK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint8), ctypes.c_uint32)
RUN_FRAMES = 32


class Segments:
    """segments.c, under sanitizers where a run is merged or cut."""

    def __init__(self, folder: Path) -> None:
        path = folder / "segments.so"
        flags = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", f"-I{ENGINE}"]
        flags += ["-fsanitize=undefined", "-fno-sanitize-recover=all"]
        sources = [HERE / "segment_trial.c", ENGINE / "segments.c", ENGINE / "checksum.c"]
        subprocess.run(["gcc", *flags, "-o", path, *sources], check=True, timeout=60)
        self._library = ctypes.CDLL(str(path))

    def merge(self, frames: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
        """(virtio_net_hdr, frame) of each message that the frames become."""
        messages: list[tuple[bytes, bytes]] = []
        at = 0
        while at < len(frames):
            joined = b"".join(frames[at:])
            lengths = (ctypes.c_uint32 * len(frames[at:]))(*map(len, frames[at:]))
            out, header = ctypes.create_string_buffer(len(joined)), ctypes.create_string_buffer(HEADER.size)
            taken = ctypes.c_uint32()
            length = self._library.merge_first(
                joined, lengths, ctypes.c_uint32(len(lengths)), out, header, ctypes.byref(taken)
            )
            messages.append((header.raw, out.raw[:length]))
            at += taken.value
        return messages

    def cut(self, header: bytes, frame: bytes) -> list[bytes]:
        found: list[bytes] = []
        buffer = ctypes.create_string_buffer(frame, len(frame))
        sink = SINK(lambda _, data, length: found.append(ctypes.string_at(data, length)))
        count = self._library.ss_segments_cut(buffer, ctypes.c_uint32(len(frame)), header, sink, None)
        assert count == len(found)
        return found


@pytest.fixture(scope="module")
def segments(tmp_path_factory: pytest.TempPathFactory) -> Segments:
    return Segments(tmp_path_factory.mktemp("segments"))


def datagrams(
    sizes: Sequence[int], *, checksum: int | None = None, df: bool = True, **ip: object
) -> list[bytes]:
    chance = random.Random(1)
    return [
        bytes(
            Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
            / IP(src="10.0.0.1", dst="10.0.0.2", flags="DF" if df else 0, id=7 + n, **ip)
            / UDP(sport=7, dport=9, **({} if checksum is None else {"chksum": checksum}))
            / Raw(chance.randbytes(size))
        )
        for n, size in enumerate(sizes)
    ]


def stream(sizes: Sequence[int], last_flags: str = "PA", network: type[Packet] = IP) -> list[bytes]:
    chance = random.Random(2)
    frames, sequence = [], 2**32 - 1000
    for n, size in enumerate(sizes):
        ip = (
            IP(src="10.0.0.1", dst="10.0.0.2", id=65530 + n & 0xFFFF)
            if network is IP
            else IPv6(src="fd00::1", dst="fd00::2")
        )
        tcp = TCP(
            seq=sequence,
            ack=5,
            flags=last_flags if n == len(sizes) - 1 else "A",
            options=[("Timestamp", (1, 2))],
        )
        frames.append(
            bytes(
                Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
                / ip
                / tcp
                / Raw(chance.randbytes(size))
            )
        )
        sequence = (sequence + size) % 2**32
    return frames


def without_checksum_of_zero(frame: bytes) -> bytes:
    """Returns the form in which the kernel sends a datagram without a checksum."""
    packet = Ether(frame)
    del packet[UDP].chksum
    return bytes(packet)


@pytest.mark.parametrize("sizes", [[1000] * 16, [1000] * 3 + [1], [1] * 5, [1472] * 16, [3, 2]])
@pytest.mark.parametrize("make", [datagrams, stream])
def test_a_run_is_one_message_and_comes_back_as_it_was(
    segments: Segments, sizes: list[int], make: Callable[[Sequence[int]], list[bytes]]
) -> None:
    frames = make(sizes)
    ((header, merged),) = segments.merge(frames)
    flags, kind, header_bytes, size, start, _ = HEADER.unpack(header)
    assert (flags, kind) == (NEEDS_CHECKSUM, UDP_L4 if make is datagrams else TCPV4)
    assert (size, start) == (sizes[0], 34)
    assert len(merged) == header_bytes + sum(sizes)
    assert segments.cut(header, merged) == frames


def test_datagrams_without_checksums_get_the_right_one(segments: Segments) -> None:
    frames = datagrams([500] * 4, checksum=0)
    ((header, merged),) = segments.merge(frames)
    assert segments.cut(header, merged) == [without_checksum_of_zero(frame) for frame in frames]


def test_a_frame_alone_is_not_touched(segments: Segments) -> None:
    for frame in (
        datagrams([9])[0],
        datagrams([9], checksum=0)[0],
        datagrams([9], checksum=1)[0],
        b"x" * 14,
        b"",
    ):
        assert segments.merge([frame]) == [(bytes(HEADER.size), frame)]


def changed(frame: bytes, **fields: object) -> bytes:
    """Set fields, and compute the checksums anew."""
    packet = Ether(frame)
    for path, value in fields.items():
        layer, name = path.split("_")
        setattr(packet[{"ip": IP, "udp": UDP, "eth": Ether, "tcp": TCP}[layer]], name, value)
    del packet[IP].chksum, packet[IP].payload.chksum
    return bytes(packet)


@pytest.mark.parametrize(
    "fields",
    [
        {"ip_tos": 3},  # a mark
        {"ip_ttl": 9},
        {"ip_src": "10.0.0.3"},
        {"ip_dst": "10.0.0.3"},
        {"ip_flags": 0},
        {"ip_frag": 1},
        {"udp_sport": 8},
        {"udp_dport": 8},
        {"eth_src": "02:00:00:00:00:03"},
        {"eth_dst": "02:00:00:00:00:03"},
    ],
)
def test_another_flow_ends_a_run(segments: Segments, fields: dict[str, object]) -> None:
    a, b, c = datagrams([100] * 3)
    other = changed(b, **fields)
    assert [frame for _, frame in segments.merge([a, other])] == [a, other]
    assert len(segments.merge([a, a, other, c])) == 3


@pytest.mark.parametrize(
    "fields",
    [
        {"tcp_seq": 1},
        {"tcp_ack": 6},
        {"tcp_window": 1},
        {"tcp_flags": "SA"},
        {"tcp_flags": "FA"},
        {"tcp_options": [("Timestamp", (1, 3))]},
    ],
)
def test_another_tcp_segment_ends_a_run(segments: Segments, fields: dict[str, object]) -> None:
    a, b = stream([100] * 2, "A")
    other = changed(b, **fields)
    assert [frame for _, frame in segments.merge([a, other])] == [a, other]


def test_a_longer_frame_or_one_behind_a_shorter_begins_a_run(segments: Segments) -> None:
    assert len(segments.merge(datagrams([100, 101]))) == 2
    assert len(segments.merge(datagrams([100, 99, 100, 100]))) == 2
    assert len(segments.merge(datagrams([100] * (RUN_FRAMES + 1)))) == 2
    assert len(segments.merge(stream([100] * 2, "A")[:1] + datagrams([100]))) == 2
    assert len(segments.merge([*datagrams([50], checksum=0), datagrams([50] * 2)[1]])) == 2


def test_fragmentable_datagrams_merge_with_consecutive_identifications_only(segments: Segments) -> None:
    frames = datagrams([100] * 3, df=False)
    assert len(segments.merge(frames)) == 1
    assert len(segments.merge([frames[0], frames[2]])) == 2


def test_packets_of_roce_merge_with_consecutive_identifications_only(segments: Segments) -> None:
    """Their invariant CRC covers the identification."""
    frames = [changed(frame, udp_dport=4791) for frame in datagrams([100] * 3)]
    assert len(segments.merge(frames)) == 1
    assert len(segments.merge([frames[0], frames[2]])) == 2
    assert len(segments.merge(datagrams([100] * 3)[::2])) == 1


@settings(max_examples=300, deadline=None, print_blob=True)
@given(bit=st.integers(0, 8 * 142 - 1), at=st.integers(0, 2))
def test_a_damaged_frame_stays_damaged(segments: Segments, bit: int, at: int) -> None:
    frames = datagrams([100] * 3)
    frames[at] = bytes(byte ^ (1 << bit % 8 if i == bit // 8 else 0) for i, byte in enumerate(frames[at]))
    cut = [
        one for header, frame in segments.merge(frames) for one in (segments.cut(header, frame) or [frame])
    ]
    assert cut == frames


@pytest.mark.parametrize("tags", [0, 1, 2])
@pytest.mark.parametrize("kind", [UDP_L4, TCPV6])
def test_a_super_frame_of_ipv6_or_with_vlan_tags_is_cut(segments: Segments, tags: int, kind: int) -> None:
    whole = Ether()
    for tag in range(tags):
        whole /= Dot1Q(vlan=5 + tag)
    network = (
        IPv6(src="fd00::1", dst="fd00::2") if kind == TCPV6 else IP(src="10.0.0.1", dst="10.0.0.2", id=3)
    )
    transport = TCP(sport=7, dport=9, seq=10, flags="PA") if kind == TCPV6 else UDP(sport=7, dport=9)
    data = random.Random(3).randbytes(250)
    frame = bytes(whole / network / transport / Raw(data))
    header = HEADER.pack(NEEDS_CHECKSUM, kind, 0, 100, 0, 0)
    expected = []
    for n, part in enumerate((data[:100], data[100:200], data[200:])):
        net, four = network.copy(), transport.copy()
        if kind == TCPV6:
            four.seq, four.flags = 10 + 100 * n, "PA" if n == 2 else "A"
        else:
            net.id = 3 + n
        expected.append(bytes(whole / net / four / Raw(part)))
    assert segments.cut(header, frame) == expected


@pytest.mark.slow
@settings(max_examples=500, deadline=None, print_blob=True)
@given(
    frame=st.binary(max_size=120), kind=st.integers(0, 255), size=st.integers(0, 200), known=st.integers(0, 3)
)
def test_what_is_no_super_frame_is_refused_or_cut_within_its_bytes(
    segments: Segments, frame: bytes, kind: int, size: int, known: int
) -> None:
    front = (
        b"",
        datagrams([1])[0][:42],
        stream([1])[0][:54],
        b"\0" * 12 + b"\x86\xdd\x60" + bytes(5) + b"\x06",
    )[known]
    frame = front + frame
    for one in segments.cut(HEADER.pack(1, kind, 0, size, 34, 6), frame):
        assert len(one) <= len(frame)
