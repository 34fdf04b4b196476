# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs leave drained elements although switches refuse them, and neither break for it nor hold others up."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest

from netfold.controller.jobs.records import JobState
from netfold.controller.jobs.withdrawal import Intent, Withdrawal
from netfold.controller.lifecycle.capacity import RefusedError
from netfold.controller.lifecycle.clock import SystemClock
from netfold.controller.lifecycle.events import CapacityFreed, FailuresChanged
from netfold.controller.lifecycle.failure_state import FailureState
from netfold.controller.planning.plan import Plan
from netfold.controller.scheduling import migration_scheduler
from netfold.controller.scheduling.job_planner import PlanRequest, plan_job, without_failed
from netfold.controller.switches.failed_elements import WithdrawalError, element_named, elements_named
from netfold.topologies.fabric import Fabric, Link, Switch
from netfold.topologies.generators import leaf_spine
from tests.controller.deployment import TIMEOUTS, Deployment, deployed, ready

SPEC = "name: {name}\nworkers: [{workers}]\nscheme: switchml\nrate: {rate}\n"


def _spines(deployment: Deployment, name: str) -> set[str]:
    nodes = deployment.job(name).nodes
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


async def test_a_job_leaves_for_another_spine_than_one_that_refuses_it(tmp_path, monkeypatch):
    monkeypatch.setattr(migration_scheduler, "LEAVE_AGAIN_S", 0.3)
    timeouts = dataclasses.replace(TIMEOUTS, install=1.0)
    async with deployed(leaf_spine(2, 3, 2), tmp_path, timeouts=timeouts) as deployment:
        await _run_over_spine1(deployment, job="h1, h3")
        migrations, registry = (
            deployment.controller.planning.migrations,
            deployment.controller.state.registry,
        )
        deployment.switches["spine2"].before_update = _refuse
        deployment.controller.planning.maintenance.withdraw(["spine1"], Intent.DRAIN)
        await deployment.until(lambda: "no room" in migrations.stays_because("job"), "it says why it stays")
        assert registry.get("job").state is JobState.RUNNING
        await deployment.until(lambda: _spines(deployment, "job") == {"spine3"}, "it has left")
        assert registry.get("job").reason == migration_scheduler.LEAVES
        assert not migrations.stays_because("job")


async def test_a_job_tries_a_spine_again_that_refused_it_if_there_is_no_other_one(tmp_path, monkeypatch):
    monkeypatch.setattr(migration_scheduler, "LEAVE_AGAIN_S", 0.3)
    timeouts = dataclasses.replace(TIMEOUTS, install=1.0)
    async with deployed(leaf_spine(2, 2, 2), tmp_path, timeouts=timeouts) as deployment:
        await _run_over_spine1(deployment, job="h1, h3")
        migrations, spine2 = deployment.controller.planning.migrations, deployment.switches["spine2"]
        works, spine2.before_update = spine2.before_update, _refuse
        deployment.controller.planning.maintenance.withdraw(["spine1"], Intent.DRAIN)
        await deployment.until(lambda: "no room" in migrations.stays_because("job"), "it stays")
        spine2.before_update = works
        await deployment.until(lambda: _spines(deployment, "job") == {"spine2"}, "it has left")


async def test_jobs_whose_moves_failed_do_not_set_each_other_off(tmp_path):
    """The capacity that the one gives back is no room for the other one: both wait for their own next attempts."""
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


class SlowPlans:
    """Plans jobs named `stuck...` in a while."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric

    async def plan(self, request: PlanRequest) -> Plan:
        if request.resolved_job.file.name.startswith("stuck"):
            await asyncio.sleep(0.2)
        return await asyncio.to_thread(plan_job, self._fabric, request)


@pytest.mark.parametrize("stuck", [10])
async def test_jobs_that_cannot_leave_do_not_hold_up_submissions(stuck, tmp_path):
    fabric = leaf_spine(2, 2, 12)
    async with ready(fabric, tmp_path, plans=SlowPlans(fabric)) as deployment:
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


def test_names_are_looked_up_once_each_and_one_with_two_meanings_is_refused():
    twins = Fabric(
        "twins",
        hosts=(),
        switches=(Switch("a"), Switch("b"), Switch("a-b")),
        links=(Link("a", "b", 100.0), Link("a-b", "a", 100.0)),
    )
    assert element_named(twins, "a").switches == {"a"}
    for name in ("a-b", "b-a"):
        with pytest.raises(WithdrawalError, match="has two meanings in fabric 'twins': a link and a switch"):
            element_named(twins, name)
    plain = leaf_spine(2, 2, 2)
    assert element_named(plain, "spine1-leaf1") == element_named(plain, "leaf1-spine1")
    assert elements_named(plain, ["leaf1"] * 100_000).names == ["leaf1"]
    with pytest.raises(WithdrawalError, match="at most 4,096 elements, and this one 5,000"):
        elements_named(plain, map(str, range(5000)))
    with pytest.raises(WithdrawalError, match="name a switch, a link or a host"):
        elements_named(plain, [])
    with pytest.raises(WithdrawalError, match="is no switch, link or host"):
        element_named(plain, "-" * 1_000_000)


def test_a_refusal_names_some_of_many_withdrawn_elements():
    fabric = leaf_spine(2, 30, 2)
    withdrawn = elements_named(fabric, [s.name for s in fabric.switches if s.name.startswith("spine")])
    with pytest.raises(RefusedError, match=r"spine\d+ and 14 more$"):
        without_failed(fabric, withdrawn, ("h1", "h3"), {})


async def test_what_is_so_already_plans_nothing(tmp_path):
    fabric = leaf_spine(2, 2, 2)
    async with ready(fabric, tmp_path) as deployment:
        maintenance, events = (
            deployment.controller.planning.maintenance,
            deployment.controller.state.events,
        )
        seen: list[object] = []
        events.subscribe(FailuresChanged, seen.append)
        maintenance.withdraw(["spine1"], Intent.DRAIN, "new fans")
        since = deployment.controller.state.registry.withdrawals[0].since
        maintenance.withdraw(["spine1"], Intent.DRAIN, "new fans")
        maintenance.give_back(["spine2"])
        assert len(seen) == 1
        assert deployment.controller.state.registry.withdrawals[0].since == since
        maintenance.withdraw(["spine1"], Intent.CORDON, "new fans")
        maintenance.give_back(["spine1"])
        assert len(seen) == 3


async def test_a_member_has_its_own_time_to_join_when_its_leaf_is_given_back(tmp_path):
    async with ready(leaf_spine(2, 2, 2), tmp_path) as deployment:
        maintenance = deployment.controller.planning.maintenance
        text = SPEC.format(name="job", workers="h1, h3", rate=20) + "join_s: 1\n"
        await deployment.run(text)
        maintenance.withdraw(["leaf1", "leaf2"], Intent.HOLD, hold_s=600)
        await asyncio.sleep(1.5)
        assert deployment.state("job") is JobState.RUNNING
        maintenance.give_back(["leaf1", "leaf2"])
        await deployment.until(lambda: deployment.state("job") is JobState.FAILED, "it has failed")


def test_a_hold_is_no_longer_than_asked_when_the_clock_is_set_back():
    class Clock(SystemClock):
        now = 10_000.0

        def wall_s(self) -> float:
            return self.now

    clock = Clock()
    failures = FailureState(clock)
    failures.withdraw({}, [Withdrawal(element="leaf1", intent=Intent.HOLD, since=10_000.0, until=10_060.0)])
    assert (failures.held_s("leaf1"), failures.held_s("leaf2")) == (60.0, 0.0)
    clock.now = 1_000.0
    assert failures.held_s("leaf1") == 60.0
    clock.now = 10_061.0
    assert failures.held_s("leaf1") == 0.0
