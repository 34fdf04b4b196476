# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Packets to a job port that are not what docs/reference/protocol.md, section 2, says: counted as malformed,
and no slot changes. What is not from and to the same port of the range is no netfold packet and is forwarded."""

from __future__ import annotations

from dataclasses import replace

import pytest

from netfold.protocol.wire import Packet, Verdict
from tests.dataplane.bench import Bench
from tests.dataplane.fixtures import EPOCH, ROOT_ADDRESS, SETTINGS, TREE, root, sent
from tests.dataplane.frames import LANES, Ip, Netfold, checksum, ethernet, gradient, udp

HEADER = Netfold(tree=TREE, epoch=EPOCH, child=1, round=9, lanes=[1000] * LANES)
PACKET = Ip(src="10.0.0.1", dst=ROOT_ADDRESS)


def _with(**fields: object) -> bytes:
    return gradient(Netfold(**{**vars(HEADER), **fields}), PACKET)


def _ip(**fields: object) -> bytes:
    return gradient(HEADER, Ip(**{**vars(PACKET), **fields}))


def _fragment(first: bytes) -> bytes:
    """The first of several, as it comes out of a sender's kernel."""
    return Ip(**{**vars(PACKET), "flags_and_offset": 0x2000}).pack(first)


def _ports(source: int, to: int) -> bytes:
    """The datagram has a checksum, which is the receiver's business."""
    return ethernet(PACKET.pack(udp(HEADER.pack(), source, to, sum_=0xBEEF)))


def _udp_length(length: int) -> bytes:
    return ethernet(PACKET.pack(udp(HEADER.pack(), length=length)))


WRONG = {
    "version 0": _with(version=0),
    "version 2": _with(version=2),
    "version 15": _with(version=15),
    **{f"kind {kind}": _with(kind=kind) for kind in (4, 7, 8, 15)},
    "lanes 0": _with(lane_count=0),
    "lanes 31": _with(lane_count=LANES - 1),
    "lanes 33": _with(lane_count=LANES + 1),
    "lanes 256 times too many": _with(lane_count=LANES << 8),
    "a packet with fewer lanes": _with(lanes=[1000] * (LANES - 1)),
    "a packet with more lanes": _with(lanes=[1000] * (LANES + 1)),
    "fewer lanes than it says": _with(lanes=[1000] * (LANES - 1), lane_count=LANES),
    "no lanes": _with(lanes=[]),
    "IP length one less": _ip(total_length=28 + 16 + 4 * LANES - 1),
    "IP length one more": _ip(total_length=28 + 16 + 4 * LANES + 1),
    "IP length 0": _ip(total_length=0),
    "UDP length one less": _udp_length(8 + 16 + 4 * LANES - 1),
    "UDP length one more": _udp_length(8 + 16 + 4 * LANES + 1),
    "UDP length 0": _udp_length(0),
    "IP checksum": _ip(checksum=checksum(PACKET.pack(b"")) ^ 0x0100),
    "first fragment": _ip(flags_and_offset=0x2000),
    "first fragment that is cut": ethernet(_fragment(udp(HEADER.pack())[:64])),
    "first fragment, of a header alone": ethernet(_fragment(udp(HEADER.pack())[:8])),
    "options": _ip(options=b"\x01\x01\x01\x00"),
    "most options": _ip(options=bytes(40)),
    "options, first fragment": _ip(options=bytes(4), flags_and_offset=0x2000),
    "empty": ethernet(PACKET.pack(udp(b""))),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_malformed_packet_is_counted_and_changes_nothing(bench: Bench, name: str):
    bench.install(*SETTINGS, root(2))
    bench.send(1, sent(1, 1))
    assert bench.verdict_of(1, WRONG[name]) is Verdict.MALFORMED
    results = bench.send(2, sent(2, 2))
    assert {lane for _, frame in results for lane in Packet.parse(frame[42:]).lane} == {3}
    bench.check_counters()


def test_a_packet_cut_anywhere_changes_nothing(bench: Bench):
    bench.install(*SETTINGS, root(2))
    bench.send(1, sent(1, 1))
    whole = sent(1, 1000, round=9)
    sizes = range(max(14, bench.device.least_bytes), len(whole))  # a shorter frame is padded: it is not cut
    for size in sizes:
        bench.send(1, whole[:size])
    results = bench.send(2, sent(2, 2))
    assert {lane for _, frame in results for lane in Packet.parse(frame[42:]).lane} == {3}
    bench.check_counters()
    assert bench.oracle.verdicts[0, Verdict.MALFORMED] == sum(size >= 42 for size in sizes)


OF_ANOTHER_SENDER = {
    "next fragment": _ip(flags_and_offset=0x2001),
    "last fragment": _ip(flags_and_offset=0x1FFF),
    "TCP": _ip(protocol=6),
    **{
        f"from {source} to {to}": _ports(source, to)
        for source, to in (
            (53, 61450),
            (61450, 53),
            (5555, 0xF001),
            (0xF001, 0xF002),
            (0xEFFF, 0xEFFF),
            (0xF100, 0xF100),
        )
    },
    "unequal ports, first fragment": ethernet(_fragment(udp(HEADER.pack(), 53, 0xF001)[:64])),
    "unequal ports, short": ethernet(PACKET.pack(udp(b"dns", 53, 0xF001, sum_=0xBEEF))),
}


@pytest.mark.parametrize("trees", [(), (root(1),)], ids=["no job", "with a job"])
@pytest.mark.parametrize("name", OF_ANOTHER_SENDER)
def test_what_is_no_netfold_packet_is_forwarded_untouched(bench: Bench, name: str, trees: tuple):
    """Other addresses on the link and one less to live; not a bit behind the IPv4 header."""
    bench.install(*SETTINGS, *trees)
    frame = OF_ANOTHER_SENDER[name]
    ((port, out),) = bench.send(1, frame)
    assert (port, out[22]) == (3, frame[22] - 1)
    assert out[26:] == bench.padded(port, frame)[26:]
    assert not bench.oracle.verdicts
    bench.check_counters(TREE)


def test_options_before_another_sender_s_datagram(bench: Bench):
    """Options change nothing for a switch that looks behind them. One that cannot drops what could be to a job."""
    bench.install(*SETTINGS)
    frame = ethernet(Ip(dst="10.0.0.2", options=bytes(4)).pack(udp(b"x" * 20, 53, 61450, sum_=0xBEEF)))
    if bench.device.parses_options:
        ((port, out),) = bench.send(1, frame)
        assert (port, out[26:]) == (2, frame[26:])
    else:
        assert bench.verdict_of(1, frame) is Verdict.MALFORMED


@pytest.mark.parametrize("first_byte", [0x35, 0x55, 0x65, 0x05, 0xF5, 0x44, 0x40], ids=hex)
def test_what_is_not_ip_version_4_is_dropped(bench: Bench, first_byte: int):
    """The checksum is right, so that only the version or the header length can tell."""
    bench.install(*SETTINGS, root(1))
    frame = _ip(version=first_byte >> 4, ihl=first_byte & 15)
    assert bench.send(1, frame) == []
    bench.check_counters(TREE)


@pytest.mark.parametrize("port", [0xF000, 0xF001, 0xF080, 0xF0FF])
def test_a_job_has_any_port_of_the_range_and_none_but_its_own(bench: Bench, port: int):
    bench.install(*SETTINGS, replace(root(1), udp_port=port))
    assert bench.verdict_of(1, gradient(HEADER, PACKET, port=port)) is Verdict.RESULT_SENT
    for other in {0xF000, 0xF001, 0xF080, 0xF0FF} - {port}:
        assert bench.verdict_of(1, gradient(HEADER, PACKET, port=other)) is Verdict.UNADMITTED


@pytest.mark.parametrize("udp_sum", [1, 0xBEEF, 0xFFFF])
def test_a_udp_checksum_is_not_looked_at(bench: Bench, udp_sum: int):
    """A node rewrites lanes; the frame check sequence of each link guards them."""
    bench.install(*SETTINGS, root(1))
    ((_, frame),) = bench.send(1, gradient(HEADER, PACKET, udp_sum=udp_sum))
    assert frame[40:42] == b"\0\0"
