# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Approximate gradients of several groups at once, calls of other kinds under the same setting, and ranks whose
settings differ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="SKIPPED: torch is not installed (pip install 'netfold[torch]')")

import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402
from torch.distributed.optim import ZeroRedundancyOptimizer  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

import netfold  # noqa: E402
from netfold.traffic.pytorch.gradients import compress_gradients, gradients  # noqa: E402
from tests.torch.world import world  # noqa: E402

SIZE = 5000
QUARTER = {"NETFOLD_NUMERICS": "quarter"}


def error_of(group: Any, seed: int, is_named: bool) -> float:
    inputs = [torch.randn(SIZE, generator=torch.Generator().manual_seed(seed + rank)) for rank in range(2)]
    exact, tensor = sum(one.double() for one in inputs), inputs[dist.get_rank()].clone()
    if is_named:
        with gradients():
            dist.all_reduce(tensor, group=group)
    else:
        dist.all_reduce(tensor, group=group)
    return float((tensor.double() - exact).norm() / exact.norm())


def in_two_groups() -> list[list[float]]:
    """Errors of named and other sums, of calls of one size in the world, in a group of its job, and in a job of its
    own with other numerics."""
    own = dist.new_group([0, 1], pg_options=netfold.TorchOptions(numerics="half", rate=20))
    groups = (None, dist.new_group([0, 1]), own)
    found: list[list[float]] = [[], [], [], []]
    for call in range(8):
        for number, group in enumerate(groups):
            found[number].append(error_of(group, 10 * call, is_named=True))
            found[3].append(error_of(groups[0], 10 * call, is_named=False))
    dist.destroy_process_group(own)
    return found


def exact_beside_gradients() -> list[bool]:
    """Calls that are no gradients, also where a program names them by mistake."""
    rank, found = dist.get_rank(), []
    for call in range(6):
        weights = torch.randn(SIZE, generator=torch.Generator().manual_seed(call))
        with gradients():
            copy = weights.clone() if rank == 0 else torch.zeros(SIZE)
            dist.broadcast(copy, 0)
            dist.barrier()
            parts = [torch.zeros(SIZE) for _ in range(2)]
            dist.all_gather(parts, weights + rank)
            counts = torch.arange(SIZE) * (rank + 1)
            dist.all_reduce(counts)
        found += [
            torch.equal(copy, weights),
            all(torch.equal(part, weights + other) for other, part in enumerate(parts)),
            torch.equal(counts, 3 * torch.arange(SIZE)),
        ]
    model = DistributedDataParallel(nn.Linear(90, 90))
    compress_gradients(model)
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.01)
    for step in range(4):
        model(torch.randn(8, 90, generator=torch.Generator().manual_seed(2 * step + rank))).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    optimizer.consolidate_state_dict(0)  # of states that other ranks have
    flat = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
    others = [torch.zeros_like(flat) for _ in range(2)]
    dist.all_gather(others, flat)
    return [*found, torch.equal(others[0], others[1])]


def test_groups_predict_apart_and_all_other_calls_are_exact(tmp_path: Path):
    with world(["h1", "h2"], tmp_path, QUARTER) as (ranks, _):
        ours, theirs = ranks.run(in_two_groups)
        assert ours == theirs
        shared, same_job, half, not_named = ours
        assert max(*shared, *same_job) < 0.06
        assert min(*shared[1:], *same_job[1:]) > 0.005
        assert max(half) < 1e-3
        assert max(not_named) < 1e-5
        assert all(all(one) for one in ranks.run(exact_beside_gradients))


def differing(setting: str) -> list[str]:
    """Returns the outcomes of the steps of a training; "" is a good one."""
    is_first = dist.get_rank() == 0
    model = DistributedDataParallel(nn.Linear(90, 90))
    if setting == "warm-up":
        compress_gradients(model, warm_up_steps=3 if is_first else 0)
    elif is_first:
        compress_gradients(model)
    found = []
    for step in range(3):
        try:
            model(torch.randn(8, 90, generator=torch.Generator().manual_seed(step))).sum().backward()
            found.append("")
        except Exception as error:
            found.append(str(error))
            break
    return found


@pytest.mark.parametrize("setting", ["warm-up", "names"])
def test_ranks_whose_settings_differ_get_an_error_and_never_a_sum(tmp_path: Path, setting: str):
    with world(["h1", "h2"], tmp_path, QUARTER) as (ranks, _):
        for found in ranks.run(differing, setting):
            assert len(found) == (2 if setting == "warm-up" else 1), "the first step is half at both"
            assert "netfold: rank" in found[-1]
