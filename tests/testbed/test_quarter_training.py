# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Training over real switches with gradients of the scheme quarter: the digits network ends at float32's loss."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from netfold.testbed.testbed import Testbed
from netfold.testbed.torchrun import TORCH_PYTHON

pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]

HOSTS = 8
REPOSITORY = Path(__file__).parents[2]


@pytest.mark.skipif(not TORCH_PYTHON.exists(), reason="needs PyTorch in .venv-torch")
def test_the_digits_network_ends_at_float32_s_loss_over_switches(tmp_path: Path):
    fabric = tmp_path / "leaves.yaml"
    fabric.write_text(
        f"name: leaves\ngenerate:\n  leaf_spine: {{leaves: 2, spines: 1, hosts_per_leaf: {HOSTS // 2}, rate: 100}}\n"
    )
    with Testbed(str(fabric), target="softswitch", lanes=256, name="qua", first_grpc_port=9840) as system:
        script, environment = Path(__file__).with_name("digits_rank.py"), {"PYTHONPATH": str(REPOSITORY)}
        with system.torchrun(
            script, name="digits", environment=environment, port=29710, result_option="--out"
        ) as group:
            group.wait(900, system.check)
        losses = json.loads((system.directory / "digits" / f"{system.workers[0]}.json").read_text())
    assert losses["quarter"] <= 1.01 * losses["block"]
