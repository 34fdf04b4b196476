# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Every operation on every dtype gives what Gloo gives, or Gloo's error."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any
from unittest.mock import Mock

import pytest

torch = pytest.importorskip("torch", reason="SKIPPED: torch is not installed (pip install 'netfold[torch]')")

import torch.distributed as dist  # noqa: E402

from netfold.traffic.pytorch.session import Session  # noqa: E402
from tests.torch.world import World, packets, world  # noqa: E402

RANKS = 3
DTYPES = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64",
)  # fmt: skip
OPS = ("SUM", "AVG", "MAX", "MIN", "PRODUCT", "BAND", "BOR", "BXOR")
SMALL, LARGE = 50, 40_000


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Two ranks share a host."""
    with world(["h1", "h2", "h2"], tmp_path_factory.mktemp("world")) as (found, _):
        yield found


def values(rank: int, dtype: Any, size: int) -> Any:
    numbers = torch.randint(-3, 4, (size,), generator=torch.Generator().manual_seed(rank))
    return (numbers if dtype.is_signed else numbers.abs()).to(dtype)


def outcome(reduced: Any) -> Any:
    try:
        return reduced()
    except (RuntimeError, ValueError) as error:
        return type(error)


def compared(dtype_name: str, size: int) -> list[str]:
    """The operations in which netfold differs from Gloo, by sizes and collectives."""
    dtype, rank, gloo = getattr(torch, dtype_name), dist.get_rank(), dist.new_group(backend="gloo")
    wrong = []

    def all_reduced(op: Any, group: Any) -> Any:
        tensor = values(rank, dtype, size)
        dist.all_reduce(tensor, op, group=group)
        return tensor

    def coalesced(op: Any, group: Any) -> Any:
        tensors = [values(rank, dtype, size), values(rank + 7, dtype, 3)]
        dist.all_reduce_coalesced(tensors, op, group=group)
        return torch.cat(tensors)

    def scattered(op: Any, group: Any) -> Any:
        part = torch.empty(size, dtype=dtype)
        dist.reduce_scatter_tensor(part, values(rank, dtype, RANKS * size), op, group=group)
        return part

    def part_of_all(op: Any, group: Any) -> Any:
        """PyTorch 2.6's Gloo sums in a reduce-scatter, whichever the operation."""
        tensor, is_average = values(rank, dtype, RANKS * size), op == dist.ReduceOp.AVG
        dist.all_reduce(tensor, dist.ReduceOp.SUM if is_average else op, group=group)
        part = tensor[rank * size : (rank + 1) * size]
        return (part.double() / RANKS).to(dtype) if is_average else part

    collectives = {all_reduced: [all_reduced], coalesced: [coalesced], scattered: [scattered, part_of_all]}
    for name in OPS:
        op = getattr(dist.ReduceOp, name)
        for collective, references in collectives.items():
            theirs = [outcome(lambda r=reference, o=op: r(o, gloo)) for reference in references]
            ours = outcome(lambda c=collective, o=op: c(o, None))
            if not isinstance(theirs[0], torch.Tensor):
                continue  # where Gloo has an error, netfold may have one, or do better
            same = isinstance(ours, torch.Tensor) and any(
                torch.allclose(ours, t, rtol=2e-2, atol=1e-2) for t in theirs if isinstance(t, torch.Tensor)
            )
            if not same:
                wrong.append(f"{collective.__name__} {name}: {ours} and {theirs[0]} by Gloo")
    dist.destroy_process_group(gloo)
    return wrong


@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_operation_gives_what_gloo_gives(ranks: World, dtype: str, size: int):
    assert ranks.run(compared, dtype, size) == [[]] * RANKS


def in_the_network(op_name: str, dtype_name: str) -> tuple[list[float], int]:
    """A reduction, and the packets of this rank's worker for it."""
    before = packets()
    tensor = values(dist.get_rank(), getattr(torch, dtype_name), SMALL)
    dist.all_reduce(tensor, getattr(dist.ReduceOp, op_name))
    return tensor.double().tolist(), packets() - before


@pytest.mark.parametrize("op", ["MAX", "MIN", "PRODUCT"])
@pytest.mark.parametrize("dtype", ["int32", "uint8", "float32", "float64", "bfloat16"])
def test_small_maxima_go_through_the_network(ranks: World, op: str, dtype: str):
    answers = ranks.run(in_the_network, op, dtype)
    rows = torch.stack([values(rank, getattr(torch, dtype), SMALL) for rank in range(RANKS)]).double()
    expected = {"MAX": rows.amax(0), "MIN": rows.amin(0), "PRODUCT": rows.prod(0)}[op]
    assert [numbers for numbers, _ in answers] == [expected.tolist()] * RANKS
    assert answers[0][1] > 0


def special(op_name: str) -> list[float]:
    """NaN at the second rank, and infinities."""
    tensor = torch.tensor(
        [float("nan") if dist.get_rank() == 1 else 1.0, -float("inf"), float(dist.get_rank())]
    )
    dist.all_reduce(tensor, getattr(dist.ReduceOp, op_name))
    return tensor.tolist()[1:] if tensor[0].isnan() else []


def test_a_maximum_with_a_nan_is_nan_at_all_ranks(ranks: World):
    assert ranks.run(special, "MAX") == [[-float("inf"), 2.0]] * RANKS
    assert ranks.run(special, "MIN") == [[-float("inf"), 0.0]] * RANKS


def seen_by_autograd(size: int) -> list[str]:
    """The calls after which `backward` would refuse the tensor that they wrote."""
    part, whole = torch.ones(size), torch.ones(size * dist.get_world_size())
    calls = {
        "all_reduce": (part, lambda: dist.all_reduce(part)),
        "maximum": (part, lambda: dist.all_reduce(part, dist.ReduceOp.MAX)),
        "broadcast": (part, lambda: dist.broadcast(part, 0)),
        "gather": (whole, lambda: dist.all_gather_into_tensor(whole, part)),
        "scatter": (part, lambda: dist.reduce_scatter_tensor(part, whole)),
    }
    found = []
    for name, (tensor, call) in calls.items():
        before = tensor._version
        call()
        if tensor._version != before:
            found.append(name)
    return found


@pytest.mark.parametrize("size", [4, 5000])
def test_autograd_does_not_see_what_a_call_writes(ranks: World, size: int):
    """As with NCCL, and with Gloo's reductions in place. FSDP2's `test_unshard_async` reduces what `backward` needs."""
    assert not any(ranks.run(seen_by_autograd, size))


def test_a_collective_of_gloo_is_over_when_gloos_work_is():
    """Gloo's thread writes the record of the profiler after the Future; a profiler that ended before crashed."""
    future, is_over, has_returned = torch.futures.Future(), threading.Event(), threading.Event()
    session = Session(Mock(), Mock(waiting=nullcontext), None, Mock())
    work = session.watch(Mock(get_future=lambda: future, wait=lambda: is_over.wait(60)), "scatter by Gloo")

    def wait() -> None:
        work.wait()
        has_returned.set()

    thread = threading.Thread(target=wait)
    thread.start()
    future.set_result([])
    assert not has_returned.wait(0.2)
    is_over.set()
    thread.join(60)
    assert has_returned.is_set()
