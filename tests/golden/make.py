# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Writes netfold.pcap: one packet of each kind and each way to be wrong. `python -m tests.golden.make` renews it; a
test fails when the file is not what this makes, so that the format cannot change unnoticed."""

from __future__ import annotations

import struct
from pathlib import Path

from netfold.protocol.target import LaneTarget
from netfold.protocol.wire import Flag, Kind
from tests.dataplane.frames import CE, Ip, Netfold, ethernet, gradient, udp

GOLDEN = Path(__file__).parent / "netfold.pcap"
LANES = 32
_MAGIC, _VERSION, _SNAP, _ETHERNET = 0xA1B2C3D4, (2, 4), 65535, 1

SUM = [1, -1, 2**31 - 1, -(2**31), *range(100, 128)]


def frames() -> dict[str, bytes]:
    """By name, in the order of the file."""
    up, down = Ip(src="10.0.0.1", dst="10.0.0.254"), Ip(src="10.0.0.254", dst="10.0.0.1")
    plain = Netfold(tree=7, epoch=3, round=5, slot=9, child=2, lanes=SUM, exponent=130)
    whole = gradient(plain, up)
    scatter, gather = LaneTarget(3).field, LaneTarget(3, all_but=True).field
    return {
        "gradient": whole,
        "gradient, marked by a queue": gradient(plain, Ip(src="10.0.0.1", dst="10.0.0.254", ecn=CE)),
        "result, overflow and congestion": gradient(
            Netfold(Kind.RESULT, 7, 3, 5, 9, 2, SUM, int(Flag.OVERFLOW | Flag.CONGESTION), 130),
            down,
        ),
        "result, overflow": gradient(Netfold(Kind.RESULT, 7, 3, 5, 9, 2, SUM, int(Flag.OVERFLOW)), down),
        "read": gradient(Netfold(Kind.READ, 0xFFFF, 0, 0, 4095, 0, [0] * LANES), up),
        "reset": gradient(Netfold(Kind.RESET, 0xFFFF, 0, 0, 0, 0, [0] * LANES), up),
        "largest fields": gradient(
            Netfold(
                Kind.GRADIENT, 0xFFFF, 4095, 0xFFFFF, 0xFFFF, 0xFFFF, [-1] * LANES, 0xFF, 255, reserved=255
            ),
            up,
            port=0xF0FF,
        ),
        "256 lanes": gradient(Netfold(tree=1, lanes=list(range(256))), up, port=0xF000),
        "short gradient": gradient(
            Netfold(tree=7, epoch=3, child=2, lanes=[], exponent=130, lane_count=scatter), up
        ),
        "whole gradient of a gather": gradient(
            Netfold(tree=7, epoch=3, child=2, lanes=SUM, flags=int(Flag.DATA), lane_count=gather), up
        ),
        "cut result": gradient(
            Netfold(Kind.RESULT, 7, 3, 5, 9, 2, [], int(Flag.DATA), lane_count=scatter), down
        ),
        "short gradient without a target": gradient(Netfold(tree=7, lanes=[], lane_count=LANES), up),
        "wrong version": gradient(Netfold(tree=7, version=2, lanes=SUM), up),
        "unknown kind": gradient(Netfold(tree=7, kind=9, lanes=SUM), up),
        "more lanes than there are": gradient(Netfold(tree=7, lanes=SUM, lane_count=33), up),
        "header cut short": ethernet(up.pack(udp(plain.pack()[:10]))),
        "another port": ethernet(up.pack(udp(plain.pack(), 0xF100, 0xF100))),
    }


def pcap(packets: list[bytes]) -> bytes:
    """The classic format, with times that do not change."""
    out = struct.pack("<IHHiIII", _MAGIC, *_VERSION, 0, 0, _SNAP, _ETHERNET)
    for number, packet in enumerate(packets):
        out += struct.pack("<IIII", 1_700_000_000, number, len(packet), len(packet)) + packet
    return out


if __name__ == "__main__":
    GOLDEN.write_bytes(pcap(list(frames().values())))
