# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""ICMP errors about packets of a job: no switch forwards them to a member, and all other ICMP goes where it went."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from netfold.protocol.wire import Verdict
from tests.dataplane.bench import Bench
from tests.dataplane.conftest import Fresh
from tests.dataplane.fixtures import ROOT_ADDRESS, SETTINGS, UPLINK, root
from tests.dataplane.frames import JOB_PORT, TCP, Ip, ethernet, ip, udp
from tests.dataplane.roce_fixtures import PEERS, at_root
from tests.dataplane.roce_fixtures import settings as roce_settings
from tests.dataplane.roce_frames import ROCE_PORT

UNREACHABLE, QUENCH, REDIRECT, EXCEEDED, PARAMETER, ECHO = 3, 4, 5, 11, 12, 8
ERRORS = (UNREACHABLE, QUENCH, REDIRECT, EXCEEDED, PARAMETER)
MEMBER = "10.0.0.2"
QUOTED = Ip(src=MEMBER, dst=ROOT_ADDRESS)
LAYER = Ip(src="10.0.0.9", dst=MEMBER, protocol=1)
MORE = 0x2000


def error(kind: int, quoted: bytes, layer: Ip = LAYER, code: int = 0) -> bytes:
    return ethernet(layer.pack(struct.pack(">BBH4s", kind, code, 0, ip("10.0.0.66")) + quoted))


def datagram(source: int = JOB_PORT, destination: int = JOB_PORT, packet: Ip = QUOTED) -> bytes:
    """The IP header and the first eight bytes behind it."""
    return packet.pack(udp(b"", source, destination))


@pytest.fixture
def leaf(bench: Bench) -> Bench:
    if not bench.device.parses_options:
        pytest.skip("a chip does not look at what is quoted")
    bench.install(*SETTINGS, root(2))
    return bench


@pytest.mark.parametrize("kind", ERRORS)
def test_an_error_about_a_job_s_packet_reaches_no_member(leaf: Bench, kind: int):
    for code in range(16):
        for quoted in (datagram(), datagram() + bytes(64), datagram(JOB_PORT, JOB_PORT + 1)):
            assert leaf.verdict_of(UPLINK, error(kind, quoted, code=code)) is Verdict.MALFORMED
    leaf.check_counters()


@pytest.mark.parametrize(
    ("layer", "quoted"),
    [
        (replace(LAYER, options=b"\x01" * 40), datagram()),
        (replace(LAYER, flags_and_offset=MORE), b""),
        (LAYER, datagram(packet=replace(QUOTED, options=b"\x01" * 4))),
        (LAYER, datagram(packet=replace(QUOTED, flags_and_offset=MORE | 1))),
        (LAYER, datagram(packet=replace(QUOTED, version=6))),
    ],
    ids=["options", "pieces", "options of the quote", "a quoted piece", "another version"],
)
def test_nothing_around_it_hides_the_quote(leaf: Bench, layer: Ip, quoted: bytes):
    assert leaf.verdict_of(UPLINK, error(UNREACHABLE, quoted, layer)) is Verdict.MALFORMED


@pytest.mark.parametrize(
    "frame",
    [
        error(UNREACHABLE, datagram(53, 40_000)),
        error(UNREACHABLE, datagram(40_000, JOB_PORT)),
        error(UNREACHABLE, QUOTED.pack(bytes(8))[:9] + bytes([TCP]) + datagram()[10:]),
        error(UNREACHABLE, datagram(ROCE_PORT, ROCE_PORT)),
        error(ECHO, datagram()),
        error(0, b""),
        error(UNREACHABLE, datagram(), replace(LAYER, flags_and_offset=1)),
    ],
    ids=["another port", "from another port", "TCP", "RoCE of no job", "echo", "echo reply", "a later piece"],
)
def test_other_icmp_is_forwarded(leaf: Bench, frame: bytes):
    ((port, _),) = leaf.send(UPLINK, frame)
    assert port == 2
    leaf.check_counters()


@pytest.mark.parametrize("cut", [0, 1, 7, 8, 28, 31])
def test_an_error_without_a_quote_is_dropped(leaf: Bench, cut: int):
    message = struct.pack(">BBHI", UNREACHABLE, 0, 0, 0) + datagram()
    assert leaf.send(UPLINK, ethernet(LAYER.pack(message[:cut]))) == []


@pytest.mark.parametrize("ports", [(ROCE_PORT, ROCE_PORT), (ROCE_PORT, 7), (50_000, ROCE_PORT)])
def test_an_error_about_roce_reaches_no_host_of_a_job(ports: tuple[int, int], target: str, fresh: Fresh):
    leaf = fresh(target, 64)
    leaf.install(*roce_settings(at_root(2)))
    worker, other = PEERS[1].address, PEERS[6].address
    quoted = datagram(*ports, packet=Ip(src=worker, dst=PEERS[2].address))
    for kind in ERRORS:
        there = error(kind, quoted, replace(LAYER, dst=worker))
        assert leaf.verdict_of(UPLINK, there) is Verdict.MALFORMED
        ((port, _),) = leaf.send(UPLINK, error(kind, quoted, replace(LAYER, dst=other)))
        assert port == 6
    leaf.check_counters()
