# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A worker, in its host, that makes the collectives of a seed, several at a time, and writes down the bytes that each
gave it: a file of JSON.

All workers draw the same calls, so each also knows the others' arrays, and computes what it must get. Floats are whole
numbers, of which a shared exponent keeps all bits."""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netfold.traffic.engine.blocks import Blocks, CallForm
from netfold.traffic.membership.membership import ControllerMembership
from netfold.traffic.worker.worker import Worker

TIMEOUT_S = 60.0
MOST_IN_FLIGHT = 4
DTYPES = (np.int32, np.int64, np.float32, np.float64)

Array = NDArray[Any]


class Call:
    """One collective of all workers: the arrays that they give, and the part that a worker gets. `most`: elements of a
    block."""

    def __init__(self, draw: random.Random, workers: int, most: int = 20_000) -> None:
        self.name = draw.choice(("all-reduce", "reduce-scatter", "all-gather", "broadcast", "reduce"))
        is_gather = self.name in ("all-gather", "broadcast")
        dtype = np.int32 if is_gather else draw.choice(DTYPES)
        sizes = [draw.randrange(1, most) for _ in range(workers)]
        root = draw.randrange(workers)
        elements, owners = (sizes, [*range(workers)]) if "-" in self.name else ([sum(sizes)], [root])
        form = CallForm.GATHER if is_gather else CallForm.SCATTER
        self.blocks = None if self.name == "all-reduce" else Blocks(form, tuple(elements), tuple(owners))
        numbers = np.random.default_rng(draw.randrange(1 << 32))
        self.arrays = [
            numbers.integers(-(1 << 20), 1 << 20, sum(elements)).astype(dtype) for _ in range(workers)
        ]

    def parts(self, array: Array, rank: int) -> list[Array]:
        """The blocks of `array` whose values a worker gets."""
        if self.blocks is None or self.blocks.form is CallForm.GATHER:
            return [array]
        cuts = np.split(array, np.cumsum(self.blocks.elements)[:-1])
        return [cut for cut, owner in zip(cuts, self.blocks.owners, strict=True) if owner == rank]

    def expected(self) -> Array:
        if self.blocks is None or self.blocks.form is CallForm.SCATTER:
            return np.sum(self.arrays, axis=0, dtype=self.arrays[0].dtype)
        cuts = np.cumsum(self.blocks.elements)[:-1]
        own = [np.split(self.arrays[owner], cuts)[i] for i, owner in enumerate(self.blocks.owners)]
        return np.concatenate(own)


def start(worker: Worker, call: Call, rank: int) -> Callable[[], list[Array]]:
    """Submits the call; returns what waits for this worker's part."""
    array = call.arrays[rank].copy()
    handle = worker.submit(array, timeout=TIMEOUT_S, blocks=call.blocks)

    def finish() -> list[Array]:
        handle.result()
        return call.parts(array, rank)

    return finish


def check(call: Call, parts: list[Array], rank: int) -> None:
    for found, right in zip(parts, call.parts(call.expected(), rank), strict=True):
        assert np.array_equal(found, right), call.name


def wait_for(file: Path) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not file.exists():
        assert time.monotonic() < deadline, f"no {file} within {TIMEOUT_S} s"
        time.sleep(0.05)  # another process makes it


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("controller")
    parser.add_argument("job")
    parser.add_argument("host")
    parser.add_argument("seed", type=int)
    parser.add_argument("calls", type=int)
    parser.add_argument("out", type=Path)
    parser.add_argument("--last-after", type=Path, metavar="FILE", help="wait for FILE before the last calls")
    told = parser.parse_args()
    member = ControllerMembership(told.controller, told.job, told.host)
    digests = []
    with Worker(member) as worker:
        assignment = member.wait(TIMEOUT_S)
        draw = random.Random(told.seed)
        for left in reversed(range(told.calls)):
            if told.last_after and not left:
                wait_for(told.last_after)
            batch = [Call(draw, assignment.workers) for _ in range(draw.randint(1, MOST_IN_FLIGHT))]
            started = [start(worker, call, assignment.rank) for call in batch]
            for call, finish in zip(batch, started, strict=True):
                parts = finish()
                check(call, parts, assignment.rank)
                digests.append([call.name, hashlib.sha256(b"".join(p.tobytes() for p in parts)).hexdigest()])
        stats = {"restarts": worker.stats.restarts, "epoch": member.current().epoch}
    told.out.write_text(json.dumps({"digests": digests, "targets": assignment.targets.name, **stats}))


if __name__ == "__main__":
    main()
