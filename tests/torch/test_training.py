# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Training on top of torch.distributed: DistributedDataParallel with all that it can do, and FSDP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="SKIPPED: torch is not installed (pip install 'netfold[torch]')")

import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

from tests.torch.world import World, world  # noqa: E402

RANKS = 2


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world(["h1", "h2"], tmp_path_factory.mktemp("world")) as (ranks, _):
        yield ranks


class Branches(nn.Module):
    """A branch that some steps do not take."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Linear(20, 40)
        self.left = nn.Linear(40, 3)
        self.right = nn.Linear(40, 3)

    def forward(self, inputs: Any, right: bool = False) -> Any:
        return (self.right if right else self.left)(torch.relu(self.first(inputs)))


def batch(rank: int) -> tuple[Any, Any]:
    inputs = torch.randn(32, 20, generator=torch.Generator().manual_seed(rank))
    return inputs, (inputs.sum(1) > 0).long()


def loss_of(model: Any, rank: int, **options: Any) -> Any:
    inputs, labels = batch(rank)
    return nn.functional.cross_entropy(model(inputs, **options), labels)


def weights(model: Any) -> list[Any]:
    return [p.detach().clone().numpy() for p in model.parameters()]


def train(kind: str, steps: int = 4) -> list[Any]:
    rank = dist.get_rank()
    model = DistributedDataParallel(
        Branches(), bucket_cap_mb=0.001, find_unused_parameters=kind == "unused"
    )  # several buckets
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, enabled=kind == "scaler")
    for step in range(steps):
        optimizer.zero_grad()
        right = kind == "unused" and step % 2 == 1 and rank == 0
        if kind == "accumulated":
            with model.no_sync():
                loss_of(model, rank + 2).backward()
        loss = loss_of(model, rank, right=right) + (
            0 if kind == "unused" else 0 * loss_of(model, rank, right=True)
        )
        scaler.scale(loss).backward()
        if kind == "scaler" and step == 1 and rank == 1:
            pass
        scaler.step(optimizer)
        scaler.update()
    return weights(model.module)


def alone(kind: str, steps: int = 4) -> list[Any]:
    """The same on one machine: the mean of the ranks' gradients."""
    model = Branches()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        optimizer.zero_grad(set_to_none=kind != "unused")
        for rank in range(RANKS):
            right = kind == "unused" and step % 2 == 1 and rank == 0
            if kind == "accumulated":
                (loss_of(model, rank + 2) / RANKS).backward()
            loss = loss_of(model, rank, right=right)
            ((loss + (0 if kind == "unused" else 0 * loss_of(model, rank, right=True))) / RANKS).backward()
        optimizer.step()
    return weights(model)


@pytest.mark.parametrize("kind", ["plain", "accumulated", "unused", "scaler"])
def test_ddp_trains_as_one_machine_would(ranks: World, kind: str):
    answers = ranks.run(train, kind)
    expected = alone(kind)
    for ours, theirs, reference in zip(*answers, expected, strict=True):
        assert ours.tobytes() == theirs.tobytes()
        torch.testing.assert_close(torch.from_numpy(ours), torch.from_numpy(reference), rtol=1e-4, atol=1e-5)


def overflowing() -> tuple[float, list[Any]]:
    """A loss whose gradients are infinite at one rank only."""
    rank = dist.get_rank()
    model = DistributedDataParallel(nn.Linear(2, 1))
    before = weights(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    inputs = torch.full((1, 2), float("inf") if rank == 1 else 1.0)
    scaler.scale(model(inputs).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    return scaler.get_scale(), [
        a.tobytes() == b.tobytes() for a, b in zip(before, weights(model), strict=True)
    ]


def test_a_scaler_skips_the_step_at_all_ranks_when_one_overflows(ranks: World):
    assert ranks.run(overflowing) == [(512.0, [True, True])] * RANKS


def sharded() -> list[Any]:
    from torch.distributed.device_mesh import init_device_mesh  # noqa: PLC0415
    from torch.distributed.fsdp import fully_shard  # noqa: PLC0415

    model = Branches()
    mesh = init_device_mesh("cpu", (RANKS,))
    for layer in (model.first, model.left, model.right):
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        optimizer.zero_grad()
        (loss_of(model, dist.get_rank()) + 0 * loss_of(model, dist.get_rank(), right=True)).backward()
        optimizer.step()
    return [p.full_tensor().detach().numpy() for p in model.parameters()]


@pytest.mark.skipif(
    not hasattr(torch.cpu.Stream, "record_event"),
    reason="SKIPPED: this PyTorch's FSDP2 takes no tensors in host memory",
)
def test_fsdp_trains_as_one_machine_would(ranks: World):
    ours, theirs = ranks.run(sharded)
    for one, other, reference in zip(ours, theirs, alone("plain"), strict=True):
        assert one.tobytes() == other.tobytes()
        torch.testing.assert_close(torch.from_numpy(one), torch.from_numpy(reference), rtol=1e-4, atol=1e-5)


def compiled() -> list[Any]:
    """Dynamo leaves the group's methods alone."""
    model = DistributedDataParallel(nn.BatchNorm1d(4))  # its buffers are broadcast before each step
    step = torch.compile(model, backend="eager")
    for _ in range(2):
        step(torch.ones(3, 4) * dist.get_rank()).sum().backward()
    return weights(model.module)


def test_a_compiled_model_trains(ranks: World):
    ours, theirs = ranks.run(compiled)
    assert [one.tobytes() for one in ours] == [other.tobytes() for other in theirs]


def hooked() -> list[Any]:
    from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as power  # noqa: PLC0415

    model = DistributedDataParallel(Branches())
    state = power.PowerSGDState(process_group=None, matrix_approximation_rank=1, start_powerSGD_iter=2)
    model.register_comm_hook(state, power.powerSGD_hook)
    for _ in range(5):
        (loss_of(model, dist.get_rank()) + 0 * loss_of(model, dist.get_rank(), right=True)).backward()
    return [p.grad.numpy() for p in model.parameters() if p.grad is not None]


def test_power_sgd_s_hook_ends(ranks: World):
    ours, theirs = ranks.run(hooked)
    assert len(ours) == 6
    assert [one.tobytes() for one in ours] == [other.tobytes() for other in theirs]
