# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Groups of a mesh come and go over real switches: each is a job with a share of the links, and none is left."""

from __future__ import annotations

import json
from pathlib import Path

import grpc
import pytest

from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as rpc
from netfold.testbed.testbed import Testbed
from netfold.testbed.torchrun import TORCH_PYTHON

pytestmark = [pytest.mark.long, pytest.mark.timeout(2400)]

GROUPS = 64
WORLD_RATE, GROUP_RATE = 50, 15
REPOSITORY = Path(__file__).parents[2]


@pytest.mark.skipif(not TORCH_PYTHON.exists(), reason="needs PyTorch in .venv-torch")
def test_groups_of_a_mesh_share_the_links_and_leave_nothing_behind(tmp_path: Path):
    fabric = tmp_path / "leaves.yaml"
    fabric.write_text(
        "name: leaves\ngenerate:\n  leaf_spine: {leaves: 2, spines: 2, hosts_per_leaf: 4, rate: 100}\n"
    )
    report = tmp_path / "report.json"
    with Testbed(str(fabric), target="softswitch", lanes=256, name="mesh", first_grpc_port=20120) as system:
        environment = {
            "PYTHONPATH": str(REPOSITORY), "NETFOLD_RATE": f"{WORLD_RATE}", "NETFOLD_GROUP_RATE": f"{GROUP_RATE}",
            "NETFOLD_REPORT": str(report),
        }  # fmt: skip
        script, arguments = Path(__file__).with_name("mesh_rank.py"), ["--groups", GROUPS]
        with system.torchrun(
            script, arguments, name="mesh", environment=environment, port=29720, result_option="--out"
        ) as group:
            results = group.wait(1800, system.check)
        with grpc.insecure_channel(system.controller.address) as channel:
            jobs = list(rpc.ControllerStub(channel).ListJobs(pb.ListJobsRequest(all=True), timeout=30).jobs)
    assert len(results) == 8
    for result in results.values():
        assert result["wrong"] == []
        assert result["groups"] >= GROUPS
    assert len(jobs) == 1 + next(iter(results.values()))["groups"]
    assert {pb.JobState.Name(job.state) for job in jobs} == {"DONE"}
    found = json.loads(report.read_text())
    assert found["network"]["planned_mbps"] == WORLD_RATE
    assert found["verdict"].startswith("the plan gives 50 of 100 Mbit/s")
