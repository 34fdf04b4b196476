# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Engines of workers over random networks of switches that lose, repeat and reorder packets: scatters, gathers and sums
have the right results, and each frame that leaves a switch is the oracle's."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from netfold.protocol.target import Targets
from netfold.traffic.engine.engine import NEVER, Status
from tests.dataplane.bench import Bench, Tally
from tests.dataplane.conftest import Devices
from tests.dataplane.frames import LANES, NETFOLD_AT, Ip, ethernet, udp
from tests.dataplane.job import Worker
from tests.dataplane.layout import Fabric, TreeShape
from tests.dataplane.world import World
from tests.testbed.collective_member import Call
from tests.traffic.cores import Core, assignment

SWITCHES, LEVELS = 5, 3
MOST_ELEMENTS = 1500  # of a worker's block; with 512 of them it goes to its owner alone
STEP_S = 1e-4
MOST_STEPS = 200_000


class EngineWorld(World):
    """A job whose workers are engines, in virtual time."""

    def __init__(self, random: Random, benches: list[Bench], loss: float, repeats: float) -> None:
        fabric = Fabric.random(random, random.randint(1, len(benches)), random.randint(1, LEVELS))
        super().__init__(fabric, benches[: len(fabric.places)], LANES)
        self._random, self._loss, self._repeats = random, loss, repeats
        shape = TreeShape.random(random, fabric, 1, random.choice([8, 64]), 0)
        self.start(replace(shape, quorum=None, targets=True), 1, shape.slots // 2, 0)
        (self.job,) = self.jobs
        self.now = 0.0
        self.cores = [Core() for _ in self.job.workers]
        for worker in self.job.workers:
            self._restart(worker, 1)

    def _restart(self, worker: Worker, epoch: int) -> None:
        rank, shape = self.job.workers.index(worker), self.job.shape
        worker.epoch = epoch
        part = assignment(rank, len(self.cores), LANES, slots=shape.slots, epoch=epoch, targets=Targets.ON)
        tree = replace(part.trees[0], tree=shape.tree, child=rank)
        self.cores[rank].assign(replace(part, trees=(tree,)), self.now)

    def _at_host(self, host: int, frame: bytes) -> None:
        length = int.from_bytes(frame[16:18], "big") - 28
        for core, worker in zip(self.cores, self.job.workers, strict=True):
            if worker.host == host:
                core.receive(frame[NETFOLD_AT : NETFOLD_AT + length], self.now)
                core.process(self.now)

    def step(self) -> None:
        """Let one frame arrive, or time pass."""
        for core, worker in zip(self.cores, self.job.workers, strict=True):
            host = self.fabric.hosts[worker.host]
            core.process(self.now)
            for _, payload in core.send(self.now):
                port = self.job.shape.udp_port
                packet = Ip(src=host.address, dst=self.job.shape.root_address).pack(udp(payload, port, port))
                self.flying.append((host.switch, host.port, ethernet(packet)))
        self.now += STEP_S
        if self._later and self._random.random() < 0.05:
            self._later.pop(0)()
        if self.flying:
            arriving = self.flying.pop(self._random.randrange(min(len(self.flying), 8)))
            if self._random.random() < self._repeats:
                self.flying.append(arriving)
            if self._random.random() >= self._loss:
                self._arrive(*arriving)
        elif (due := min(core.next_deadline(self.now) for core in self.cores)) < NEVER:
            self.now = max(self.now, due)

    def run(self, calls: list[Call], epochs: int) -> None:
        """Make the calls, during which that many epochs begin."""
        arrays = [[call.arrays[rank].copy() for call in calls] for rank in range(len(self.cores))]
        handles = [
            [core.submit(array, blocks=call.blocks) for call, array in zip(calls, mine, strict=True)]
            for core, mine in zip(self.cores, arrays, strict=True)
        ]
        due = sorted(self._random.randrange(1, 4000) for _ in range(epochs))
        for step in range(MOST_STEPS):
            if due and step >= due[0] and not self._later:
                due.pop(0)
                self.raise_epoch(self.job, self._random)
            if not due and not self._later and self._has_ended(handles):
                break
            self.step()
        assert self._has_ended(handles)
        for rank, (core, mine) in enumerate(zip(self.cores, arrays, strict=True)):
            for call, array, handle in zip(calls, mine, handles[rank], strict=True):
                assert core.status(handle) is Status.DONE, core.outcome(handle).message
                for found, right in zip(
                    call.parts(array, rank), call.parts(call.expected(), rank), strict=True
                ):
                    assert (found == right).all(), (call.name, rank)

    def _has_ended(self, handles: list[list[int]]) -> bool:
        return all(
            core.status(handle) is not Status.PENDING
            for core, mine in zip(self.cores, handles, strict=True)
            for handle in mine
        )


def run_calls(seed: int, benches: list[Bench]) -> None:
    random = Random(seed)
    loss, repeats = random.choice([(0.0, 0.0), (0.02, 0.02), (0.1, 0.1)])
    world = EngineWorld(random, benches, loss, repeats)
    calls = [Call(random, len(world.cores), MOST_ELEMENTS) for _ in range(random.randint(1, 5))]
    world.run(calls, random.choice([0, 0, 1, 2]))
    world.check_counters()


@pytest.mark.parametrize("seed", range(6))
def test_calls_over_random_networks_have_the_right_results(
    target: str, devices: Devices, tally: Tally, seed: int
):
    run_calls(seed, fresh(target, devices, tally))


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_many_calls_over_random_networks_have_the_right_results(target: str, devices: Devices, tally: Tally):
    for seed in range(100, 300):
        run_calls(seed, fresh(target, devices, tally))


def fresh(target: str, devices: Devices, tally: Tally) -> list[Bench]:
    if not target.startswith("softswitch"):
        pytest.skip(f"engines over {target} take long")
    group = [devices(target, LANES, number) for number in range(SWITCHES)]
    for device in group:
        device.clear()
    return [Bench(device, LANES, tally, target) for device in group]
