# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Thousands of small jobs one after the other, some of which queue, are canceled, lose a worker or a switch; and what
they leave behind."""

from __future__ import annotations

import asyncio
import gc
import sys
import weakref
from collections import Counter
from collections.abc import Iterator

from tests.simulation.actions import Actions
from tests.simulation.faults import Draws, Intensity
from tests.simulation.history import History
from tests.simulation.loop import VirtualLoop
from tests.simulation.plans import forget_plans
from tests.simulation.program import JobSpec
from tests.simulation.rest import assert_clean, assert_ended
from tests.simulation.run import virtual_time
from tests.simulation.scenario import FABRICS, Step
from tests.simulation.watch import Watch
from tests.simulation.world import ViolationError, World

FABRIC = "three leaves, two spines"

WAVE = 4
"""Jobs that are submitted together. The last one waits for the others."""

WAVE_S = 120.0
"""Within which they have ended, also over faults."""

REST_S = 25.0
"""Until leases, audits and timers of jobs that have ended are over."""


async def run_jobs(world: World, first: int, count: int) -> None:
    """Jobs `first` to `first + count - 1`. Returns when all is at rest. Raises ViolationError."""
    actions = Actions(world)
    for wave in range(first // WAVE, (first + count) // WAVE):
        for step in _steps(wave):
            asyncio.get_running_loop().call_later(step.at_s, actions.do, step)
        await _until_ended(world, [f"job{WAVE * wave + n}" for n in range(WAVE)])
        assert_ended(world)
        world.forget_programs()
    await asyncio.sleep(REST_S)
    assert_clean(world)


def _steps(wave: int) -> Iterator[Step]:
    """Every fault comes once in some waves."""
    names = [f"job{WAVE * wave + n}" for n in range(WAVE)]
    pairs = (("h1", "h3"), ("h2", "h5"), ("h4", "h6"), ("h1", "h4", "h6"))
    for number, (name, workers) in enumerate(zip(names, pairs, strict=True)):
        is_elastic, rate = number == 3, 100 if number == 3 else 60
        spec = JobSpec(name, workers, "panama", rate, True, 0, is_elastic, work_s=0.5)
        yield Step(0.1 * number, "submit", (spec,))
    if wave % 5 == 0:
        yield Step(1.0, "cancel", (names[0],))
    if wave % 7 == 0:
        yield Step(4.0, "kill_member", (names[3], "h4"))
    if wave % 11 == 0:
        yield Step(2.0, "drop_connections", ("leaf1",))
    if wave % 13 == 0:
        yield Step(1.0, "power_cut", ("spine1", 2.0))


async def _until_ended(world: World, names: list[str]) -> None:
    for _ in range(int(WAVE_S)):
        await asyncio.sleep(1.0)
        assert world.controller is not None
        registry = world.controller.state.registry
        have_ended = all(n in registry and registry.get(n).state.is_terminal for n in names)
        if have_ended and not any(p.alive for p in world.programs.values()):
            return
    raise ViolationError(f"{', '.join(names)} have not ended within {WAVE_S:g} s")


Look = dict[str, dict[str, int]]


def look(world: World) -> Look:
    """The objects that Python can follow, by type, the blocks of memory that it has given out, and the rows of each
    table of the store; without what the simulation itself remembers."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    loop.drop_canceled_timers()
    forget_plans()
    world.history.lines.clear()
    gc.collect()
    blocks, held = sys.getallocatedblocks(), gc.get_objects()
    # A connection of SQLite keeps references to its last 200 cursors, which are dead.
    objects = Counter(type(o).__name__ for o in held if not (isinstance(o, weakref.ref) and o() is None))
    return {"objects": dict(objects), "memory": {"blocks": blocks}, "rows": world.stored_rows()}


def looks_after(*counts: int) -> list[Look]:
    """Returns a look after each of these counts of jobs. Raises ViolationError."""
    history = History()
    with virtual_time(1, 0.0, history) as place:
        draws = Draws(1, Intensity())
        world = World(FABRICS[FABRIC](), place.folder, draws, history, probe_s=1.0)
        looks = place.loop.run_until_complete(_looks(world, Watch(world), counts))
        if place.error:
            raise ViolationError(place.error)
    return looks


async def _looks(world: World, watch: Watch, counts: tuple[int, ...]) -> list[Look]:
    looks: list[Look] = []
    done = 0
    world.start()
    for count in counts:
        watching = asyncio.create_task(watch.run())
        jobs = asyncio.create_task(run_jobs(world, done, count - done))
        await asyncio.wait([watching, jobs], return_when=asyncio.FIRST_COMPLETED)
        for task in (watching, jobs):
            if task.done():
                task.result()
        watching.cancel()
        del watching, jobs
        done = count
        looks.append(look(world))
    world.kill()
    await asyncio.sleep(1.0)
    return looks
