# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""BMv2's form of a program against the ordinary one, packet by packet: all that leaves is the same, but for the lanes
of a sum with O."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from netfold.p4src.manifest import Form
from netfold.p4src.tools.p4build import BMV2_LANES, Profile
from netfold.protocol.wire import Flag
from tests.dataplane.device import Frames, SoftDevice, compiled
from tests.dataplane.fixtures import EPOCH, SETTINGS, SLOTS, TREE, inner, root
from tests.dataplane.frames import LANES_AT, NETFOLD_AT, Ip, Netfold, gradient
from tests.dataplane.node import TreeAt

SEED, PACKETS = 45, 400
LIMITS = (10, 2**29, 2**31 - 1)


@pytest.fixture(params=BMV2_LANES)
def pair(request: pytest.FixtureRequest) -> Iterator[tuple[SoftDevice, SoftDevice, int]]:
    lanes = request.param
    ordinary, own = Profile(lanes), Profile(lanes, form=Form.BMV2)
    with SoftDevice(compiled(ordinary)[0]) as left, SoftDevice(compiled(own)[0]) as right:
        yield left, right, lanes


def without_lanes_of_flagged(frames: Frames) -> Frames:
    return [
        (port, frame[:LANES_AT] if frame[NETFOLD_AT + 1] & Flag.OVERFLOW else frame) for port, frame in frames
    ]


@pytest.mark.parametrize("node", [root(3), inner(3)], ids=["root", "inner"])
def test_both_forms_send_the_same_packets(pair: tuple[SoftDevice, SoftDevice, int], node: TreeAt):
    """Random contributions, duplicates, old and new chunks, sums within int32 and beyond."""
    *devices, lanes = pair
    for device in devices:
        for setting in (*SETTINGS, node):
            device.insert(setting.entities())
    random, flagged, complete = Random(SEED), 0, 0
    for number in range(PACKETS):
        chunk = max(0, number // 5 - random.choice((0, 0, 0, 1, 2)))
        worker, limit = random.randint(1, 3), LIMITS[chunk % 3]
        header = Netfold(
            tree=TREE,
            epoch=EPOCH,
            child=worker,
            slot=chunk % SLOTS,
            round=chunk // SLOTS,
            exponent=random.randrange(256),
            flags=random.choice((0, 0, 0, int(Flag.CONGESTION), int(Flag.OVERFLOW))),
            lanes=[random.randint(-limit - 1, limit) for _ in range(lanes)],
        )
        frame = gradient(header, Ip(src=f"10.0.0.{worker}"))
        ordinary, own = (device.inject(worker, frame) for device in devices)
        assert without_lanes_of_flagged(ordinary) == without_lanes_of_flagged(own), (
            f"packet {number}, seed {SEED}"
        )
        complete += bool(own)
        flagged += any(data[NETFOLD_AT + 1] & Flag.OVERFLOW for _, data in own)
    assert 0 < flagged < complete
    assert devices[0].verdicts(TREE) == devices[1].verdicts(TREE)
