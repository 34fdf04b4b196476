# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Random streams of reliable connections through leaves: losses, doubles and reordering heal by RoCE's own timers, and
every frame has the outcome of the oracle."""

from __future__ import annotations

from random import Random

import pytest

from netfold.p4src.tools.p4build import CHILDREN
from tests.dataplane.bench import Bench, Tally
from tests.dataplane.conftest import Devices
from tests.dataplane.rc_world import RcWorld

SHAPES = {
    "one leaf of two": ([2], [True]),
    "one leaf of four": ([4], [True]),
    "two leaves": ([2, 3], [True, True]),
    "a leaf that passes": ([2, 2], [True, False]),
}
EVENTS, LONG_EVENTS = 1200, 16_000


def new_world(
    target: str,
    devices: Devices,
    tally: Tally,
    lanes: int,
    shape: tuple[list[int], list[bool]],
    random: Random,
    children: int = CHILDREN,
) -> RcWorld:
    """`shape`: the workers of each leaf, and whether it adds up. `children`: bits of the switches' bitmaps."""
    leaves, adding = shape
    benches = []
    for number in range(len(leaves) + (len(leaves) > 1)):
        device = devices(target, lanes, number, children)
        device.clear()
        benches.append(Bench(device, lanes, tally, target))
    return RcWorld(benches, leaves, adding, random)


def drive(
    target: str, devices: Devices, tally: Tally, lanes: int, shape: str, seed: int, events: int
) -> None:
    random = Random(seed)
    world = new_world(target, devices, tally, lanes, SHAPES[shape], random)
    for number in range(20 * events):
        if number >= events and world.epoch > 1:
            break
        world.happen(loss=random.choice([0, 0, 0.05]), repeats=0.03)
        if world.done:
            world.begin()
    world.finish()
    assert world.epoch > 1, "an epoch was over, and the connections began anew"


@pytest.mark.parametrize("shape", SHAPES)
def test_reliable_connections_bring_every_sum(target: str, devices: Devices, tally: Tally, shape: str):
    drive(target, devices, tally, 64, shape, 1, EVENTS)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("lanes", [64, 256])
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("shape", SHAPES)
def test_reliable_connections_bring_every_sum_in_1e5_packets(
    target: str, devices: Devices, tally: Tally, shape: str, seed: int, lanes: int
):
    """More than 100,000 packets of RoCE go through softswitch, as the end of the run says."""
    events = LONG_EVENTS if target == "softswitch" else 3000
    drive(target, devices, tally, lanes, shape, 100 + seed, events)
