# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""torch.distributed's collectives through netfold: a host with two ranks and one with a single rank."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="SKIPPED: torch is not installed (pip install 'netfold[torch]')")

import torch.distributed as dist  # noqa: E402
import torch.distributed._functional_collectives as functional  # noqa: E402
from torch.torch_version import TorchVersion  # noqa: E402

from netfold.traffic.numerics import ReduceOp  # noqa: E402
from netfold.traffic.pytorch.collectives import Collectives, collectives_of  # noqa: E402
from netfold.traffic.pytorch.tensor_call import SUPPORTED_DTYPES  # noqa: E402
from tests.torch.world import World, carrier, world  # noqa: E402

# torch's names since 2.13, where the others are deprecated
all_gather_single = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
reduce_scatter_single = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor

IS_BACKEND = TorchVersion(torch.__version__) >= (2, 14)
HOSTS = ("h1", "h1", "h2")
RANKS = len(HOSTS)


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world(HOSTS, tmp_path_factory.mktemp("world")) as (ranks, fabric):
        yield ranks
        (job,) = fabric.controller.jobs
        assert job["workers"] == ["h1", "h2"]


def values(rank: int, dtype: str, size: int) -> Any:
    generator = torch.Generator().manual_seed(rank)
    kind = getattr(torch, dtype)
    if kind.is_floating_point:
        return torch.randn(size, generator=generator).to(kind)
    return torch.randint(-1000, 1000, (size,), generator=generator).to(kind)


def summed(dtype: str, op: str, size: int) -> bytes:
    tensor = values(dist.get_rank(), dtype, size)
    dist.all_reduce(tensor, getattr(dist.ReduceOp, op))
    return bytes(tensor.view(torch.uint8).numpy().tobytes())


def of(answer: bytes, dtype: str) -> Any:
    return torch.frombuffer(bytearray(answer), dtype=getattr(torch, dtype))


@pytest.mark.parametrize("dtype", [str(kind).removeprefix("torch.") for kind in SUPPORTED_DTYPES])
def test_every_rank_has_the_same_bits_and_they_are_the_sum(ranks: World, dtype: str):
    answers = ranks.run(summed, dtype, "SUM", 3000)
    assert len(set(answers)) == 1
    exact = sum(values(rank, dtype, 3000).double() for rank in range(RANKS))
    coarse = {"float16": 4e-3, "bfloat16": 2e-2}.get(dtype, 1e-5)
    torch.testing.assert_close(of(answers[0], dtype).double(), exact, rtol=coarse, atol=coarse)


def test_an_average_is_over_ranks_however_many_a_host_has(ranks: World):
    answers = ranks.run(summed, "float32", "AVG", 3000)
    mean = sum(values(rank, "float32", 3000) for rank in range(RANKS)) / RANKS
    torch.testing.assert_close(of(answers[0], "float32"), mean)
    assert len(set(answers)) == 1


def test_what_the_network_does_not_add_up_goes_by_gloo(ranks: World):
    highest = ranks.run(summed, "int32", "MAX", 50)
    assert set(highest) == {
        torch.stack([values(rank, "int32", 50) for rank in range(RANKS)]).amax(0).numpy().tobytes()
    }
    assert len(set(ranks.run(summed, "uint8", "SUM", 50))) == 1


def overlapping() -> list[float]:
    tensors = [torch.full((size,), float(dist.get_rank())) for size in (5000, 1, 300, 64)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    futures = [work.get_future() for work in works]
    for work in reversed(works):
        work.wait()
        assert IS_BACKEND or (work.is_completed() and work.is_success())
    assert [future.wait()[0].data_ptr() for future in futures] == [t.data_ptr() for t in tensors]
    return [float(tensor.sum() / tensor.numel()) for tensor in tensors]


def test_several_calls_are_under_way_at_once(ranks: World):
    assert ranks.run(overlapping) == [[3.0] * 4] * RANKS


def others() -> dict[str, Any]:
    rank = dist.get_rank()
    strided = torch.arange(6.0).view(2, 3).t()
    dist.all_reduce(strided)
    sent = (
        torch.tensor([[1.5, -0.0], [float("nan"), 7.0]], dtype=torch.float64)
        if rank == 1
        else torch.zeros(2, 2)
    )
    sent = sent.double()
    dist.broadcast(sent, 1)
    odd = torch.tensor([rank, 1, 2], dtype=torch.uint8)
    dist.broadcast(odd, 2)
    gathered = [torch.zeros(3, dtype=torch.uint8) for _ in range(RANKS)]
    dist.all_gather(gathered, torch.tensor([rank, 255, 128 + rank], dtype=torch.uint8))
    whole = torch.empty(RANKS * 2)
    all_gather_single(whole, torch.tensor([-float(rank), 0.5]))
    part = torch.empty(2)
    reduce_scatter_single(part, torch.arange(2.0 * RANKS) + rank)
    listed = torch.empty(2, dtype=torch.int32)
    dist.reduce_scatter(listed, [torch.full((2,), 10 * to + rank, dtype=torch.int32) for to in range(RANKS)])
    large = torch.empty(RANKS * 20000)
    all_gather_single(large, torch.full((20000,), float(rank)))
    objects: list[Any] = [None] * RANKS
    dist.all_gather_object(objects, {"rank": rank})
    dist.barrier()
    if rank == 0:
        dist.send(torch.ones(3), 2)
    elif rank == 2:
        dist.recv(odd_float := torch.zeros(3), 0)
        assert odd_float.tolist() == [1, 1, 1]
    return {
        "strided": strided.tolist(),
        "broadcast": sent.view(torch.int64).tolist(),
        "odd": odd.tolist(),
        "gathered": torch.stack(gathered).tolist(),
        "whole": whole.tolist(),
        "part": part.tolist(),
        "listed": listed.tolist(),
        "large": large.view(RANKS, -1).mean(1).tolist(),
        "objects": objects,
    }


def test_the_other_collectives(ranks: World):
    answers = ranks.run(others)
    root = torch.tensor([[1.5, -0.0], [float("nan"), 7.0]], dtype=torch.float64)
    for rank, answer in enumerate(answers):
        assert answer["strided"] == [[0, 9], [3, 12], [6, 15]]
        assert answer["broadcast"] == root.view(torch.int64).tolist()
        assert answer["odd"] == [2, 1, 2]
        assert answer["gathered"] == [[r, 255, 128 + r] for r in range(RANKS)]
        assert answer["whole"] == [-0.0, 0.5, -1.0, 0.5, -2.0, 0.5]
        assert answer["part"] == [3 * 2 * rank + 3, 3 * (2 * rank + 1) + 3]
        assert answer["listed"] == [30 * rank + 3] * 2
        assert answer["large"] == [0.0, 1.0, 2.0]
        assert answer["objects"] == [{"rank": r} for r in range(RANKS)]


def in_groups() -> tuple[float, float]:
    all_ranks = dist.new_group([0, 1, 2])
    some = dist.new_group([0, 2])
    all_of_them = torch.ones(1)
    dist.all_reduce(all_of_them, group=all_ranks)
    two = torch.ones(1)
    if dist.get_rank() != 1:
        dist.all_reduce(two, group=some)
    assert (dist.get_backend(all_ranks), carrier(all_ranks)) == ("netfold", "netfold")
    return float(all_of_them), float(two)


def test_groups_of_some_ranks_go_by_gloo(ranks: World):
    assert ranks.run(in_groups) == [(3.0, 2.0), (3.0, 1.0), (3.0, 2.0)]


def too_large() -> str:
    try:
        dist.all_reduce(torch.full((5,), 2**30, dtype=torch.int32))
    except dist.DistBackendError as error:
        return str(error)
    return ""


def test_whole_numbers_that_do_not_fit_are_refused_and_the_group_goes_on(ranks: World):
    for answer in ranks.run(too_large):
        assert "the sum of all gradients[0] is" in answer
    assert ranks.run(overlapping) == [[3.0] * 4] * RANKS


def no_memory_of_a_size() -> float:
    empty = torch.empty(0)
    dist.all_reduce(empty)
    one = torch.ones(())
    dist.all_reduce(one)
    return float(one)


def test_arrays_without_elements_and_without_dimensions(ranks: World):
    assert ranks.run(no_memory_of_a_size) == [3.0] * RANKS


def repeatedly(what: str, times: int) -> float:
    rank = dist.get_rank()
    some = dist.new_group([0, 2])
    ours = [torch.ones(3)]
    for _ in range(times):
        ours = [torch.ones(3)]
        match what:
            case "subgroup":
                if rank != 1:
                    dist.all_reduce(ours[0], group=some)
            case "subgroup gather":
                if rank != 1:
                    dist.all_gather([torch.empty(3), torch.empty(3)], ours[0], group=some)
                    dist.broadcast(ours[0], 0, group=some)
            case "all to all":
                dist.all_to_all_single(ours[0], torch.arange(3.0) + 3 * rank)
            case "coalesced":
                ours = [torch.ones(3), torch.ones(5)]
                dist.all_reduce_coalesced(ours)
            case "reduce":
                dist.reduce(ours[0], 1)
            case "gather":
                parts = [torch.empty(3) for _ in range(RANKS)] if rank == 1 else None
                dist.gather(ours[0], parts, 1)
                ours = parts or ours
            case "scatter":
                parts = [torch.full((3,), float(place)) for place in range(RANKS)] if rank == 1 else None
                dist.scatter(ours[0], parts, 1)
            case "all to all of tensors":
                ours = [torch.empty(3) for _ in range(RANKS)]
                dist.all_to_all(ours, [torch.full((3,), float(rank)) for _ in range(RANKS)])
            case "receive from any":
                if rank == 1:
                    for _ in range(RANKS - 1):
                        dist.irecv(ours[0]).wait()
                else:
                    dist.send(ours[0], 1)
                dist.barrier()
            case "functional":
                ours = [functional.all_reduce(ours[0], "max", dist.group.WORLD)]
                functional.all_gather_tensor(torch.ones(20000), 0, dist.group.WORLD).sum()
    return float(sum(tensor.sum() for tensor in ours))


@pytest.mark.parametrize(
    ("what", "sums"),
    [
        ("subgroup", [6, 3, 6]),
        ("subgroup gather", [3, 3, 3]),
        ("all to all", [9, 12, 15]),
        ("coalesced", [24, 24, 24]),
        ("reduce", [None, 9, None]),
        ("gather", [3, 9, 3]),
        ("scatter", [0, 3, 6]),
        ("all to all of tensors", [9, 9, 9]),
        ("receive from any", [3, 3, 3]),
        ("functional", [3, 3, 3]),
    ],
)
def test_collectives_of_gloo_never_wait_for_the_interpreter_s_lock(
    ranks: World, what: str, sums: list[float | None]
):
    """Gloo's thread and a rank's once waited for each other after some 10 to 50 calls. None: what a rank has after the
    collective is not specified."""
    found = ranks.run(repeatedly, what, 300)
    assert [None if right is None else one for one, right in zip(found, sums, strict=True)] == sums


@pytest.mark.parametrize("door", ["ProcessGroup", "Backend"])
def test_the_collectives_override_all_that_torch_dispatches_to_python(door: str):
    """Methods of the C++ class itself that return a Work, and those of newer versions of PyTorch."""
    headers = list((Path(torch.__file__).parent / "include/torch/csrc/distributed").rglob(f"Py{door}.hpp"))
    if not headers:
        pytest.skip(f"SKIPPED: this PyTorch lets no class of Python be a {door}")
    names = re.findall(r"intrusive_ptr<Work> (\w+)\(", headers[0].read_text().partition(f"using {door}::")[2])
    newer = {"reduce", "gather", "scatter", "alltoall", "recv_anysource", "recvAnysource"}
    not_gloo_s = {"endCoalescing", "allreduce_sparse", "reconfigure"}
    dispatched = {*names, *newer} - not_gloo_s
    assert len(names) > 10
    assert not [name for name in dispatched if name not in vars(Collectives)]


def received_from_any() -> int | str:
    if dist.get_rank() != 1:
        if dist.get_rank() == 2:
            dist.send(torch.ones(3), 1)
        return 2
    try:
        return int(dist.recv(torch.empty(3)))
    except RuntimeError as error:
        return str(error)


def test_a_receive_from_any_rank_names_the_sender_where_torch_asks_for_it(ranks: World):
    """PyTorch asks the Work of no backend in Python."""
    source = ranks.run(received_from_any)[1]
    assert "sourceRank()" in str(source) if IS_BACKEND else source == 2


def completed() -> bool:
    work = dist.all_reduce(torch.ones(5000), async_op=True)
    work.wait()
    return bool(work.is_completed())


def test_a_finished_work_is_completed_where_torch_asks_for_it(ranks: World):
    assert ranks.run(completed) == [not IS_BACKEND] * RANKS


def waiting_callbacks() -> float:
    """Callbacks that wait for collectives, as PowerSGD's hook has them."""
    futures = []
    for number in range(4):
        first = dist.all_reduce(torch.full((2000,), float(number)), async_op=True).get_future()

        def again(future: Any) -> Any:
            return dist.all_reduce(future.value()[0], async_op=True).get_future().wait()[0]

        futures.append(first.then(again))
        futures[-1].wait()
    return float(futures[3].value()[0])


def test_a_future_s_callback_may_wait_for_another_collective(ranks: World):
    assert ranks.run(waiting_callbacks) == [27.0] * RANKS


def refused(what: str) -> str:
    try:
        match what:
            case "expanded":
                dist.all_reduce(torch.ones(1).expand(5000))
            case "scattered":
                reduce_scatter_single(torch.zeros(3), torch.ones(8))
            case "gathered":
                all_gather_single(torch.zeros(4), torch.ones(3))
    except (ValueError, RuntimeError) as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("expanded", "share memory"),
        ("scattered", "the sizes must match"),
        ("gathered", "the sizes must match"),
    ],
)
def test_tensors_that_cannot_take_the_result_are_refused_at_all_ranks(ranks: World, what: str, message: str):
    for answer in ranks.run(refused, what):
        assert message in answer
    assert ranks.run(overlapping) == [[3.0] * 4] * RANKS


def failing_copy_back() -> str:
    collectives = collectives_of(dist.group.WORLD)
    assert collectives is not None

    def copy_back() -> None:
        raise OSError("no room")

    work = collectives._reduce("all-reduce", torch.ones(8), ReduceOp.SUM, [], None, copy_back)
    try:
        work.wait(timedelta(seconds=20))
    except dist.DistBackendError as error:
        return str(error)
    return ""


def test_an_error_while_a_result_is_copied_ends_the_collective(ranks: World):
    for rank, answer in enumerate(ranks.run(failing_copy_back)):
        assert answer == f"netfold: rank {rank}: all-reduce: no room"


def small_sums() -> list[list[float]]:
    results = []
    for dtype, values in ((torch.float32, [1e9, 0.0123]), (torch.float16, [4e4, 0.5])):
        tensor = torch.tensor(values, dtype=dtype)
        dist.all_reduce(tensor, dist.ReduceOp.AVG)
        results.append(tensor.tolist())
    return results


def test_small_tensors_of_floats_are_exact_whatever_their_magnitudes(ranks: World):
    expected = [[1e9, float(torch.tensor(0.0123))], [40000.0, 0.5]]
    assert ranks.run(small_sums) == [expected] * RANKS


def inference() -> list[float]:
    with torch.inference_mode():
        large, strided = torch.ones(5000), torch.ones(100, 50).t()
        for tensor in (large, strided):
            dist.all_reduce(tensor)
        gathered = torch.empty(RANKS * 2)
        all_gather_single(gathered, torch.ones(2))
        return [float(large[0]), float(strided[0, 0]), float(gathered.sum())]


def test_inference_mode_is_as_any_other(ranks: World):
    assert ranks.run(inference) == [[3.0, 3.0, 6.0]] * RANKS


def wide(beside: int, alone: int) -> str:
    tensor = torch.tensor([1, beside if dist.get_rank() < 2 else alone], dtype=torch.int64)
    try:
        dist.all_reduce(tensor)
    except dist.DistBackendError as error:
        return str(error)
    return str(tensor.tolist())


def test_int64_sums_that_fit_over_all_ranks_are_exact_and_others_are_refused_by_all(ranks: World):
    """Ranks 0 and 1 share a host, where the sum of 2 * 2^62 does not fit by itself."""
    assert ranks.run(wide, 2**62, -(2**62)) == [str([3, 2**62])] * RANKS
    for answer in ranks.run(wide, -(2**62), -(2**62)):
        assert "the sum of all gradients[1]" in answer
    assert ranks.run(overlapping) == [[3.0] * 4] * RANKS


def mean_of_integers() -> list[int]:
    tensor = torch.tensor([dist.get_rank(), -1, 7], dtype=torch.int64)
    dist.all_reduce(tensor, dist.ReduceOp.AVG)
    return tensor.tolist()


def test_an_average_of_integers_is_truncated(ranks: World):
    assert ranks.run(mean_of_integers) == [[1, -1, 7]] * RANKS


def coalesced(op: str) -> dict[str, Any]:
    """As coalescing managers, DTensor and functional collectives call them; also the names of the collectives that went
    through the network."""
    rank, kind = dist.get_rank(), getattr(dist.ReduceOp, op)
    tensors = [torch.full((5, 2), float(rank)).t(), torch.arange(3000.0) * rank]
    parts = [torch.empty(2, 3, dtype=torch.int32), torch.empty(5, dtype=torch.int32)]
    wholes = [torch.arange(p.numel() * RANKS, dtype=torch.int32).view(-1, *p.shape[1:]) for p in parts]
    gathered = [torch.empty(RANKS, dtype=torch.uint8), torch.empty(RANKS * 2)]
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        with dist.distributed_c10d._coalescing_manager(async_ops=True) as manager:
            for tensor in tensors:
                dist.all_reduce(tensor, kind)
        manager.wait()
        with dist.distributed_c10d._coalescing_manager():
            for part, whole in zip(parts, wholes, strict=True):
                reduce_scatter_single(part, whole, kind)
        with dist.distributed_c10d._coalescing_manager():
            all_gather_single(gathered[0], torch.tensor([rank + 250], dtype=torch.uint8))
            all_gather_single(gathered[1], torch.tensor([float(rank), -0.5]))
    return {
        "tensors": [t.tolist() for t in tensors],
        "parts": [p.tolist() for p in parts],
        "gathered": [g.tolist() for g in gathered],
        "network": sorted(e.key for e in profile.key_averages() if e.key.startswith("netfold:")),
    }


@pytest.mark.parametrize(("op", "times"), [("SUM", 3), ("AVG", 1)])
def test_coalesced_collectives_go_through_the_network(ranks: World, op: str, times: int):
    for rank, answer in enumerate(ranks.run(coalesced, op)):
        small, large = answer["tensors"]
        assert small == [[times] * 5] * 2
        torch.testing.assert_close(torch.tensor(large), torch.arange(3000.0) * times)
        assert answer["parts"] == [
            (times * torch.arange(6 * rank, 6 * rank + 6).view(2, 3)).tolist(),
            (times * torch.arange(5 * rank, 5 * rank + 5)).tolist(),
        ]
        assert answer["gathered"] == [[250, 251, 252], [0.0, -0.5, 1.0, -0.5, 2.0, -0.5]]
        assert answer["network"] == ["netfold:all-gather", "netfold:all-reduce", "netfold:reduce-scatter"]


def scattered(size: int) -> tuple[list[float], bool]:
    part = torch.empty(size)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        reduce_scatter_single(part, torch.arange(float(size * RANKS)) * (dist.get_rank() + 1))
    return part.tolist(), any(e.key == "netfold:reduce-scatter" for e in profile.key_averages())


@pytest.mark.parametrize("size", [3, 50_000])
def test_reduce_scatter_of_any_size_goes_through_the_network(ranks: World, size: int):
    for rank, (part, in_network) in enumerate(ranks.run(scattered, size)):
        torch.testing.assert_close(torch.tensor(part), 6 * torch.arange(float(size)) + 6 * rank * size)
        assert in_network


def one_element_of_a_column() -> list[float]:
    """torch takes one element for contiguous, whatever its stride is."""
    tensors = [torch.full((1, 2), float(dist.get_rank()))[:, 1] for _ in range(3)]
    assert tensors[0].stride() == (2,)
    dist.broadcast(tensors[0], 1)
    dist.all_reduce(tensors[1])
    parts = [torch.zeros(1, 2)[:, 1] for _ in range(RANKS)]
    dist.all_gather(parts, tensors[2])
    return torch.cat([*tensors[:2], *parts]).tolist()


def test_one_element_may_have_any_stride(ranks: World):
    total = float(sum(range(RANKS)))
    assert ranks.run(one_element_of_a_column) == [[1.0, total, *map(float, range(RANKS))]] * RANKS


def profiled() -> bool:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        dist.all_reduce(torch.ones(5000))
    return any(event.key == "netfold:all-reduce" for event in profile.key_averages())


def test_a_profiler_sees_the_collectives(ranks: World):
    assert ranks.run(profiled) == [True] * RANKS
