# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Quorums of torchft's manager over real switches: a replica dies in the middle of a call, and comes back. All quorums
are one job, which no replica that has died contributes to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from netfold.testbed.testbed import Testbed
from netfold.testbed.torchrun import TORCH_PYTHON
from tests.testbed.replicas import Replicas, network, wait_until

LIGHTHOUSE = TORCH_PYTHON.with_name("torchft_lighthouse")

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(not LIGHTHOUSE.exists(), reason="SKIPPED: needs torchft in .venv-torch"),
]

PORT = 29510


class Quorums(Replicas):
    """Replicas with torchft's manager, and its lighthouse on the fourth host."""

    script = "torchft_replica.py"

    def __init__(self, system: Testbed, folder: Path, stub: Any, least: int) -> None:
        super().__init__(system, folder, stub)
        command = [LIGHTHOUSE.absolute(), "--min_replicas", least, "--bind", f"0.0.0.0:{PORT}"]
        command += ["--join_timeout_ms", 3000, "--heartbeat_timeout_ms", 2000]
        self.start_program(self.last_host, command)

    def arguments(self, number: int) -> list[object]:
        lighthouse = f"http://{self.ip(self.last_host)}:{PORT}"
        return ["--address", self.ip(self.hosts[number]), "--lighthouse", lighthouse]


@contextmanager
def running(folder: Path, least: int) -> Iterator[Quorums]:
    with (
        network(folder, "tft", first_grpc_port=20220) as (system, stub),
        closing(Quorums(system, folder, stub, least)) as replicas,
    ):
        for number in range(3):
            replicas.start(number)
        yield replicas


def test_a_replica_that_comes_back_joins_the_same_job_on_its_plan_and_slots(tmp_path: Path):
    with running(tmp_path, least=3) as replicas:
        first = replicas.steps(3)
        before = replicas.job(first["job"])
        slots = replicas.slots_in_use()
        for number in (2, 0):  # also the one that decides
            replicas.kill(number)
            generation = replicas.job(first["job"]).generation
            wait_until(lambda: replicas.job(first["job"]).interrupted, "its death does not end the calls")
            assert replicas.slots_in_use() == slots
            replicas.start(number)
            again = replicas.steps(3, generation + 1)
            after = replicas.job(first["job"])
            assert again["job"] == first["job"]
            assert after.epoch > before.epoch
            assert after.plan_json == before.plan_json
            assert replicas.slots_in_use() == slots
        replicas.join()
        replicas.assert_nothing_is_left()
        assert replicas.ever() == [first["job"]]


def test_replicas_that_are_left_go_on_in_the_same_job(tmp_path: Path):
    with running(tmp_path, least=2) as replicas:
        first = replicas.steps(3)
        epoch = replicas.job(first["job"]).epoch
        replicas.kill(1)
        fewer = replicas.steps(2)
        assert fewer["job"] == first["job"]
        assert fewer["generation"] > first["generation"]
        assert replicas.job(first["job"]).epoch > epoch
        epoch = replicas.job(first["job"]).epoch
        replicas.start(1)
        again = replicas.steps(3)
        assert again["job"] == first["job"]
        assert again["generation"] > fewer["generation"]
        assert replicas.job(first["job"]).epoch > epoch
        assert replicas.ever() == [first["job"]]
        for number in range(3):
            replicas.kill(number)
        replicas.assert_nothing_is_left()
