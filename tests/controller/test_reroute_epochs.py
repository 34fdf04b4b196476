# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs that give way to what ports count, over switches: each move is an epoch, and switches hold exactly that."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from netfold.controller.health import reroute
from netfold.controller.health.link_loads import Link
from netfold.controller.health.reroute import MIN_GAIN
from netfold.controller.jobs.records import JobState
from netfold.controller.switches.port_counters import PORT_RX, cell
from netfold.topologies.fabric import Fabric
from netfold.topologies.spec import load_fabric
from tests.controller.deployment import Deployment, ready
from tests.controller.world import job_file, kept_rate, through

AGING_S = 240.0
"""A busy machine measures loads unevenly, so it takes more moves."""

MEASURED = 0.95
"""The fraction of a gain that is left at least where a busy machine measures a load unevenly. A job whose plan came
from too high a load stays there, until FREED_FRACTION of a link is free again."""


@pytest.fixture(autouse=True)
def _short_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each further move waits twice as long as the one before, up to 80 s: on a busy machine for minutes."""
    for name, seconds in {"DWELL_S": 1.0, "MAX_DWELL_S": 4.0, "RETRY_S": 0.5, "MAX_RETRY_S": 4.0}.items():
        monkeypatch.setattr(reroute, name, seconds)


@pytest.fixture(scope="module")
def fabric() -> Fabric:
    """Hosts' links carry 100, those between switches 200."""
    return load_fabric("leaf-spine-4x2")


class Pressed:
    """Cross traffic over links: every switch's counters go on by as much with each of its readings."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self.links: dict[Link, float] = {}
        self._last = asyncio.get_running_loop().time()
        for switch in deployment.switches.values():
            switch.state.before_ports = self.go_on

    def go_on(self) -> None:
        now = asyncio.get_running_loop().time()
        fabric = self.deployment.fabric
        for (sender, receiver), rate in self.links.items():
            state = self.deployment.switches[receiver].state
            at = (PORT_RX, cell(fabric.ports[receiver][sender], False))
            more = rate * fabric.unit.bits_per_second / 8 * (now - self._last)
            state.ports[at] = state.ports.get(at, 0) + round(more)
        self._last = now

    async def until(self, true: Callable[[], bool], what: str) -> None:
        await self.deployment.until(true, what, AGING_S)


async def test_a_job_moves_by_a_new_epoch_and_back_and_switches_hold_exactly_that(
    tmp_path: Path, fabric: Fabric
):
    async with ready(fabric, tmp_path) as deployment:
        controller = deployment.controller
        await deployment.run(job_file("a", 1, 16))
        pressed = Pressed(deployment)
        first = controller.state.registry.get("a").placement.plan
        both = through(fabric, "spine1", 170.0) | through(fabric, "spine2", 140.0)
        for links, least in (
            (both, MEASURED * MIN_GAIN * kept_rate(fabric, first, both)),
            ({}, first.rate / MIN_GAIN),
        ):
            pressed.links = links

            def there(least: float = least) -> bool:
                job = controller.state.registry.get("a")
                assert job.placement is not None
                keeps = kept_rate(fabric, job.placement.plan, pressed.links) >= least
                return keeps and job.state is JobState.RUNNING and job.reason.startswith("re-routed: ")

            await pressed.until(there, "moved, in one step or in two")
        await deployment.settled_exactly()


async def test_a_submitted_job_gets_a_place_beside_cross_traffic_or_at_all(tmp_path: Path, fabric: Fabric):
    async with ready(fabric, tmp_path) as deployment:
        controller = deployment.controller
        pressed = Pressed(deployment)
        pressed.links = through(fabric, "spine1", 170.0)
        await pressed.until(lambda: len(controller.switches.loads.cross_traffic().links) == 8, "seen")
        await controller.requests.submit(job_file("a", 1, 16, rate=50), queue=False)
        loads = controller.state.registry.get("a").placement.plan.loads.links
        assert all(loads.get(k, 0.0) <= 31 for k in pressed.links)
        await controller.requests.submit(job_file("b", 1, 16, min_rate=49, rate=50), queue=False)
        assert controller.state.registry.get("b").placement.plan.rate == pytest.approx(50)


async def test_what_a_plan_left_to_others_outlives_the_controller(tmp_path: Path, fabric: Fabric):
    """The next one gives it to the job when they have gone, and tells workers the same rate until then."""
    async with ready(fabric, tmp_path) as deployment:
        pressed = Pressed(deployment)
        pressed.links = through(fabric, "spine1", 190.0) | through(fabric, "spine2", 190.0)
        loads = deployment.controller.switches.loads
        await pressed.until(
            lambda: [f > 160 for f in loads.cross_traffic().links.values()] == [True] * 16, "seen"
        )
        await deployment.run(job_file("a", 1, 16))
        before = deployment.job("a").placement
        assert before.plan.rate < 90
        await deployment.kill()
        controller = deployment.start()
        assert controller.state.registry.get("a").placement == before
        await deployment.until(
            lambda: controller.state.registry.get("a").reason == "re-routed: cross traffic has decreased",
            "moved",
        )
        assert controller.state.registry.get("a").placement.plan.rate == pytest.approx(100)
