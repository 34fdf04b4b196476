# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A large fabric changes under many jobs: nothing of theirs is written again."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from netfold.controller.jobs.records import JobState
from netfold.topologies.addressing import addresses
from netfold.topologies.fabric import Fabric, Host, Link, Switch, SwitchRole
from netfold.topologies.generators import leaf_spine
from tests.simulation.actions import Actions
from tests.simulation.faults import Draws, Intensity
from tests.simulation.history import History
from tests.simulation.program import job
from tests.simulation.run import virtual_time
from tests.simulation.scenario import Step
from tests.simulation.world import World

START_S = 10.0
"""A controller may serve late."""
RUN_S = 300.0
BACK_S = 10.0
SIZES = {
    "small": (20, 4, 10),
    "large": (160, 40, 50),
}
"""Leaves, spines, jobs."""


def _with_rack(fabric: Fabric, hosts: int) -> Fabric:
    """A leaf with hosts, before all others."""
    names = [f"new{i}" for i in range(hosts)]
    spines = [s.name for s in fabric.switches if s.role is SwitchRole.SPINE]
    links = [*(Link(name, "leaf0", 100.0) for name in names), *(Link("leaf0", s, 100.0) for s in spines)]
    return replace(
        fabric,
        hosts=(*(Host(name) for name in names), *fabric.hosts),
        switches=(Switch("leaf0", SwitchRole.LEAF, 1000.0), *fabric.switches),
        links=(*links, *fabric.links),
    )


class _Writes:
    """The keys of the entries that switches were sent."""

    def __init__(self, world: World) -> None:
        self.keys: set[tuple[str, object]] = set()
        for name, switch in world.switches.items():
            switch.write = self._noted(name, switch.write)  # type: ignore[method-assign]

    def _noted(self, name, write):
        def noting(batch):
            self.keys |= {(name, entity.key) for entity in batch.entities}
            write(batch)

        return noting


def _entries(world: World) -> set[tuple[str, object]]:
    return {
        (switch, entity.key)
        for program in world.programs.values()
        for entities in program.entities.values()
        for switch, entity in entities
    }


def _are_back(world: World) -> bool:
    """Every member has its part in the epoch, by a stream to the new controller."""
    return all(
        m.stream is not None and m.assignment is not None
        for program in world.programs.values()
        for m in program.members.values()
    )


def _runs(world: World, jobs: int) -> bool:
    """All jobs run, and all their members have joined."""
    if world.controller is None or len(world.controller.state.registry.all()) < jobs:
        return False
    members = [m for p in world.programs.values() for m in p.members.values()]
    joined = sum(m.assignment is not None for m in members)
    states = {j.state for j in world.controller.state.registry.all()}
    return states == {JobState.RUNNING} and joined == 2 * jobs


async def _until(holds, limit_s: float, what: str) -> None:
    for _ in range(int(limit_s / 0.5)):
        if holds():
            return
        await asyncio.sleep(0.5)
    raise AssertionError(f"not within {limit_s:g} s: {what}")


async def _whole(world: World, jobs: int) -> None:
    fabric = world.fabric
    world.start()
    await asyncio.sleep(START_S)
    actions = Actions(world)
    for number in range(jobs):
        spec = job(f"j{number}", f"h{2 * number + 1}", f"h{2 * number + 4}", work_s=1e6, rate=20)
        actions.do(Step(0.0, "submit", (spec,)))
    await _until(lambda: _runs(world, jobs), RUN_S, "all jobs run")
    before = addresses(world.fabric)
    epochs = {p.spec.name: max(p.placements) for p in world.programs.values()}
    entries, writes = _entries(world), _Writes(world)
    assert entries

    wider = _with_rack(fabric, 16)
    queues = replace(wider, links=tuple(replace(k, queue=k.queue + 1) for k in wider.links))
    for wanted in (wider, queues):
        process = world.process
        world._add_switches(wanted)
        world.file.replace(wanted, is_harmless=True)
        await _until(lambda old=process: world.process not in (old, None), BACK_S, "a new controller leads")
        await _until(lambda: _are_back(world), BACK_S, "all members are back")
        await asyncio.sleep(20.0)  # an audit of all switches
        assert not world.violations
        assert not world.file.complaint
        after = addresses(world.fabric)
        assert {n: a.ip for n, a in after.hosts.items() if n in before.hosts} == {
            n: a.ip for n, a in before.hosts.items()
        }
        assert all(
            (after.switches[n].loopback, after.switches[n].device_id, after.switches[n].prefix)
            == (s.loopback, s.device_id, s.prefix)
            for n, s in before.switches.items()
        )
        assert not writes.keys & entries, "entries of running jobs are written again"
        assert world.controller is not None
        found = {j.name: (j.state, j.epoch) for j in world.controller.state.registry.all()}
        assert found == {name: (JobState.RUNNING, epoch) for name, epoch in epochs.items()}
    assert len(addresses(world.fabric).hosts) == len(fabric.hosts) + 16
    world.kill()
    await asyncio.sleep(1.0)


@pytest.mark.parametrize("size", ["small", pytest.param("large", marks=pytest.mark.long)])
def test_fabric_apply_writes_nothing_of_running_jobs_again(size):
    leaves, spines, jobs = SIZES[size]
    history = History()
    with virtual_time(1, 0.0, history) as place:
        world = World(
            leaf_spine(leaves, spines, 2), place.folder, Draws(1, Intensity()), history, probe_s=0.0
        )
        place.loop.run_until_complete(_whole(world, jobs))
        assert not place.error
