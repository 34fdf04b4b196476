# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The exponent bytes in the headers of a call's chunks, in virtual time."""

from __future__ import annotations

import random

import numpy as np

from netfold.traffic.engine.engine import Status
from tests.traffic import oracle
from tests.traffic.cores import Core, Fabric, assignment, place_of

LANES, SLOTS, WORKERS = 12, 64, 2
MAIN = 28  # main channels of 64 slots
ROWS = 4 * MAIN


def exponents_by_place(fabric: Fabric, calls: list[int]) -> dict[int, int]:
    """The header's byte of each chunk that worker 0 sends in the main stream, until the calls are finished."""
    found: dict[int, int] = {}
    for _ in range(20_000):
        fabric.collect()
        for to, rank, _, record in fabric.in_transit:
            if to == "node" and rank == 0:
                found.setdefault(place_of(record.tobytes(), SLOTS), int(record[0]["exponent"]))
        if all(core.status(call) is Status.DONE for core, call in zip(fabric.cores, calls, strict=True)):
            return found
        assert fabric.step(), "nothing moves, and calls are pending"
    raise AssertionError("calls are pending")


def test_a_chunk_carries_the_byte_of_the_next_row_of_its_channel():
    fabric = Fabric([Core() for _ in range(WORKERS)], random.Random(1))
    fabric.begin([assignment(rank, WORKERS, lanes=LANES, slots=SLOTS) for rank in range(WORKERS)])
    draw = np.random.default_rng(3)
    scales = np.exp2(draw.integers(-30, 30, (WORKERS, ROWS, 1)))
    inputs = (draw.uniform(1, 2, (WORKERS, ROWS, LANES)) * scales).astype(np.float32)
    own = oracle.block_exponents(inputs[0]).astype(int).tolist()
    arrays = [rows.ravel().copy() for rows in inputs]
    calls = [core.submit(array) for core, array in zip(fabric.cores, arrays, strict=True)]

    sent = exponents_by_place(fabric, calls)

    opening, first = 0, 1
    assert sent[opening] == max(own[:MAIN])
    assert [sent[first + row] for row in range(MAIN)] == [
        max(own[row], own[row + MAIN]) for row in range(MAIN)
    ]
    later = range(MAIN, ROWS - MAIN)
    assert [sent[first + row] for row in later] == [own[row + MAIN] for row in later]
