# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""One rank of test_mesh_groups.py, started by torchrun: groups of a mesh of 2 x 4 hosts come and go, then steps of the
world, and a report of them."""

from __future__ import annotations

import argparse
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

SIZE = 5000
ROWS = [[0, 1, 2, 3], [4, 5, 6, 7]]
COLUMNS = [[n, n + 4] for n in range(4)]
STEPS = 12


def sums_in_a_mesh() -> tuple[int, list[str]]:
    """Number of groups, and what went wrong in those of this rank and in the world, used at once."""
    all_ranks = [*ROWS, *COLUMNS]
    groups: list[Any] = [dist.new_group(ranks) for ranks in all_ranks]
    mine = [
        (group, sum(ranks))
        for group, ranks in zip(groups, all_ranks, strict=True)
        if dist.get_rank() in ranks
    ]
    mine.append((dist.group.WORLD, sum(range(8))))
    tensors = [torch.full((SIZE,), float(dist.get_rank())) for _ in mine]
    works = [dist.all_reduce(t, group=g, async_op=True) for t, (g, _) in zip(tensors, mine, strict=True)]
    for work in reversed(works):
        work.wait()
    wrong = [f"{g}: a group of Gloo" for g, _ in mine if type(g).__name__ != "NetfoldGroup"]
    wrong += [f"{float(t[0])} for {s}" for t, (_, s) in zip(tensors, mine, strict=True) if (t != s).any()]
    for group, _ in mine[:-1]:
        dist.destroy_process_group(group)
    return len(groups), wrong


def train() -> None:
    """Steps that the network binds."""
    parameter = torch.nn.Parameter(torch.zeros(200_000))
    optimizer = torch.optim.SGD([parameter], lr=0.1)
    for _ in range(STEPS):
        parameter.grad = torch.ones(200_000)
        dist.all_reduce(parameter.grad)
        optimizer.step()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--groups", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    dist.init_process_group("netfold", timeout=timedelta(seconds=240))
    count, wrong = 0, []
    while count < options.groups and not wrong:
        number, wrong = sums_in_a_mesh()
        count += number
    train()
    options.out.write_text(json.dumps({"groups": count, "wrong": wrong}))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
