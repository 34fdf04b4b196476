# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A leaf with more workers than an ordinary program takes children: real workers, real packets, one node."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from netfold.testbed.deployment import Deployment, Setup

pytestmark = [pytest.mark.root, pytest.mark.mininet, pytest.mark.long]

WORKERS = 48


def test_forty_eight_workers_under_one_leaf_are_one_node(tmp_path: Path) -> None:
    hosts = {f"h{number}": {"at": "leaf"} for number in range(1, WORKERS + 1)}
    spec = {
        "name": "rack",
        "defaults": {"link": {"rate": 100}, "switch": {"capacity": 100 * WORKERS, "children": 64}},
        "switches": {"leaf": {}},
        "hosts": hosts,
    }
    fabric = tmp_path / "rack.yaml"
    fabric.write_text(yaml.safe_dump(spec))
    with Deployment(Setup(str(fabric), "softswitch", 64, name="rack", first_grpc_port=9790)) as system:
        flags = ["--workload", "alexnet", "--scale", "0.0001", "--iterations", 2, "--timeout", 60]
        job = system.start_job("wide", flags, scheme="panama")
        results = system.finish(job, 100)
    assert [len(tree.children("leaf")) for tree in job.plan.trees] == [WORKERS]
    assert sum(r["wrong_elements"] for r in results.values()) == 0
    assert min(r["checked_elements"] for r in results.values()) > 0
    assert len({r["digest"] for r in results.values()}) == 1
