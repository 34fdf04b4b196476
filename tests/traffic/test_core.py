# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The engine's core in virtual time, over a network that loses, duplicates and reorders packets."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from netfold.traffic.congestion import Congestion
from netfold.traffic.engine.engine import Status
from netfold.traffic.numerics import BlockFloat, Fixed, PackedHalf, ReduceOp, RotatedQuarter
from tests.traffic.cores import LANES, Core, Fabric, assignment

RESUME = -1  # place of the resume chunk, the first one of the control stream


def team(
    workers: int,
    seed: int = 1,
    congestion: Congestion = Congestion.FIXED,
    loss: float = 0.0,
    duplicate: float = 0.0,
    two_levels: bool = False,
    **shape: object,
) -> Fabric:
    cores = [Core(congestion) for _ in range(workers)]
    fabric = Fabric(cores, random.Random(seed), loss, duplicate, two_levels=two_levels)
    into_epoch(fabric, 1, **shape)
    return fabric


def into_epoch(fabric: Fabric, epoch: int, **shape: object) -> None:
    """Starts an epoch at all workers at once."""
    workers = len(fabric.cores)
    fabric.begin([assignment(rank, workers, epoch=epoch, **shape) for rank in range(workers)])  # type: ignore[arg-type]


def run(fabric: Fabric, calls: list[list[int]], steps: int = 200_000) -> None:
    """Runs until all calls (by worker) are finished."""
    for _ in range(steps):
        if all(
            core.status(call) is not Status.PENDING
            for core, mine in zip(fabric.cores, calls, strict=True)
            for call in mine
        ):
            return
        assert fabric.step(), "nothing moves, and calls are pending"
    pytest.fail(f"calls are pending after {steps} steps")


def numbers(rng: np.random.Generator, dtype: str, size: int) -> np.ndarray:
    if dtype == "int32":
        return rng.integers(-(2**20), 2**20, size, dtype=np.int32)
    values = (rng.standard_normal(size) * np.exp(rng.uniform(-6, 3, size))).astype(dtype)
    values[rng.random(size) < 0.03] = rng.choice([np.inf, -np.inf, np.nan])
    return values


@settings(max_examples=60)
@given(
    workers=st.integers(1, 4),
    sizes=st.lists(st.integers(1, 150), min_size=1, max_size=4),
    slots=st.sampled_from([2, 4, 8, 16]),
    shares=st.sampled_from([(1.0,), (0.5, 0.5), (0.2, 0.0, 0.8)]),
    dtype=st.sampled_from(["float32", "float16", "int32"]),
    scheme=st.sampled_from([BlockFloat(), Fixed(12)]),
    congestion=st.sampled_from(list(Congestion)),
    two_levels=st.booleans(),
    loss=st.sampled_from([0.0, 0.05, 0.3]),
    duplicate=st.sampled_from([0.0, 0.2]),
    epochs=st.lists(st.integers(1, 400), max_size=2),
    seed=st.integers(0, 10_000),
)
def test_all_workers_have_the_same_right_sums_despite_losses_and_new_epochs(
    workers, sizes, slots, shares, dtype, scheme, congestion, two_levels, loss, duplicate, epochs, seed
):
    fabric = team(workers, seed, congestion, loss, duplicate, two_levels, slots=slots, shares=shares)
    cores, rng, draw = fabric.cores, fabric.rng, np.random.default_rng(seed)
    before = [[numbers(draw, dtype, size) for size in sizes] for _ in range(workers)]
    after = [[array.copy() for array in arrays] for arrays in before]
    calls = [
        [core.submit(array, scheme=scheme) for array in arrays]
        for core, arrays in zip(cores, after, strict=True)
    ]
    for number, packets in enumerate(epochs):
        for _ in range(packets):
            fabric.step()
        parts = [assignment(rank, workers, LANES, slots, shares, number + 2) for rank in range(workers)]
        fabric.assign(parts)
        for rank in rng.sample(range(workers), workers):  # the news reach the workers one after the other
            cores[rank].assign(parts[rank], fabric.now)
            for _ in range(rng.randrange(20)):
                fabric.step()
    run(fabric, calls)
    for number in range(len(sizes)):
        inputs = [arrays[number] for arrays in before]
        results = [arrays[number] for arrays in after]
        assert all(core.status(mine[number]) is Status.DONE for core, mine in zip(cores, calls, strict=True))
        assert all(r.tobytes() == results[0].tobytes() for r in results)
        with np.errstate(invalid="ignore", over="ignore"):
            if dtype == "int32":
                np.testing.assert_array_equal(results[0], np.sum(inputs, axis=0, dtype=np.int64))
                continue
            exact = np.sum(inputs, axis=0, dtype=np.float64)
            finite = [np.where(np.isfinite(i), i, 0).astype(np.float64) for i in inputs]
            largest = max(np.abs(i).max() for i in finite)
            slack = workers * (largest * 2.0**-24 + 2.0**-12) + np.abs(exact) * np.finfo(dtype).eps
            np.testing.assert_array_less(
                np.where(np.isfinite(exact), np.abs(results[0].astype(np.float64) - exact), 0), slack + 1e-30
            ) if np.isfinite(exact).all() else None
            special = ~np.isfinite(exact)
            np.testing.assert_array_equal(results[0][special].astype(np.float64), exact[special])


@settings(max_examples=30)
@given(
    one=st.tuples(st.integers(1, 40), st.sampled_from(["float32", "int32"]), st.sampled_from(list(ReduceOp))),
    other=st.tuples(
        st.integers(1, 40), st.sampled_from(["float32", "int32"]), st.sampled_from(list(ReduceOp))
    ),
    shares=st.sampled_from([(1.0,), (0.5, 0.5)]),
    scheme=st.sampled_from([BlockFloat(), Fixed(12)]),
    loss=st.sampled_from([0.0, 0.2]),
    seed=st.integers(0, 1000),
)
@example((9, "float32", ReduceOp.SUM), (9, "float32", ReduceOp.AVERAGE), (1.0,), BlockFloat(), 0.0, 1)
def test_different_calls_end_in_an_error_at_every_worker(one, other, shares, scheme, loss, seed):
    fabric = team(3, seed, loss=loss, shares=shares)
    cores = fabric.cores
    kinds = [one, other, one]
    arrays = [np.ones(size, dtype) for size, dtype, _ in kinds]
    calls = [
        [core.submit(array, op, scheme)] for core, array, (*_, op) in zip(cores, arrays, kinds, strict=True)
    ]
    run(fabric, calls)
    expected = Status.DONE if one == other else Status.MISMATCH
    assert [core.status(mine[0]) for core, mine in zip(cores, calls, strict=True)] == [expected] * 3
    if one != other:
        assert all((array == 1).all() for array in arrays)


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
@pytest.mark.parametrize("scheme", [BlockFloat(), Fixed(12), PackedHalf(), RotatedQuarter()])
def test_a_sum_of_negative_zeros_is_a_positive_zero(scheme, dtype):
    if dtype == "float64" and scheme != BlockFloat():
        pytest.skip("float64 has one scheme")
    fabric = team(2)
    for _ in range(6):  # quarter is of predicted calls
        arrays = [np.full(5, -0.0, dtype) for _ in fabric.cores]
        calls = [
            [core.submit(array, scheme=scheme, lossy=scheme == RotatedQuarter())]
            for core, array in zip(fabric.cores, arrays, strict=True)
        ]
        run(fabric, calls)
        assert not np.signbit(arrays).any()


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
@pytest.mark.parametrize("lacks", [{0}, {2}, {0, 1}])
def test_a_result_that_some_workers_lack_is_handed_over_bit_by_bit(lacks, dtype):
    """Three calls are in flight. Some workers have finished two of them when the epoch changes. With the trees of the
    new epoch the sums would have other bits."""
    workers, shape = 3, {"lanes": 12, "slots": 64}
    fabric = team(workers, **shape)
    cores = fabric.cores
    draw = np.random.default_rng(3)
    sizes = (61, 7, 300)
    arrays = [[(draw.standard_normal(size) * 999).astype(dtype) for size in sizes] for _ in range(workers)]
    calls = [[core.submit(a) for a in mine] for core, mine in zip(cores, arrays, strict=True)]
    done = [rank for rank in range(workers) if rank not in lacks]
    fabric.accepted = dict.fromkeys(lacks, {RESUME, 0, 7, 9}.__contains__)  # the openings
    while any(cores[rank].status(calls[rank][1]) is Status.PENDING for rank in done):
        assert fabric.step()
    assert all(cores[rank].status(calls[rank][0]) is Status.PENDING for rank in lacks)
    given = [arrays[done[0]][call].tobytes() for call in range(2)]
    fabric.accepted = {}
    into_epoch(fabric, 2, lanes=12, slots=16, shares=(0.5, 0.5))
    run(fabric, calls)
    for number in range(3):
        assert len({mine[number].tobytes() for mine in arrays}) == 1
    assert [arrays[0][number].tobytes() for number in range(2)] == given


def test_workers_without_a_call_hand_over_retained_results():
    """All but one have finished the last call and have no other; they take part in its handover in the next two epochs,
    the first of which ends too early."""
    fabric = team(3, lanes=12, slots=64)
    cores = fabric.cores
    arrays = [np.full(40, 1.5 + rank, np.float32) for rank in range(3)]
    calls = [[core.submit(array)] for core, array in zip(cores, arrays, strict=True)]
    fabric.accepted = {1: {RESUME, 0}.__contains__}
    run(fabric, [calls[0], [], calls[2]])
    assert cores[1].status(calls[1][0]) is Status.PENDING
    assert not cores[0].totals().must_serve_handover
    into_epoch(fabric, 2, lanes=12, slots=64)
    for _ in range(8):
        fabric.step()
    assert [core.totals().must_serve_handover for core in cores] == [1, 0, 1]
    fabric.accepted = {}
    into_epoch(fabric, 3, lanes=12, slots=64)
    run(fabric, calls)
    assert arrays[1].tolist() == arrays[0].tolist() == [7.5] * 40
    while any(core.totals().must_serve_handover for core in cores):
        assert fabric.step()


def test_a_sum_overflow_is_handed_over_as_such():
    fabric = team(2, lanes=12, slots=64)
    cores = fabric.cores
    arrays = [np.array([1, 2**31 - 1 - rank, 3], np.int32) for rank in range(2)]
    calls = [[core.submit(array)] for core, array in zip(cores, arrays, strict=True)]
    fabric.accepted = {1: lambda place: place >= RESUME}  # not the repetition
    run(fabric, [calls[0], []])
    fabric.accepted = {}
    into_epoch(fabric, 2, lanes=12, slots=64)
    run(fabric, calls)
    for core, mine in zip(cores, calls, strict=True):
        outcome = core.outcome(mine[0])
        assert (outcome.status, outcome.index, outcome.total) == (Status.SUM_OVERFLOW, 1, 2**32 - 3)
    assert [a.tolist() for a in arrays] == [[1, 2**31 - 1, 3], [1, 2**31 - 2, 3]]


def test_the_result_of_a_failed_call_is_not_handed_over_as_that_of_the_next():
    """One worker has finished a call that timed out at the other, whose next call must not be taken for the same."""
    fabric = team(2, lanes=12, slots=64)
    cores = fabric.cores
    first, second = (
        cores[0].submit(np.ones(5, np.float32)),
        cores[1].submit(np.ones(5, np.float32), deadline=0.5),
    )
    fabric.accepted = {1: {RESUME, 0}.__contains__}
    while fabric.step():
        pass
    assert [cores[0].status(first), cores[1].status(second)] == [Status.DONE, Status.TIMEOUT]
    fabric.accepted = {}
    into_epoch(fabric, 2, lanes=12, slots=64)
    calls = [[core.submit(np.ones(5, np.float32))] for core in cores]
    run(fabric, calls)
    assert [core.status(mine[0]) for core, mine in zip(cores, calls, strict=True)] == [Status.CALL_DESYNC] * 2


def test_a_large_call_ends_with_a_closing_chunk_and_survives_a_new_epoch_before_its_result():
    fabric = team(2, lanes=256, slots=1024)
    cores = fabric.cores
    arrays = [np.full((1 << 19) + 1, rank + 1, np.int32) for rank in range(2)]
    calls = [[core.submit(array)] for core, array in zip(cores, arrays, strict=True)]
    fabric.accepted = dict.fromkeys(range(2), lambda place: place >= RESUME)
    while not all((array == 3).all() for array in arrays):
        for _ in range(200):
            assert fabric.step()
    assert [core.status(mine[0]) for core, mine in zip(cores, calls, strict=True)] == [Status.PENDING] * 2
    fabric.accepted = {}
    into_epoch(fabric, 2, lanes=256, slots=1024)
    run(fabric, calls)
    assert all((array == 3).all() for array in arrays)


def test_a_first_bucket_of_pytorch_ends_without_a_closing_chunk():
    """It is 1 MiB and the tensor that exceeds it. Of the control stream only the resume chunk has a result."""
    fabric = team(2, lanes=256, slots=1024)
    cores = fabric.cores
    arrays = [np.full(300_000, rank + 1, np.int32) for rank in range(2)]
    calls = [[core.submit(array)] for core, array in zip(cores, arrays, strict=True)]
    fabric.accepted = dict.fromkeys(range(2), lambda place: place >= RESUME)
    run(fabric, calls)
    assert all((array == 3).all() for array in arrays)


def test_rows_wait_for_the_exponents_of_the_opening_where_nothing_predicts_them():
    fabric = team(2, lanes=12, slots=64)
    cores = fabric.cores
    arrays = [np.full(100, rank + 1, np.float32) for rank in range(2)]
    calls = [[core.submit(array)] for core, array in zip(cores, arrays, strict=True)]
    opening, places = 0, set()

    def all_but_the_opening(place: int) -> bool:
        places.add(place)
        return place != opening

    fabric.accepted = dict.fromkeys(range(2), all_but_the_opening)
    for _ in range(200):
        assert fabric.step()
    assert places == {RESUME, opening}, "results of what both workers have sent"
    assert [core.status(mine[0]) for core, mine in zip(cores, calls, strict=True)] == [Status.PENDING] * 2
    fabric.accepted = {}
    run(fabric, calls)
    assert arrays[0].tolist() == [3.0] * 100


@pytest.mark.parametrize("loss", [0.0, 0.2])
def test_calls_end_in_the_order_in_which_they_were_submitted(loss: float):
    fabric = team(3, 2, loss=loss, lanes=12, slots=64)
    cores = fabric.cores
    sizes = (400, 3, 90, 1, 700, 2, 5)
    arrays = [[np.ones(size, np.float32) for size in sizes] for _ in cores]
    calls = [[core.submit(a) for a in mine] for core, mine in zip(cores, arrays, strict=True)]
    while any(core.status(mine[-1]) is Status.PENDING for core, mine in zip(cores, calls, strict=True)):
        assert fabric.step()
        for core, mine in zip(cores, calls, strict=True):
            done = [core.status(call) is Status.DONE for call in mine]
            assert done == sorted(done, reverse=True)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_a_small_call_takes_one_round_trip_in_steady_state(dtype):
    """All packets of the call are sent before its first result: an opening and the data."""
    fabric = team(3, lanes=12, slots=64)
    cores = fabric.cores
    draw = np.random.default_rng(5)
    for call in range(12):
        arrays = [(draw.standard_normal(100) * 100).astype(dtype) for _ in range(3)]
        exact = np.sum(arrays, axis=0, dtype=np.float64)
        calls = [[core.submit(array)] for core, array in zip(cores, arrays, strict=True)]
        fabric.sent = [0] * 3
        fabric.collect()
        if call >= 4:
            assert fabric.sent == [1 + 9] * 3
        run(fabric, calls)
        if call >= 4:
            assert fabric.sent == [1 + 9] * 3
        assert len({a.tobytes() for a in arrays}) == 1
        np.testing.assert_allclose(arrays[0], exact, atol=1e-4 if dtype == "float32" else 1)
    assert all(core.totals().reencoded_chunks == 0 for core in cores)


@pytest.mark.parametrize("scales", [(1.0, 2.0**-20, 2.0**12), (2.0**9, 2.0**-9)])
@pytest.mark.parametrize("loss_beside", [False, True])
def test_buckets_of_one_size_are_predicted_apart(scales, loss_beside):
    """A training step: several buckets of one size, all in flight at once, and perhaps the loss after them."""
    fabric = team(2, 3, lanes=12, slots=64)
    cores = fabric.cores
    draw = np.random.default_rng(5)
    repeated = []
    for _ in range(20):
        kinds = [(60, scale) for scale in scales] + [(1, 1.0)] * loss_beside
        mine = [[(draw.uniform(0.5, 1, n) * scale).astype(np.float32) for n, scale in kinds] for _ in cores]
        calls = [[core.submit(a) for a in arrays] for core, arrays in zip(cores, mine, strict=True)]
        run(fabric, calls)
        repeated.append(cores[0].totals().reencoded_chunks)
    assert repeated[-1] == repeated[11], "a repetition is a round trip"


@pytest.mark.parametrize("factor", [2.0**-30, 2.0**-6, 2.0**-3, 1.9, 2.0**6, 2.0**40, np.inf, np.nan, 0.0])
@pytest.mark.parametrize("size", [100, 700])  # all chunks at predicted scales; and some after these
def test_a_jump_in_magnitude_costs_a_reencoding_but_no_accuracy(factor, size):
    """The bound of docs/reference/protocol.md, section 6, holds whatever was predicted."""
    workers, lanes = 3, 12
    fabric = team(workers, lanes=lanes, slots=64, shares=(0.3, 0.7))
    cores = fabric.cores
    draw = np.random.default_rng(7)
    for call in range(8):
        arrays = [draw.standard_normal(size).astype(np.float32) for _ in range(workers)]
        if call == 6:
            with np.errstate(invalid="ignore"):
                arrays[1][20:90] *= factor
                for array in arrays:
                    array[36:72] *= factor
        inputs = [array.copy() for array in arrays]
        calls = [[core.submit(array)] for core, array in zip(cores, arrays, strict=True)]
        run(fabric, calls)
        assert len({a.tobytes() for a in arrays}) == 1
        with np.errstate(invalid="ignore", over="ignore"):
            exact = np.sum(inputs, axis=0, dtype=np.float64)
            np.testing.assert_array_equal(np.isnan(arrays[0]), np.isnan(exact))
        ahead = 28  # rows of a channel's first round: chunks c and c + 28 share a bound
        finite = np.abs(np.where(np.isfinite(inputs), inputs, 0)).max(axis=0)
        rows = np.array([finite[i : i + lanes].max() for i in range(0, size, lanes)])
        cut = round(0.3 * len(rows))
        for first, last in ((0, cut), (cut, len(rows))):
            for row in range(first, last):
                near = [rows[r] for r in (row - ahead, row, row + ahead) if first <= r < last]
                block = slice(row * lanes, (row + 1) * lanes)
                with np.errstate(over="ignore", invalid="ignore"):
                    far = np.abs(arrays[0][block].astype(np.float64) - exact[block])
                bound = (
                    workers * 2.0 ** (2 - 31 + 4 + 1) * max(near)
                    + np.abs(exact[block]) * 2.0**-24
                    + 2.0**-120
                )
                assert (far[np.isfinite(exact[block])] <= bound[np.isfinite(exact[block])]).all()


def test_a_worker_in_another_call_is_detected_in_the_next_epoch():
    """One worker restarted: it is in its first call, the other one in its third."""
    fabric = team(2)
    cores = fabric.cores
    for _ in range(2):
        run(fabric, [[core.submit(np.ones(5, np.float32))] for core in cores])
    cores[1] = fabric.cores[1] = Core()
    into_epoch(fabric, 2)
    calls = [[core.submit(np.ones(5, np.float32))] for core in cores]
    run(fabric, calls)
    assert [core.status(mine[0]) for core, mine in zip(cores, calls, strict=True)] == [Status.CALL_DESYNC] * 2
