# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The controller is killed after every single write into a switch, whatever it is doing. The next one converges to
exactly what the store asks for: no entry is missing, none is left behind, no slot is lost."""

from __future__ import annotations

import asyncio

import pytest

from netfold.controller.jobs.records import JobState
from netfold.controller.lifecycle.allocation import slot_pools
from netfold.topologies.generators import leaf_spine
from tests.controller.deployment import Deployment, deployed, ready

FABRIC = leaf_spine(2, 2, 2, parameter_servers=1)
FIRST = "name: first\nworkers: [h1, h3]\nparameter_servers: 0\nscheme: switchml\nrate: 20\n"
SECOND = "name: second\nworkers: [h2, h4]\nparameter_servers: [ps1]\nscheme: none\nrate: 20\n"


class Freeze:
    """From one update on every switch refuses all writes, until it thaws."""

    def __init__(self, deployment: Deployment, after: int) -> None:
        self.done = 0
        self.hit = asyncio.Event()
        self._after = after
        for switch in deployment.switches.values():
            switch.before_update = self._before

    def _before(self, _: int) -> None:
        if self.done >= self._after:
            self.hit.set()
            raise RuntimeError("frozen")
        self.done += 1

    async def is_hit(self, work: asyncio.Task[None]) -> bool:
        """Once it freezes, or once `work` ends before. Raises what `work` raises; its own deadline is not used up while
        the machine stands still."""
        hit = asyncio.create_task(self.hit.wait())
        await asyncio.wait([work, hit], return_when=asyncio.FIRST_COMPLETED)
        hit.cancel()
        if self.hit.is_set():
            return True
        work.result()
        return False

    def thaw(self) -> None:
        self._after = 1 << 60


async def _install(deployment: Deployment) -> None:
    await deployment.controller.requests.submit(SECOND, queue=False)
    await deployment.settled()


async def _remove(deployment: Deployment) -> None:
    deployment.controller.requests.cancel("first")
    await deployment.settled()


async def _raise_epoch(deployment: Deployment) -> None:
    deployment.controller.jobs.members.heartbeat("first", "h1", unusable_epoch=deployment.job("first").epoch)
    await deployment.settled()


async def _restart_switch(deployment: Deployment) -> None:
    placement = deployment.job("first").placement
    epoch = placement.epoch
    await deployment.switches[next(iter(placement.trees[0].bases))].restart()
    await deployment.until(lambda: deployment.job("first").epoch > epoch, "the epoch is raised")
    await deployment.settled()


async def _replace(deployment: Deployment) -> None:
    """The second job takes the place of the first in one go."""
    deployment.controller.requests.cancel("first")
    await deployment.controller.requests.submit(SECOND, queue=False)
    await deployment.settled()


OPERATIONS = {f.__name__.strip("_"): f for f in (_install, _remove, _raise_epoch, _restart_switch, _replace)}


async def _writes_of(operation, folder) -> int:
    """How many updates the operation takes when nothing goes wrong."""
    async with deployed(FABRIC, folder) as deployment:
        await deployment.controller.requests.submit(FIRST, queue=False)
        await deployment.settled()
        freeze = Freeze(deployment, 1 << 60)
        await operation(deployment)
        deployment.assert_exact()
        return freeze.done


async def _dies(operation, after: int, folder) -> bool:
    """Kill the process in the operation after so many writes, and look at the next one. False if the operation ends
    before."""
    folder.mkdir()
    async with deployed(FABRIC, folder) as deployment:
        await deployment.controller.requests.submit(FIRST, queue=False)
        await deployment.settled()
        freeze = Freeze(deployment, after)
        work = asyncio.create_task(operation(deployment))
        if not await freeze.is_hit(work):
            return False
        await deployment.kill()
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        freeze.thaw()
        deployment.start()
        await deployment.settled_exactly()
        for job in deployment.controller.state.registry.all():
            assert job.state in (JobState.RUNNING, JobState.CANCELED), job.reason
        _assert_slots(deployment)
        return True


def _assert_slots(deployment: Deployment) -> None:
    placements = [p for j in deployment.controller.state.registry.all() for p in j.placements]
    pools = slot_pools(deployment.fabric.switches, placements, {})
    wanted = sum(t.slots * len(t.bases) for p in placements for t in p.trees)
    assert sum(p.in_use for p in pools.values()) == wanted


SHORT, LONGER = ("install", "remove", "raise_epoch"), ("restart_switch", "replace")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "step"),
    [
        *((name, 1) for name in SHORT),
        *((name, 7) for name in LONGER),  # most writes are of the same few kinds
        *(pytest.param(name, 1, marks=pytest.mark.long) for name in LONGER),
    ],
)
async def test_killed_after_writes(name, step, tmp_path):
    (tmp_path / "dry").mkdir()
    writes = await _writes_of(OPERATIONS[name], tmp_path / "dry")
    assert writes > 0
    for after in range(0, writes, step):
        is_killed = await _dies(OPERATIONS[name], after, tmp_path / str(after))
        assert is_killed, f"it ended, and was to be killed after {after} of {writes} writes"


async def test_a_controller_that_dies_before_a_job_moved_away_from_a_lost_worker_moves_it_when_it_starts(
    tmp_path,
):
    async with ready(FABRIC, tmp_path) as deployment:
        await deployment.controller.requests.submit(
            "name: job\nworkers: [h1, h2, h3]\nscheme: switchml\nrate: 20\non_worker_loss: continue\n",
            queue=False,
        )
        await deployment.runs("job")
        deployment.controller.jobs.members.handle_loss("job", "h2", "h2 is gone")
        await deployment.kill()
        deployment.start()
        await deployment.idle()
        job = deployment.job("job")
        assert (job.state, job.excluded) == (JobState.RUNNING, ("h2",))
        assert "h2" not in job.nodes
        deployment.assert_exact()
