# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's gradients in a job with numerics quarter, over sockets and a parameter server: which are approximate,
and errors for misuse."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from netfold.traffic.errors import UnsupportedDtypeError
from netfold.traffic.numerics import RotatedQuarter
from netfold.traffic.worker.worker import Worker
from tests.traffic.rig import Faults, rig

ELEMENTS, WORKERS = 5000, 3


def gradients(call: int) -> list[np.ndarray]:
    draw = np.random.default_rng(call)
    return [draw.standard_normal(ELEMENTS).astype(np.float32) for _ in range(WORKERS)]


def reduce(workers: Sequence[Worker], arrays: Sequence[np.ndarray], lossy: bool) -> float:
    """The relative error of the sum, which is the same at all workers."""
    exact = np.sum(arrays, axis=0, dtype=np.float64)
    with ThreadPoolExecutor(len(workers)) as pool:
        calls = [
            pool.submit(worker.all_reduce, array, 60, lossy=lossy)
            for worker, array in zip(workers, arrays, strict=True)
        ]
        for call in calls:
            call.result()
    assert len({array.tobytes() for array in arrays}) == 1
    return float(np.linalg.norm(arrays[0] - exact) / np.linalg.norm(exact))


@pytest.mark.parametrize("faults", [Faults(), Faults(0.05, 0.05, 0.05)], ids=["", "loss"])
def test_gradients_are_approximate_and_all_else_is_exact(faults):
    with rig(WORKERS, lanes=16, slots=32, scheme=RotatedQuarter(), faults=faults) as fabric:
        for call in range(6):
            error = reduce(fabric.workers, gradients(call), lossy=True)
            assert error < 0.06
            assert (error > 0.005) == (call > 0), "the first call is half; the call before predicts"
            assert reduce(fabric.workers, gradients(call), lossy=False) < 1e-6


def test_without_numerics_quarter_the_name_changes_nothing():
    with rig(WORKERS, lanes=16, slots=32) as fabric:
        for call in range(3):
            assert reduce(fabric.workers, gradients(call), lossy=True) < 1e-6


@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.int64])
def test_a_gradient_of_another_dtype_is_refused_before_anything_is_sent(dtype):
    with rig(WORKERS, lanes=16, slots=32, scheme=RotatedQuarter()) as fabric:
        for worker in fabric.workers:
            with pytest.raises(UnsupportedDtypeError, match="lossy=True takes float32, float16, bfloat16"):
                worker.all_reduce(np.ones(5, dtype), lossy=True)
        assert reduce(fabric.workers, gradients(0), lossy=True) < 0.06


def test_memory_that_cannot_hold_the_remainder_is_refused_before_anything_is_sent():
    with rig(WORKERS, lanes=16, slots=32, scheme=RotatedQuarter()) as fabric:
        for worker in fabric.workers:
            for remainder, lossy, message in (
                (
                    np.zeros(ELEMENTS - 1, np.float32),
                    True,
                    "the remainder is 4999 x float32; expected 5000 x float32",
                ),
                (
                    np.zeros(ELEMENTS, np.float64),
                    True,
                    "the remainder is 5000 x float64; expected 5000 x float32",
                ),
                (np.zeros(ELEMENTS, np.float32), False, "a remainder is of a call with lossy=True"),
            ):
                with pytest.raises(ValueError, match=message):
                    worker.submit(np.ones(ELEMENTS, np.float32), lossy=lossy, remainder=remainder)
        assert reduce(fabric.workers, gradients(0), lossy=True) < 0.06
