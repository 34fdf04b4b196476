# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Calls divided over trees in stripes: a slow tree carries fewer chunks, and the sums are the same."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netfold.traffic.congestion import Congestion
from netfold.traffic.engine.engine import Status
from netfold.traffic.numerics import BlockFloat, Fixed
from tests.traffic.cores import Core, Fabric, assignment
from tests.traffic.test_core import numbers, run

LANES = 8
SLOTS = 8  # 4 channels, of which 3 carry data
LEAST_LAP = 4 * 3  # rows, for each tree


class Slow(Fabric):
    """Trees forward a packet with the probability of `speeds`, or delay it."""

    speeds: tuple[float, ...] = ()
    carried: tuple[int, ...] = (0,) * 4  # by tree: the results that came to the first worker

    def _arrive(self, to: str, which: int, endpoint: int, record: np.ndarray) -> None:
        if self.rng.random() > self.speeds[endpoint]:
            self.in_transit.append((to, which, endpoint, record))
            return
        if to == "worker" and which == 0:
            self.carried = tuple(n + (tree == endpoint) for tree, n in enumerate(self.carried))
        super()._arrive(to, which, endpoint, record)


def team(
    workers: int, shares: tuple[float, ...], seed: int, speeds: tuple[float, ...], **odds: float
) -> Slow:
    cores = [Core(Congestion.FIXED) for _ in range(workers)]
    fabric = Slow(cores, random.Random(seed), odds.get("loss", 0.0), odds.get("duplicate", 0.0))
    fabric.speeds = speeds
    begin(fabric, shares, 1)
    return fabric


def begin(fabric: Slow, shares: tuple[float, ...], epoch: int) -> None:
    workers = len(fabric.cores)
    parts = [assignment(rank, workers, LANES, SLOTS, shares, epoch) for rank in range(workers)]
    fabric.assign(parts)
    for rank in fabric.rng.sample(range(workers), workers):
        fabric.cores[rank].assign(parts[rank], fabric.now)
        for _ in range(fabric.rng.randrange(20)):
            fabric.step()


@settings(max_examples=20)
@given(
    workers=st.integers(1, 3),
    rows=st.lists(st.integers(1, 100), min_size=1, max_size=3),
    shares=st.sampled_from([(0.5, 0.5), (0.25, 0.25, 0.25, 0.25), (0.2, 0.0, 0.8), (0.01, 0.99)]),
    speeds=st.tuples(*[st.sampled_from([1.0, 0.5, 0.1])] * 4),
    dtype=st.sampled_from(["float32", "float16", "int32", "float64"]),
    scheme=st.sampled_from([BlockFloat(), Fixed(12)]),
    loss=st.sampled_from([0.0, 0.05]),
    duplicate=st.sampled_from([0.0, 0.1]),
    epochs=st.lists(st.integers(1, 800), max_size=2),
    seed=st.integers(0, 10_000),
)
def test_sums_are_right_and_the_same_at_any_rates_of_trees_and_in_new_epochs(
    workers, rows, shares, speeds, dtype, scheme, loss, duplicate, epochs, seed
):
    scheme = BlockFloat() if dtype == "float64" else scheme
    draw = np.random.default_rng(seed)
    fabric = team(workers, shares, seed, speeds, loss=loss, duplicate=duplicate)
    before = [[numbers(draw, dtype, LANES * n) for n in rows] for _ in range(workers)]
    after = [[a.copy() for a in arrays] for arrays in before]
    calls = [
        [core.submit(a, scheme=scheme) for a in arrays]
        for core, arrays in zip(fabric.cores, after, strict=True)
    ]
    for number, packets in enumerate(epochs):
        for _ in range(packets):
            fabric.step()
        begin(fabric, shares, number + 2)
    run(fabric, calls)
    for n in range(len(rows)):
        results = [arrays[n] for arrays in after]
        assert all(
            core.status(mine[n]) is Status.DONE for core, mine in zip(fabric.cores, calls, strict=True)
        )
        assert all(r.tobytes() == results[0].tobytes() for r in results)
        with np.errstate(invalid="ignore", over="ignore"):
            exact = np.sum(
                [arrays[n] for arrays in before], axis=0, dtype="int64" if dtype == "int32" else "float64"
            )
            if dtype == "int32":
                np.testing.assert_array_equal(results[0], exact)
                continue
            finite = np.isfinite(exact)
            largest = max(
                np.abs(np.where(np.isfinite(a[n]), a[n], 0).astype(np.float64)).max() for a in before
            )
            slack = workers * (largest * 2.0**-24 + 2.0**-12) + np.abs(exact) * np.finfo(dtype).eps
            off = np.abs(results[0].astype(np.float64) - exact)
            assert (off[finite] <= slack[finite]).all()
            np.testing.assert_array_equal(results[0][~finite].astype(np.float64), exact[~finite])


def reduce(speeds: tuple[float, ...], rows: int, seed: int) -> tuple[np.ndarray, tuple[int, ...]]:
    """The sums, and how many results each tree carried."""
    fabric = team(2, (0.5, 0.5), seed, speeds)
    draw = np.random.default_rng(1)
    arrays = [
        (draw.standard_normal(LANES * rows) * 10.0 ** draw.integers(-6, 6, LANES * rows)) for _ in range(2)
    ]
    arrays = [a.astype(np.float32) for a in arrays]
    calls = [[core.submit(a)] for core, a in zip(fabric.cores, arrays, strict=True)]
    run(fabric, calls)
    assert arrays[0].tobytes() == arrays[1].tobytes()
    return arrays[0], fabric.carried


def test_the_bits_do_not_depend_on_which_tree_is_slow():
    """The scale of a row is its own exponent, that of a call's first rows depends on the plan's shares alone."""
    one, _ = reduce((1.0, 1.0), 600, 1)
    for seed, speeds in ((2, (1.0, 0.1)), (3, (0.1, 1.0)), (4, (0.5, 0.3))):
        sums, carried = reduce(speeds, 600, seed)
        assert sums.tobytes() == one.tobytes()
        assert (carried[0] > carried[1]) == (speeds[0] > speeds[1]), "the slow tree takes fewer"


@pytest.mark.parametrize("rows", [3 * 2 * LEAST_LAP - 1, 3 * 2 * LEAST_LAP, 3 * 2 * LEAST_LAP + 1, 2000])
def test_calls_of_any_size_end(rows: int):
    reduce((1.0, 0.2), rows, rows)
