# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Parameters of FSDP2 that are gathered ahead, beside reduce-scatters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="SKIPPED: torch is not installed (pip install 'netfold[torch]')")

import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.fsdp import FSDPModule, fully_shard  # noqa: E402

from netfold.traffic.pytorch.prefetch import prefetch_parameters  # noqa: E402
from tests.torch.world import World, world  # noqa: E402

if not hasattr(FSDPModule, "set_custom_reduce_scatter"):
    pytest.skip("this torch's fully_shard has no custom collectives", allow_module_level=True)

RANKS, LAYERS, STEPS, WIDTH = 2, 4, 3, 150
"""The gather of a layer moves 90 KB, by Gloo."""


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world(["h1", "h2"], tmp_path_factory.mktemp("world")) as (ranks, _):
        yield ranks


class GatherWork(dist.Work):  # type: ignore[misc]
    """A gather that is in flight until the program has waited for it."""

    def __init__(self, work: Any, in_flight: set[Any]) -> None:
        super().__init__()
        self._work = work
        self._in_flight = in_flight
        in_flight.add(self)

    def wait(self, *timeout: Any) -> bool:
        self._in_flight.discard(self)
        return bool(self._work.wait())


class Collectives:
    """Those of all layers. `gathers_beside`: for each reduce-scatter, the gathers in flight when it starts."""

    def __init__(self) -> None:
        self.in_flight: set[Any] = set()
        self.gathers_beside: list[int] = []

    def allocate(self, size: Any, *, dtype: Any, device: Any) -> Any:
        return torch.empty(*size, dtype=dtype, device=device)

    def gather(self, output_tensor: Any, input_tensor: Any, group: Any, async_op: bool = False) -> Any:
        work = dist.all_gather_into_tensor(output_tensor, input_tensor, group, async_op)
        return GatherWork(work, self.in_flight) if async_op else None

    def reduce_scatter(
        self, output_tensor: Any, input_tensor: Any, group: Any, op: Any, async_op: bool = False
    ) -> None:
        self.gathers_beside.append(len(self.in_flight))
        dist.reduce_scatter_tensor(output_tensor, input_tensor, op, group)


class Comm:
    def __init__(self, collectives: Collectives, call: Any) -> None:
        self.allocate = collectives.allocate
        self._call = call

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self._call(*arguments, **keywords)


def layers() -> nn.Sequential:
    torch.manual_seed(3)
    return nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)))


def loss_of(model: nn.Module, step: int, rank: int) -> Any:
    inputs = torch.randn(8, WIDTH, generator=torch.Generator().manual_seed(RANKS * step + rank))
    return model(inputs).square().mean()


def trained(modules: int) -> tuple[list[int], Any]:
    """The gathers beside each reduce-scatter, and the parameters. `modules`: 0 is without a prefetch."""
    model, collectives = layers(), Collectives()
    mesh = init_device_mesh("cpu", (RANKS,))
    for layer in model:
        fully_shard(layer, mesh=mesh)
        layer.set_custom_all_gather(Comm(collectives, collectives.gather))
        layer.set_custom_reduce_scatter(Comm(collectives, collectives.reduce_scatter))
    fully_shard(model, mesh=mesh)
    if modules:
        prefetch_parameters(model, modules)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(STEPS):
        optimizer.zero_grad()
        loss_of(model, step, dist.get_rank()).backward()
        optimizer.step()
    found = torch.cat([p.full_tensor().detach().reshape(-1) for p in model.parameters()])
    return collectives.gathers_beside, found.numpy()


@pytest.mark.parametrize(("modules", "beside"), [(0, [0, 0, 0, 0]), (1, [1, 1, 1, 0]), (2, [1, 1, 1, 0])])
def test_parameters_are_gathered_beside_the_reduce_scatters(ranks: World, modules: int, beside: list[int]):
    answers = ranks.run(trained, modules)
    assert [gathers for gathers, _ in answers] == [beside * STEPS] * RANKS
    reference = layers()
    optimizer = torch.optim.SGD(reference.parameters(), lr=0.1)
    for step in range(STEPS):
        optimizer.zero_grad()
        sum(loss_of(reference, step, rank) / RANKS for rank in range(RANKS)).backward()
        optimizer.step()
    expected = torch.cat([p.detach().reshape(-1) for p in reference.parameters()])
    for _, found in answers:
        torch.testing.assert_close(torch.from_numpy(found), expected, rtol=1e-4, atol=1e-5)


def test_a_model_without_fully_shard_and_no_module_are_errors():
    with pytest.raises(TypeError, match="prefetch_parameters takes a model of fully_shard, not Linear"):
        prefetch_parameters(nn.Linear(2, 2))
    model = nn.Linear(2, 2)
    model.__class__ = type("FSDPLinear", (FSDPModule, nn.Linear), {})
    with pytest.raises(ValueError, match="modules is 0; expected 1 or more"):
        prefetch_parameters(model, 0)
