# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Groups that c10d reconfigures, misused: each call and each `reconfigure` ends with a result or an error at each
rank. The tests' controller keeps no job, so each set of ranks has its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="SKIPPED: torch is not installed (pip install 'netfold[torch]')")

import torch.distributed as dist  # noqa: E402
from torch.torch_version import TorchVersion  # noqa: E402

from tests.torch.world import World, world  # noqa: E402

pytestmark = pytest.mark.skipif(
    TorchVersion(torch.__version__) < (2, 14), reason="SKIPPED: needs PyTorch 2.14"
)

RANKS = 3
SIZE = 5000
_KEPT: dict[str, Any] = {}
"""State that a rank keeps from one call of a test to the next: `group`, and its `part`."""


@pytest.fixture
def ranks(tmp_path) -> Iterator[World]:
    """Each has a group without ranks."""
    with world([f"h{n + 1}" for n in range(RANKS)], tmp_path, backend="gloo") as (found, _):
        found.run(opened)
        yield found


def opened() -> None:
    from netfold.traffic.pytorch.create_group import create  # noqa: PLC0415 (it imports torch)

    _KEPT["group"] = create(_options(), None)


def _options() -> Any:
    options = dist.distributed_c10d._DistributedBackendOptions()
    options.store = dist.PrefixStore("tests", dist.distributed_c10d._get_default_store())
    options.group_rank, options.group_size = dist.get_rank(), RANKS
    options.timeout, options.group_id = timedelta(seconds=60), "world"
    options.enable_reconfigure = True
    return options


def offered(uuid: int) -> None:
    store = dist.distributed_c10d._get_default_store()
    store.set(f"{uuid}/{dist.get_rank()}", _KEPT["group"].get_reconfigure_handle())


def joined(uuid: int, members: Sequence[int], seconds: float = 60) -> tuple[int, int]:
    """Its rank and size afterwards."""
    store, group = dist.distributed_c10d._get_default_store(), _KEPT["group"]
    offered(uuid)
    options = dist.distributed_c10d.ReconfigureOptions()
    options.uuid, options.timeout = uuid, timedelta(seconds=seconds)
    options.handles = [store.get(f"{uuid}/{member}").decode() for member in members]
    group.reconfigure(options).wait()
    return group.rank(), group.size()


def summed(kept: str = "group") -> int:
    tensor = torch.full((SIZE,), 2 ** dist.get_rank(), dtype=torch.int32)
    _KEPT[kept].allreduce([tensor], dist.AllreduceOptions()).wait()
    return int(tensor[0])


def divided() -> None:
    from netfold.traffic.pytorch.create_group import create_part  # noqa: PLC0415 (it imports torch)

    options = _options()
    options.store = dist.PrefixStore("part", options.store)
    _KEPT["part"] = create_part(options, _KEPT["group"])


def shut_down() -> None:
    _KEPT["group"].shutdown()


def errors(found: World, ranks: Sequence[int] | None = None) -> list[str]:
    answers = found.answers(ranks)
    assert not any(good for good, _ in answers), answers
    return [text for _, text in answers]


def test_ranks_that_disagree_do_not_meet(ranks: World):
    """Gloo connects them here, with a size of its own at each."""
    for rank, members in enumerate(((0, 1, 2), (0, 1), (0, 1, 2))):
        ranks.start(joined, 1, members, 5, ranks=[rank])
    assert all("timeout" in text for text in errors(ranks))
    assert ranks.run(joined, 2, (2, 0, 1)) == [(1, 3), (2, 3), (0, 3)]
    assert ranks.run(summed) == [7] * RANKS


def test_a_rank_that_does_not_come_is_an_error_of_the_backend(ranks: World):
    """Gloo's own is one of its store."""
    ranks.run(offered, 1)
    ranks.start(joined, 1, (0, 1, 2), 3, ranks=[0, 1])
    assert all(text.startswith("DistBackendError: netfold: Gloo") for text in errors(ranks, [0, 1]))
    assert ranks.run(joined, 2, (0, 1, 2)) == [(0, 3), (1, 3), (2, 3)]


def test_a_group_without_ranks_refuses_calls_and_parts(ranks: World):
    for what in (summed, divided):
        ranks.start(what)
        assert all("the group has no ranks" in text for text in errors(ranks))
    ranks.run(joined, 1, (0, 1, 2))
    ranks.run(shut_down)
    for what in (summed, divided):
        ranks.start(what)
        assert all("the group has no ranks" in text for text in errors(ranks))
    ranks.run(joined, 2, (0, 1, 2))
    assert ranks.run(summed) == [7] * RANKS


def test_a_part_of_the_ranks_before_refuses_calls(ranks: World):
    ranks.run(joined, 1, (0, 1, 2))
    ranks.run(divided)
    assert ranks.run(summed, "part") == [7] * RANKS
    ranks.run(joined, 2, (0, 1, 2))
    ranks.start(summed, "part")
    assert all("netfold: rank" in text for text in errors(ranks))
    assert ranks.run(summed) == [7] * RANKS
