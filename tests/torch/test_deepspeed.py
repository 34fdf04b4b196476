# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""DeepSpeed's ZeRO stages 0 to 2 on processors, with what docs/how-to/pytorch.md tells their users to write."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="SKIPPED: torch is not installed (pip install 'netfold[torch]')")
pytest.importorskip("deepspeed", reason="SKIPPED: deepspeed is not installed (make test-frameworks)")

import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402

from tests.torch.world import World, packets, world  # noqa: E402

RANKS = 2
STEPS = 4
BATCH = 8

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    environment = {"DS_ACCELERATOR": "cpu", "LOCAL_SIZE": "1"}
    with world(["h1", "h2"], tmp_path_factory.mktemp("world"), environment) as (ranks, _):
        yield ranks


def model() -> Any:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(30, 200), nn.ReLU(), nn.Linear(200, 1))


def inputs(rank: int, step: int) -> Any:
    return torch.randn(BATCH, 30, generator=torch.Generator().manual_seed(10 * step + rank))


def trained(stage: int) -> tuple[list[Any], int]:
    """The weights, and the packets of this rank's worker for them."""
    import deepspeed  # noqa: PLC0415

    # Its reduction in shared memory is of ranks of one host; it would be compiled first, for minutes.
    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    before = packets()
    net = model()
    engine, _, _, _ = deepspeed.initialize(
        model=net,
        optimizer=torch.optim.SGD(net.parameters(), lr=0.1),
        dist_init_required=False,
        config={
            "train_batch_size": BATCH * RANKS,
            "zero_optimization": {"stage": stage},
            "zero_allow_untested_optimizer": True,
            "gradient_clipping": 0.0,  # its default is 1
        },
    )
    for step in range(STEPS):
        engine.backward(engine(inputs(dist.get_rank(), step)).square().mean())
        engine.step()
    weights = [p.detach().clone().numpy() for p in net.parameters()]
    return weights, packets() - before


def alone() -> list[Any]:
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(STEPS):
        optimizer.zero_grad()
        for rank in range(RANKS):
            (net(inputs(rank, step)).square().mean() / RANKS).backward()
        optimizer.step()
    return [p.detach().numpy() for p in net.parameters()]


@pytest.mark.parametrize("stage", [0, 1, 2])
def test_zero_trains_as_one_machine_would(ranks: World, stage: int):
    (ours, packets), (theirs, _) = ranks.run(trained, stage)
    assert packets > 0
    for one, other, reference in zip(ours, theirs, alone(), strict=True):
        assert one.tobytes() == other.tobytes()
        torch.testing.assert_close(torch.from_numpy(one), torch.from_numpy(reference), rtol=1e-4, atol=1e-5)
