# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs leave drained elements although switches refuse them, and neither break for it nor hold others up."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest

from netfold.controller.jobs.records import JobState
from netfold.controller.jobs.withdrawal import Intent
from netfold.controller.lifecycle.events import CapacityFreed
from netfold.controller.planning.plan import Plan
from netfold.controller.scheduling import migration_scheduler
from netfold.controller.scheduling.job_planner import PlanRequest, plan_job
from netfold.topologies.fabric import Fabric
from netfold.topologies.generators import leaf_spine
from tests.controller.deployment import TIMEOUTS, Deployment, deployed

SPEC = "name: {name}\nworkers: [{workers}]\nscheme: switchml\nrate: {rate}\n"


def _spines(deployment: Deployment, name: str) -> set[str]:
    nodes = deployment.controller.state.registry.get(name).nodes
    return {s for s in deployment.switches if s.startswith("spine")} & nodes


async def _run_over_spine1(deployment: Deployment, **workers: str) -> None:
    """The jobs, each with its workers, run over spine1 alone; then all spines are free to use."""
    maintenance = deployment.controller.planning.maintenance
    others = [s for s in deployment.switches if s.startswith("spine") and s != "spine1"]
    await deployment.settled()
    maintenance.withdraw(others, Intent.CORDON)
    for name, hosts in workers.items():
        await deployment.controller.requests.submit(
            SPEC.format(name=name, workers=hosts, rate=10), queue=False
        )
        await deployment.runs(name)
    maintenance.give_back(others)
    await deployment.idle()


def _refuse(_: object) -> None:
    raise RuntimeError("no room")


def test_a_job_leaves_for_another_spine_than_one_that_refuses_it(tmp_path, monkeypatch):
    monkeypatch.setattr(migration_scheduler, "LEAVE_AGAIN_S", 0.3)

    async def scenario():
        timeouts = dataclasses.replace(TIMEOUTS, install=1.0)
        async with deployed(leaf_spine(2, 3, 2), tmp_path, timeouts=timeouts) as deployment:
            await _run_over_spine1(deployment, job="h1, h3")
            migrations, registry = (
                deployment.controller.planning.migrations,
                deployment.controller.state.registry,
            )
            deployment.switches["spine2"].before_update = _refuse
            deployment.controller.planning.maintenance.withdraw(["spine1"], Intent.DRAIN)
            await deployment.until(
                lambda: "no room" in migrations.stays_because("job"), "it says why it stays"
            )
            assert registry.get("job").state is JobState.RUNNING
            await deployment.until(lambda: _spines(deployment, "job") == {"spine3"}, "it has left")
            assert registry.get("job").reason == migration_scheduler.LEAVES
            assert not migrations.stays_because("job")

    asyncio.run(scenario())


def test_a_job_tries_a_spine_again_that_refused_it_if_there_is_no_other_one(tmp_path, monkeypatch):
    monkeypatch.setattr(migration_scheduler, "LEAVE_AGAIN_S", 0.3)

    async def scenario():
        timeouts = dataclasses.replace(TIMEOUTS, install=1.0)
        async with deployed(leaf_spine(2, 2, 2), tmp_path, timeouts=timeouts) as deployment:
            await _run_over_spine1(deployment, job="h1, h3")
            migrations, spine2 = deployment.controller.planning.migrations, deployment.switches["spine2"]
            works, spine2.before_update = spine2.before_update, _refuse
            deployment.controller.planning.maintenance.withdraw(["spine1"], Intent.DRAIN)
            await deployment.until(lambda: "no room" in migrations.stays_because("job"), "it stays")
            spine2.before_update = works
            await deployment.until(lambda: _spines(deployment, "job") == {"spine2"}, "it has left")

    asyncio.run(scenario())


def test_jobs_whose_moves_failed_do_not_set_each_other_off(tmp_path):
    """The capacity that the one gives back is no room for the other one: both wait for their own next attempts."""

    async def scenario():
        timeouts = dataclasses.replace(TIMEOUTS, install=1.0)
        async with deployed(leaf_spine(2, 2, 4), tmp_path, timeouts=timeouts) as deployment:
            await _run_over_spine1(deployment, a="h1, h5", b="h2, h6")
            registry, migrations = (
                deployment.controller.state.registry,
                deployment.controller.planning.migrations,
            )
            deployment.switches["spine2"].before_update = _refuse
            deployment.controller.planning.maintenance.withdraw(["spine1"], Intent.DRAIN)
            for name in ("a", "b"):
                await deployment.until(lambda: "no room" in migrations.stays_because(name), "it stays")  # noqa: B023
            await deployment.idle()
            assert {registry.get(n).state for n in ("a", "b")} == {JobState.RUNNING}
            deployment.controller.state.events.publish(CapacityFreed())
            await deployment.idle()
            assert {registry.get(n).previous for n in ("a", "b")} == {None}

    asyncio.run(scenario())


def test_a_job_that_is_being_installed_leaves_when_it_runs(tmp_path):
    """Its entries alone are there: it would be broken until it is installed elsewhere."""

    async def scenario():
        timeouts = dataclasses.replace(TIMEOUTS, install=1.0)
        async with deployed(leaf_spine(2, 2, 2), tmp_path, timeouts=timeouts) as deployment:
            await _run_over_spine1(deployment, job="h1, h3")
            controller, registry = deployment.controller, deployment.controller.state.registry
            deployment.switches["spine2"].before_update = _refuse
            controller.jobs.members._epochs.start(registry.get("job"), "h1 asked for a new epoch")
            epoch = registry.get("job").epoch
            controller.planning.maintenance.withdraw(["spine1"], Intent.DRAIN)
            await deployment.until(lambda: registry.get("job").epoch > epoch, "it moves")
            assert registry.get("job").previous.epoch == epoch
            await deployment.runs("job")
            assert registry.get("job").epoch == epoch

    asyncio.run(scenario())


class SlowPlans:
    """Plans jobs named `stuck...` in a while."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric

    async def plan(self, request: PlanRequest) -> Plan:
        if request.resolved_job.file.name.startswith("stuck"):
            await asyncio.sleep(0.2)
        return await asyncio.to_thread(plan_job, self._fabric, request)


@pytest.mark.parametrize("stuck", [10])
def test_jobs_that_cannot_leave_do_not_hold_up_submissions(stuck, tmp_path):
    async def scenario():
        fabric = leaf_spine(2, 2, 12)
        async with deployed(fabric, tmp_path, plans=SlowPlans(fabric)) as deployment:
            await deployment.settled()
            controller = deployment.controller
            migrations, submit = controller.planning.migrations, controller.requests.submit
            names = [f"stuck{n}" for n in range(1, stuck + 1)]
            for n, name in enumerate(names, 1):
                await submit(SPEC.format(name=name, workers=f"h{n}, h{12 + n}", rate=1), queue=False)
                await deployment.runs(name)
            controller.planning.maintenance.withdraw(["spine1", "spine2"], Intent.DRAIN)
            await deployment.until(lambda: all(map(migrations.stays_because, names)), "all stay")
            controller.state.events.publish(CapacityFreed())
            await submit(SPEC.format(name="quick", workers="h11, h12", rate=1), queue=False)
            waiting = {w.priority for w in migrations._plan_scheduler._waiting}
            assert len(migrations._plan_scheduler._waiting) > stuck / 2, waiting

    asyncio.run(scenario())
