# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Numerics quarter under torch.distributed: gradients that the program names are approximate, all else is exact."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="SKIPPED: torch is not installed (pip install 'netfold[torch]')")

import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

from netfold.traffic.pytorch.gradients import GradientState, compress_gradients, gradients  # noqa: E402
from tests.torch.world import World, world  # noqa: E402

RANKS, STEPS, WIDTH = 2, 12, 96


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("world")
    with world(["h1", "h2"], folder, {"NETFOLD_NUMERICS": "quarter"}) as (ranks, _):
        yield ranks


def perceptron() -> Any:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(20, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 3)
    )


def loss_of(model: Any, seed: int) -> Any:
    inputs = torch.randn(64, 20, generator=torch.Generator().manual_seed(seed))
    return nn.functional.cross_entropy(model(inputs), (inputs.sum(1) > 0).long())


def weights(model: Any) -> Any:
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()]).numpy()


def distance(one: Any, other: Any, start: Any) -> float:
    """Between two ends, in lengths of the way."""
    return float(((one - other) ** 2).sum() ** 0.5 / ((other - start) ** 2).sum() ** 0.5)


def alone(steps: int = STEPS, clip: float = 0.0) -> Any:
    model = perceptron()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        optimizer.zero_grad()
        for rank in range(RANKS):
            (loss_of(model, step * RANKS + rank) / RANKS).backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
    return weights(model)


def train(kind: str) -> Any:
    model = DistributedDataParallel(perceptron(), bucket_cap_mb=0.02)
    if kind != "not named":
        has_feedback = kind.startswith("feedback")
        compress_gradients(model, warm_up_steps=2 if kind == "warm-up" else 0, error_feedback=has_feedback)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**14, enabled="scaler" in kind)
    for step in range(STEPS):
        optimizer.zero_grad()
        scaler.scale(loss_of(model, step * RANKS + dist.get_rank())).backward()
        if "clipped" in kind or "scaler" in kind:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        scaler.step(optimizer)
        scaler.update()
    return weights(model.module)


@pytest.mark.parametrize("kind", ["plain", "clipped", "scaler", "warm-up", "feedback", "feedback, scaler"])
def test_ddp_ends_near_one_machine_with_the_same_bits_at_all_ranks(ranks: World, kind: str):
    ours, theirs = ranks.run(train, kind)
    assert ours.tobytes() == theirs.tobytes()
    expected = alone(clip=0.1 if "clipped" in kind or "scaler" in kind else 0.0)
    assert 1e-5 < distance(ours, expected, weights(perceptron())) < 0.05


def test_gradients_that_the_program_does_not_name_are_exact(ranks: World):
    ours, _ = ranks.run(train, "not named")
    assert distance(ours, alone(), weights(perceptron())) < 1e-5


def warm_up_ends() -> list[bool]:
    """Returns for each step whether its gradients had the error of half."""
    model = DistributedDataParallel(perceptron())
    state = compress_gradients(model, warm_up_steps=3)
    assert state is not None
    found = []
    for step in range(6):
        model.zero_grad()
        loss_of(model, dist.get_rank()).backward()
        assert state.step == step + 1
        mean = torch.cat([p.grad.reshape(-1) for p in model.parameters() if p.grad is not None]).double()
        exact = exact_mean()
        found.append(float((mean - exact).norm() / exact.norm()) < 1e-3)
    return found


def exact_mean() -> Any:
    """Returns the exact mean of the gradients that the ranks have in `loss_of(model, rank)`."""
    model = perceptron()
    for rank in range(RANKS):
        (loss_of(model, rank) / RANKS).backward()
    return torch.cat([p.grad.reshape(-1) for p in model.parameters() if p.grad is not None]).double()


def test_the_steps_of_a_warm_up_are_half(ranks: World):
    assert ranks.run(warm_up_ends) == [[True, True, True, False, False, False]] * RANKS


def overflowing(error_feedback: bool) -> tuple[float, bool]:
    model = DistributedDataParallel(perceptron())
    compress_gradients(model, error_feedback=error_feedback)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for step in range(6):
        optimizer.zero_grad()
        loss_of(model, step).backward()
        optimizer.step()
    before = weights(model)
    optimizer.zero_grad()
    factor = float("inf") if dist.get_rank() == 1 else 1.0
    (scaler.scale(loss_of(model, 7)) * factor).backward()
    scaler.step(optimizer)
    scaler.update()
    return scaler.get_scale(), before.tobytes() == weights(model).tobytes()


@pytest.mark.parametrize("error_feedback", [False, True])
def test_a_scaler_skips_the_step_at_all_ranks_when_one_overflows(ranks: World, error_feedback: bool):
    assert ranks.run(overflowing, error_feedback) == [(512.0, True)] * RANKS


def sharded() -> Any:
    from torch.distributed.device_mesh import init_device_mesh  # noqa: PLC0415
    from torch.distributed.fsdp import fully_shard  # noqa: PLC0415

    model = perceptron()
    mesh = init_device_mesh("cpu", (RANKS,))
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    compress_gradients(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(STEPS):
        optimizer.zero_grad()
        loss_of(model, step * RANKS + dist.get_rank()).backward()
        optimizer.step()
    return torch.cat([p.full_tensor().detach().reshape(-1) for p in model.parameters()]).numpy()


def test_fsdp_s_reduce_scatters_are_approximate_and_its_weights_are_not(ranks: World):
    ours, theirs = ranks.run(sharded)
    assert ours.tobytes() == theirs.tobytes()
    assert 1e-5 < distance(ours, alone(), weights(perceptron())) < 0.05


def collectives() -> list[float]:
    """The largest errors of sums, by dtype and whether they are named."""
    found = []
    for dtype in (torch.float32, torch.bfloat16, torch.float64, torch.int32):
        for is_named in (False, True):
            for call in range(8):
                inputs = [
                    (
                        100 * torch.randn(5000, generator=torch.Generator().manual_seed(call * RANKS + rank))
                    ).to(dtype)
                    for rank in range(RANKS)
                ]
                tensor, exact = inputs[dist.get_rank()].clone(), sum(i.double() for i in inputs)
                if is_named:
                    with gradients():
                        dist.all_reduce(tensor)
                else:
                    dist.all_reduce(tensor)
                error = float((tensor.double() - exact).norm() / exact.norm())
            found.append(error)
    return found


def test_only_named_sums_of_floats_of_32_and_16_bits_are_approximate(ranks: World):
    errors, _ = ranks.run(collectives)
    limits = [1e-6, 0.05, 0.01, 0.05, 1e-9, 1e-9, 0.0, 0.0]
    assert all(error <= limit for error, limit in zip(errors, limits, strict=True))
    assert errors[1] > 1e-4
    assert errors[3] > errors[2]


def misused() -> list[str]:
    found = []
    inner = dist.new_group(backend="gloo")
    for model in (
        nn.Linear(2, 2),
        DistributedDataParallel(nn.Linear(2, 2), process_group=inner),
    ):
        try:
            compress_gradients(model)
        except (TypeError, ValueError) as error:
            found.append(f"{type(error).__name__}: {error}")
    try:
        GradientState(warm_up_steps=-1)
    except ValueError as error:
        found.append(str(error))
    return found


def test_misuse_is_an_error_that_names_what_is_expected(ranks: World):
    not_parallel, not_ours, negative = ranks.run(misused)[0]
    assert (
        "TypeError: compress_gradients takes a model of DistributedDataParallel or fully_shard"
        in not_parallel
    )
    assert "ValueError: compress_gradients needs a group of the backend netfold" in not_ours
    assert negative == "warm_up_steps is -1; expected 0 or more"
