# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Scatters, gathers and sums of one job through real switches that lose packets: with targets each worker gets the same
bits as without."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from netfold.testbed.processes import HostTask, ProcessGroup
from netfold.testbed.submitted_job import Results
from netfold.testbed.testbed import Testbed
from tests.testbed.test_scenarios import losses

pytestmark = [pytest.mark.root, pytest.mark.mininet]

MEMBER = Path(__file__).with_name("collective_member.py")
CALLS = {"softswitch": 12, "bmv2": 3}


@pytest.fixture(scope="module", params=["softswitch", pytest.param("bmv2", marks=pytest.mark.bmv2)])
def system(request: pytest.FixtureRequest) -> Iterator[Testbed]:
    if request.param == "bmv2" and shutil.which("simple_switch_grpc") is None:
        pytest.skip("simple_switch_grpc is not on PATH")
    with Testbed(target=request.param, lanes=64, name="coll", first_grpc_port=9860) as running:
        yield running


def _run(system: Testbed, folder: Path, name: str, seed: int, **spec: object) -> Results:
    workers = system.workers[:4]
    system.submit(name, workers=workers, lease_ms=20000, **spec)
    where, calls = system.controller.address, CALLS[system.wanted_target]
    outs = {host: folder / f"{name}-{host}.json" for host in workers}
    tasks = [
        HostTask(host, [sys.executable, MEMBER, where, name, host, seed, calls, out], out)
        for host, out in outs.items()
    ]
    with ProcessGroup(system.net, tasks) as members:
        told = members.wait(150, system.check)
    system.controller.wait_ended(name, 30.0)
    return told


@pytest.mark.parametrize(
    ("scheme", "loss"),
    [
        ("panama", 0.02),
        pytest.param("switchml", 0.0, marks=pytest.mark.slow),
        pytest.param("none", 0.02, marks=pytest.mark.slow),
    ],
)
def test_each_worker_gets_the_same_bits_with_and_without_targets(
    system: Testbed, tmp_path: Path, scheme: str, loss: float
) -> None:
    with losses(system, loss, seed=5):
        targeted = _run(system, tmp_path, f"{scheme}-targets", 17, scheme=scheme, targets="required")
        sums = _run(system, tmp_path, f"{scheme}-sums", 17, scheme=scheme, targets="off")
    assert {r["targets"] for r in targeted.values()} == {"ON"}
    assert {r["targets"] for r in sums.values()} == {"OFF"}
    for host, told in targeted.items():
        assert told["digests"] == sums[host]["digests"]
    assert len({name for name, _ in targeted[system.workers[0]]["digests"]}) > 3
