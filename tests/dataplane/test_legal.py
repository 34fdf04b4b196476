# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The check on every frame that leaves (bench.py) finds each rule of section 2 broken."""

from __future__ import annotations

import pytest

from netfold.protocol.wire import Kind
from tests.dataplane.frames import LANES, TCP, Ip, Netfold, ethernet, gradient, udp
from tests.dataplane.legal import why_illegal

GOOD = Netfold(child=7)


@pytest.mark.parametrize(
    "frame",
    [
        gradient(GOOD),
        gradient(Netfold(kind=Kind.RESULT), trailer=bytes(4)),
        ethernet(bytes(60), 0x86DD),
        ethernet(Ip(protocol=TCP).pack(udp(b"x", 0xF001, 0xF001))),
        ethernet(Ip().pack(udp(b"x", 53, 0xF001, sum_=7))),
        ethernet(Ip().pack(udp(b"x", 0xF001, 0xF002))),
        ethernet(Ip(flags_and_offset=3).pack(udp(b"x", 0xF001, 0xF001))),
    ],
    ids=["gradient", "padded result", "IPv6", "TCP", "to a job's port", "between jobs", "later fragment"],
)
def test_what_may_leave(frame: bytes):
    assert why_illegal(frame, LANES) is None


@pytest.mark.parametrize(
    ("frame", "wrong"),
    [
        (gradient(GOOD, Ip(options=bytes(4))), "has options"),
        (gradient(GOOD, Ip(flags_and_offset=0x2000)), "is a fragment"),
        (gradient(GOOD, Ip(ttl=0)), "lives no longer"),
        (gradient(GOOD, Ip(checksum=1)), "has a wrong header checksum"),
        (gradient(GOOD)[:-1], "is cut"),
        (gradient(GOOD, Ip(total_length=20)), "says 20 bytes of IP"),
        (ethernet(Ip().pack(udp(GOOD.pack(), 0xF001, 0xF001, length=9))), "says 9 bytes of UDP"),
        (gradient(GOOD, udp_sum=5), "has a UDP checksum"),
        (gradient(Netfold(version=2)), "is of version 2"),
        (gradient(Netfold(kind=Kind.READ)), "is of kind 2"),
        (gradient(Netfold(epoch=0)), "is of epoch 0"),
        (gradient(Netfold(lane_count=64)), "has another number of lanes"),
    ],
)
def test_what_may_not(frame: bytes, wrong: str):
    assert why_illegal(frame, LANES) == wrong
