# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Remainders that codes of the scheme quarter leave of a worker's array, in virtual time: the sum is that of the arrays
less their remainders. A program that adds its remainders to its next arrays loses nothing for good."""

from __future__ import annotations

import random

import numpy as np
import pytest

from netfold.traffic.engine.engine import Status
from netfold.traffic.numerics import BFLOAT16, FLOAT32, ReduceOp, RotatedQuarter
from tests.traffic.cores import Core, Fabric, assignment

LANES, SLOTS, WORKERS = 16, 64, 3
WIDTH = 4 * LANES
ELEMENTS = 20 * WIDTH - 7


def team(shares: tuple[float, ...] = (1.0,), **how) -> Fabric:
    fabric = Fabric([Core() for _ in range(WORKERS)], random.Random(1), **how)
    fabric.begin([assignment(rank, WORKERS, LANES, SLOTS, shares) for rank in range(WORKERS)])
    return fabric


class Call:
    """One call of all workers. `results`, `remainders`: of each."""

    def __init__(self, fabric: Fabric, arrays: list[np.ndarray], op: ReduceOp = ReduceOp.SUM) -> None:
        self.fabric = fabric
        self.arrays = arrays
        self.results = [array.copy() for array in arrays]
        self.remainders = [np.full(len(array), 77, np.float32) for array in arrays]
        self._handles = [
            core.submit(result, op, RotatedQuarter(), lossy=True, follows_all=True, remainder=remainder)
            for core, result, remainder in zip(fabric.cores, self.results, self.remainders, strict=True)
        ]

    def finish(self) -> Call:
        for _ in range(400_000):
            statuses = [core.status(h) for core, h in zip(self.fabric.cores, self._handles, strict=True)]
            if Status.PENDING not in statuses:
                break
            self.fabric.step()
        assert statuses == [Status.DONE] * WORKERS
        assert len({result.tobytes() for result in self.results}) == 1
        return self

    def sent(self) -> np.ndarray:
        """Returns the value of the workers' rows in the sum."""
        return np.sum(
            [a.astype(np.float64) - r for a, r in zip(self.arrays, self.remainders, strict=True)], axis=0
        )


def gradients(seed: int, dtype: np.dtype = FLOAT32, elements: int = ELEMENTS) -> list[np.ndarray]:
    draw = np.random.default_rng(seed)
    return [draw.standard_normal(elements).astype(dtype) for _ in range(WORKERS)]


@pytest.mark.parametrize("dtype", [FLOAT32, BFLOAT16], ids=str)
@pytest.mark.parametrize("op", [ReduceOp.SUM, ReduceOp.AVERAGE])
@pytest.mark.parametrize("shares", [(1.0,), (0.2, 0.3, 0.5)])
def test_the_sum_is_that_of_the_arrays_less_their_remainders(dtype, op, shares):
    fabric = team(shares, loss=0.03, duplicate=0.03)
    for number in range(6):
        call = Call(fabric, gradients(number, dtype), op).finish()
        divisor = WORKERS if op is ReduceOp.AVERAGE else 1
        limit = 1e-6 if dtype is FLOAT32 else 2**-8
        if number == 0:
            assert not np.any(call.remainders), "the first call is half"
            continue
        assert all(
            0.001 < float(np.linalg.norm(r) / np.linalg.norm(call.sent())) < 0.1 for r in call.remainders
        )
        off = np.abs(call.results[0].astype(np.float64) * divisor - call.sent())
        assert (off <= limit * (1 + np.abs(call.sent()))).all()


@pytest.mark.parametrize("kind", ["huge", "nan", "tiny"])
def test_a_row_that_goes_again_leaves_nothing(kind: str):
    fabric = team()
    for number in range(4):
        Call(fabric, gradients(number)).finish()
    arrays = gradients(4)
    row = slice(WIDTH, 2 * WIDTH)
    for array in arrays:
        array[row] *= {"huge": 1e6, "nan": 1.0, "tiny": 1e-6}[kind]
    if kind == "nan":
        arrays[1][WIDTH + 3] = np.nan
    call = Call(fabric, arrays).finish()
    assert not any(np.any(remainder[row]) for remainder in call.remainders)
    assert all(np.count_nonzero(remainder) > ELEMENTS - 2 * WIDTH for remainder in call.remainders)


def test_a_call_that_starts_again_in_a_new_epoch_leaves_nothing():
    fabric = team()
    for number in range(4):
        Call(fabric, gradients(number)).finish()
    call = Call(fabric, gradients(4))
    while not any(np.any(remainder != 77) and np.any(remainder) for remainder in call.remainders):
        fabric.step()
    fabric.begin([assignment(rank, WORKERS, LANES, SLOTS, epoch=2) for rank in range(WORKERS)])
    call.finish()
    assert not np.any(call.remainders)


def test_a_program_that_adds_remainders_loses_nothing_for_good():
    """The sums of many calls are off by what one call loses; without feedback their errors add up."""
    fabric, constant, calls = team(), gradients(9), 40
    exact = np.sum(constant, axis=0, dtype=np.float64)
    with_feedback, without = np.zeros(ELEMENTS), np.zeros(ELEMENTS)
    remainders = [np.zeros(ELEMENTS, np.float32) for _ in range(WORKERS)]
    one_call = 0.0
    for _ in range(calls):
        plain = Call(fabric, constant).finish()
        without += plain.results[0] - exact
        one_call = max(one_call, float(np.linalg.norm(plain.results[0] - exact)))
        call = Call(fabric, [a + r for a, r in zip(constant, remainders, strict=True)]).finish()
        remainders = call.remainders
        with_feedback += call.results[0] - exact
    assert np.linalg.norm(with_feedback) < 1.5 * one_call
    assert np.linalg.norm(without) > 4 * one_call
