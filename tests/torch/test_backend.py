# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""netfold as a backend of c10d (PyTorch from 2.14 on): beside others in one group, found by name, split, checked."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="SKIPPED: torch is not installed (pip install 'netfold[torch]')")

import torch.distributed as dist  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.torch_version import TorchVersion  # noqa: E402

from tests.torch.world import carrier, world  # noqa: E402

pytestmark = pytest.mark.skipif(
    TorchVersion(torch.__version__) < (2, 14),
    reason="SKIPPED: before PyTorch 2.14 no backend can be of Python",
)
HOSTS = ["h1", "h2", "h2"]


def summed(group: Any = None) -> float:
    one = torch.ones(3000)
    dist.all_reduce(one, group=group)
    return float(one.mean())


def backends() -> tuple[float, str, str]:
    group = dist.group.WORLD
    names = [group._get_backend(torch.device(device)).name() for device in ("cpu", "cuda")]
    return summed(), *names


@pytest.mark.parametrize(
    ("config", "names"),
    [("cpu:netfold,cuda:gloo", ("netfold", "gloo")), ("cpu:netfold,cuda:netfold", ("netfold", "netfold"))],
)
def test_each_device_type_has_its_own_backend(tmp_path: Path, config: str, names: tuple[str, str]):
    with world(HOSTS, tmp_path, backend=config) as (ranks, fabric):
        assert ranks.run(backends) == [(3.0, *names)] * len(HOSTS)
        assert len(fabric.controller.jobs) == 1


def in_new_groups() -> tuple[float, str, float, str]:
    everyone, some = dist.new_group(), dist.new_group([0, 2])
    is_member = dist.get_rank() != 1
    found = (summed(some), carrier(some)) if is_member else (0.0, "")
    return summed(everyone), carrier(everyone), *found


def test_a_world_of_one_device_type_has_groups(tmp_path: Path):
    with world(HOSTS, tmp_path, backend="cpu:netfold") as (ranks, fabric):
        member = (3.0, "netfold", 2.0, "gloo")
        assert ranks.run(in_new_groups) == [member, (3.0, "netfold", 0.0, ""), member]
        assert len(fabric.controller.jobs) == 1


def test_it_is_found_by_its_name_alone(tmp_path: Path):
    """Without torch's autoload of extensions."""
    with world(HOSTS, tmp_path, {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}) as (ranks, _):
        assert ranks.run(summed) == [3.0] * len(HOSTS)


def in_slices() -> list[tuple[str, float]]:
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
    groups = [mesh[name].get_group() for name in ("replicate", "shard")]
    groups.append(mesh._flatten("all").get_group())
    return [(carrier(group), summed(group)) for group in groups]


def test_slices_of_a_mesh_are_groups(tmp_path: Path):
    with world(["h1", "h1", "h2", "h2"], tmp_path) as (ranks, _):
        assert ranks.run(in_slices) == [[("gloo", 2.0), ("gloo", 2.0), ("netfold", 4.0)]] * 4


def split(ranks: list[int]) -> tuple[float, int, float]:
    """As `split_group` does where there is an accelerator."""
    group = dist.group.WORLD.split_group(ranks, timeout=timedelta(seconds=20), group_name=f"split {ranks}")
    tensor = torch.full((3000,), float(dist.get_rank()))
    group.allreduce([tensor]).wait()
    return (
        float(tensor.mean()),
        group.size(),
        group._get_backend(torch.device("cpu")).options._timeout.seconds,
    )


def test_a_world_splits_into_groups(tmp_path: Path):
    with world(HOSTS, tmp_path) as (ranks, fabric):
        for members in ([0, 2], [1]):
            ranks.start(split, members, ranks=members)
        assert [answer for _, answer in ranks.answers()] == [(2.0, 2, 20), (1.0, 1, 20), (2.0, 2, 20)]
        assert ranks.run(split, [0, 1, 2]) == [(3.0, 3, 20)] * 3
        assert ranks.run(summed) == [3.0] * 3
        assert len(fabric.controller.jobs) == 1


def test_a_split_without_this_rank_is_refused(tmp_path: Path):
    with world(["h1", "h2"], tmp_path) as (ranks, _):
        ranks.start(split, [0], ranks=[1])
        ((good, text),) = ranks.answers([1])
        assert not good
        assert text.startswith("DistBackendError: netfold: rank 1 is in none of the groups of split_group")


def exchanged() -> list[float]:
    rank = dist.get_rank()
    theirs = torch.zeros(4)
    pair = [
        dist.P2POp(dist.isend, torch.full((4,), float(rank)), 1 - rank),
        dist.P2POp(dist.irecv, theirs, 1 - rank),
    ]
    for work in dist.batch_isend_irecv(pair):
        work.wait()
    return theirs.tolist()


def test_ranks_exchange_tensors_in_a_batch(tmp_path: Path):
    with world(["h1", "h2"], tmp_path) as (ranks, _):
        assert ranks.run(exchanged) == [[1.0] * 4, [0.0] * 4]


def supported() -> list[str]:
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    found = {name: getattr(backend, name) for name in dir(backend) if name.startswith("supports_")}
    return [name for name, value in found.items() if value is True]


def test_what_torch_asks_of_a_backend_has_an_answer(tmp_path: Path):
    with world(["h1", "h2"], tmp_path) as (ranks, _):
        assert ranks.run(supported) == [["supports_splitting"]] * 2


def in_a_group() -> float:
    return summed(dist.new_group([0, 1]))


def mismatched() -> str:
    """A broadcast at one rank, and a sum at the other."""
    tensor = torch.ones(3000)
    try:
        dist.broadcast(tensor, 0) if dist.get_rank() == 0 else dist.all_reduce(tensor)
    except RuntimeError as error:
        return str(error)
    return ""


def test_torch_s_own_checks_compare_the_calls_of_the_ranks(tmp_path: Path):
    with world(["h1", "h2"], tmp_path, {"TORCH_DISTRIBUTED_DEBUG": "DETAIL"}) as (ranks, _):
        assert ranks.run(summed) == [2.0] * 2
        assert ranks.run(in_a_group) == [2.0] * 2
        for text in ranks.run(mismatched):
            assert "Detected mismatch between collectives on ranks" in text
