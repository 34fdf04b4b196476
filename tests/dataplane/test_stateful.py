# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Random networks, jobs and accidents: every frame that leaves any switch and every counter is the oracle's, and the
workers get the right sums. Hypothesis prints a failure as the calls that bring it about, each with its own seed."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from tests.dataplane.bench import Bench, Tally
from tests.dataplane.conftest import Devices
from tests.dataplane.frames import LANES
from tests.dataplane.layout import Fabric, TreeShape
from tests.dataplane.world import MAX_SLOTS, World

SWITCHES, LEVELS, JOBS = 5, 3, 2
BASES = (0, 32)
seeds = st.integers(0, 2**32 - 1)
rates = st.sampled_from([0.0, 0.02, 0.3])


def new_world(random: Random, benches: list[Bench], workers: int = 0) -> World:
    """One or two jobs on a fabric of one to five switches in one to three levels. `workers` of each; 0: a few."""
    fabric = Fabric.random(random, random.randint(1, len(benches)), random.randint(1, LEVELS))
    world = World(fabric, benches[: len(fabric.places)], benches[0].lanes)
    for number in range(random.randint(1, JOBS)):
        shape = new_shape(random, fabric, 1 + number, BASES[number], workers)
        world.start(shape, random.randint(1, 5), *window_and_chunks(random, shape))
    return world


def new_shape(random: Random, fabric: Fabric, tree: int, base: int, workers: int = 0) -> TreeShape:
    if workers:
        return TreeShape.wide(random, fabric, tree, random.choice([2, 4]), base, workers=workers)
    return TreeShape.random(random, fabric, tree, random.choice([2, 4, 8, MAX_SLOTS]), base)


def window_and_chunks(random: Random, shape: TreeShape) -> tuple[int, int]:
    """W divides A and is at most half of it."""
    return random.choice([w for w in (1, 2, 4, 8) if 2 * w <= shape.slots]), random.randint(
        1, 3 * shape.slots
    )


def machine(make: Iterator[list[Bench]]) -> type[RuleBasedStateMachine]:
    class Network(RuleBasedStateMachine):
        """`make` gives fresh switches for each example."""

        @initialize(seed=seeds)
        def build(self, seed: int) -> None:
            self.world = new_world(Random(seed), next(make))
            self.next_tree = 10

        @rule(seed=seeds, events=st.integers(1, 300), loss=rates, repeats=rates)
        def traffic(self, seed: int, events: int, loss: float, repeats: float) -> None:
            random = Random(seed)
            for _ in range(events):
                self.world.happen(random, loss, repeats)

        @rule(seed=seeds, count=st.integers(1, 30))
        def forged(self, seed: int, count: int) -> None:
            random = Random(seed)
            for _ in range(count):
                self.world.forge(random)
                self.world.look(random)

        @rule(seed=seeds)
        def raise_epoch(self, seed: int) -> None:
            random = Random(seed)
            self.world.raise_epoch(random.choice(self.world.jobs), random)

        @rule(seed=seeds, reset=st.booleans())
        def replace_a_job(self, seed: int, reset: bool) -> None:
            random = Random(seed)
            job = random.choice(self.world.jobs)
            self.next_tree += 1
            shape = new_shape(random, self.world.fabric, self.next_tree, job.shape.base)
            self.world.replace(job, shape, *window_and_chunks(random, shape), reset=reset)

        @rule()
        def lose_all(self) -> None:
            self.world.flying.clear()

        @rule()
        def count(self) -> None:
            self.world.check_counters()

        def teardown(self) -> None:
            if hasattr(self, "world"):
                self.world.finish()
                self.world.check_counters()

    return Network


def fresh(devices: Devices, target: str, tally: Tally) -> Iterator[list[Bench]]:
    while True:
        group = [devices(target, LANES, number) for number in range(SWITCHES)]
        for device in group:
            device.clear()
        yield [Bench(device, LANES, tally, target) for device in group]


# Without shrinking, which takes minutes here: the calls of a failure are few and carry seeds.
COMMON = settings(
    print_blob=True,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("examples", [15, pytest.param(60, marks=pytest.mark.slow)])
def test_random_networks_agree_with_the_oracle(target: str, devices: Devices, tally: Tally, examples: int):
    if target != "softswitch":
        examples //= 5
    run_state_machine_as_test(
        machine(fresh(devices, target, tally)),
        settings=settings(COMMON, max_examples=examples, stateful_step_count=15),
    )


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_many_random_networks_agree_with_the_oracle(target: str, devices: Devices, tally: Tally):
    examples = 1000 if target == "softswitch" else 100
    run_state_machine_as_test(
        machine(fresh(devices, target, tally)),
        settings=settings(COMMON, max_examples=examples, stateful_step_count=25),
    )
