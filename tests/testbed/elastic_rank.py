# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""One rank of test_elastic_restarts.py, started by an elastic torchrun: sums in the world and in the pairs of a ring of
ranks, until rank 0 finds the file `finish`. Each attempt writes what it has to `out`."""

from __future__ import annotations

import argparse
import json
import os
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from netfold.traffic.pytorch.collectives import collectives_of

SIZE = 5000


def ring_of_pairs(size: int) -> list[list[int]]:
    """Returns groups of neighbors: each rank is in two, and in one where there are two ranks."""
    return [list(pair) for pair in sorted({tuple(sorted((n, (n + 1) % size))) for n in range(size)})]


def is_right(group: Any, ranks: list[int]) -> bool:
    tensor = torch.full((SIZE,), float(dist.get_rank()))
    dist.all_reduce(tensor, group=group)
    return bool((tensor == sum(ranks)).all())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--finish", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    dist.init_process_group("netfold", timeout=timedelta(seconds=240))
    rank, size = dist.get_rank(), dist.get_world_size()
    found = [(dist.group.WORLD, list(range(size)))]
    for ranks in ring_of_pairs(size):
        group = dist.new_group(ranks)
        if rank in ranks:
            found.append((group, ranks))
    layouts = [getattr(collectives_of(group), "layout", None) for group, _ in found]
    jobs = [getattr(layout, "job", "") for layout in layouts]  # "": a group of Gloo
    wrong = [ranks for group, ranks in found if not is_right(group, ranks)]
    attempt = {
        "rank": rank,
        "size": size,
        "pid": os.getpid(),
        "jobs": jobs,
        "generation": getattr(layouts[0], "generation", 0),
        "wrong": wrong,
    }
    written = options.out.with_suffix(".part")
    written.write_text(json.dumps(attempt))
    written.rename(options.out)
    while True:
        end = torch.tensor([float(options.finish.exists())])
        dist.broadcast(end, 0)
        if end.item():
            break
        assert all(is_right(group, ranks) for group, ranks in found)
        time.sleep(0.05)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
