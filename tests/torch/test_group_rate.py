# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Groups of some ranks get jobs of their own when the program names a rate for them."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="SKIPPED: torch is not installed (pip install 'netfold[torch]')")

import torch.distributed as dist  # noqa: E402

from netfold.traffic.pytorch.options import TorchOptions  # noqa: E402
from tests.torch.test_group_jobs import RANKS, SIZE, check_trained, trained_in_a_mesh  # noqa: E402
from tests.torch.world import carrier, world  # noqa: E402

HOSTS = [f"h{n + 1}" for n in range(RANKS)]


def in_a_refused_group() -> tuple[str, float]:
    group = dist.new_group([1, 3])
    name = "" if group is dist.GroupMember.NON_GROUP_MEMBER else carrier(group)
    tensor = torch.full((SIZE,), float(dist.get_rank()))
    if name:
        dist.all_reduce(tensor, group=group)
    return name, float(tensor.mean())


def test_groups_of_a_mesh_have_jobs_of_the_group_rate_or_go_by_gloo(tmp_path: Path):
    with world(HOSTS, tmp_path, {"NETFOLD_RATE": "40", "NETFOLD_GROUP_RATE": "15"}) as (processes, fabric):
        answers = processes.run(trained_in_a_mesh, None)
        check_trained(answers)
        assert [names for _, names in answers] == [["netfold"] * 2] * RANKS
        rates = [job["rate"] for job in fabric.controller.jobs]
        assert rates == [40, 15, 15, 15, 15]
        assert len({job["name"] for job in fabric.controller.jobs}) == 5

        fabric.controller.refuse = "link h2-leaf1 has nothing left"
        answers = processes.run(in_a_refused_group)
        assert [mean for _, mean in answers] == [0, 4, 2, 4]
        assert "netfold" not in [name for name, _ in answers]


def test_a_group_rate_without_a_rate_is_refused(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(ValueError, match="group_rate needs rate"):
        TorchOptions.of({"group_rate": 10})
    monkeypatch.setenv("NETFOLD_RATE", "40")
    assert TorchOptions.of({"group_rate": 10}).rate == 40
