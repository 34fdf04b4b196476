# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Runs a scenario to its end, and says whether the controller was right."""

from __future__ import annotations

import asyncio
import gc
import logging
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from netfold.controller.jobs.program_records import RolloutState
from tests.simulation.actions import Actions
from tests.simulation.faults import Draws
from tests.simulation.history import History, LogToHistory
from tests.simulation.loop import DeadlockError, VirtualLoop
from tests.simulation.process import task_factory
from tests.simulation.rest import assert_clean, assert_ended
from tests.simulation.scenario import FABRICS, HORIZON_S, Scenario
from tests.simulation.watch import Watch
from tests.simulation.world import ViolationError, World

CALM_S = 400.0
"""After the last fault, for programs to end."""

REST_S = 15.0
"""After the last program ended: an audit of all switches, and all timers."""

STARTED_S = 3.0
"""Timers of a controller's start last as long as the rest; so it has to have started a while before: with a slow
etcd its first changes take seconds."""

MEMORY = Path("/dev/shm")


@dataclass
class Outcome:
    """`violation`: what was wrong; empty: nothing."""

    violation: str = ""
    history: History = field(default_factory=History)
    steps: int = 0
    seconds: float = 0.0


def run(scenario: Scenario) -> Outcome:
    """The same scenario takes the same course, in a process whose PYTHONHASHSEED is the same."""
    outcome = Outcome()
    with virtual_time(scenario.seed, scenario.reorder, outcome.history, scenario.tick_s) as place:
        try:
            place.loop.run_until_complete(_whole(scenario, outcome, place.folder))
            outcome.violation = place.error
        except ViolationError as error:
            outcome.violation = place.error or str(error)
        except DeadlockError as error:
            outcome.violation = f"deadlock: {error}"
        outcome.steps, outcome.seconds = place.loop.steps, place.loop.time()
    return outcome


@dataclass(frozen=True)
class Place:
    """Where a world lives: an event loop of virtual time, and a folder for the store."""

    loop: VirtualLoop
    folder: Path
    log: LogToHistory

    @property
    def error(self) -> str:
        """Returns the defects that reached the log or the event loop; empty: none."""
        if self.log.tracebacks:
            return f"the log has a traceback: {self.log.tracebacks[0]}"
        return f"the event loop has an error: {self.loop.errors[0]}" if self.loop.errors else ""


@contextmanager
def virtual_time(seed: int, reorder: float, history: History, tick_s: float = 0.0) -> Iterator[Place]:
    """The controller's log goes to `history`. At the end all tasks are ended, and the folder is removed."""
    folder = Path(tempfile.mkdtemp(prefix="netfold-simulation-", dir=MEMORY if MEMORY.is_dir() else None))
    loop = VirtualLoop(seed, reorder, tick_s)
    loop.set_task_factory(task_factory)
    log = LogToHistory(history)
    logger = logging.getLogger("netfold")
    level, propagates = logger.level, logger.propagate
    logger.addHandler(log)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    gc.disable()  # what a collection ends would depend on its moment
    gc.freeze()  # what was there before, such as all imports, need not be collected after each run
    try:
        asyncio.set_event_loop(loop)
        yield Place(loop, folder, log)
    finally:
        logger.removeHandler(log)
        logger.setLevel(level)
        logger.propagate = propagates
        _end(loop)
        shutil.rmtree(folder, ignore_errors=True)
        gc.enable()
        gc.collect()
        gc.unfreeze()


async def _whole(scenario: Scenario, outcome: Outcome, folder: Path) -> None:
    draws = Draws(scenario.seed, scenario.intensity)
    fabric = FABRICS[scenario.fabric]()
    world = World(
        fabric,
        folder,
        draws,
        outcome.history,
        probe_s=scenario.probe_s,
        slow_plans=scenario.slow_plans,
        has_aging=scenario.has_aging,
        controllers=scenario.controllers,
        way=scenario.etcd,
    )
    actions, watch, loop = Actions(world), Watch(world), asyncio.get_running_loop()
    world.start()
    for step in scenario.steps:
        loop.call_at(step.at_s, actions.do, step)
    watching = asyncio.create_task(watch.run())
    try:
        await _unless(watching, asyncio.sleep(HORIZON_S))
        actions.heal()
        await _unless(
            watching, _ended(world, max((s.at_s for s in scenario.steps), default=0.0) + scenario.tick_s)
        )
        assert_ended(world)
        await _unless(watching, asyncio.sleep(REST_S))
        await _within_no_step(world)
        assert_clean(world)
        if world.cluster is not None and (wrong := world.cluster.leaders.wrong_at_rest()):
            raise ViolationError(wrong)
    finally:
        watching.cancel()
        world.kill()
        await asyncio.sleep(0)
        await asyncio.sleep(1.0)


async def _unless(watching: asyncio.Task[None], work: object) -> None:
    """Do `work`; raises what the watch raises."""
    doing = asyncio.ensure_future(work)  # type: ignore[arg-type]
    await asyncio.wait([doing, watching], return_when=asyncio.FIRST_COMPLETED)
    if watching.done():
        doing.cancel()
        watching.result()
    await doing


async def _within_no_step(world: World) -> None:
    """Wait until the controller's state is whole."""
    while world.process is not None and world.process.is_held:
        await asyncio.sleep(0.001)


async def _ended(world: World, last_step_s: float) -> None:
    """Returns when all programs have ended and the last step is done, or after CALM_S."""
    for _ in range(int(CALM_S)):
        await asyncio.sleep(1.0)
        controller = world.controller
        if controller is None or world.file.wanted is not None:
            continue
        if world.process is None or world.process.is_held:
            continue
        rollout = controller.planning.rollouts.record
        if rollout is not None and rollout.state is RolloutState.RUNNING:
            continue
        if controller.planning.fabric_changes.applied.is_set():  # another one takes its place
            continue
        if asyncio.get_running_loop().time() < max(world.started_at + STARTED_S, last_step_s):
            continue
        jobs = [controller.state.registry.get(n) for n in world.programs if n in controller.state.registry]
        programs = world.programs.values()
        is_over = all(j.state.is_terminal for j in controller.state.registry.all())
        is_known = len(jobs) >= sum(p.is_acknowledged for p in programs) and not world.calls
        if is_over and is_known and not any(p.alive for p in programs):
            return


def _end(loop: VirtualLoop) -> None:
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
    asyncio.set_event_loop(None)
    loop.close()
