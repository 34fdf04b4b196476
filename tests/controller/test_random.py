# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Random sequences of what operators do and what breaks. Afterwards the switches hold exactly what the store asks for,
running jobs' entries carry their packets, and nothing is left of the others."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from netfold.controller.core import Controller
from netfold.controller.features.registry import FEATURES
from netfold.controller.jobs.records import JobState
from netfold.controller.lifecycle.capacity import RefusedError
from netfold.controller.lifecycle.timeouts import ControllerTimeouts
from netfold.controller.planning.plan import Plan
from netfold.controller.scheduling.job_planner import PlanRequest, plan_job
from netfold.controller.scheduling.placement_scheduler import JobExistsError
from netfold.controller.switches.desired_state import desired_contents
from netfold.controller.switches.failed_elements import FailedElements
from netfold.topologies.generators import leaf_spine
from tests.controller.awake import Awake
from tests.controller.deployment import Deployment, PlanThread, ready
from tests.controller.walk import Walk

FABRIC = leaf_spine(2, 2, 2, parameter_servers=1)
TIMEOUTS = ControllerTimeouts(reroute=0.1, restart=3.0, start=10.0, install=5.0, repair=2.0)
BOUND_S = TIMEOUTS.restart + 3 * TIMEOUTS.repair
"""Of all three jobs' repairs together, after a switch has been waited for."""
NAMES = ("a", "b", "c")
SWITCHES = tuple(s.name for s in FABRIC.switches)
LINKS = tuple(
    frozenset((k.a, k.b)) for k in FABRIC.links if not FABRIC.is_host(k.a) and not FABRIC.is_host(k.b)
)

WORKERS = st.lists(st.sampled_from(["h1", "h2", "h3", "h4"]), min_size=1, max_size=4, unique=True)
SCHEME = st.sampled_from(["none", "switchml", "atp", "panama"])
STEPS = st.one_of(
    st.tuples(st.just("submit"), st.sampled_from(NAMES), WORKERS, SCHEME, st.booleans(), st.booleans()),
    st.tuples(st.just("cancel"), st.sampled_from(NAMES)),
    st.tuples(st.just("restart"), st.sampled_from(SWITCHES)),
    st.tuples(st.just("disconnect"), st.sampled_from(SWITCHES)),
    st.tuples(st.just("link"), st.sampled_from(LINKS), st.booleans()),
    st.tuples(st.just("lose"), st.sampled_from(NAMES), st.sampled_from(["h1", "h2"])),
    st.tuples(st.just("replan")),
    st.tuples(st.just("crash")),
    st.tuples(st.just("settle")),
)


async def _submitted(controller: Controller, spec: str, queue: bool) -> None:
    with contextlib.suppress(RefusedError, JobExistsError):
        await controller.requests.submit(spec, queue=queue)


class SlowPlans(PlanThread):
    """Each takes another while, so that what breaks and ends meets plans at any point."""

    def __init__(self, fabric) -> None:
        super().__init__(fabric)
        self._pauses = itertools.cycle((0.0, 0.06, 0.01, 0.12))

    async def plan(self, request: PlanRequest) -> Plan:
        plan = await super().plan(request)
        await asyncio.sleep(next(self._pauses))
        return plan


async def _step(deployment: Deployment, step: tuple) -> None:
    controller = deployment.controller
    match step:
        case ("submit", name, workers, scheme, queue, at_once):
            policy = "continue" if queue else "fail"
            spec = f"name: {name}\nworkers: {workers}\nscheme: {scheme}\nrate: 40\non_worker_loss: {policy}\n"
            submitting = _submitted(controller, f"{spec}priority: {len(workers)}\n", queue)
            if at_once:  # the next step comes while it is planned
                controller.state.tasks.spawn(submitting, f"submission of {name}")
                await asyncio.sleep(0.03)
            else:
                await submitting
        case ("cancel", name) if name in [j.name for j in controller.state.registry.all()]:
            controller.requests.cancel(name)
        case ("restart", switch):
            await deployment.switches[switch].restart()
            await deployment.until(lambda: bool(deployment.switches[switch].clients), "noticed")
        case ("disconnect", switch):
            await deployment.switches[switch].drop_connections()
            await deployment.until(lambda: bool(deployment.switches[switch].clients), "noticed")
        case ("link", link, down):
            known = controller.state.failures.failed.links
            controller.switches.failure_monitor.links_changed(known | {link} if down else known - {link})
        case ("lose", name, host) if name in [j.name for j in controller.state.registry.all()]:
            if controller.state.registry.get(name).member(host) is not None:
                controller.jobs.members.handle_loss(name, host, f"{host} is gone")
        case ("replan",):
            await controller.requests.replan([])
        case ("crash",):
            await deployment.kill()
            deployment.start()
        case ("settle",):
            await deployment.settled()


async def _whole(steps: list[tuple]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        plans = SlowPlans(FABRIC)
        async with ready(FABRIC, Path(folder), timeouts=TIMEOUTS, plans=plans) as deployment:
            watching = asyncio.create_task(_watch(deployment))
            for step in steps:
                await _step(deployment, step)
            await deployment.idle()
            failures = deployment.controller.state.failures
            await deployment.until(lambda: not failures.awaited, "given up, or back")
            await deployment.idle()
            assert not watching.done(), watching.exception()
            watching.cancel()
            deployment.assert_exact()
            for job in deployment.controller.state.registry.all():
                running = job.state is JobState.RUNNING
                assert not (running and deployment.controller.jobs.lifecycle.is_affected(job)), (
                    f"{job.name}: {job.reason}"
                )
            _assert_carries(deployment)
            await _assert_no_job_waits_for_nothing(deployment)
            await deployment.idle()
            controller = deployment.controller
            revisions = controller.state.registry.revisions()
            empty = desired_contents(controller.state.config, [], controller.state.failures.failed, revisions)
            assert deployment.held() == empty, "something is left of jobs that are over"
            assert all(p.in_use == 0 for p in deployment.controller.state.registry.occupancy().values())


async def _watch(deployment: Deployment) -> None:
    """No job runs over something that is broken or lost for longer than its repair may take."""
    since: dict[str, float] = {}
    clock = Awake()
    while True:
        await asyncio.sleep(0.02)
        controller, now = deployment.controller, clock()
        hit = {
            j.name
            for j in controller.state.registry.all()
            if j.state is JobState.RUNNING and controller.jobs.lifecycle.is_affected(j)
        }
        since = {name: since.get(name, now) for name in hit}
        late = [n for n, began in since.items() if now - began > BOUND_S]
        assert not late, f"{late} run over {controller.state.failures.failed}"


async def _assert_no_job_waits_for_nothing(deployment: Deployment) -> None:
    """Jobs end one after the other; a job that still waits when nothing runs would not fit alone, either."""
    controller = deployment.controller
    while live := [j for j in controller.state.registry.all() if not j.state.is_terminal]:
        running = [j for j in live if j.state.is_installed]
        for job in () if running else live:
            resolved = controller.state.registry.resolved_job(job.name)
            alone = PlanRequest(
                resolved, failed=controller.state.failures.failed, excluded_members=frozenset(job.excluded)
            )
            with pytest.raises(RefusedError):
                plan_job(FABRIC, alone)
        controller.requests.cancel((running or live)[0].name)
        await deployment.idle()


def _assert_carries(deployment: Deployment) -> None:
    jobs = [j for j in deployment.controller.state.registry.all() if j.state is JobState.RUNNING]
    switches = desired_contents(deployment.controller.state.config, jobs, FailedElements(), features=FEATURES)
    for job in jobs:
        for planned, tree in zip(job.placement.trees, job.placement.plan.trees, strict=True):
            workers = [e.child for e in tree.edges if FABRIC.is_host(e.child)]
            assert not set(workers) & set(job.excluded)
            walk = Walk(FABRIC, switches, planned, tree, job.epoch)
            for worker in workers:
                walk.send(worker, udp_port=job.udp_port)
            assert walk.results == dict.fromkeys(workers, 1)


LEFT_WITHOUT_A_PATH = [
    ("link", frozenset(("leaf2", "spine1")), True),
    ("submit", "b", ["h3", "h1"], "none", False, False),
    ("link", frozenset(("leaf2", "spine2")), True),
]
"""The job runs until its last link is given up."""


@settings(max_examples=12, print_blob=True, suppress_health_check=list(HealthCheck))
@example(LEFT_WITHOUT_A_PATH)
@given(st.lists(STEPS, min_size=2, max_size=10))
def test_random_sequences(steps):
    asyncio.run(_whole(steps))


@pytest.mark.long
@settings(max_examples=300, print_blob=True, suppress_health_check=list(HealthCheck))
@given(st.lists(STEPS, min_size=2, max_size=25))
def test_random_sequences_at_length(steps):
    asyncio.run(_whole(steps))
