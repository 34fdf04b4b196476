# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A queued job takes capacity as soon as it is free, whatever else happens at that moment."""

from __future__ import annotations

from dataclasses import replace

import pytest

from netfold.controller.jobs.engine import StoreError
from netfold.controller.jobs.records import JobRecord, JobState
from netfold.controller.lifecycle.timeouts import ControllerTimeouts
from netfold.topologies.generators import leaf_spine
from tests.controller.deployment import Deployment, deployed, ready
from tests.controller.fake_switch import FakeSwitch

PATIENT = ControllerTimeouts(reroute=20.0, restart=30.0, start=10.0, install=30.0)


def _greedy(name: str, workers: str) -> str:
    """A job that takes more than half of a link, or nothing."""
    return f"name: {name}\nworkers: [{workers}]\nscheme: switchml\nrate: 60\nmin_rate: 60\n"


def _link(leaf: str, spine: str) -> frozenset[str]:
    return frozenset((leaf, spine))


async def _moving(deployment: Deployment) -> FakeSwitch:
    """Job `job` moves off a spine, and waits for a leaf of it, which is returned and has to be started."""
    controller = deployment.controller
    await deployment.settled()
    await deployment.run(_greedy("job", "h1, h3"))
    used = controller.state.registry.get("job").placement.links
    first = next(n for link in used for n in link if n.startswith("spine"))
    leaf = deployment.switches["leaf2"]
    await leaf.stop()
    controller.switches.failure_monitor.links_changed(frozenset((_link("leaf1", first),)))
    await deployment.until(lambda: controller.state.registry.get("job").previous is not None, "it moves")
    return leaf


async def _late_waits(deployment: Deployment, workers: str) -> None:
    """All links are well, and job `late` waits for what `job` had."""
    deployment.controller.switches.failure_monitor.links_changed(frozenset())
    await deployment.controller.requests.submit(_greedy("late", workers), queue=True)
    assert deployment.state("late") is JobState.QUEUED


async def test_a_link_is_back_as_another_one_fails(tmp_path):
    async with ready(leaf_spine(3, 2, 2), tmp_path) as deployment:
        controller = deployment.controller
        controller.switches.failure_monitor.links_changed(frozenset((_link("leaf1", "spine1"),)))
        await controller.requests.submit(_greedy("job", "h1, h3"), queue=False)
        await controller.requests.submit(_greedy("late", "h2, h4"), queue=True)
        await deployment.runs("job")
        await deployment.idle()
        assert deployment.state("late") is JobState.QUEUED
        controller.switches.failure_monitor.links_changed(frozenset((_link("leaf3", "spine2"),)))
        await deployment.runs("late")


async def _submit_next(deployment: Deployment, workers: str) -> None:
    text = f"name: next\nworkers: [{workers}]\nscheme: switchml\nrate: 20\n"
    await deployment.controller.requests.submit(text, queue=False)


@pytest.mark.parametrize("is_refused", [False, True], ids=["", "and the store refuses that of the next one"])
async def test_a_job_starts_a_new_epoch_while_it_moves(is_refused, tmp_path, monkeypatch):
    async with deployed(leaf_spine(2, 2, 2), tmp_path, timeouts=PATIENT) as deployment:
        controller, leaf = deployment.controller, await _moving(deployment)
        await _submit_next(deployment, "h3, h4")
        await _late_waits(deployment, "h2, h4")
        write = controller.state.registry.write

        def refuse(job: JobRecord) -> None:
            if job.name == "next":
                raise StoreError("the disk is full")
            write(job)

        on_registers_lost, done = controller.jobs.epochs.on_registers_lost, set[str]()
        if is_refused:
            with monkeypatch.context() as full:
                full.setattr(controller.state.registry, "write", refuse)
                with pytest.raises(StoreError):
                    await on_registers_lost("leaf2", done)
        await on_registers_lost("leaf2", done)
        await leaf.start()
        await deployment.runs("late")


@pytest.mark.parametrize("is_refused", [False, True], ids=["", "which the store refuses at first"])
async def test_a_job_has_moved_as_another_one_runs(is_refused, tmp_path, monkeypatch):
    async with deployed(leaf_spine(3, 2, 2), tmp_path, timeouts=PATIENT) as deployment:
        controller, leaf = deployment.controller, await _moving(deployment)
        # There is one way for it, the one that `job` moves to.
        await _submit_next(deployment, "h1, h4")
        await _late_waits(deployment, "h5, h4")
        refusals = [StoreError("the disk is full")] if is_refused else []
        commit = controller.jobs.lifecycle.commit

        def may_refuse(job: JobRecord) -> None:
            if job.name == "next" and refusals:
                raise refusals.pop()
            commit(job)

        monkeypatch.setattr(controller.jobs.lifecycle, "commit", may_refuse)
        await leaf.start()
        await deployment.runs("late")
        assert not refusals


async def test_a_job_is_moved_without_room_for_both_of_its_placements(tmp_path):
    """Its old capacity is free as soon as its slots are given up, before it runs again."""
    fabric = leaf_spine(4, 2, 2)
    slots = {"leaf2": 16, "leaf3": 32}
    switches = (replace(s, capacity=1000.0 * (s.name in slots)) for s in fabric.switches)
    small = replace(fabric, switches=tuple(replace(s, slots=slots.get(s.name, 16)) for s in switches))
    async with deployed(small, tmp_path, timeouts=PATIENT) as deployment:
        controller = deployment.controller
        links_changed = controller.switches.failure_monitor.links_changed
        await deployment.settled()
        links_changed(frozenset((_link("leaf3", "spine1"),)))
        await deployment.run(_greedy("third", "h6, h7") + "slots: 16\n")
        links_changed(frozenset((_link("leaf1", "spine2"),)))
        await deployment.run(_greedy("job", "h1, h3"))
        links_changed(frozenset())
        await controller.requests.submit(_greedy("late", "h2, h5"), queue=True)
        await deployment.idle()
        assert deployment.state("late") is JobState.QUEUED
        await deployment.switches["spine2"].stop()
        links_changed(frozenset((_link("leaf2", "spine1"),)))
        await deployment.until(lambda: controller.state.registry.get("job").epoch == 2, "it moves")
        assert controller.state.registry.get("job").previous is None
        await deployment.runs("late")
        assert deployment.state("job") is JobState.INSTALLING


async def test_a_job_that_was_planned_before_all_links_were_known_is_planned_again(tmp_path):
    """Right after the start a spine is missing, and the second job gets what the first leaves at the other one."""
    timeouts = replace(PATIENT, reroute=0.1, start=0.5)
    deployment = Deployment(leaf_spine(2, 2, 2), tmp_path, probe_s=0.05, timeouts=timeouts)
    late = deployment.switches["spine2"]
    others = [s for s in deployment.switches.values() if s is not late]
    for switch in deployment.switches.values():
        await switch.start()
    await late.stop()  # it has its port
    deployment.start()
    try:
        controller = deployment.controller
        for name, workers in (("first", "h1, h3"), ("second", "h2, h4")):
            job = f"name: {name}\nworkers: [{workers}]\nscheme: switchml\nrate: 60\nreroute: off\n"
            await controller.requests.submit(job, queue=True)
            await deployment.runs(name)
        assert controller.state.registry.get("second").placement.plan.rate == pytest.approx(40)
        await late.start()
        others.append(late)
        await deployment.until(
            lambda: controller.state.registry.get("second").placement.plan.rate == pytest.approx(60),
            "moved",
        )
        await deployment.runs("second")
    finally:
        await deployment.kill()
        for switch in others:
            await switch.stop()
