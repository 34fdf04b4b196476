# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""One rank of test_groups_again.py, started by torchrun with restarts. It makes three groups in turn. A call of the
second one fails at all ranks."""

from __future__ import annotations

import argparse
import json
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

from netfold.traffic.pytorch.collectives import collectives_of

FAILS = 1
SIZE = 5000


def reduced(is_wrong: bool) -> float:
    """An element of the sum of ranks; -1: the call failed."""
    tensor = torch.full((SIZE + is_wrong,), float(dist.get_rank()))
    try:
        dist.all_reduce(tensor)
    except RuntimeError:
        return -1.0
    return float(tensor[0])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    groups = []
    for number in range(3):
        dist.init_process_group("netfold", timeout=timedelta(seconds=120))
        found = collectives_of(dist.group.WORLD)
        assert found is not None
        total = reduced(number == FAILS and dist.get_rank() == 1)
        groups.append([found.layout.job, found.layout.generation, total])
        dist.destroy_process_group()
    options.out.write_text(json.dumps({"groups": groups}))


if __name__ == "__main__":
    main()
