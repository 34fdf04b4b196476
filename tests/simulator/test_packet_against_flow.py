# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The flow level against the packet level: completion times of flows beside a training job, on 16 to 64 hosts."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from netfold.controller.planning.plan import JobSpec
from netfold.controller.planning.planner import make_plan
from netfold.simulator.flow.run import simulate as by_flow
from netfold.simulator.packet.run import simulate as by_packet
from netfold.simulator.scenario import (
    Bucket,
    Flow,
    InNetworkCollective,
    Job,
    Model,
    NetworkSettings,
    Scenario,
)
from netfold.topologies.generators import GBIT, leaf_spine

LEAST, MOST = 7e3, 2e6
"""Bytes of flows, which are spread evenly over the powers between."""


def scenario(hosts: int, load: float, flows: int, seed: int = 1) -> Scenario:
    """Half of the hosts train, back to back, as long as flows come; these go between any two, at `load` of the hosts'
    links."""
    fabric = leaf_spine(hosts // 8, hosts // 16, 8, rate=100, fabric_rate=400, unit=GBIT)
    names = [h.name for h in fabric.hosts]
    workers = tuple(names[::2])
    rng = random.Random(seed)
    mean = (MOST - LEAST) / np.log(MOST / LEAST)
    at, found = 0.0, []
    for _ in range(flows):
        at += rng.expovariate(100e9 * hosts * load / (8 * mean))
        source, destination = rng.sample(names, 2)
        found.append(Flow(source, destination, int(LEAST * (MOST / LEAST) ** rng.random()), at))
    plan = make_plan(fabric, JobSpec("j", workers, elements=5_000_000, scheme="panama"))
    model = Model("array", 0.0, 0.0, (Bucket(20_000_000),))
    job = Job("j", workers, model, InNetworkCollective(plan), iterations=max(1, int(at / 2e-3)))
    return Scenario(fabric, (job,), tuple(found), settings=NetworkSettings(queue_bytes=1_000_000))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("hosts", "load", "trains"),
    [
        pytest.param(16, 0.3, False, id="16 alone"),
        pytest.param(16, 0.3, True, id="16 beside a job"),
        pytest.param(32, 0.3, False, marks=pytest.mark.long, id="32 alone"),
        pytest.param(32, 0.3, True, marks=pytest.mark.long, id="32 beside a job"),
        pytest.param(64, 0.4, False, marks=pytest.mark.long, id="64 alone"),
        pytest.param(64, 0.4, True, marks=pytest.mark.long, id="64 beside a job"),
    ],
)
def test_completion_times_agree(hosts: int, load: float, trains: bool):
    """Over three draws of 1,500 flows, so that a percentile is of 45 flows."""
    quick, exact = [], []
    for seed in (1, 2, 3):
        case = scenario(hosts, load, 1500, seed)
        case = case if trains else replace(case, jobs=())
        quick += [t for t in by_flow(case).completions if t is not None]
        exact += [t for t in by_packet(case).completions if t is not None]
    assert len(quick) == len(exact) == 4500
    assert np.mean(quick) == pytest.approx(np.mean(exact), rel=0.15)
    assert np.percentile(quick, 99) == pytest.approx(np.percentile(exact, 99), rel=0.25)
