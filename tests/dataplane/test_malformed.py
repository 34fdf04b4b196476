# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Packets to a job port that are not what docs/protocol.md, section 2, says: counted as malformed, and no slot changes.
What only looks like one is no netfold packet and is forwarded."""

from __future__ import annotations

import pytest

from netfold.traffic.packets.wire import Packet, Verdict
from tests.dataplane.bench import Bench
from tests.dataplane.fixtures import EPOCH, ROOT_ADDRESS, SETTINGS, TREE, root, sent
from tests.dataplane.frames import LANES, Ip, Netfold, checksum, ethernet, gradient, udp

HEADER = Netfold(tree=TREE, epoch=EPOCH, child=1, round=9, lanes=[1000] * LANES)
PACKET = Ip(src="10.0.0.1", dst=ROOT_ADDRESS)


def _with(**fields: object) -> bytes:
    return gradient(Netfold(**{**vars(HEADER), **fields}), PACKET)


def _ip(**fields: object) -> bytes:
    return gradient(HEADER, Ip(**{**vars(PACKET), **fields}))


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


@pytest.mark.parametrize(
    "frame",
    [
        _ip(flags_and_offset=0x2000),
        _ip(flags_and_offset=0x0001),
        _ip(flags_and_offset=0x1FFF),
        _ip(options=b"\x01\x01\x01\x00"),
        _ip(options=bytes(40)),
        _ip(protocol=6),
        gradient(HEADER, PACKET, port=0xEFFF),
        gradient(HEADER, PACKET, port=0xF100),
    ],
    ids=[
        "first fragment",
        "next fragment",
        "last fragment",
        "options",
        "most options",
        "TCP",
        "port below",
        "port above",
    ],
)
def test_what_is_no_netfold_packet_is_forwarded_as_any_other(bench: Bench, frame: bytes):
    bench.install(*SETTINGS, root(1))
    ((port, _),) = bench.send(1, frame)
    assert port == 3
    assert not bench.oracle.verdicts
    bench.check_counters(TREE)


@pytest.mark.parametrize("first_byte", [0x35, 0x55, 0x65, 0x05, 0xF5, 0x44, 0x40], ids=hex)
def test_what_is_not_ip_version_4_is_dropped(bench: Bench, first_byte: int):
    """With a right checksum, so that only the version or the header length can tell."""
    bench.install(*SETTINGS, root(1))
    frame = _ip(version=first_byte >> 4, ihl=first_byte & 15)
    assert bench.send(1, frame) == []
    bench.check_counters(TREE)


def test_ports_of_the_whole_range_are_netfold_s(bench: Bench):
    bench.install(*SETTINGS, root(1))
    for port in (0xF000, 0xF001, 0xF080, 0xF0FF):
        assert bench.verdict_of(1, gradient(HEADER, PACKET, port=port)) in {
            Verdict.RESULT_SENT,
            Verdict.RESULT_REPEATED,
        }
