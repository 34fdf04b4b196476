# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Random sequences of what operators do and what breaks. Afterwards the switches hold exactly what the store asks for,
running jobs' entries carry their packets, and nothing is left of the others."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from netfold.controller.jobs.records import JobState
from netfold.controller.lifecycle.admission import RefusedError
from netfold.controller.lifecycle.placing import JobExistsError
from netfold.controller.switches.desired import Broken, desired
from netfold.topologies.generators import leaf_spine
from tests.controller.deployment import Deployment, deployed
from tests.controller.walk import Walk

FABRIC = leaf_spine(2, 2, 2, parameter_servers=1)
NAMES = ("a", "b", "c")
SWITCHES = tuple(s.name for s in FABRIC.switches)
LINKS = tuple(
    frozenset((k.a, k.b)) for k in FABRIC.links if not FABRIC.is_host(k.a) and not FABRIC.is_host(k.b)
)

WORKERS = st.lists(st.sampled_from(["h1", "h2", "h3", "h4"]), min_size=1, max_size=4, unique=True)
SCHEME = st.sampled_from(["none", "switchml", "atp", "panama"])
STEPS = st.one_of(
    st.tuples(st.just("submit"), st.sampled_from(NAMES), WORKERS, SCHEME, st.booleans()),
    st.tuples(st.just("cancel"), st.sampled_from(NAMES)),
    st.tuples(st.just("restart"), st.sampled_from(SWITCHES)),
    st.tuples(st.just("disconnect"), st.sampled_from(SWITCHES)),
    st.tuples(st.just("link"), st.sampled_from(LINKS), st.booleans()),
    st.tuples(st.just("lose"), st.sampled_from(NAMES), st.sampled_from(["h1", "h2"])),
    st.tuples(st.just("replan")),
    st.tuples(st.just("crash")),
    st.tuples(st.just("settle")),
)


async def _step(deployment: Deployment, step: tuple) -> None:
    controller = deployment.controller
    match step:
        case ("submit", name, workers, scheme, queue):
            policy = "continue" if queue else "fail"
            spec = f"name: {name}\nworkers: {workers}\nscheme: {scheme}\nrate: 30\non_worker_loss: {policy}\n"
            with contextlib.suppress(RefusedError, JobExistsError):
                await controller.submit(spec, queue=queue)
        case ("cancel", name) if name in [j.name for j in controller.book.all()]:
            controller.cancel(name)
        case ("restart", switch):
            await deployment.switches[switch].restart()
            await deployment.until(lambda: bool(deployment.switches[switch].clients), "noticed")
        case ("disconnect", switch):
            await deployment.switches[switch].drop_connections()
            await deployment.until(lambda: bool(deployment.switches[switch].clients), "noticed")
        case ("link", link, down):
            known = controller.broken.links
            controller.outages.links_changed(known | {link} if down else known - {link})
        case ("lose", name, host) if name in [j.name for j in controller.book.all()]:
            if controller.book.get(name).member(host) is not None:
                controller.members.lost(name, host, f"{host} is gone")
        case ("replan",):
            await controller.replan([])
        case ("crash",):
            await deployment.kill()
            deployment.start()
        case ("settle",):
            await deployment.settled()


async def _whole(steps: list[tuple]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with deployed(FABRIC, Path(folder)) as deployment:
            await deployment.settled()
            for step in steps:
                await _step(deployment, step)
            await deployment.idle()
            deployment.assert_exact()
            _assert_carries(deployment)
            for job in deployment.controller.book.all():
                deployment.controller.cancel(job.name)
            await deployment.idle()
            empty = desired(deployment.controller.setting, [], deployment.controller.broken)
            assert deployment.held() == empty, "something is left of jobs that are over"
            assert all(p.in_use == 0 for p in deployment.controller.book.occupancy().values())


def _assert_carries(deployment: Deployment) -> None:
    jobs = [j for j in deployment.controller.book.all() if j.state is JobState.RUNNING]
    switches = desired(deployment.controller.setting, jobs, Broken())
    for job in jobs:
        for planned, tree in zip(job.placement.trees, job.placement.plan.trees, strict=True):
            workers = [e.child for e in tree.edges if FABRIC.is_host(e.child)]
            assert not set(workers) & set(job.lost)
            walk = Walk(FABRIC, switches, planned, tree, job.epoch)
            for worker in workers:
                walk.send(worker)
            assert walk.results == dict.fromkeys(workers, 1)


@settings(max_examples=12, deadline=None, print_blob=True, suppress_health_check=list(HealthCheck))
@given(st.lists(STEPS, min_size=2, max_size=10))
def test_random_sequences(steps):
    asyncio.run(_whole(steps))


@pytest.mark.long
@settings(max_examples=300, deadline=None, print_blob=True, suppress_health_check=list(HealthCheck))
@given(st.lists(STEPS, min_size=2, max_size=25))
def test_random_sequences_at_length(steps):
    asyncio.run(_whole(steps))
