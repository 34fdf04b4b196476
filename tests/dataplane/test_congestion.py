# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The congestion mark: ECN-capable packets that waited longer in a queue than its threshold, on softswitch's emulated
links (BMv2 has its queues' rates behind Thrift)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from netfold.controller.switches.tables import ecn_threshold
from netfold.p4src.tools.p4build import Profile
from netfold.protocol.target import LaneTarget
from netfold.protocol.wire import Flag, Kind, Packet
from tests.dataplane.device import Frames, SoftDevice, compiled
from tests.dataplane.fixtures import HOSTS, SETTINGS, UPLINK, passing, root, sent
from tests.dataplane.frames import CE, ECT0, ECT1, LANES, NOT_ECT, Ip, checksum, ethernet, mac, udp
from tests.dataplane.node import Owner

PROGRAM = compiled(Profile(LANES))[0]
QUEUE = 12
SLOW_BPS = 1_000_000
THRESHOLD_US = 5_000  # of 625 bytes
SECOND = 10**9


@pytest.fixture
def device() -> Iterator[SoftDevice]:
    with SoftDevice(PROGRAM) as device:
        device.insert(entity for setting in SETTINGS for entity in setting.entities())
        for port in (1, UPLINK):
            device.insert([ecn_threshold(port, THRESHOLD_US)])
            device.switch.port_config(port, SLOW_BPS, QUEUE)
        yield device


def us(frame: bytes) -> float:
    """Microseconds of a frame on a slow link."""
    return len(frame) * 8e6 / SLOW_BPS


def burst(device: SoftDevice, port: int, frames: list[bytes]) -> Frames:
    """Return the frames that leave, in order, if all arrive at one instant."""
    left: Frames = []
    for frame in frames:
        left += device.switch.inject(port, frame, now_ns=SECOND)
    now: int | None = SECOND
    while now is not None:
        more, now = device.switch.service(now)
        left += more
    return left


@pytest.mark.parametrize(("ecn", "marked"), [(ECT0, CE), (ECT1, CE), (CE, CE), (NOT_ECT, NOT_ECT)])
def test_packets_that_meet_a_long_queue_are_marked_if_they_may_be(device: SoftDevice, ecn: int, marked: int):
    frame = ethernet(Ip(dst="10.0.0.1", dscp=10, ecn=ecn).pack(udp(bytes(100), 5, 6)))
    left = burst(device, 2, [frame] * 10)
    found = [out[15] for _, out in left]
    first = next(n for n in range(10) if n * us(frame) >= THRESHOLD_US)
    assert found == [10 << 2 | ecn] * first + [10 << 2 | marked] * (10 - first)
    assert all(checksum(out[14:34]) == 0 for _, out in left)


def test_gradients_carry_the_mark_in_their_own_header_too(device: SoftDevice):
    device.insert(passing(1, 2).entities())
    left = burst(device, 2, [sent(2, round=n) for n in range(10)])
    packets = [Packet.parse(out[42:]) for _, out in left]
    assert [p.round for p in packets] == list(range(10))
    for (_, out), packet in zip(left, packets, strict=True):
        assert (Flag.CONGESTION in packet.flags) is (out[15] & 3 == CE)
    marks = [Flag.CONGESTION in packet.flags for packet in packets]
    assert marks == sorted(marks)
    assert 0 < sum(marks) < 10


def test_a_mark_met_on_the_way_up_comes_back_in_the_result(device: SoftDevice):
    """Two switches in a row in one: what was marked on the way is added up as congested."""
    device.insert(passing(1, 2).entities())
    left = burst(device, 2, [sent(2, round=n) for n in range(10)])
    with SoftDevice(PROGRAM) as above:
        above.insert(entity for setting in (*SETTINGS, root(2)) for entity in setting.entities())
        for n, (_, out) in enumerate(left):
            above.inject(1, sent(1, round=n))
            results = above.inject(2, out)
            flags = {Packet.parse(result[42:]).flags for _, result in results}
            assert flags == {Flag.CONGESTION if out[15] & 3 == CE else Flag(0)}


def test_results_are_marked_on_the_way_down(device: SoftDevice):
    device.insert(passing(1, 2).entities())
    left = [
        out for port, out in burst(device, UPLINK, [sent(2, kind=Kind.RESULT, round=n) for n in range(10)])
    ]
    to_slow = [out for out in left if out[:6] == mac(HOSTS[0].dst)]
    to_fast = [out for out in left if out[:6] == mac(HOSTS[1].dst)]
    assert len(to_slow) == len(to_fast) == 10
    assert [out[15] & 3 == CE for out in to_slow] == [n * us(to_slow[0]) >= THRESHOLD_US for n in range(10)]
    assert not any(out[15] & 3 == CE for out in to_fast)


@pytest.mark.parametrize("chunks", [10, 40])
def test_copies_that_are_cut_count_as_headers(device: SoftDevice, chunks: int):
    """Only a scatter's results of the owner's chunks have lanes on its link."""
    device.switch.port_config(1, SLOW_BPS, chunks)
    device.insert(replace(passing(1, 2), owners=(Owner(1, 1), Owner(2, 2))).entities())
    frames = [
        sent(
            2, kind=Kind.RESULT, round=n, flags=int(Flag.DATA), lane_count=LaneTarget(1 + (n % 4 != 0)).field
        )
        for n in range(chunks)
    ]
    left = [out for port, out in burst(device, UPLINK, frames) if port == 1]
    assert [len(out) > 58 for out in left] == [n % 4 == 0 for n in range(chunks)]
    ahead = [sum(map(us, left[:n])) for n in range(chunks)]
    assert [out[15] & 3 == CE for out in left] == [int(waited) >= THRESHOLD_US for waited in ahead]
    assert sum(out[15] & 3 == CE for out in left) < chunks - THRESHOLD_US // us(frames[0]), "as whole ones do"


def test_without_an_entry_nothing_is_marked():
    with SoftDevice(PROGRAM) as device:
        device.insert(entity for setting in SETTINGS for entity in setting.entities())
        device.switch.port_config(1, SLOW_BPS, QUEUE)
        frame = ethernet(Ip(dst="10.0.0.1", ecn=ECT0).pack(udp(bytes(100), 5, 6)))
        assert {out[15] & 3 for _, out in burst(device, 2, [frame] * QUEUE)} == {ECT0}
