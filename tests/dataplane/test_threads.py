# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The suites of isolation, fuzzing and random networks on softswitch with two threads; each frame arrives at either."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.dataplane import test_fuzz, test_isolation, test_roce_isolation, test_stateful
from tests.dataplane.bench import Bench, Tally
from tests.dataplane.conftest import THREADED, Devices, Fresh
from tests.dataplane.device import SoftDevice
from tests.dataplane.fixtures import SETTINGS, inner, root, sent
from tests.dataplane.frames import LANES

SLOTS = 64  # of a tree here: of both threads


def handed_over(bench: Bench) -> int:
    device = bench.device
    assert isinstance(device, SoftDevice)
    return device.switch.stats()["handed_over"]


@pytest.mark.parametrize("node", [root(2, slots=SLOTS), inner(2, slots=SLOTS)], ids=["root", "inner"])
def test_slots_of_both_threads_are_added_up(fresh: Fresh, node: object):
    bench = fresh(THREADED, LANES)
    bench.install(*SETTINGS, node)
    before = handed_over(bench)
    for slot in range(SLOTS):
        for worker in (1, 2, 1):
            bench.send(worker, sent(worker, worker, slot=slot))
    assert handed_over(bench) - before > SLOTS, "about half of the frames arrive at the other thread"


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("node", test_fuzz.NODES)
def test_any_frame_has_the_outcome_of_the_oracle(fresh: Fresh, node: str, seed: int):
    test_fuzz.fuzz(fresh(THREADED, LANES), test_fuzz.NODES[node], seed, 500)


@pytest.mark.parametrize("switches", test_isolation.SHAPES, ids=test_isolation.SHAPES.values())
def test_an_attacker_changes_nothing_of_others(switches: int, devices: Devices, tally: Tally):
    benches = list(test_isolation.fresh(devices, THREADED, tally, switches))
    test_isolation.besiege(benches, LANES, switches, 600)


@pytest.mark.long
def test_an_attacker_changes_nothing_of_rdma_machines(devices: Devices, tally: Tally):
    shape = next(iter(test_roce_isolation.SHAPES))
    test_roce_isolation.besiege(THREADED, devices, tally, shape, 1, 3)


def test_random_networks_agree_with_the_oracle(devices: Devices, tally: Tally):
    machine = test_stateful.machine(test_stateful.fresh(devices, THREADED, tally))
    run_state_machine_as_test(
        machine, settings=settings(test_stateful.COMMON, max_examples=4, stateful_step_count=8)
    )
