# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Error feedback of approximate gradients under DistributedDataParallel: what a step loses is in the next one, over
checkpoints, new buckets, and several ranks on a host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="SKIPPED: torch is not installed (pip install 'netfold[torch]')")

import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

from netfold.traffic.pytorch.gradients import GradientState, compress_gradients  # noqa: E402
from tests.torch.world import World, world  # noqa: E402

HOSTS = ["h1", "h1", "h2"]
STEPS, SIZES = 24, (3000, 5000, 200)


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("world")
    with world(HOSTS, folder, {"NETFOLD_NUMERICS": "quarter"}) as (ranks, _):
        yield ranks


class Sums(nn.Module):
    """Its gradients are `slopes`, whatever its parameters are."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ParameterList([nn.Parameter(torch.zeros(size)) for size in SIZES])

    def forward(self, slopes: list[Any]) -> Any:
        return sum((part * slope).sum() for part, slope in zip(self.parts, slopes, strict=True))


def slopes_of(rank: int) -> list[Any]:
    draw = torch.Generator().manual_seed(rank)
    return [torch.randn(size, generator=draw) for size in SIZES]


def lost(model: Any, steps: int) -> float:
    """How far `steps` steps of rate 1 are from where exact gradients end, in lengths of one step."""
    mean = torch.stack([torch.cat(slopes_of(rank)) for rank in range(len(HOSTS))]).double().mean(0)
    moved = -torch.cat([part.detach() for part in model.module.parts]).double()
    return float((moved - steps * mean).norm() / mean.norm())


def walk(model: Any, steps: int) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    for _ in range(steps):
        optimizer.zero_grad()
        model(slopes_of(dist.get_rank())).backward()
        optimizer.step()


def walked(error_feedback: bool) -> float:
    model = DistributedDataParallel(Sums(), bucket_cap_mb=0.02)
    compress_gradients(model, error_feedback=error_feedback)
    walk(model, STEPS)
    return lost(model, STEPS)


def test_what_steps_lose_does_not_add_up(ranks: World):
    """Also where the first rank of a host has the remainder of all its ranks."""
    with_feedback, without = ranks.run(walked, True), ranks.run(walked, False)
    assert len(set(with_feedback)) == len(set(without)) == 1
    assert 0.001 < with_feedback[0] < 0.1
    assert without[0] > 2 * with_feedback[0]


def resumed(is_loaded: bool) -> float:
    """Half of the way, and the rest as another program that may load its checkpoint."""
    first, second = (DistributedDataParallel(Sums(), bucket_cap_mb=0.02) for _ in range(2))
    state = compress_gradients(first, warm_up_steps=1, error_feedback=True)
    assert state is not None
    walk(first, STEPS // 2)
    second.load_state_dict(first.state_dict())
    restored = compress_gradients(second, warm_up_steps=1, error_feedback=True)
    assert restored is not None
    if is_loaded:
        restored.load_state_dict(second.module, state.state_dict(first.module))
        assert restored.step == STEPS // 2
    # What is left with the remainders: the sum of all that went so far is exact but for them.
    left = restored.state_dict(second.module)["remainders"]
    mean = torch.cat([left.get(f"parts.{i}", torch.zeros(n)) for i, n in enumerate(SIZES)])
    dist.all_reduce(mean, dist.ReduceOp.SUM)
    moved = -torch.cat([part.detach() for part in second.module.parts]).double()
    exact = torch.stack([torch.cat(slopes_of(rank)) for rank in range(len(HOSTS))]).double().mean(0)
    walk(second, STEPS // 2)
    assert lost(second, STEPS) < 0.2
    return float((moved + mean.double() / len(HOSTS) - STEPS // 2 * exact).norm() / exact.norm())


def test_a_checkpoint_has_all_that_is_left_of_the_gradients(ranks: World):
    loaded, not_loaded = ranks.run(resumed, True), ranks.run(resumed, False)
    assert max(loaded) < 1e-3  # the first step is half
    assert min(not_loaded) > 10 * max(loaded)


def misused() -> list[str]:
    found = []
    model = Sums()
    state = GradientState(feedback=None)
    state.load_state_dict(model, {"step": 3, "remainders": {}})
    assert state.step == 3
    other = compress_gradients(DistributedDataParallel(model), error_feedback=True)
    assert other is not None
    for remainders in ({"parts.0": torch.zeros(7)}, {"elsewhere": torch.zeros(7)}):
        try:
            other.load_state_dict(model, {"step": 3, "remainders": remainders})
        except ValueError as error:
            found.append(str(error))
    assert other.step == 0
    return found


def test_remainders_of_another_model_are_refused(ranks: World):
    short, unknown = ranks.run(misused)[0]
    assert short == "the remainder of parts.0 has 7 elements; the model's parameter has 3000"
    assert unknown == "the remainder of elsewhere has 7 elements; the model has no such parameter"
