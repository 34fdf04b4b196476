# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Events that come while another one is processed: plans that take long, changes that cross, controllers that start
among faults."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable

import pytest

from netfold.controller.jobs.records import JobState
from netfold.controller.jobs.withdrawal import Intent
from netfold.controller.lifecycle.capacity import RefusedError
from netfold.controller.lifecycle.events import CapacityFreed, FailuresChanged
from netfold.controller.lifecycle.timeouts import ControllerTimeouts
from netfold.controller.planning.plan import Plan
from netfold.controller.scheduling.job_planner import PlanRequest
from netfold.controller.switches.failed_elements import FailedElements
from netfold.protocol import netfold_pb2 as pb
from netfold.topologies.generators import leaf_spine, single_switch
from tests.controller.deployment import (
    DEADLINE_S,
    Deployment,
    MemberStream,
    PlanThread,
    deployed,
    full_disk,
    ready,
    served,
)

FABRIC = leaf_spine(2, 2, 2)
SPREAD = "name: job\nworkers: [h1, h3]\nscheme: switchml\nrate: 20\n"
TIMEOUTS = ControllerTimeouts(reroute=0.1, restart=0.5, start=1.5, install=5.0)


class HeldPlans(PlanThread):
    """Plans are made, and not handed out while `gate` is closed; `asked` is told of each."""

    def __init__(self, fabric) -> None:
        super().__init__(fabric)
        self.gate = asyncio.Event()
        self.gate.set()
        self.asked: asyncio.Queue[PlanRequest] = asyncio.Queue()

    async def plan(self, request: PlanRequest) -> Plan:
        plan = await super().plan(request)
        self.asked.put_nowait(request)
        await self.gate.wait()
        return plan

    async def held(self) -> None:
        """The next plan is made and waits."""
        self.gate.clear()
        while not self.asked.empty():
            self.asked.get_nowait()

    async def made(self) -> PlanRequest:
        async with asyncio.timeout(DEADLINE_S):
            return await self.asked.get()


async def _two_with_a_spine_each(deployment: Deployment) -> None:
    for name, workers in (("job", "h1, h3"), ("other", "h2, h4")):
        spec = f"name: {name}\nworkers: [{workers}]\nscheme: switchml\nrate: 60\nmin_rate: 60\n"
        await deployment.controller.requests.submit(spec, queue=False)
        await deployment.runs(name)


def _assert_avoids(deployment: Deployment, name: str = "job") -> None:
    assert not deployment.controller.jobs.lifecycle.is_affected(deployment.job(name))


async def test_a_link_that_dies_while_a_plan_is_made_is_not_in_it(tmp_path):
    plans = HeldPlans(FABRIC)
    async with ready(FABRIC, tmp_path, plans=plans) as deployment:
        await plans.held()
        submitting = asyncio.create_task(deployment.controller.requests.submit(SPREAD, queue=False))
        await plans.made()
        down = frozenset((frozenset(("leaf1", "spine1")),))
        deployment.controller.switches.failure_monitor.links_changed(down)
        plans.gate.set()
        await submitting
        first = deployment.spine_of()
        _assert_avoids(deployment)
        await deployment.runs("job")
        # the same for a job that moves: the way it moves to breaks meanwhile, and the old one is whole again
        other = next(s for s in ("spine1", "spine2") if s != first)
        deployment.controller.switches.failure_monitor.links_changed(frozenset())
        await plans.held()
        deployment.controller.switches.failure_monitor.links_changed(
            frozenset((frozenset(("leaf1", first)),))
        )
        await plans.made()
        deployment.controller.switches.failure_monitor.links_changed(
            frozenset((frozenset(("leaf1", other)),))
        )
        plans.gate.set()
        await deployment.idle()
        assert deployment.state("job") is JobState.RUNNING
        _assert_avoids(deployment)
        deployment.assert_exact()


async def test_replan_moves_a_job_off_what_is_broken_though_it_gains_nothing(tmp_path):
    async with ready(FABRIC, tmp_path) as deployment:
        await deployment.run(SPREAD)
        deployment.controller.state.failures.failed = FailedElements(
            frozenset((frozenset(("leaf1", deployment.spine_of())),))
        )
        assert await deployment.controller.requests.replan(["job"]) == ["job"]
        _assert_avoids(deployment)


async def test_a_controller_that_starts_over_a_dead_switch_ends_the_jobs_that_need_it(tmp_path):
    async with ready(FABRIC, tmp_path, timeouts=TIMEOUTS) as deployment:
        await deployment.run(SPREAD)
        await deployment.kill()
        await deployment.switches["leaf1"].stop()
        deployment.start()
        await deployment.until(lambda: deployment.state("job") is JobState.FAILED, "failed")
        assert "switch leaf1 is unreachable" in deployment.job("job").reason


async def test_a_link_that_broke_while_no_controller_was_there_is_down_to_the_next(tmp_path):
    async with ready(FABRIC, tmp_path, probe_s=0.05) as deployment:
        await deployment.run(SPREAD)
        spine = deployment.spine_of()
        await deployment.kill()
        deployment.cut.add(frozenset(("leaf1", spine)))
        deployment.start()
        await deployment.until(lambda: deployment.spine_of() != spine, "moved")
        await deployment.idle()
        _assert_avoids(deployment)


async def test_a_controller_that_was_held_up_gives_a_switch_the_time_that_it_had_not(tmp_path):
    """As where its machine is paused: timers are due before it has heard that the switch is back."""
    timeouts = ControllerTimeouts(reroute=0.1, restart=2.0, start=10.0, install=5.0)
    async with ready(FABRIC, tmp_path, timeouts=timeouts) as deployment:
        await deployment.run(SPREAD)
        switch = deployment.switches["leaf1"]
        await switch.stop()
        await deployment.until(
            lambda: not deployment.controller.switches.fleet.health("leaf1").ready, "noticed"
        )
        await switch.start()
        time.sleep(2.5)
        await deployment.until(lambda: deployment.controller.switches.fleet.health("leaf1").ready, "back")
        await deployment.idle()
        assert deployment.state("job") is JobState.RUNNING


class BrokenPlans(PlanThread):
    broken = False

    async def plan(self, request: PlanRequest) -> Plan:
        if self.broken:
            raise ZeroDivisionError("a defect")
        return await super().plan(request)


async def test_a_planner_that_breaks_ends_what_it_was_to_repair_and_what_waits_and_says_so(tmp_path, caplog):
    plans = BrokenPlans(FABRIC)
    async with ready(FABRIC, tmp_path, plans=plans) as deployment:
        controller = deployment.controller
        await controller.requests.submit(SPREAD, queue=False)
        await controller.requests.submit(
            "name: late\nworkers: [h1, h4]\nrate: 90\nmin_rate: 90\n", queue=True
        )
        await deployment.runs("job")
        plans.broken = True
        controller.switches.failure_monitor.links_changed(
            frozenset((frozenset(("leaf1", deployment.spine_of())),))
        )
        await deployment.until(lambda: controller.state.registry.get("late").state.is_terminal, "over")
        assert "the planner crashed: a defect" in controller.state.registry.get("job").reason
        assert "the planner crashed: a defect" in controller.state.registry.get("late").reason
        assert "ZeroDivisionError" in caplog.text
        plans.broken = False
        await deployment.run(SPREAD.replace("job", "next"))


class NeverDone(PlanThread):
    """From `held` on no plan is ever done; `asked` counts."""

    held = False
    asked = 0

    async def plan(self, request: PlanRequest) -> Plan:
        if self.held:
            self.asked += 1
            await asyncio.Event().wait()
        return await super().plan(request)


@pytest.mark.slow
async def test_a_repair_that_finds_no_plan_in_time_is_made_again_and_ends_no_job(tmp_path, monkeypatch):
    """First jobs may wait for their switch, then they may not: a job under way or in line is asked for once at a
    time."""
    monkeypatch.setattr("netfold.controller.scheduling.migration_scheduler.PLAN_AGAIN_S", 0.1)
    plans = NeverDone(FABRIC)
    timeouts = ControllerTimeouts(reroute=0.05, restart=0.4, start=10.0, repair=1.0)
    async with ready(FABRIC, tmp_path, plans=plans, timeouts=timeouts) as deployment:
        names = ("a", "b", "c")
        for name in names:
            await deployment.controller.requests.submit(SPREAD.replace("job", name), queue=False)
            await deployment.runs(name)
        plans.held = True
        await deployment.switches["leaf1"].stop()
        await deployment.until(lambda: plans.asked > len(names), "made again")
        assert [t.get_name() for t in deployment.controller.state.tasks.under_way].count(
            "repair of job a"
        ) <= 1
        assert not any(deployment.state(n).is_terminal for n in names)
        await deployment.until(
            lambda: deployment.controller.planning.migrations.postponed("a") != [], "postponed"
        )
        assert any("was found within" in s for s in await deployment.explain("a"))
        plans.held = False
        await deployment.until(lambda: all(deployment.state(n).is_terminal for n in names), "over")
        assert "leaf1 is unreachable for 0.4 s" in deployment.job("a").reason


async def test_a_job_whose_link_is_down_moves_when_another_has_ended(tmp_path):
    timeouts = ControllerTimeouts(restart=3600.0)
    async with ready(FABRIC, tmp_path, timeouts=timeouts) as deployment:
        controller = deployment.controller
        await _two_with_a_spine_each(deployment)
        spine = deployment.spine_of()
        controller.switches.failure_monitor.links_changed(frozenset((frozenset(("leaf1", spine)),)))
        await deployment.until(lambda: controller.planning.migrations.postponed("job") != [], "postponed")
        controller.requests.cancel("other")
        await deployment.until(lambda: deployment.spine_of() != spine, "moved")
        await deployment.runs("job")


async def test_a_repair_that_finds_no_plan_in_time_waits_its_time_though_capacity_is_freed(
    tmp_path, monkeypatch
):
    """Else the planner would make nothing but this plan while other jobs come and go."""
    monkeypatch.setattr("netfold.controller.scheduling.migration_scheduler.PLAN_AGAIN_S", 3600.0)
    plans = NeverDone(FABRIC)
    timeouts = ControllerTimeouts(restart=3600.0, repair=0.2)
    async with ready(FABRIC, tmp_path, plans=plans, timeouts=timeouts) as deployment:
        controller = deployment.controller
        await deployment.run(SPREAD)
        plans.held = True
        spine = deployment.spine_of()
        controller.switches.failure_monitor.links_changed(frozenset((frozenset(("leaf1", spine)),)))
        await deployment.until(lambda: controller.planning.migrations.postponed("job") != [], "postponed")
        for _ in range(3):
            controller.state.events.publish(CapacityFreed())
            await deployment.idle()
        assert plans.asked == 1


class _Freeing(PlanThread):
    """`free` is called after the first plan that there is not, before it is refused."""

    free: Callable[[], object] | None = None

    async def plan(self, request: PlanRequest) -> Plan:
        try:
            return await super().plan(request)
        except RefusedError:
            if (free := self.free) is not None:
                self.free = None
                free()
            raise


@pytest.mark.parametrize("is_final", [False, True])
async def test_a_job_moves_when_another_ends_while_its_repair_looks_in_vain(tmp_path, is_final):
    plans = _Freeing(FABRIC)
    timeouts = ControllerTimeouts(restart=3600.0)
    async with ready(FABRIC, tmp_path, plans=plans, timeouts=timeouts) as deployment:
        controller = deployment.controller
        await _two_with_a_spine_each(deployment)
        spine = deployment.spine_of()
        plans.free = functools.partial(controller.requests.cancel, "other")
        down = FailedElements(frozenset((frozenset(("leaf1", spine)),)))
        controller.state.failures.failed = down
        controller.state.failures.awaited = frozenset() if is_final else down.links
        controller.planning.migrations.repair("job", "a link is down", fail=is_final)
        await deployment.idle()
        assert not deployment.state("job").is_terminal
        await deployment.runs("job")
        assert deployment.spine_of() != spine


class _RefusingOnce(PlanThread):
    """`free` is called once before a plan is refused that there was no room for."""

    free: Callable[[], object] | None = None

    async def plan(self, request: PlanRequest) -> Plan:
        if (free := self.free) is not None:
            self.free = None
            free()
            raise RefusedError("there is no room")
        return await super().plan(request)


@pytest.mark.parametrize("is_awaited", [False, True])
@pytest.mark.parametrize("step", ["other slots", "a new worker"])
async def test_a_job_is_planned_again_when_another_ends_while_there_is_no_room(tmp_path, step, is_awaited):
    plans = _RefusingOnce(FABRIC)
    timeouts = ControllerTimeouts(restart=3600.0)
    async with deployed(FABRIC, tmp_path, plans=plans, timeouts=timeouts) as deployment:
        controller = deployment.controller
        registry, migrations = controller.state.registry, controller.planning.migrations
        await deployment.settled()
        await deployment.run(SPREAD)
        await deployment.run(SPREAD.replace("job", "other"))
        before = controller.jobs.members.add("job", ("h2",))
        if is_awaited:
            controller.state.failures.awaited = frozenset({"leaf9"})
        plans.free = functools.partial(controller.requests.cancel, "other")
        if step == "other slots":
            migrations.renew("job", before.epoch, "its epochs are used up")
        else:
            with registry.change():
                registry.write(before.model_copy(update={"rejoining": ("h2",)}))
            migrations.admit("job")
        await deployment.idle()
        await deployment.runs("job")
        now = registry.get("job")
        assert now.epoch != before.epoch
        assert ("h2" in now.workers) is (step == "a new worker")


async def test_a_job_that_cannot_stay_ends_though_a_switch_was_away_meanwhile(tmp_path):
    fabric = leaf_spine(2, 1, 2)
    async with ready(fabric, tmp_path, timeouts=ControllerTimeouts(restart=3600.0)) as deployment:
        controller = deployment.controller
        await deployment.run(SPREAD)
        link = frozenset((frozenset(("leaf1", "spine1")),))
        controller.switches.failure_monitor.links_changed(link)
        await deployment.until(lambda: controller.planning.migrations.postponed("job") != [], "postponed")
        controller.planning.migrations.repair("job", "a worker is lost", fail=True)
        await deployment.idle()
        controller.planning.migrations.repair("job", "a switch is unreachable", fail=False)
        await deployment.idle()
        controller.state.failures.awaited = frozenset()
        controller.state.events.publish(FailuresChanged())
        await deployment.until(lambda: deployment.state("job") is JobState.FAILED, "ended")
        assert controller.state.registry.get("job").reason.startswith("a worker is lost")


async def test_a_switch_that_was_given_up_is_waited_for_once_it_is_held(tmp_path, monkeypatch):
    timeouts = ControllerTimeouts(reroute=0.05, restart=0.4, start=10.0)
    async with ready(leaf_spine(2, 1, 2), tmp_path, timeouts=timeouts) as deployment:
        controller, change = deployment.controller, deployment.store.change
        await deployment.run(SPREAD)
        monkeypatch.setattr(deployment.store, "change", full_disk)
        await deployment.switches["leaf1"].stop()
        failures = controller.state.failures
        await deployment.until(
            lambda: "leaf1" in failures.failed.switches and not failures.awaited, "given up"
        )
        monkeypatch.setattr(deployment.store, "change", change)
        controller.planning.maintenance.withdraw(["leaf1"], Intent.HOLD, "", 3600.0)
        assert failures.awaited == {"leaf1"}
        await deployment.until(lambda: controller.planning.migrations.postponed("job") != [], "waits")
        controller.planning.maintenance.give_back(["leaf1"])
        await deployment.until(lambda: deployment.state("job") is JobState.FAILED, "over")


async def test_what_breaks_while_a_repair_looks_in_vain_is_looked_at_after_it(tmp_path):
    plans = NeverDone(FABRIC)
    async with deployed(FABRIC, tmp_path, plans=plans, timeouts=ControllerTimeouts(repair=0.5)) as deployment:
        controller = deployment.controller
        await deployment.settled()
        await deployment.run(SPREAD)
        spine = deployment.spine_of()
        plans.held = True
        controller.state.failures.failed = FailedElements(frozenset((frozenset(("leaf1", spine)),)))
        controller.planning.migrations.repair("job", "a switch is unreachable", fail=False)
        await deployment.until(lambda: plans.asked == 1, "under way")
        plans.held = False
        controller.state.failures.failed = FailedElements(frozenset((frozenset(("leaf2", spine)),)))
        controller.planning.migrations.repair("job", "another link is down", fail=True)
        await deployment.idle()
        assert deployment.state("job") is JobState.RUNNING
        assert controller.state.registry.get("job").reason == "another link is down"
        _assert_avoids(deployment)


async def test_a_job_whose_new_place_is_refused_stays_where_it_runs(tmp_path):
    timeouts = ControllerTimeouts(reroute=0.1, restart=3.0, start=10.0, install=0.5)
    async with ready(single_switch(2), tmp_path, timeouts=timeouts) as deployment:
        controller, switch = deployment.controller, deployment.switches["s1"]
        await controller.requests.submit("name: a\nworkers: 2\nscheme: switchml\nrate: 80\n", queue=False)
        await deployment.run("name: b\nworkers: 2\nscheme: switchml\n")
        controller.requests.cancel("a")
        await deployment.settled()
        before = controller.state.registry.get("b")

        def never(_: int) -> None:
            raise RuntimeError("no room")

        switch.before_update = never
        assert await controller.requests.replan(["b"]) == ["b"]
        await deployment.until(lambda: deployment.state("b") is not JobState.INSTALLING, "decided")
        after = controller.state.registry.get("b")
        assert (after.state, after.placement) == (JobState.RUNNING, before.placement)
        assert "it stays where it was: switches did not take its entries" in after.reason
        switch.before_update = lambda n: None
        await deployment.settled_exactly()


async def test_a_job_that_moves_before_it_ran_has_no_place_to_go_back_to(tmp_path, monkeypatch):
    """It would go back to entries that switches never took."""
    async with ready(FABRIC, tmp_path) as deployment:
        controller = deployment.controller
        monkeypatch.setattr(controller.switches.fleet, "holds", lambda *_: False)
        await controller.requests.submit(SPREAD, queue=False)
        broken = frozenset(("leaf1", deployment.spine_of()))
        controller.state.failures.failed = FailedElements(frozenset((broken,)))
        controller.planning.migrations.repair("job", "a link is down", fail=True)
        await deployment.until(lambda: deployment.job("job").reason == "a link is down", "moved")
        assert (deployment.state("job"), deployment.job("job").previous) == (JobState.INSTALLING, None)
        _assert_avoids(deployment)


async def test_a_job_waits_for_its_own_entries_and_not_for_those_of_later_jobs(tmp_path, monkeypatch):
    async with ready(single_switch(4), tmp_path) as deployment:
        controller = deployment.controller
        applied = 0
        monkeypatch.setattr(controller.switches.fleet, "holds", lambda switch, version: version <= applied)
        await controller.requests.submit("name: a\nworkers: [h1, h2]\nscheme: switchml\n", queue=False)
        version = controller.switches.fleet.version
        await controller.requests.submit("name: b\nworkers: [h3, h4]\nscheme: switchml\n", queue=False)
        applied = version
        controller.jobs.lifecycle.settle()
        assert (deployment.state("a"), deployment.state("b")) == (JobState.RUNNING, JobState.INSTALLING)


async def test_submit_waits_for_switches_that_still_connect(tmp_path):
    async with deployed(FABRIC, tmp_path) as deployment:
        submitting = asyncio.create_task(deployment.controller.requests.submit(SPREAD, queue=False))
        await deployment.settled()
        assert (await submitting).state is JobState.INSTALLING
        await deployment.runs("job")


async def test_no_job_overtakes_a_waiting_one_where_both_want_to_go(tmp_path):
    async with ready(single_switch(12), tmp_path) as deployment:
        controller = deployment.controller
        spec = "name: {}\nworkers: {}\nscheme: switchml\npriority: {}\n"
        await controller.requests.submit(spec.format("first", "[h1, h2]", 0), queue=False)
        await controller.requests.submit(spec.format("big", "[h1, h2, h3, h4]", 100), queue=True)
        small = await controller.requests.submit(spec.format("small", "[h3, h4]", -100), queue=True)
        assert small.state is JobState.QUEUED, "h3 and h4 are kept for the one that waits already"
        assert "capacity is reserved for 1 jobs ahead in the queue" in small.reason
        aside = await controller.requests.submit(spec.format("aside", "[h5, h6]", -100), queue=True)
        assert aside.state is JobState.INSTALLING, "no other job waits for h5 and h6"
        controller.requests.cancel("first")
        await deployment.runs("big")
        await deployment.idle()
        assert deployment.state("small") is JobState.QUEUED
        controller.requests.cancel("big")
        await deployment.runs("small")


@pytest.mark.parametrize("reported", ["job", "other"])
async def test_reports_of_strangers_leave_nothing_behind(reported, tmp_path):
    async with served(single_switch(3), tmp_path) as (deployment, stub):
        await deployment.controller.requests.submit("name: job\nworkers: 2\nscheme: switchml\n", queue=False)
        stranger = MemberStream(stub, reported, "h3")
        await stranger.say(report=pb.Report(chunks=5))
        with pytest.raises(Exception, match=r"h3|other"):
            await stranger.call.read()
        assert not deployment.controller.state.member_status.of(reported)
