# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The Tofino programs, each with all its lanes, on the register-accurate models of their chips: random jobs, losses,
repeats and forgeries, every frame and counter compared with the oracle; and attackers beside running jobs. Needs p4c's
Tofino back end and the models' test harnesses (chip.py). The chosen frames of the other tests run on Tofino's model in
`make test-long` (conftest.py)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from random import Random

import pytest
from _pytest.mark import ParameterSet

from netfold.p4src.manifest import most_children
from netfold.p4src.tools.tofino import CHIPS
from tests.dataplane import chip
from tests.dataplane.bench import Bench, Tally
from tests.dataplane.chip_builds import ChipBuilds, why_not
from tests.dataplane.fixtures import SETTINGS
from tests.dataplane.layout import Fabric
from tests.dataplane.test_children import WORD, Size, at_edges, frame, node, send_any_packets
from tests.dataplane.test_isolation import besiege
from tests.dataplane.test_stateful import BASES, new_shape, window_and_chunks
from tests.dataplane.world import World

Chips = dict[str, chip.ChipDevice]
EVENTS = 300


@pytest.fixture(scope="module")
def chips(chip_builds: ChipBuilds) -> Iterator[Chips]:
    """Started when first asked for."""
    with ExitStack() as stack:

        class Started(Chips):
            def __missing__(self, name: str) -> chip.ChipDevice:
                self[name] = stack.enter_context(chip.model(name, chip_builds.result(name)))
                return self[name]

        yield Started()


def _each_chip() -> Iterator[ParameterSet]:
    for name in CHIPS:
        why = why_not(name)
        skip = [] if why is None else [pytest.mark.skip(reason=f"{why}: nothing runs on the model of {name}")]
        yield pytest.param(name, marks=skip)


EACH_CHIP = list(_each_chip())


def play(name: str, seed: int, chips: Chips, tally: Tally) -> None:
    """One switch with one or two jobs; the seed says everything."""
    device, lanes, random = chips[name], CHIPS[name].lanes, Random(seed)
    device.clear()
    fabric = Fabric.random(random, 1, 1)
    world = World(fabric, [Bench(device, lanes, tally, name)], lanes)
    for number in range(random.randint(1, len(BASES))):
        shape = replace(new_shape(random, fabric, 1 + number, BASES[number]), quorum=None)  # no chip has one
        world.start(shape, random.randint(1, 5), *window_and_chunks(random, shape))
    for _ in range(EVENTS):
        world.happen(random, loss=0.05, repeats=0.1)
        if random.random() < 0.15:
            world.forge(random)
        if random.random() < 0.03:
            world.look(random)
        if random.random() < 0.004:
            world.raise_epoch(random.choice(world.jobs), random)
    world.finish()
    world.check_counters()


def add_up_many(
    device: chip.ChipDevice, children: int, tally: Tally, name: str, *, is_root: bool = True
) -> None:
    """Any packets to a node of so many children; then sums that a child at the edge of a word completes."""
    device.clear()
    bench = Bench(device, CHIPS[name].lanes, tally, name)
    at = node(Size(most_children(name), children), is_root=is_root)
    bench.install(*SETTINGS, at)
    send_any_packets(bench, at, 3 * children, floats=False)
    for round_, last in enumerate(at_edges(at), 1000):
        others = [child for child in at.children if child != last]
        for child in (*others, others[0], last, last):
            lanes = [child.number] * bench.lanes
            bench.send(child.port, frame(child, lanes, round=round_))
    bench.check_counters()


@pytest.mark.p4c
@pytest.mark.timeout(900 * chip.PATIENCE)
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("name", EACH_CHIP)
def test_a_chip_agrees_with_the_oracle(name: str, seed: int, chips: Chips, tally: Tally):
    play(name, seed, chips, tally)


@pytest.mark.long
@pytest.mark.p4c
@pytest.mark.timeout(900 * chip.PATIENCE)
@pytest.mark.parametrize("seed", range(100, 160))
@pytest.mark.parametrize("name", EACH_CHIP)
def test_a_chip_agrees_with_the_oracle_at_length(name: str, seed: int, chips: Chips, tally: Tally):
    play(name, seed, chips, tally)


@pytest.mark.p4c
@pytest.mark.timeout(900 * chip.PATIENCE)
@pytest.mark.parametrize("name", EACH_CHIP)
def test_an_attacker_changes_nothing_of_others_on_a_chip(name: str, chips: Chips, tally: Tally):
    device, lanes = chips[name], CHIPS[name].lanes
    device.clear()
    besiege([Bench(device, lanes, tally, name)], lanes, seed=1, frames=300)


@pytest.mark.p4c
@pytest.mark.timeout(900 * chip.PATIENCE)
@pytest.mark.parametrize("is_root", [True, False], ids=["root", "inner"])
@pytest.mark.parametrize("children", [WORD, WORD + 1, most_children("tofino")])
@pytest.mark.parametrize("name", EACH_CHIP)
def test_children_of_both_words_of_a_bitmap_are_one_node(
    name: str, children: int, is_root: bool, chips: Chips, tally: Tally
):
    add_up_many(chips[name], children, tally, name, is_root=is_root)
