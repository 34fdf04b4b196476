# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own tests of torch.distributed over a real switch: netfold passes what Gloo passes."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from netfold.testbed.testbed import Testbed
from netfold.testbed.torchrun import TORCH_PYTHON

pytestmark = [pytest.mark.long, pytest.mark.timeout(7200)]

REPOSITORY = Path(__file__).parents[2]
_NAME = "it expects the name gloo"
_MONITORED = "PyTorch refuses monitored_barrier to all backends but the one of the name gloo"
NOT_APPLICABLE = {
    "test_get_backend": _NAME,
    "test_monitored_barrier_failure_order": _MONITORED,
    "test_monitored_barrier_gloo": _MONITORED,
    "test_monitored_barrier_gloo_subgroup": _MONITORED,
    "test_monitored_barrier_wait_all_ranks": _MONITORED,
}
"""Tests that Gloo passes and netfold cannot, with the reason."""

PASSED_BY_GLOO = {8: 111, 4: 93}
"""By ranks, with PyTorch 2.13. With fewer than eight the suite skips its tests of groups; some tests need four."""


def outcomes(system: Testbed, backend: str, ranks: int) -> dict[str, str]:
    """By test: passed, skipped and why, or what failed."""
    written = system.directory / f"{backend}.json"
    environment = {
        **os.environ, "NETFOLD_CONTROLLER": system.controller.address, "GLOO_SOCKET_IFNAME": "eth0",
        "PYTHONPATH": str(REPOSITORY), "TEMP_DIR": str(system.directory), "WORLD_SIZE": str(ranks),
        "NETFOLD_LEASE_MS": "10000",
    }  # fmt: skip
    pids = ",".join(str(system.net.hosts[host].pid) for host in system.workers)
    command = [
        TORCH_PYTHON,
        Path(__file__).with_name("pytorch_suite.py"),
        "--backend",
        backend,
        "--pids",
        pids,
    ]
    with (system.directory / f"{backend}.log").open("w") as log:
        subprocess.run(
            [*command, "--out", written], env=environment, stdout=log, stderr=subprocess.STDOUT, check=True
        )
    found: dict[str, str] = json.loads(written.read_text())
    return found


@pytest.mark.skipif(not TORCH_PYTHON.exists(), reason="needs PyTorch in .venv-torch")
@pytest.mark.parametrize(("ranks", "expected"), PASSED_BY_GLOO.items())
def test_netfold_passes_what_gloo_passes(ranks: int, expected: int, tmp_path: Path):
    fabric = tmp_path / "leaf.yaml"
    fabric.write_text(
        f"name: leaf\ngenerate:\n  single_switch: {{hosts: {ranks}, parameter_servers: 0, rate: 1000, queue: 256}}\n"
    )
    with Testbed(str(fabric), target="softswitch", lanes=256, name="suite", first_grpc_port=9920) as system:
        gloo, ours = outcomes(system, "gloo", ranks), outcomes(system, "netfold", ranks)
    passed = {name for name, outcome in gloo.items() if outcome == "passed"}
    assert len(passed) == expected
    failed = {name: ours[name] for name in passed - NOT_APPLICABLE.keys() if ours[name] != "passed"}
    assert not failed, failed
