# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The order in which jobs are planned, preemption, and the process that plans."""

from __future__ import annotations

import asyncio
import itertools
import os

import pytest

from netfold.controller.jobs.file import JobError, resolve_job
from netfold.controller.lifecycle.capacity import RefusedError
from netfold.controller.lifecycle.timeouts import ControllerTimeouts
from netfold.controller.scheduling import plan_scheduler as plan_scheduler_module
from netfold.controller.scheduling.job_planner import PlanRequest
from netfold.controller.scheduling.plan_process import PlannerCrashedError, PlanProcess
from netfold.controller.scheduling.plan_scheduler import MAX_PREEMPTIONS, PlanPriority, PlanScheduler
from netfold.topologies.generators import leaf_spine, single_switch
from tests.controller.deployment import PlanThread, deployed


class Works:
    """Pieces of work that end when they are told to; `log` has every start and end."""

    def __init__(self) -> None:
        self.turns = PlanScheduler()
        self.log: list[str] = []
        self.ends: dict[str, asyncio.Event] = {}

    def ask(self, name: str, priority: PlanPriority) -> asyncio.Task[str]:
        self.ends[name] = asyncio.Event()

        async def work(is_final_attempt: bool) -> str:
            self.log.append(f"{name}, at last" if is_final_attempt else name)
            await self.ends[name].wait()
            return name

        return asyncio.create_task(self.turns.run(priority, work))


async def _settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_the_most_urgent_goes_first_and_what_is_less_urgent_makes_way():
    works = Works()
    works.ask("replan", PlanPriority.REPLAN)
    await _settle()
    tasks = [
        works.ask(n, u)
        for n, u in (
            ("queue", PlanPriority.QUEUE),
            ("submission", PlanPriority.SUBMISSION),
            ("repair", PlanPriority.REPAIR),
        )
    ]
    await _settle()
    for end in works.ends.values():
        end.set()
    await asyncio.gather(*tasks)
    await _settle()
    assert works.log == ["replan", "repair", "submission", "queue", "replan"]


async def test_no_task_is_preempted_for_ever():
    works = Works()
    works.ask("plan", PlanPriority.SUBMISSION)
    await _settle()
    for n in itertools.count():
        repair = works.ask(f"repair{n}", PlanPriority.REPAIR)
        await _settle()
        if works.log[-1] == "plan, at last":
            break
        works.ends[f"repair{n}"].set()
        await repair
        await _settle()
    assert works.log.count("plan") == MAX_PREEMPTIONS


async def test_a_task_that_has_waited_long_is_served_before_new_submissions(monkeypatch):
    monkeypatch.setattr(plan_scheduler_module, "AGING_S", 0.0)
    works = Works()
    names = ("first", "replan", "submission")
    kinds = (PlanPriority.REPAIR, PlanPriority.REPLAN, PlanPriority.SUBMISSION)
    tasks = [works.ask(n, u) for n, u in zip(names, kinds, strict=True)]
    await _settle()
    for end in works.ends.values():
        end.set()
    await asyncio.gather(*tasks)
    assert works.log == list(names)


async def test_a_task_that_gives_up_passes_its_turn_on():
    works = Works()
    running, waiting, last = (works.ask(n, PlanPriority.QUEUE) for n in ("a", "b", "c"))
    await _settle()
    running.cancel()
    waiting.cancel()
    await _settle()
    works.ends["c"].set()
    assert await last == "c"
    assert works.log == ["a", "c"]


HARD = "name: job\nscheme: optimal\noptions: {time_limit: 60}\n"


def _children(process: int) -> list[int]:
    with open(f"/proc/{process}/task/{process}/children") as file:  # noqa: PTH123
        return [int(p) for p in file.read().split()]


async def _until(true) -> None:
    async with asyncio.timeout(60):
        while not true():
            await asyncio.sleep(0.02)


async def test_a_plan_that_is_not_wanted_any_more_is_killed_and_the_next_is_made():
    fabric = leaf_spine(8, 8, 8, parameter_servers=4)
    plans = PlanProcess(fabric)
    try:
        await plans.start()
        process = plans._process.pid
        planning = asyncio.create_task(plans.plan(PlanRequest(resolve_job(HARD, fabric))))
        await _until(lambda: _children(process))
        planning.cancel()
        with pytest.raises(asyncio.CancelledError):
            await planning
        assert not _children(process)
        planning = asyncio.create_task(plans.plan(PlanRequest(resolve_job(HARD, fabric))))
        await _until(lambda: _children(process))
        planning.cancel()
        await asyncio.sleep(0)
        planning.cancel()  # once more while it stops
        easy = resolve_job("name: job\nworkers: 2\nscheme: switchml\n", fabric)
        assert (await plans.plan(PlanRequest(easy))).rate > 0
        assert plans._process.pid == process
        # a planner that dies is an answer, too, and so is a process that dies
        planning = asyncio.create_task(plans.plan(PlanRequest(resolve_job(HARD, fabric))))
        await _until(lambda: _children(process))
        os.kill(_children(process)[0], 9)
        with pytest.raises(PlannerCrashedError, match="signal 9"):
            await planning
        os.kill(process, 9)
        with pytest.raises(PlannerCrashedError, match="its process ended"):
            await plans.plan(PlanRequest(easy))
        assert (await plans.plan(PlanRequest(easy))).rate > 0
        with pytest.raises(RefusedError, match="no parameter server"):
            await plans.plan(
                PlanRequest(resolve_job("name: a\nscheme: none\nparameter_servers: 0\n", fabric))
            )
    finally:
        await plans.close()


@pytest.mark.parametrize("is_under_way", [True, False])
async def test_a_plan_of_a_controller_that_does_not_lead_any_more_waits(is_under_way):
    """Its call is made again of the service that takes the place of this one. An error would be its answer."""
    fabric = leaf_spine(8, 8, 8, parameter_servers=4)
    plans = PlanProcess(fabric)
    await plans.start()
    if not is_under_way:
        await plans.close()
    planning = asyncio.create_task(plans.plan(PlanRequest(resolve_job(HARD, fabric))))
    if is_under_way:
        await _until(lambda: _children(plans._process.pid))
        await plans.close()
    done, _ = await asyncio.wait([planning], timeout=0.5)
    assert not done
    planning.cancel()
    await asyncio.wait([planning])
    assert plans._process is None, "none is left behind"


class NoPlans(PlanThread):
    async def plan(self, request):
        return await asyncio.Event().wait()


async def test_a_plan_that_takes_too_long_is_a_refusal(tmp_path):
    fabric, timeouts = single_switch(2), ControllerTimeouts(plan=0.1)
    async with deployed(fabric, tmp_path, plans=NoPlans(fabric), timeouts=timeouts) as deployment:
        with pytest.raises(RefusedError, match=r"no plan of job 'a' was found within 0.2 s"):
            await deployment.controller.requests.submit(
                "name: a\nworkers: 2\noptions: {time_limit: 0.1}\n", queue=False
            )


def test_a_time_limit_has_a_bound():
    with pytest.raises(JobError, match="job:3:11: time_limit is 900; it is at most 60"):
        resolve_job("name: a\nscheme: optimal\noptions: {time_limit: 900}\n", single_switch(2))
