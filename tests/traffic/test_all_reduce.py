# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netfold.protocol.wire import LANES_MAX
from netfold.traffic.congestion import Congestion
from netfold.traffic.errors import (
    AllReduceTimeoutError,
    CollectiveMismatchError,
    SequenceExhaustedError,
    SumOverflowError,
    UnsupportedDtypeError,
)
from netfold.traffic.numerics import (
    BFLOAT16,
    DTYPES,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    Automatic,
    BlockFloat,
    Fixed,
    PackedHalf,
    ReduceOp,
    scheme_for,
)
from netfold.traffic.workloads.benchmark import wrong_elements
from tests.traffic.rig import Faults, rig

MAX = 2**31 - 1


def gradients(workers: int, size: int, dtype: str, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    if dtype.startswith("int"):
        most = 2**20 if dtype == "int32" else 2**60
        return [rng.integers(-most, most, size, dtype=dtype) for _ in range(workers)]
    magnitude = np.exp(rng.uniform(-6, 3, size))
    return [(rng.standard_normal(size) * magnitude).astype(dtype) for _ in range(workers)]


def check(before: list[np.ndarray], after: list[np.ndarray], scheme: object, lanes: int) -> None:
    """Bit-identical at all workers, and exact (integers) or within the documented bound (floats)."""
    for other in after[1:]:
        assert other.tobytes() == after[0].tobytes()
    # the opening lets the first chunks share an exponent: the bound is that of the largest of all
    assert wrong_elements(after[0], before, scheme) == 0


@settings(max_examples=25)
@given(
    workers=st.integers(1, 5),
    size=st.integers(1, 700),
    lanes=st.sampled_from([4, 8, 32]),
    slots=st.sampled_from([2, 4, 16, 64]),
    shares=st.sampled_from([(1.0,), (0.5, 0.5), (0.2, 0.0, 0.8)]),
    dtype=st.sampled_from([str(dtype) for dtype in DTYPES]),
    scheme=st.sampled_from([BlockFloat(), PackedHalf(), Automatic(), Fixed(12)]),
    congestion=st.sampled_from(list(Congestion)),
    faults=st.sampled_from(
        [Faults(), Faults(duplicate=0.2, delay=0.2), Faults(0.05, 0.05, 0.05), Faults(loss=0.2)]
    ),
    seed=st.integers(0, 1000),
)
def test_all_workers_get_the_same_right_sums(
    workers, size, lanes, slots, shares, dtype, scheme, congestion, faults, seed
):
    # few: where every fifth packet is lost a window takes seconds, as what one resends late delays the samples of all
    # others, and so their timeouts; and ATP's halving leaves a window of one chunk
    rounds = 2 if faults.loss >= 0.2 else 20
    window = 1 if faults.loss >= 0.2 and congestion is Congestion.ATP else slots // 2
    size = min(size, 2 * rounds * lanes * window)
    with rig(workers, lanes, slots, shares, faults, scheme, congestion, seed) as fabric:
        for call in range(2):
            before = gradients(workers, size, dtype, seed + call)
            after = [b.copy() for b in before]
            assert fabric.all_reduce(after, timeout=90.0) == [None] * workers
            check(before, after, scheme, lanes)


def test_any_shape_and_more_chunks_than_slots():
    with rig(3, lanes=16, slots=8) as fabric:
        before = [g.reshape(7, 11, 13) for g in gradients(3, 7 * 11 * 13, "float32", 5)]
        after = [b.copy() for b in before]
        assert fabric.all_reduce(after) == [None] * 3
        check(before, after, BlockFloat(), 16)


@pytest.mark.parametrize("dtype", list(map(str, DTYPES)))
def test_packets_of_the_most_lanes(dtype):
    with rig(2, LANES_MAX, slots=16) as fabric:
        before = gradients(2, 9 * LANES_MAX + 5, dtype, 3)
        for _ in range(2):  # the second one is predicted
            after = [b.copy() for b in before]
            assert fabric.all_reduce(after) == [None] * 2
            check(before, after, Automatic(), LANES_MAX)


def test_a_chunk_that_overflows_the_fixed_scale_is_repeated_at_its_shared_exponent():
    with rig(3, lanes=4, slots=4, scheme=Fixed(20)) as fabric:
        before = [np.full(40, 0.25, np.float32) for _ in range(3)]
        before[1][9] = 5e4  # alone beyond 2^31 / 2^20
        before[0][20] = before[1][20] = before[2][20] = 1500.0  # only the sum is
        after = [b.copy() for b in before]
        assert fabric.all_reduce(after) == [None] * 3
        assert after[0][[0, 9, 20]].tolist() == [0.75, 5e4 + 0.5, 4500.0]
        assert all(a.tobytes() == after[0].tobytes() for a in after)
        assert [w.stats.reencoded_chunks for w in fabric.workers] == [2, 2, 2]


def test_int32_sums_that_only_touch_the_rails_are_exact():
    with rig(2, lanes=4) as fabric:
        after = [np.array([MAX, -MAX, 2**30, 7], np.int32), np.array([0, -1, 2**30 - 1, 8], np.int32)]
        assert fabric.all_reduce(after) == [None, None]
        assert after[0].tolist() == after[1].tolist() == [MAX, -MAX - 1, MAX, 15]


def test_int32_sums_that_do_not_fit_are_an_error_at_all_workers_and_the_job_goes_on():
    with rig(2, lanes=4) as fabric:
        errors = fabric.all_reduce([np.array([0] * 6 + [MAX], np.int32), np.array([0] * 6 + [2], np.int32)])
        assert [type(e) for e in errors] == [SumOverflowError, SumOverflowError]
        assert [e.index for e in errors] == [6, 6]
        assert str(MAX + 2) in str(errors[0])
        after = [np.array([1], np.int32), np.array([2], np.int32)]
        assert fabric.all_reduce(after) == [None, None]
        assert after[0].tolist() == [3]


def test_int64_sums_that_do_not_fit_are_an_error_at_all_workers_and_the_job_goes_on():
    with rig(2, lanes=4, shares=(0.5, 0.5)) as fabric:
        most = 2**63 - 1
        ones, others = np.full(9, most, np.int64), np.array([0, 0, -1, -most, 0, 7, 0, 1, 5], np.int64)
        errors = fabric.all_reduce([ones, others])
        assert [(type(e), e.index) for e in errors] == [(SumOverflowError, 5)] * 2
        assert str(most + 7) in str(errors[0])
        assert "int64" in str(errors[0])
        after = [np.array([2**53 + 1, -5], np.int64) for _ in range(2)]
        assert fabric.all_reduce(after) == [None, None]
        assert after[0].tolist() == [2**54 + 2, -10]


@pytest.mark.parametrize("op", list(ReduceOp))
@pytest.mark.parametrize(
    ("dtype", "scheme"),
    [
        *(
            (dtype, scheme)
            for dtype in (FLOAT32, FLOAT16)
            for scheme in (BlockFloat(), Fixed(10), PackedHalf())
        ),
        (BFLOAT16, Automatic()),
        (FLOAT64, Automatic()),
    ],
    ids=str,
)
@pytest.mark.parametrize("shares", [(1.0,), (0.5, 0.5)])
def test_nan_and_infinities_reach_every_worker_as_ieee_754_adds_them(op, scheme, dtype, shares):
    """Some in the first A/2 chunks and some after them; the finite numbers beside them are summed as ever."""
    workers, size = 3, 203
    half = isinstance(scheme_for(scheme, dtype), PackedHalf)  # which has 12 bits of whole numbers
    with rig(workers, lanes=4, slots=8, shares=shares, scheme=scheme) as fabric:
        for call in range(2):  # the second one shows that no worker is out of step
            before = [(np.arange(size) % (64 if half else size)).astype(dtype) for _ in range(workers)]
            if call == 0:
                before[0][[2, 90, 91, 180]] = np.inf, np.nan, np.inf, -np.inf
                before[1][[2, 91, 202]] = np.inf, -np.inf, np.inf
                before[2][[3]] = 63 if half else 60000
            after = [b.copy() for b in before]
            assert fabric.all_reduce(after, op=op) == [None] * workers
            assert all(a.tobytes() == after[0].tobytes() for a in after)
            with np.errstate(invalid="ignore"):
                exact = np.sum(before, axis=0, dtype=np.float64) / (workers if op is ReduceOp.AVERAGE else 1)
            np.testing.assert_allclose(
                after[0].astype(np.float64), exact, rtol=float(ml_dtypes.finfo(dtype).eps)
            )


@pytest.mark.parametrize("faults", [Faults(0.1, 0.1, 0.1)])
def test_a_gradient_of_nothing_finite_ends_in_step_under_loss(faults):
    with rig(2, lanes=4, slots=8, faults=faults) as fabric:
        for value in (np.nan, 1.0, -np.inf, 2.0):
            after = [np.full(60, value, np.float32) for _ in range(2)]
            assert fabric.all_reduce(after) == [None, None]
            np.testing.assert_array_equal(after[0], np.full(60, 2 * value, np.float32))
            assert after[0].tobytes() == after[1].tobytes()


@pytest.mark.parametrize("scheme", [BlockFloat(), Fixed(8)])
def test_an_average_of_float16_does_not_overflow_on_the_way(scheme):
    with rig(8, scheme=scheme) as fabric:
        after = [np.full(20, 20000, np.float16) for _ in range(8)]
        assert fabric.all_reduce(after, op=ReduceOp.AVERAGE) == [None] * 8
        assert after[0].tolist() == [20000.0] * 20


def test_the_average_is_over_those_that_were_added_up():
    """A worker is lost; what the others get in the new epoch is the average over two."""
    with rig(3, lanes=4) as fabric:
        arrays = [np.full(10, float(3 + rank), np.float32) for rank in range(3)]
        fabric.lose(2, epoch=2)
        assert fabric.all_reduce(arrays[:2], op=ReduceOp.AVERAGE) == [None, None]
        assert arrays[0].tolist() == arrays[1].tolist() == [3.5] * 10


def test_an_average_of_integers_is_refused_before_anything_is_sent():
    with rig(1) as fabric:
        with pytest.raises(UnsupportedDtypeError, match="averages floats; this is int32"):
            fabric.workers[0].all_reduce(np.ones(3, np.int32), op=ReduceOp.AVERAGE)
        fabric.workers[0].all_reduce(np.ones(3, np.int32))


@pytest.mark.parametrize(
    ("array", "error"),
    [
        (np.zeros(4, np.complex64), TypeError),
        ([1.0], TypeError),
        (np.zeros((4, 4), np.float32)[:, :2], ValueError),
        (np.broadcast_to(np.float32(0), (4,)), ValueError),
    ],
)
def test_an_array_that_cannot_be_reduced_in_place_is_refused(array, error):
    with rig(1) as fabric, pytest.raises(error, match="all_reduce"):
        fabric.workers[0].all_reduce(array)


def test_a_missing_worker_is_a_timeout_that_names_what_is_missing_and_leaves_the_array_alone():
    with rig(3) as fabric:
        array = np.arange(100, dtype=np.float32)
        with pytest.raises(AllReduceTimeoutError, match=r"rank 0.*missing: tree 40 \(to 127\.77\.\d+\.254\)"):
            fabric.workers[0].all_reduce(array, timeout=0.3)
        assert array.tolist() == list(range(100))
        with pytest.raises(AllReduceTimeoutError, match="the controller started no new job epoch"):
            fabric.workers[0].all_reduce(array, timeout=0.3)


def test_after_a_timeout_a_new_epoch_brings_the_workers_together_again():
    with rig(2) as fabric:
        arrays = gradients(2, 100, "int32", 1)
        with pytest.raises(AllReduceTimeoutError):
            fabric.workers[0].all_reduce(arrays[0], timeout=0.2)
        fabric.raise_epoch(2)
        after = [a.copy() for a in arrays]
        assert fabric.all_reduce(after) == [None, None]
        check(arrays, after, None, 8)


def test_after_a_timeout_the_workers_ask_for_a_new_epoch_themselves():
    with rig(2) as fabric:
        fabric.grant_new_epochs()
        arrays = gradients(2, 100, "int32", 1)
        with pytest.raises(AllReduceTimeoutError, match="missing"):
            fabric.workers[0].all_reduce(arrays[0], timeout=0.2)
        after = [a.copy() for a in arrays]
        assert fabric.all_reduce(after) == [None, None]
        check(arrays, after, None, 8)
        assert fabric.members[0].unusable == [1]


@pytest.mark.parametrize("shares", [(1.0,), (0.5, 0.5)])
def test_calls_go_on_in_a_new_epoch_when_chunk_numbers_are_used_up(shares, monkeypatch):
    """8 slots and 4 rounds are 32 chunk numbers a tree; 12 calls of 6 chunks, with their opening and closing, need
    more."""
    monkeypatch.setattr("netfold.traffic.engine.engine.ROUNDS", 4)
    workers, calls = 3, 12
    before = [gradients(workers, 6 * 4, "float32", number) for number in range(calls)]
    after = [[b.copy() for b in arrays] for arrays in before]
    with rig(workers, lanes=4, slots=8, shares=shares) as fabric:
        fabric.grant_new_epochs()

        def train(rank):
            for arrays in after:
                fabric.workers[rank].all_reduce(arrays[rank], timeout=30)

        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(train, range(workers)))
        epochs = [
            w.flows() and m.current().epoch for w, m in zip(fabric.workers, fabric.members, strict=True)
        ]
    assert epochs[0] > 1
    assert epochs == [epochs[0]] * workers
    for inputs, results in zip(before, after, strict=True):
        check(inputs, results, BlockFloat(), 4)


def test_a_call_that_needs_more_than_an_epoch_is_refused_and_leaves_the_array_alone(monkeypatch):
    monkeypatch.setattr("netfold.traffic.engine.engine.ROUNDS", 4)
    with rig(2, lanes=4, slots=8) as fabric:
        fabric.grant_new_epochs()
        arrays = [np.ones(4 * 40, np.int32) for _ in range(2)]
        assert [type(e) for e in fabric.all_reduce(arrays)] == [SequenceExhaustedError] * 2
        assert all((a == 1).all() for a in arrays)
        assert fabric.members[0].unusable == [], "a new epoch would not suffice either"
        small = [np.ones(4, np.int32) for _ in range(2)]
        assert fabric.all_reduce(small) == [None, None], "the next call goes on, in a new epoch"


def test_without_a_new_epoch_in_time_the_used_up_one_is_an_error(monkeypatch):
    monkeypatch.setattr("netfold.traffic.engine.engine.ROUNDS", 1)
    with rig(1, lanes=4, slots=8) as fabric:
        fabric.workers[0].all_reduce(np.ones(4 * 4, np.int32))  # resume, opening, 4, closing
        with pytest.raises(SequenceExhaustedError, match="job epoch 1 has 0 chunk numbers left"):
            fabric.workers[0].all_reduce(np.ones(16, np.int32), timeout=0.2)


@pytest.mark.parametrize("scheme", [BlockFloat(), Fixed(8)])
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.zeros(64, np.float32), np.zeros(65, np.float32)),
        (np.zeros(64, np.int32), np.zeros(65, np.int32)),
        (np.zeros(64, np.int32), np.zeros(640, np.int32)),
        (np.zeros(64, np.int32), np.zeros(64, np.float32)),
        (np.zeros(64, np.float16), np.zeros(64, np.float32)),
        (np.zeros(8, np.float32), np.zeros(16, np.float32)),  # of two trees, one carries nothing of the first
        (np.zeros(8, np.int32), np.zeros(16, np.int32)),
    ],
)
@pytest.mark.parametrize("shares", [(1.0,), (0.5, 0.5)])
def test_workers_whose_calls_differ_are_all_told_and_keep_their_arrays(scheme, one, other, shares):
    with rig(3, scheme=scheme, shares=shares) as fabric:
        arrays = [one + 1, other + 1, one + 1]
        errors = fabric.all_reduce(arrays)
        assert [type(e) for e in errors] == [CollectiveMismatchError] * 3
        assert all((array == 1).all() for array in arrays)


def test_each_call_is_reported():
    with rig(1) as fabric:
        for _ in range(2):
            fabric.workers[0].all_reduce(np.ones(10, np.float32))
        assert fabric.members[0].reports == [0, 1, 2]
        worker = fabric.workers[0]
        assert worker.stats.chunks == 4
        [before] = worker.stats.trees()
        worker.all_reduce(np.ones(10, np.float32))
        [tree] = worker.stats.trees()
        assert tree.results > before.results >= 4
        assert 0 < tree.min_rtt_ms <= tree.rtt_ms
    assert worker.stats.trees() == (tree,)  # what a closed worker said last


@settings(max_examples=12)
@given(at=st.integers(1, 250), loss=st.sampled_from([0.0, 0.1]), seed=st.integers(0, 99))
def test_a_new_epoch_in_the_middle_of_a_call_changes_nothing_but_time(at, loss, seed):
    """The epoch is raised when the server has sent `at` packets, wherever the workers are in their first
    calls."""
    workers, calls = 3, 4
    before = [gradients(workers, 150, "float32", seed + number) for number in range(calls)]
    after = [[b.copy() for b in arrays] for arrays in before]
    with rig(workers, lanes=4, slots=8, faults=Faults(loss=loss), seed=seed) as fabric:
        raised = threading.Event()

        def on_send(sent):
            if sent >= at and not raised.is_set():
                raised.set()
                fabric.raise_epoch(2)

        def train(rank):
            for arrays in after:
                fabric.workers[rank].all_reduce(arrays[rank], timeout=30)

        fabric.server_link.on_send = on_send
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(train, range(workers)))
        assert raised.is_set()
        assert all(w.stats.restarts <= 1 for w in fabric.workers)
    for inputs, results in zip(before, after, strict=True):
        check(inputs, results, BlockFloat(), 4)


def test_pacing_holds_the_rate():
    """4000 elements in packets of 90 bytes at 1 Mbit/s: more than 0.3 s, where it takes a few ms unpaced."""
    with rig(1, lanes=8, slots=64, rate_mbps=1.0) as fabric:
        started = time.monotonic()
        fabric.workers[0].all_reduce(np.ones(4000, np.float32))
        assert time.monotonic() - started > 0.3
