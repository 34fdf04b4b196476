# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: PLC0415  (ranks of Python have no torch)
"""One rank of counting_ranks.py: all-reduces of known sums until all have seen the file STOP. It counts calls, and
names each call that failed or gave a wrong sum."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import netfold

SIZE = 20_000
CALL_S = 90.0
EACH_S = 0.02


def torch_calls() -> tuple[int, int, Callable[[Any], Any], Callable[[int], Any]]:
    """Rank, ranks, an all-reduce in place, and how an array is made."""
    import torch
    import torch.distributed as dist

    dist.init_process_group("netfold", timeout=timedelta(seconds=CALL_S))

    def make(value: int) -> Any:
        return torch.full((SIZE,), float(value))

    return dist.get_rank(), dist.get_world_size(), dist.all_reduce, make


def python_calls(options: argparse.Namespace) -> tuple[int, int, Callable[[Any], Any], Callable[[int], Any]]:
    import numpy as np

    from netfold.traffic.membership.membership import ControllerMembership
    from netfold.traffic.worker.worker import Worker

    member = ControllerMembership(options.controller, options.job, options.host)
    worker = Worker(member).__enter__()
    member.wait(60)

    def make(value: int) -> Any:
        return np.full(SIZE, float(value), np.float32)

    return options.number, options.ranks, lambda array: worker.all_reduce(array, CALL_S), make


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--progress", type=Path, required=True)
    parser.add_argument("--stop", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--ranks", type=int, default=0, help="of a job of Python workers; 0: PyTorch")
    parser.add_argument("--number", type=int, default=0)
    parser.add_argument("--controller")
    parser.add_argument("--job")
    parser.add_argument("--host")
    return parser.parse_args()


def main() -> None:
    options = _options()
    rank, ranks, reduce, make = python_calls(options) if options.ranks else torch_calls()
    written = options.progress.with_suffix(".next")
    wrong, calls, longest_s, is_over = [], 0, 0.0, False
    while not is_over:
        array = make(rank + 1 + calls % 7)
        array[0] = float(options.stop.exists())
        began = time.monotonic()
        try:
            reduce(array)
        except Exception as error:
            wrong.append(f"call {calls}: {error}")
            break
        longest_s = max(longest_s, time.monotonic() - began)
        expected = ranks * (ranks + 1) / 2 + ranks * (calls % 7)
        if bool((array[1:] != expected).any()):
            wrong.append(f"call {calls}: {float(array[1])} in place of {expected}")
        calls += 1
        is_over = float(array[0]) > 0
        if rank == 0:
            written.write_text(str(calls))
            written.replace(options.progress)  # whole: a reader would take an empty file for no call
        time.sleep(EACH_S)  # what a program computes between calls; the switches have the processor
    found = {
        "calls": calls,
        "wrong": wrong,
        "longest_s": round(longest_s, 2),
        "package": str(Path(netfold.__file__).parents[1]),
    }
    options.out.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
