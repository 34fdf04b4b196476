# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""One rank of test_mixed_versions.py, of any version of netfold: each collective with a small and a large tensor, whose
right result every rank computes. It names those that failed or were wrong, and stays until a file is there."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

import netfold

SIZES = (50, 40_000)
TIMEOUT = timedelta(seconds=60)


def _given(rank: int, size: int) -> Any:
    """The tensor of a rank: whole numbers, whose sums are exact."""
    return (torch.arange(size) % 17 + rank).float()


def _all_reduce(size: int, rank: int, ranks: int) -> tuple[Any, Any]:
    tensor = _given(rank, size)
    dist.all_reduce(tensor)
    return tensor, sum(_given(other, size) for other in range(ranks))


def _reduce_scatter(size: int, rank: int, ranks: int) -> tuple[Any, Any]:
    part = torch.empty(size)
    dist.reduce_scatter_tensor(part, _given(rank, ranks * size))
    return part, sum(_given(other, ranks * size) for other in range(ranks)).split(size)[rank]


def _all_gather(size: int, rank: int, ranks: int) -> tuple[Any, Any]:
    whole = torch.empty(ranks * size)
    dist.all_gather_into_tensor(whole, _given(rank, size))
    return whole, torch.cat([_given(other, size) for other in range(ranks)])


def _all_gather_bytes(size: int, rank: int, ranks: int) -> tuple[Any, Any]:
    """Gathers bytes that are no whole words."""
    whole = torch.empty(ranks * (size + 1), dtype=torch.uint8)
    dist.all_gather_into_tensor(whole, _given(rank, size + 1).byte())
    return whole, torch.cat([_given(other, size + 1).byte() for other in range(ranks)])


def _broadcast(size: int, rank: int, ranks: int) -> tuple[Any, Any]:
    tensor = _given(rank, size)
    dist.broadcast(tensor, ranks - 1)
    return tensor, _given(ranks - 1, size)


def _reduce(size: int, rank: int, ranks: int) -> tuple[Any, Any]:
    tensor = _given(rank, size)
    dist.reduce(tensor, 1)
    right = sum(_given(other, size) for other in range(ranks))
    return (tensor, right) if rank == 1 else (right, right)


def _largest(size: int, rank: int, ranks: int) -> tuple[Any, Any]:
    tensor = _given(rank, size)
    dist.all_reduce(tensor, dist.ReduceOp.MAX)
    return tensor, _given(ranks - 1, size)


def _largest_bytes(size: int, rank: int, ranks: int) -> tuple[Any, Any]:
    tensor = _given(rank, size + 1).byte()
    dist.all_reduce(tensor, dist.ReduceOp.MAX)
    return tensor, _given(ranks - 1, size + 1).byte()


def _average(size: int, rank: int, ranks: int) -> tuple[Any, Any]:
    tensor = _given(2 * rank, size).int()
    dist.all_reduce(tensor, dist.ReduceOp.AVG)
    return tensor, _given(ranks - 1, size).int()


def _barrier(size: int, rank: int, ranks: int) -> tuple[Any, Any]:
    dist.barrier()
    return torch.zeros(0), torch.zeros(0)


COLLECTIVES: tuple[Callable[[int, int, int], tuple[Any, Any]], ...] = (
    *(_all_reduce, _average, _largest, _largest_bytes, _reduce, _reduce_scatter),
    *(_all_gather, _all_gather_bytes, _broadcast, _barrier),
)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--until", type=Path, required=True)
    options = parser.parse_args()
    dist.init_process_group("netfold", timeout=TIMEOUT)
    rank, ranks, wrong = dist.get_rank(), dist.get_world_size(), []
    for size in SIZES:
        for collective in COLLECTIVES:
            try:
                found, right = collective(size, rank, ranks)
            except Exception as error:
                wrong.append(f"{collective.__name__} of {size}: {error}")
                break
            if not torch.equal(found, right):
                wrong.append(f"{collective.__name__} of {size}: {found[:4]} in place of {right[:4]}")
    deadline = time.monotonic() + TIMEOUT.total_seconds()
    while not options.until.exists() and time.monotonic() < deadline:
        time.sleep(0.1)  # a file that another process makes has no event here
    package = str(Path(netfold.__file__).parents[1])
    options.out.write_text(json.dumps({"wrong": wrong, "package": package}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
