# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Groups of some ranks that have jobs of their own."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from inspect import signature
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="SKIPPED: torch is not installed (pip install 'netfold[torch]')")

import torch.distributed as dist  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402

import netfold  # noqa: E402
from tests.torch.world import Fabric, World, carrier, world  # noqa: E402

RANKS = 4
SIZE = 3000


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[World, Fabric]]:
    with world([f"h{n + 1}" for n in range(RANKS)], tmp_path_factory.mktemp("world")) as found:
        yield found


def summed() -> float:
    tensor = torch.full((SIZE,), float(dist.get_rank()))
    dist.all_reduce(tensor)
    return float(tensor.mean())


def test_ranks_that_were_given_a_job_join_it_and_submit_none(tmp_path):
    hosts = ["h1", "h2"]
    with contextlib.ExitStack() as stack:
        fabric = Fabric(hosts, tmp_path)
        stack.callback(fabric.close)
        processes = World(hosts, fabric.submit("slurm-7", hosts))
        stack.callback(processes.close)
        assert processes.answers() == [(True, None)] * 2
        assert processes.run(summed) == [1.0, 1.0]
        assert processes.run(carrier) == ["netfold"] * 2
        assert [job["name"] for job in fabric.controller.jobs] == ["slurm-7"]


def pairs() -> list[Any]:
    """The groups of a mesh of two by two, rows and columns, of which this rank is in one each."""
    options = netfold.TorchOptions(rate=10)
    groups = [dist.new_group(of, pg_options=options) for of in ([0, 1], [2, 3], [0, 2], [1, 3])]
    return [group for group in groups if group != dist.GroupMember.NON_GROUP_MEMBER]


def summed_in_a_mesh() -> tuple[list[float], bool]:
    row, column = pairs()
    tensors = [torch.full((SIZE,), float(dist.get_rank())) for _ in range(3)]
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        works = [
            dist.all_reduce(tensor, group=group, async_op=True)
            for tensor, group in zip(tensors, (row, None, column), strict=True)
        ]
        for work in reversed(works):
            work.wait()
    calls = sum(e.count for e in profile.key_averages() if e.key == "netfold:all-reduce")
    for group in (row, column):
        dist.destroy_process_group(group)
    return [float(tensor.mean()) for tensor in tensors], calls == 3


def test_groups_of_a_mesh_reduce_in_the_network_beside_the_world(ranks: tuple[World, Fabric]):
    processes, fabric = ranks
    answers = processes.run(summed_in_a_mesh)
    assert answers == [([1, 6, 2], True), ([1, 6, 4], True), ([5, 6, 2], True), ([5, 6, 4], True)]
    world_job, *others = fabric.controller.jobs
    assert sorted(job["workers"] for job in others) == [
        ["h1", "h2"],
        ["h1", "h3"],
        ["h2", "h4"],
        ["h3", "h4"],
    ]
    assert {job["rate"] for job in others} == {10}
    assert "rate" not in world_job


def used_and_destroyed() -> None:
    group = dist.new_group(list(range(RANKS)), pg_options=netfold.TorchOptions(rate=10))
    dist.barrier(group=group)
    dist.destroy_process_group(group)


def test_a_group_that_is_destroyed_leaves_its_job(ranks: tuple[World, Fabric]):
    processes, fabric = ranks
    processes.run(used_and_destroyed)
    assert fabric.controller.await_end(fabric.controller.jobs[-1]["name"])


def in_threads(calls: int) -> list[float]:
    """Groups with jobs of their own need no common order: each of the two is used by a thread of its own."""
    row, column = pairs()
    wrong = []

    def use(group: Any, peer: int) -> None:
        for number in range(calls):
            tensor = torch.full((SIZE,), float(number * (dist.get_rank() + 1)))
            dist.all_reduce(tensor, group=group)
            if not torch.allclose(tensor, torch.full((SIZE,), float(number * (dist.get_rank() + peer + 2)))):
                wrong.append(number)

    threads = [
        threading.Thread(target=use, args=(row, dist.get_rank() ^ 1)),
        threading.Thread(target=use, args=(column, dist.get_rank() ^ 2)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for group in (row, column):
        dist.destroy_process_group(group)
    return wrong


def test_threads_may_use_groups_with_jobs_of_their_own_in_any_order(ranks: tuple[World, Fabric]):
    assert ranks[0].run(in_threads, 30) == [[]] * RANKS


def refused_group() -> tuple[str, float]:
    message = ""
    try:
        dist.new_group([1, 3], pg_options={"rate": 10})
    except dist.DistBackendError as error:
        message = str(error)
    dist.all_reduce(tensor := torch.ones(SIZE), group=dist.group.WORLD)
    return message, float(tensor.mean())


def test_a_group_whose_job_is_refused_is_an_error_at_its_ranks_and_the_world_goes_on(
    ranks: tuple[World, Fabric],
):
    processes, fabric = ranks
    fabric.controller.refuse = "link h2-leaf1 has nothing left"
    try:
        answers = processes.run(refused_group)
    finally:
        fabric.controller.refuse = ""
    for rank, (message, mean) in enumerate(answers):
        assert ("link h2-leaf1 has nothing left" in message) == (rank in (1, 3))
        assert mean == RANKS


HSDP_STEPS = 3


def trained_in_a_mesh(rate: float | None) -> tuple[list[bytes], list[str]]:
    """HSDP over two by two ranks; the groups of its mesh have jobs of their own by the environment, or by options."""
    from torch.distributed.fsdp import fully_shard  # noqa: PLC0415

    override = None if rate is None else {0: ("netfold", netfold.TorchOptions(rate=rate))}
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"), backend_override=override)
    torch.manual_seed(5)
    model = torch.nn.Sequential(torch.nn.Linear(60, 50), torch.nn.ReLU(), torch.nn.Linear(50, 2))
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(HSDP_STEPS):
        optimizer.zero_grad()
        inputs = torch.randn(8, 60, generator=torch.Generator().manual_seed(RANKS * step + dist.get_rank()))
        model(inputs).square().mean().backward()
        optimizer.step()
    names = [carrier(mesh.get_group(dim)) for dim in (0, 1)]
    found = [p.full_tensor().detach().numpy().tobytes() for p in model.parameters()]
    for dim in (0, 1):
        dist.destroy_process_group(mesh.get_group(dim))
    return found, names


def alone() -> list[Any]:
    torch.manual_seed(5)
    model = torch.nn.Sequential(torch.nn.Linear(60, 50), torch.nn.ReLU(), torch.nn.Linear(50, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(HSDP_STEPS):
        optimizer.zero_grad()
        for rank in range(RANKS):
            inputs = torch.randn(8, 60, generator=torch.Generator().manual_seed(RANKS * step + rank))
            (model(inputs).square().mean() / RANKS).backward()
        optimizer.step()
    return [p.detach() for p in model.parameters()]


def check_trained(answers: list[tuple[list[bytes], list[str]]]) -> None:
    assert [weights for weights, _ in answers] == [answers[0][0]] * RANKS
    for ours, reference in zip(answers[0][0], alone(), strict=True):
        found = torch.frombuffer(bytearray(ours), dtype=torch.float32).view(reference.shape)
        torch.testing.assert_close(found, reference, rtol=1e-4, atol=1e-5)


@pytest.mark.skipif(
    "backend_override" not in signature(init_device_mesh).parameters,
    reason="SKIPPED: this PyTorch's init_device_mesh takes no options of dimensions",
)
def test_a_dimension_of_a_mesh_has_jobs_by_its_options(ranks: tuple[World, Fabric]):
    processes, fabric = ranks
    before = len(fabric.controller.jobs)
    answers = processes.run(trained_in_a_mesh, 10)
    check_trained(answers)
    assert [names for _, names in answers] == [["netfold", "gloo"]] * RANKS
    assert [job["rate"] for job in fabric.controller.jobs[before:]] == [10] * 2
