# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Frames with bytes changed anywhere: whatever comes of them, switch and oracle agree on it."""

from __future__ import annotations

from random import Random

import pytest

from netfold.controller.switches.tables import CPU_PORT
from netfold.protocol.target import LaneTarget
from netfold.protocol.wire import Flag, Kind
from tests.dataplane.bench import Bench
from tests.dataplane.fixtures import SETTINGS, TREE, UPLINK, inner, root, sent
from tests.dataplane.frames import NETFOLD_AT, TCP, Ip, arp_request, ethernet, udp
from tests.dataplane.node import MANAGED, TreeAt
from tests.dataplane.router_oracle import with_checksum
from tests.dataplane.test_forwarding import EVERYTHING

FRAMES = 1000
LONG_FRAMES = {"softswitch": 50_000, "bmv2": 50_000}  # of a target; a chip's model takes 20 ms for one
NO_PORT = b"\0\0"  # the CPU port's header
SWITCH_SLOTS = 4096  # p4src/common/sizes.p4
NODES = {"root": root(2), "inner": inner(2)}
SCATTER, GATHER, DATA = LaneTarget(2).field, LaneTarget(2, all_but=True).field, int(Flag.DATA)
GRADIENTS = [
    sent(1),
    sent(2, -1),
    sent(1, 2**31 - 1, round=1, exponent=9),
    sent(1, 3, round=2, lane_count=SCATTER, flags=DATA),
    sent(2, [], round=2, lane_count=SCATTER),
    sent(1, [], round=3, lane_count=GATHER),
    sent(2, 2**31 - 1, round=3, lane_count=GATHER, flags=DATA),
]
SEEDS = [
    *GRADIENTS,
    sent(2, kind=Kind.RESULT),
    sent(2, kind=Kind.RESULT, lane_count=GATHER, flags=DATA),
    sent(2, [], kind=Kind.RESULT, lane_count=SCATTER, flags=DATA),
    sent(0, kind=Kind.READ, tree=MANAGED),
    sent(0, kind=Kind.RESET, tree=MANAGED),
    arp_request("10.0.0.2"),
    ethernet(Ip(dst="10.0.0.2", protocol=TCP).pack(bytes(20))),
    ethernet(Ip(dst="10.0.0.2", options=bytes(12)).pack(udp(b"x", 1, 2))),
    *EVERYTHING.values(),
]


def fuzzed(random: Random) -> tuple[int, bytes]:
    """A port and a frame: one of the seeds, with up to four changes, mostly within the headers."""
    frame = bytearray(random.choice(GRADIENTS if random.random() < 0.6 else SEEDS))
    for _ in range(random.randrange(5)):
        place = random.randrange(min(len(frame), 60) if random.random() < 0.9 else len(frame))
        change = random.random()
        if change < 0.5:
            frame[place] ^= 1 << random.randrange(8)
        elif change < 0.9:
            frame[place] = random.choice([0, 1, 2, 3, 127, 128, 254, 255])
        elif len(frame) > 14 + 8:
            del frame[max(14, place) : max(14, place) + random.randrange(1, 8)]
    port = random.choice([1, 1, 2, 2, 3, UPLINK, CPU_PORT])
    header = random.choice([NO_PORT, NO_PORT, b"\3\0", b"\0\x7f"]) if port == CPU_PORT else b""
    whole = with_checksum(bytes(frame)) if random.random() < 0.9 else bytes(frame)
    return port, header + whole


@pytest.mark.parametrize("node", NODES)
@pytest.mark.parametrize("seed", range(2))
def test_any_frame_has_the_outcome_of_the_oracle(bench: Bench, node: str, seed: int):
    fuzz(bench, NODES[node], seed, FRAMES)


@pytest.mark.long
@pytest.mark.parametrize("node", NODES)
@pytest.mark.parametrize("seed", range(100, 102))
def test_many_frames_have_the_outcome_of_the_oracle(bench: Bench, target: str, node: str, seed: int):
    fuzz(bench, NODES[node], seed, LONG_FRAMES.get(target, 10_000), spare_registers=target == "bmv2")


def fuzz(bench: Bench, node: TreeAt, seed: int, frames: int, spare_registers: bool = False) -> None:
    bench.install(*SETTINGS, node)
    random = Random(seed)
    for _ in range(frames):
        port, frame = fuzzed(random)
        # a BMv2 built with NDEBUG has no range checks and dies, and only the controller could send such a frame
        if not (spare_registers and beyond_registers(port, frame)):
            bench.send(port, frame)
    bench.check_counters(TREE)


def beyond_registers(port: int, frame: bytes) -> bool:
    """Return whether the frame may be one of the controller's for a slot that no switch has."""
    at = len(NO_PORT) + NETFOLD_AT + 8
    return port == CPU_PORT and int.from_bytes(frame[at : at + 2]) >= SWITCH_SLOTS
