# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Groups that c10d reconfigures over real switches: ranks leave and join in the same job, on its plan and slots."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from netfold.testbed.torchrun import TORCH_PYTHON
from tests.testbed.replicas import Replicas, network, wait_until

PORT = 29520

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(
        not list(TORCH_PYTHON.parents[1].glob("lib/*/site-packages/torch-2.1[4-9]*")),
        reason="SKIPPED: needs PyTorch 2.14 in .venv-torch",
    ),
]


class Ranks(Replicas):
    """The first one has the store."""

    script = "reconfigured_rank.py"

    def arguments(self, number: int) -> list[object]:
        return ["--store", f"{self.ip(self.hosts[0])}:{PORT}", "--members", self.members]

    @property
    def members(self) -> Path:
        folder = self.folder / "members"
        folder.mkdir(exist_ok=True)
        return folder

    def choose(self, uuid: int, numbers: Sequence[int]) -> None:
        """The members from now on, by rank."""
        written = self.folder / "chosen"
        written.write_text(json.dumps(numbers))
        written.rename(self.members / f"{uuid}")


def test_ranks_leave_and_join_in_the_same_job(tmp_path: Path):
    with (
        network(tmp_path, "recf", first_grpc_port=20260) as (system, stub),
        closing(Ranks(system, tmp_path, stub)) as ranks,
    ):
        ranks.choose(1, (0, 1, 2))
        for number in range(3):
            ranks.start(number)
        first = ranks.steps(3)
        slots = ranks.slots_in_use()
        ranks.kill(1)
        wait_until(lambda: ranks.job(first["job"]).interrupted, "its death does not end the calls")
        ranks.choose(2, (2, 0))
        fewer = ranks.steps(2)
        ranks.choose(3, (1, 2, 0))
        ranks.start(1)
        again = ranks.steps(3)
        before = ranks.job(first["job"])
        ranks.choose(4, (0, 1, 2))
        last = ranks.steps(3, again["generation"] + 1)
        assert {step["job"] for step in (fewer, again, last)} == {first["job"]}
        assert [step["generation"] for step in (first, fewer, again, last)] == [0, 1, 2, 3]
        after = ranks.job(first["job"])
        assert after.plan_json == before.plan_json
        assert after.epoch > before.epoch
        assert ranks.slots_in_use() == slots
        ranks.join()
        ranks.assert_nothing_is_left()
        assert ranks.ever() == [first["job"]]


def test_a_rank_0_that_dies_between_the_controller_and_the_other_ranks(tmp_path: Path):
    """They end in an error, and the job, which has no member yet, does not hold the links until its members are late.
    The ranks that are left go on in another one."""
    with (
        network(tmp_path, "rdies", first_grpc_port=20264) as (system, stub),
        closing(Ranks(system, tmp_path, stub)) as ranks,
    ):
        ranks.choose(1, (0, 1, 2))
        for number in range(3):
            ranks.start(number)
        first = ranks.steps(3)["job"]
        (tmp_path / "dying").write_text("1")
        ranks.choose(2, (1, 0, 2))
        wait_until(lambda: ranks.live() == [], "a job without members goes on")
        assert ranks.job(first).generation == 1
        assert "the watch of rank 0" in ranks.job(first).reason
        ranks.kill(1)
        ranks.choose(3, (0, 2))
        assert ranks.steps(2)["job"] != first
        ranks.join()
        ranks.assert_nothing_is_left()
