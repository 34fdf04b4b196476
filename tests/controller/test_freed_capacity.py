# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A queued job takes capacity as soon as it is free, whatever else happens at that moment."""

from __future__ import annotations

import asyncio

from netfold.controller.jobs.records import JobState
from netfold.controller.lifecycle.timeouts import ControllerTimeouts
from netfold.topologies.generators import leaf_spine
from tests.controller.deployment import Deployment, deployed
from tests.controller.fake_switch import FakeSwitch

WHOLE = "workers: [h1, h3]\nscheme: switchml\nrate: 60\nmin_rate: 60\n"
OTHER = "workers: [h2, h4]\nscheme: switchml\nrate: 60\nmin_rate: 60\n"
PATIENT = ControllerTimeouts(reroute=20.0, restart=30.0, start=10.0, install=30.0)


def _link(leaf: str, spine: str) -> frozenset[str]:
    return frozenset((leaf, spine))


async def _moving(deployment: Deployment) -> FakeSwitch:
    """Job `job` moves off a spine, and waits for a leaf of it, which is returned and has to be started."""
    controller = deployment.controller
    await deployment.settled()
    await controller.submit("name: job\n" + WHOLE, queue=False)
    await deployment.runs("job")
    used = controller.registry.get("job").placement.links
    first = next(n for link in used for n in link if n.startswith("spine"))
    leaf = deployment.switches["leaf2"]
    await leaf.stop()
    controller.failure_monitor.links_changed(frozenset((_link("leaf1", first),)))
    await deployment.until(lambda: controller.registry.get("job").previous is not None, "it moves")
    return leaf


def test_a_link_is_back_as_another_one_fails(tmp_path):
    async def scenario():
        async with deployed(leaf_spine(3, 2, 2), tmp_path) as deployment:
            controller = deployment.controller
            await deployment.settled()
            controller.failure_monitor.links_changed(frozenset((_link("leaf1", "spine1"),)))
            await controller.submit("name: job\n" + WHOLE, queue=False)
            await controller.submit("name: late\n" + OTHER, queue=True)
            await deployment.runs("job")
            await deployment.idle()
            assert deployment.state("late") is JobState.QUEUED
            controller.failure_monitor.links_changed(frozenset((_link("leaf3", "spine2"),)))
            await deployment.runs("late")

    asyncio.run(scenario())


def test_a_job_starts_a_new_epoch_while_it_moves(tmp_path):
    async def scenario():
        async with deployed(leaf_spine(2, 2, 2), tmp_path, timeouts=PATIENT) as deployment:
            controller, leaf = deployment.controller, await _moving(deployment)
            controller.failure_monitor.links_changed(frozenset())
            await controller.submit("name: late\n" + OTHER, queue=True)
            assert deployment.state("late") is JobState.QUEUED
            controller.lifecycle.on_registers_lost("leaf2")
            await leaf.start()
            await deployment.runs("late")

    asyncio.run(scenario())


def test_a_job_has_moved_as_another_one_runs(tmp_path):
    async def scenario():
        async with deployed(leaf_spine(3, 2, 2), tmp_path, timeouts=PATIENT) as deployment:
            controller, leaf = deployment.controller, await _moving(deployment)
            await controller.submit(
                "name: next\nworkers: [h1, h4]\nscheme: switchml\nrate: 20\n", queue=False
            )
            controller.failure_monitor.links_changed(frozenset())
            await controller.submit("name: late\n" + OTHER.replace("h2", "h5"), queue=True)
            assert deployment.state("late") is JobState.QUEUED
            await leaf.start()
            await deployment.runs("late")

    asyncio.run(scenario())
