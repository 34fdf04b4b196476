# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What links carry, read from ports' counters: rates by direction, through restarts, silence and odd clocks."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from netfold.controller.health.link_loads import LinkLoads
from netfold.controller.switches.port_counters import ARRIVALS, DEPARTURES, PortCount, PortCounts, cell
from netfold.topologies.fabric import Fabric
from netfold.topologies.spec import load_fabric
from tests.controller.deployment import deployed

MBIT = 1_000_000 // 8


class Clock:
    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture(scope="module")
def fabric() -> Fabric:
    """Its unit is Mbit/s, and its hosts' links carry 100."""
    return load_fabric("leaf-spine-2x2")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def loads(fabric: Fabric, clock: Clock) -> LinkLoads:
    return LinkLoads(fabric, 1.0, clock)


def counted(loads: LinkLoads, fabric: Fabric, megabits: float, jobs: float = 0.0) -> None:
    """Since leaf1 started, so much has come from h1 to it, and nothing else."""
    port = fabric.ports["leaf1"]["h1"]
    count = PortCount(round(megabits * MBIT), round(jobs * MBIT))
    loads.counted("leaf1", PortCounts({port: count}, {}))


def foreign(loads: LinkLoads) -> float | None:
    load = loads.all().get(("h1", "leaf1"))
    return None if load is None else load.foreign


def test_rates_are_bytes_over_the_time_between_readings(loads: LinkLoads, fabric: Fabric, clock: Clock):
    counted(loads, fabric, 1000.0)
    assert loads.all() == {}
    for at, megabits, jobs in ((0.5, 1030.0, 5.0), (1.0, 1060.0, 10.0)):
        clock.at = 1000.0 + at
        counted(loads, fabric, megabits, jobs)
    assert foreign(loads) == pytest.approx(60)
    assert loads.all()["h1", "leaf1"].jobs == pytest.approx(10)
    assert loads.foreign().links == {("h1", "leaf1"): pytest.approx(60)}


def test_the_window_moves_on(loads: LinkLoads, fabric: Fabric, clock: Clock):
    total = 0.0
    for step in range(20):
        clock.at = 1000.0 + 0.5 * step
        total += 0.5 * (80 if step > 10 else 0)
        counted(loads, fabric, total)
        if step == 11:
            assert foreign(loads) == pytest.approx(40)
        if step == 12:
            assert foreign(loads) == pytest.approx(80)


def test_a_switch_that_starts_from_zero_is_no_burst(loads: LinkLoads, fabric: Fabric, clock: Clock):
    for at, megabits in ((0, 5000.0), (1, 5010.0), (2, 3.0)):
        clock.at = 1000.0 + at
        counted(loads, fabric, megabits)
        assert foreign(loads) in (None, pytest.approx(10))
    clock.at = 1003.0
    counted(loads, fabric, 23.0)
    assert foreign(loads) == pytest.approx(20)


def test_what_was_not_heard_of_for_long_is_not_known_and_not_averaged(
    loads: LinkLoads, fabric: Fabric, clock: Clock
):
    for at, megabits in ((0, 0.0), (1, 50.0)):
        clock.at = 1000.0 + at
        counted(loads, fabric, megabits)
    clock.at = 1007.0
    assert loads.all() == {}
    counted(loads, fabric, 400.0)
    assert loads.all() == {}
    clock.at = 1008.0
    counted(loads, fabric, 430.0)
    assert foreign(loads) == pytest.approx(30)


def test_two_readings_at_once_divide_by_nothing(loads: LinkLoads, fabric: Fabric):
    counted(loads, fabric, 0.0)
    counted(loads, fabric, 10.0)
    assert loads.all() == {}


def test_noise_is_nobodys_and_a_full_link_leaves_a_rest(loads: LinkLoads, fabric: Fabric, clock: Clock):
    for rate, seen in ((1.5, {}), (99.0, {("h1", "leaf1"): pytest.approx(90)})):
        clock.at += 100
        counted(loads, fabric, 0.0)
        clock.at += 1
        counted(loads, fabric, rate)
        assert loads.foreign().links == seen


def test_the_controller_reads_every_direction_of_every_link_in_one_request_of_each_switch(
    tmp_path: Path, fabric: Fabric
):
    """As signs of life are asked for anyway, nothing is asked more often."""

    async def scenario() -> None:
        async with deployed(fabric, tmp_path) as deployment:
            controller = deployment.controller
            await deployment.settled()
            links = {pair for k in fabric.links for pair in ((k.a, k.b), (k.b, k.a))}
            await deployment.until(lambda: controller.loads.all().keys() == links, "all links are known")
            assert {load.foreign for load in controller.loads.all().values()} == {0.0}
            ports, bytes_of = fabric.ports["leaf1"], Counter[tuple[str, int]]()
            deployment.switches["leaf1"].state.ports = bytes_of
            for _ in range(8):
                bytes_of[ARRIVALS, cell(ports["spine1"], False)] += 10**10
                bytes_of[DEPARTURES, cell(ports["h1"], True)] += 10**10
                before = deployment.switches["leaf1"].reads
                await deployment.until(lambda b=before: deployment.switches["leaf1"].reads > b, "read again")
            await deployment.until(lambda: controller.loads.all()["leaf1", "h1"].jobs > 0, "seen")
            seen = controller.loads.all()
            assert seen["spine1", "leaf1"].foreign > 0
            assert seen["spine1", "leaf1"].jobs == 0
            assert seen["leaf1", "h1"].foreign == 0
            assert set(controller.loads.foreign().links) == {("spine1", "leaf1")}

    asyncio.run(scenario())
