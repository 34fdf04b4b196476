# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Scatters and gathers of torch, of which a host's link carries its own blocks alone, give what Gloo gives. A host has
two ranks, the others one."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any, cast

import pytest

torch = pytest.importorskip("torch", reason="SKIPPED: torch is not installed (pip install 'netfold[torch]')")

import torch.distributed as dist  # noqa: E402
import torch.distributed._functional_collectives as functional  # noqa: E402

from netfold.traffic.errors import TrafficError  # noqa: E402
from netfold.traffic.pytorch.collectives import GATHER_MAX_BYTES, collectives_of  # noqa: E402
from netfold.traffic.pytorch.in_network import InNetworkReducer  # noqa: E402
from netfold.traffic.pytorch.joining import _agree_on_targets  # noqa: E402
from netfold.traffic.pytorch.published import VERSION, HostInfo  # noqa: E402
from netfold.traffic.pytorch.rendezvous import RankLayout  # noqa: E402
from tests.torch.world import World, world  # noqa: E402

all_gather_single = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
reduce_scatter_single = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor

HOSTS = ("h1", "h1", "h2", "h3")
RANKS = len(HOSTS)
SIZES = (3, 5_001, 40_000)
DTYPES = ("float32", "bfloat16", "float64", "int32", "int64")


@pytest.fixture(scope="module")
def ranks(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    hosts, has_targets = getattr(request, "param", (HOSTS, True))
    with world(hosts, tmp_path_factory.mktemp("world"), has_targets=has_targets) as (ranks, _):
        yield ranks


def _values(size: int, dtype: str, seed: int = 0) -> Any:
    """Whole numbers, whose sums every dtype holds."""
    generator = torch.Generator().manual_seed(10 * seed + dist.get_rank())
    return torch.randint(-8, 8, (size,), generator=generator).to(getattr(torch, dtype))


Collective = Callable[[Any, int, str], Any]


def _scatter_single(group: Any, size: int, dtype: str) -> Any:
    part = torch.empty(size, dtype=getattr(torch, dtype))
    reduce_scatter_single(part, _values(RANKS * size, dtype), group=group)
    return part


def _scatter_list(group: Any, size: int, dtype: str) -> Any:
    part = torch.empty(size, dtype=getattr(torch, dtype))
    dist.reduce_scatter(part, list(_values(RANKS * size, dtype).split(size)), group=group)
    return part


def _gather_single(group: Any, size: int, dtype: str) -> Any:
    whole = torch.empty(RANKS * size, dtype=getattr(torch, dtype))
    all_gather_single(whole, _values(size, dtype), group=group)
    return whole


def _gather_list(group: Any, size: int, dtype: str) -> Any:
    parts = [torch.empty(size, dtype=getattr(torch, dtype)) for _ in range(RANKS)]
    dist.all_gather(parts, _values(size, dtype), group=group)
    return torch.cat(parts)


def _sizes(size: int) -> list[int]:
    """A part of no elements, and others that differ."""
    return [rank * size // 2 for rank in range(RANKS)]


def _scatter_uneven(group: Any, size: int, dtype: str) -> Any:
    """Gloo has none of lists with several sizes, so it adds up the whole."""
    sizes, rank = _sizes(size), dist.get_rank()
    whole = _values(sum(sizes), dtype)
    if group is not None:
        dist.all_reduce(whole, group=group)
        return whole.split(sizes)[rank]
    part = torch.empty(sizes[rank], dtype=getattr(torch, dtype))
    dist.reduce_scatter(part, list(whole.split(sizes)))
    return part


def _gather_uneven(group: Any, size: int, dtype: str) -> Any:
    """With Gloo each rank broadcasts its part."""
    sizes, rank = _sizes(size), dist.get_rank()
    parts = [torch.empty(s, dtype=getattr(torch, dtype)) for s in sizes]
    parts[rank].copy_(_values(sizes[rank], dtype))
    if group is None:
        dist.all_gather(parts, parts[rank].clone())
    else:
        for root, part in enumerate(parts):
            dist.broadcast(part, root, group=group)
    return torch.cat(parts)


def _gather_bytes(group: Any, size: int, dtype: str) -> Any:
    """No rank's bytes are whole words."""
    parts = [torch.empty(size * 4 + 1, dtype=torch.uint8) for _ in range(RANKS)]
    dist.all_gather(parts, _values(size * 4 + 1, "uint8"), group=group)
    return torch.cat(parts)


def _broadcast(group: Any, size: int, dtype: str) -> Any:
    tensor = _values(size, dtype)
    dist.broadcast(tensor, 2, group=group)
    return tensor


def _reduce(group: Any, size: int, dtype: str) -> Any:
    tensor = _values(size, dtype)
    dist.reduce(tensor, 1, group=group)
    return tensor if dist.get_rank() == 1 else None


def _several(group: Any, size: int, dtype: str) -> Any:
    """A gather beside a scatter and a sum, as of FSDP's backward pass."""
    whole = torch.empty(RANKS * size, dtype=getattr(torch, dtype))
    part, total = torch.empty(size, dtype=whole.dtype), _values(size, dtype, 3)
    gather = all_gather_single(whole, _values(size, dtype, 1), group=group, async_op=True)
    scatter = reduce_scatter_single(part, _values(RANKS * size, dtype, 2), group=group, async_op=True)
    summed = dist.all_reduce(total, group=group, async_op=True)
    for work in (gather, scatter, summed):
        work.wait()
    return torch.cat([whole, part, total])


def _coalesced(group: Any, size: int, dtype: str) -> Any:
    tensors = [_values(size, dtype, 1), _values(2 * size, dtype, 2)]
    gathered = functional.all_gather_into_tensor_coalesced(tensors, group or dist.group.WORLD)
    whole = [_values(RANKS * size, dtype, 3), _values(RANKS * 7, dtype, 4)]
    scattered = functional.reduce_scatter_tensor_coalesced(whole, "sum", [0, 0], group or dist.group.WORLD)
    return torch.cat([functional.wait_tensor(t) for t in (*gathered, *scattered)])


COLLECTIVES = {
    f.__name__: f
    for f in (
        _scatter_single,
        _scatter_list,
        _gather_single,
        _gather_list,
        _gather_bytes,
        _scatter_uneven,
        _gather_uneven,
        _broadcast,
        _reduce,
        _several,
    )
}


def compared(name: str, dtype: str) -> list[str]:
    """Return the differences from Gloo."""
    gloo = dist.new_group(backend="gloo")
    wrong = []
    for size in SIZES:
        found, right = (COLLECTIVES[name](group, size, dtype) for group in (None, gloo))
        if right is not None and not torch.equal(found, right):
            wrong.append(f"{name} of {size} {dtype}")
    dist.destroy_process_group(gloo)
    return wrong


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", COLLECTIVES)
def test_collectives_with_targets_give_what_gloo_gives(ranks: World, name: str, dtype: str):
    assert ranks.run(compared, name, dtype) == [[]] * RANKS


def by_gloo(size: int, *, has_uneven: bool = True) -> dict[str, int]:
    found = collectives_of(dist.group.WORLD)
    assert found is not None
    names: list[str] = []
    found.session.reporter.by_gloo, before = names.append, found.session.reporter.by_gloo
    try:
        for name, collective in COLLECTIVES.items():
            if has_uneven or name != "_gather_uneven":
                collective(None, size, "float32")
    finally:
        found.session.reporter.by_gloo = before
    return {name: names.count(name) for name in names}


def by_gloo_without_uneven(size: int) -> dict[str, int]:
    """Gloo refuses all-gathers of parts that differ."""
    return by_gloo(size, has_uneven=False)


def test_all_of_them_go_through_the_network_whatever_their_size(ranks: World):
    size = GATHER_MAX_BYTES
    assert ranks.run(by_gloo, size) == [{}] * RANKS


@pytest.mark.parametrize("ranks", [(("h1", "h2"), True)], indirect=True)
def test_two_hosts_leave_large_gathers_to_the_ring_of_gloo(ranks: World):
    """A ring moves fewer bytes there. Reduce-scatters have targets with any number of hosts."""
    found = ranks.run(by_gloo_of_two, GATHER_MAX_BYTES)
    assert [{name.split()[0] for name in names} for names in found] == [{"allgather_base"}] * 2


def by_gloo_of_two(size: int) -> list[str]:
    found = collectives_of(dist.group.WORLD)
    assert found is not None
    names: list[str] = []
    found.session.reporter.by_gloo = names.append
    whole, part = torch.empty(2 * size), torch.empty(size)
    all_gather_single(whole, part)
    reduce_scatter_single(part, whole)
    return names


def test_coalesced_ones_go_so_too(ranks: World):
    for rank, found in enumerate(ranks.run(_coalesced, None, 20_000, "float32")):
        assert len(found) == 3 * RANKS * 20_000 + 20_000 + 7, rank


def too_large() -> str:
    part = torch.empty(1000, dtype=torch.int32)
    try:
        reduce_scatter_single(part, torch.full((1000 * RANKS,), 1 << 30, dtype=torch.int32))
    except Exception as error:
        return f"{error}"
    return ""


def test_integers_that_do_not_fit_are_an_error_at_all_ranks_of_hosts_with_several(ranks: World):
    assert all("int32" in answer for answer in ranks.run(too_large))
    assert ranks.run(compared, "_scatter_single", "int32") == [[]] * RANKS


def met() -> tuple[float, float]:
    began = time.monotonic()
    dist.barrier()
    return began, time.monotonic()


@pytest.mark.parametrize("ranks", [(HOSTS, True), (HOSTS, False)], indirect=True)
def test_no_rank_leaves_a_barrier_before_all_have_come(ranks: World):
    for _ in range(5):
        times = ranks.run(met)
        assert max(began for began, _ in times) <= min(ended for _, ended in times)


class Assigned:
    """A reducer over hosts. Its job has targets until an old member joins."""

    def __init__(self, joined: threading.Event) -> None:
        self._joined = joined

    @property
    def has_targets(self) -> bool:
        return not self._joined.is_set()


def test_a_rank_that_awaits_the_first_one_s_version_in_vain_fails():
    """It would make other calls than those that rank 0 decides for later."""
    reducer = cast(InNetworkReducer, Assigned(threading.Event()))
    with pytest.raises(TrafficError, match="timeout: no rank set 'targets of 0'"):
        _agree_on_targets(RankLayout("s", "job", (0, 1)), dist.HashStore(), 1, reducer, time.monotonic() + 1)


def published(version: int) -> str:
    return json.dumps(asdict(HostInfo("m", (), "", "n", version=version)))


@pytest.mark.parametrize(
    ("first", "host", "error"),
    [
        (0, None, "rank 0, the first one of this host, has an older netfold than rank 1"),
        (2, published(0), "rank 2, the first one of this host, has an older netfold than rank 3"),
        (2, "{", "rank 2 published no description of its host: all: "),
    ],
)
def test_a_rank_beside_an_older_first_one_of_its_host_fails_at_once(first: int, host: str | None, error: str):
    """Older ranks publish no targets, and an older rank 0 not even its host."""
    store, layout = dist.HashStore(), RankLayout("s", "job", (0, 0, 1, 1))
    if host is not None:
        store.set(f"host{first}", host)
    with pytest.raises(TrafficError, match=error):
        _agree_on_targets(layout, store, first + 1, None, math.inf)


@pytest.mark.parametrize("old", [(), (0,), (2,), (0, 1)], ids=["none", "rank 0", "rank 2", "host of rank 0"])
def test_ranks_agree_on_targets_beside_members_that_know_none(old: tuple[int, ...]):
    """Old ranks publish nothing, and join last."""
    store, deadline, joined = dist.HashStore(), time.monotonic() + 60, threading.Event()
    reducer = cast(InNetworkReducer, Assigned(joined))
    layout = RankLayout("s", "job", (0, 0, 1, 2), is_one_version=not old)
    first = {0: 0, 1: 0, 2: 2, 3: 3}
    if 0 not in old:
        store.set("host0", published(VERSION))
    with ThreadPoolExecutor(RANKS) as pool:
        agreed = [
            pool.submit(_agree_on_targets, layout, store, rank, reducer if rank == host else None, deadline)
            for rank, host in first.items()
            if rank not in old and (host not in old or rank == host)
        ]
        if old:
            joined.set()
        assert {one.result() for one in agreed} == {not old}


@pytest.mark.parametrize("ranks", [(HOSTS, False)], indirect=True)
def test_without_targets_large_gathers_and_reduces_go_by_gloo(ranks: World):
    assert {name.split()[0] for name in ranks.run(by_gloo_without_uneven, GATHER_MAX_BYTES)[0]} == {
        "allgather",
        "allgather_base",
        "reduce",
    }
    assert ranks.run(compared, "_several", "float32") == [[]] * RANKS
