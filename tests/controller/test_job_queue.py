# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Queued jobs are placed when they fit, in whatever order capacity is freed, plans are made and controllers start."""

from __future__ import annotations

import asyncio

from netfold.controller.jobs.records import JobState, Placement
from netfold.controller.lifecycle.events import JobStranded
from netfold.controller.lifecycle.timeouts import ControllerTimeouts
from netfold.controller.operator.job_text import headline
from netfold.controller.planning.plan import Loads, Plan
from netfold.controller.scheduling.job_queue import JobQueue
from netfold.controller.switches.failed_elements import FailedElements
from netfold.topologies.generators import leaf_spine, single_switch
from tests.controller.deployment import ready

ALL = "name: {}\nworkers: [h1, h2]\nscheme: switchml\n"


async def test_a_queued_job_outlives_a_controller_that_is_away_for_longer_than_a_lease(tmp_path):
    """Its member reconnects a second after the start; its lease is 0.3 s."""
    async with ready(single_switch(2), tmp_path) as deployment:
        await deployment.controller.requests.submit(ALL.format("first"), queue=False)
        await deployment.controller.requests.submit(ALL.format("second") + "lease_ms: 300\n", queue=True)
        deployment.controller.jobs.members.heartbeat("second", "h1")
        await deployment.restart()
        await asyncio.sleep(1)
        deployment.controller.jobs.members.heartbeat("second", "h1")
        assert deployment.state("second") is JobState.QUEUED
        await deployment.until(lambda: deployment.state("second") is JobState.FAILED, "expired", within_s=5)
        assert "the lease of h1 expired" in deployment.job("second").reason


async def test_a_queued_job_is_placed_when_the_lease_of_a_job_that_crashed_expires(tmp_path):
    async with ready(single_switch(2), tmp_path) as deployment:
        controller = deployment.controller
        await deployment.run(ALL.format("crashed") + "lease_ms: 300\n")
        queued = await controller.requests.submit(ALL.format("restarted"), queue=True)
        assert queued.state is JobState.QUEUED
        for host in ("h1", "h2"):
            controller.jobs.members.heartbeat("crashed", host)  # their last
        await deployment.runs("restarted")
        assert "the lease of h" in controller.state.registry.get("crashed").reason


TWO_SPINES = leaf_spine(2, 2, 2)
SPREAD = "name: {}\nworkers: [h1, h3]\nscheme: switchml\n"


async def test_after_a_start_the_queue_waits_until_switches_are_known(tmp_path):
    """A spine died while the controller was away. Without it in the plan the queued job runs at once."""
    timeouts = ControllerTimeouts(reroute=0.1, restart=8.0, start=4.0, install=3.0)
    async with ready(TWO_SPINES, tmp_path, timeouts=timeouts) as deployment:
        await deployment.run(SPREAD.format("first"))
        await deployment.controller.requests.submit(SPREAD.format("second"), queue=True)
        spine = deployment.spine_of("first")
        await deployment.kill()
        await deployment.switches[spine].stop()
        deployment.start()
        deployment.controller.requests.cancel("first")
        await asyncio.sleep(0.5)
        assert deployment.state("second") is JobState.QUEUED
        await deployment.runs("second")
        assert deployment.spine_of("second") != spine


async def test_a_job_that_cannot_avoid_such_a_switch_waits_for_it_and_says_so(tmp_path, monkeypatch):
    """Only time is against it, however often the installation is late."""
    timeouts = ControllerTimeouts(reroute=0.1, restart=3.0, start=10.0, install=0.1)
    async with ready(single_switch(2), tmp_path, timeouts=timeouts) as deployment:
        controller = deployment.controller
        late = []
        controller.state.events.subscribe(JobStranded, late.append)
        with monkeypatch.context() as patch:
            patch.setattr(controller.switches.fleet, "holds", lambda s, version: False)
            await controller.requests.submit(ALL.format("first"), queue=False)
            await deployment.until(lambda: len(late) >= 3, "late three times")
            assert "switches did not take its entries in 0.1 s: s1: it is too busy" in late[0].reason
            assert deployment.state("first") is JobState.INSTALLING
            steps = await deployment.explain("first")
            assert any("s1 has not taken the job's entries yet" in s and "too busy" in s for s in steps)
        controller.jobs.lifecycle.settle()
        await deployment.runs("first")
        assert not any("too busy" in s for s in await deployment.explain("first"))


async def test_a_refusal_of_all_schemes_names_a_bottleneck_once(tmp_path):
    async with ready(single_switch(2), tmp_path) as deployment:
        await deployment.controller.requests.submit(ALL.format("first"), queue=False)
        waits = await deployment.controller.requests.submit("name: second\nworkers: [h1, h2]\n", queue=True)
        clauses = waits.reason.split("no scheme has a plan: ")[1].split("; ")
        assert len(clauses) == len(set(clauses))
        assert headline(waits.reason).count("; ") == 0
        assert "s1" in headline(waits.reason)


async def test_a_reservation_is_made_again_when_one_ahead_of_it_is_another(tmp_path):
    """Also when the new one lies in memory where the old one lay."""

    def placed(epoch: int) -> Placement:
        plan = Plan("first", "fabric", "test", "Gbit/s", (), 1.0, Loads())
        return Placement(plan=plan, trees=(), epoch=epoch)

    async with ready(single_switch(2), tmp_path) as deployment:
        for name in ("runs", "first", "second"):
            await deployment.controller.requests.submit(ALL.format(name), queue=True)
        queue, healthy = JobQueue(deployment.controller.state.registry), FailedElements()
        first, second = (deployment.job(n) for n in ("first", "second"))
        for epoch in range(1, 20):
            for _ in range(2):  # the second one may lie where that of the epoch before lay
                queue.reserve("first", queue.conditions(first, healthy), placed(epoch))
            conditions = queue.conditions(second, healthy)
            assert not queue.is_current("second", conditions), f"the one ahead is new in epoch {epoch}"
            queue.reserve("second", conditions, None)
            assert queue.is_current("second", queue.conditions(second, healthy))
