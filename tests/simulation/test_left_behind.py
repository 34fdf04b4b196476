# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs leave nothing behind: tasks, reservations, streams, rows and memory do not grow with their number."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field

import pytest

from netfold.controller.jobs.store import HISTORY
from tests.simulation.faults import Draws, Intensity
from tests.simulation.history import History
from tests.simulation.many_jobs import census, run_jobs
from tests.simulation.run import virtual_time
from tests.simulation.scenario import FABRICS
from tests.simulation.watch import Watch
from tests.simulation.world import World

GROWTH = 0.03
"""Of what a process holds, between two looks: caches fill up."""


@dataclass
class _Found:
    blocks: list[int] = field(default_factory=list)
    objects: list[Counter[str]] = field(default_factory=list)
    rows: list[dict[str, int]] = field(default_factory=list)


async def _run(world: World, watch: Watch, looks_at: tuple[int, ...]) -> _Found:
    """Looks at what is there after so many jobs."""
    found, done = _Found(), 0
    world.start()
    for count in looks_at:
        watching = asyncio.create_task(watch.run())
        jobs = asyncio.create_task(run_jobs(world, done, count - done))
        await asyncio.wait([watching, jobs], return_when=asyncio.FIRST_COMPLETED)
        for task in (watching, jobs):
            if task.done():
                task.result()
        watching.cancel()
        del watching, jobs
        done = count
        blocks, objects = census(world)
        found.blocks.append(blocks)
        found.objects.append(objects)
        found.rows.append(world.stored_rows())
    world.kill()
    await asyncio.sleep(1.0)
    return found


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "looks_at",
    [
        pytest.param((HISTORY + 40, HISTORY + 120), id="few jobs"),
        pytest.param((2_000, 10_000), id="10000 jobs", marks=pytest.mark.long),
    ],
)
def test_jobs_leave_nothing_behind(looks_at: tuple[int, ...]) -> None:
    history = History()
    with virtual_time(1, 0.0, history) as place:
        draws = Draws(1, Intensity())
        world = World(FABRICS["three leaves, two spines"](), place.folder, draws, history, probe_s=1.0)
        found = place.loop.run_until_complete(_run(world, Watch(world), looks_at))
        assert not place.error, place.error
    first, last = found.objects[0], found.objects[-1]
    more = {k: (first[k], n) for k, n in last.items() if n > 50 + (1 + GROWTH) * first[k]}
    assert not more, f"objects of these types grow from {looks_at[0]} to {looks_at[-1]} jobs: {more}"
    assert found.blocks[-1] < (1 + GROWTH) * found.blocks[0], f"memory grows: {found.blocks} blocks"
    assert found.rows[-1]["jobs"] == HISTORY
    assert sum(found.rows[-1].values()) < 1.1 * sum(found.rows[0].values()), f"rows grow: {found.rows}"
