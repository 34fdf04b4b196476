# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Ranks under `torchrun --max-restarts` that make another group after a failed call, in the same processes: it follows
in the job that they have left, which else would keep their links for a while."""

from __future__ import annotations

from pathlib import Path

import pytest

from netfold.testbed.processes import ProcessGroup
from netfold.testbed.testbed import Testbed
from netfold.testbed.torchrun import TORCH_PYTHON, TorchProgram, torchrun_tasks
from tests.history import REPOSITORY

RANK = Path(__file__).with_name("again_rank.py")
HOSTS = ("h1", "h2")
WAIT_S = 300.0

pytestmark = [
    pytest.mark.root,
    pytest.mark.mininet,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not TORCH_PYTHON.exists(), reason="SKIPPED: needs PyTorch in .venv-torch"),
]


def test_a_group_that_follows_a_failed_one_has_its_job():
    with Testbed(target="softswitch", lanes=64, name="again", first_grpc_port=20420) as system:
        addresses = {host: system.address(host) for host in HOSTS}
        environment = {"PYTHONPATH": str(REPOSITORY), "PET_MAX_RESTARTS": "1"}
        program = TorchProgram(RANK, (), 1, environment, "--out")
        tasks = torchrun_tasks(program, addresses, system.directory, 29763)
        with ProcessGroup(system.net, tasks) as ranks:
            results = ranks.wait(WAIT_S, system.check)
        first, failed, again = results["h1"]["groups"]
        assert results["h2"]["groups"] == [first, failed, again]
        assert [first[1:], failed[1:], again[1:]] == [[0, 1.0], [0, -1.0], [1, 1.0]]
        assert again[0] == failed[0] != first[0]
