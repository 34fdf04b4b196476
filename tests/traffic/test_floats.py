# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs whose nodes add floats (`numerics: float32`), docs/reference/protocol.md, sections 3.3 and 6."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netfold.protocol.wire import FLAGS, Flag
from netfold.traffic.engine.engine import Status
from netfold.traffic.errors import CollectiveMismatchError
from netfold.traffic.numerics import (
    BFLOAT16,
    BlockFloat,
    Float32Sum,
    ReduceOp,
    error_bound,
    floats_error_bound,
)
from tests.slot_oracle import SlotPool, add_floats
from tests.traffic.cores import LANES
from tests.traffic.rig import rig
from tests.traffic.test_core import into_epoch, run, team


@settings(max_examples=40)
@given(
    workers=st.integers(1, 4),
    sizes=st.lists(st.integers(1, 150), min_size=1, max_size=4),
    slots=st.sampled_from([2, 4, 16]),
    shares=st.sampled_from([(1.0,), (0.2, 0.0, 0.8)]),
    dtype=st.sampled_from(["float32", "float16"]),
    op=st.sampled_from(list(ReduceOp)),
    two_levels=st.booleans(),
    loss=st.sampled_from([0.0, 0.2]),
    epochs=st.lists(st.integers(1, 400), max_size=2),
    seed=st.integers(0, 10_000),
)
def test_all_workers_have_the_same_bits_near_the_exact_sum(
    workers, sizes, slots, shares, dtype, op, two_levels, loss, epochs, seed
):
    draw = np.random.default_rng(seed)
    shape = {"slots": slots, "shares": shares}
    fabric = team(workers, seed, loss=loss, duplicate=loss, two_levels=two_levels, **shape)
    before = [[(draw.standard_normal(n) * 100).astype(dtype) for n in sizes] for _ in range(workers)]
    after = [[array.copy() for array in arrays] for arrays in before]
    calls = [
        [c.submit(a, op, Float32Sum()) for a in mine] for c, mine in zip(fabric.cores, after, strict=True)
    ]
    for number, packets in enumerate(epochs):
        for _ in range(packets):
            fabric.step()
        into_epoch(fabric, number + 2, **shape)
    run(fabric, calls)
    for number in range(len(sizes)):
        results = [arrays[number] for arrays in after]
        assert all(
            core.status(mine[number]) is Status.DONE for core, mine in zip(fabric.cores, calls, strict=True)
        )
        assert all(r.tobytes() == results[0].tobytes() for r in results)
        inputs = np.array([arrays[number] for arrays in before], np.float64)
        exact, largest = inputs.sum(axis=0), np.abs(inputs).sum(axis=0)
        if op is ReduceOp.AVERAGE:
            exact, largest = exact / workers, largest / workers
        bound = np.array([floats_error_bound(float(v), workers + 1) for v in largest])
        bound += np.abs(exact) * np.finfo(dtype).eps  # the result's own rounding
        np.testing.assert_array_less(np.abs(results[0].astype(np.float64) - exact), bound + 1e-30)


def test_special_values_and_overflows_need_no_other_round():
    with rig(2, lanes=8, numerics=Float32Sum()) as fabric:
        large = np.float32(3e38)
        one = np.array([np.inf, np.inf, np.nan, large, -0.0, 1e-45, 1.0, -large], np.float32)
        other = np.array([1.0, -np.inf, 1.0, large, -0.0, 1e-45, -1.0, -large], np.float32)
        assert fabric.all_reduce([one, other]) == [None, None]
        expected = np.array([np.inf, np.nan, np.nan, np.inf, -0.0, 3e-45, 0.0, -np.inf], np.float32)
        assert one.tobytes() == other.tobytes()
        np.testing.assert_array_equal(one, expected)
        assert np.signbit(one[4])


@pytest.mark.parametrize("dtype", ["float64", "int32", "int64"])
def test_other_dtypes_are_reduced_as_in_any_job(dtype):
    with rig(2, lanes=8, numerics=Float32Sum()) as fabric:
        arrays = [np.arange(100).astype(dtype) * (rank + 1) for rank in range(2)]
        assert fabric.all_reduce(arrays) == [None, None]
        np.testing.assert_array_equal(arrays[0], np.arange(100) * 3)


def test_bfloat16_is_added_as_float32_and_rounded_once():
    with rig(2, lanes=8, numerics=Float32Sum()) as fabric:
        arrays = [np.array([256, 1], BFLOAT16), np.array([1, 2.0**-8], BFLOAT16)]
        assert fabric.all_reduce(arrays) == [None, None]
        assert arrays[0].astype(float).tolist() == [256.0, 1.0]


def test_small_numbers_beside_large_ones_keep_their_bits_where_a_shared_exponent_takes_them():
    """The error of both, beside a sum in float64."""
    draw = np.random.default_rng(5)
    inputs = [
        (draw.standard_normal(512) * 10.0 ** draw.uniform(-8, 3, 512)).astype(np.float32) for _ in range(4)
    ]
    exact = np.sum(inputs, axis=0, dtype=np.float64)
    errors = {}
    for scheme in (Float32Sum(), BlockFloat()):
        with rig(4, lanes=64, numerics=scheme) as fabric:
            arrays = [i.copy() for i in inputs]
            assert fabric.all_reduce(arrays) == [None] * 4
            errors[type(scheme)] = np.abs(arrays[0].astype(np.float64) - exact)
    magnitude = np.abs(inputs).sum(axis=0, dtype=np.float64)
    bound = np.array([floats_error_bound(float(v), 4) for v in magnitude])
    np.testing.assert_array_less(errors[Float32Sum], bound + 1e-45)
    assert (errors[Float32Sum] / magnitude).max() < 2.0**-22
    assert (errors[BlockFloat] / magnitude).max() > 2.0**-12, "it loses what is far below the block's largest"
    assert errors[BlockFloat].max() < 16 * error_bound(142, 4)


def test_nodes_that_cannot_add_floats_are_detected(monkeypatch: pytest.MonkeyPatch):
    """Like a switch program without floats: it drops the flag and adds integers."""

    class Whole(SlotPool):
        def gradient(self, tag, slot, child_bit, flags, exponent, lanes):  # type: ignore[no-untyped-def]
            return super().gradient(tag, slot, child_bit, flags & FLAGS & ~Flag.FLOATS, exponent, lanes)

    fabric = team(2)
    cores = fabric.cores
    monkeypatch.setattr(fabric, "pool", lambda slots, n, root: Whole(slots, LANES, n, root))
    fabric.assign(fabric.parts)
    arrays = [np.ones(8, np.float32) for _ in cores]
    calls = [[core.submit(array, scheme=Float32Sum())] for core, array in zip(cores, arrays, strict=True)]
    run(fabric, calls)
    assert [core.status(mine[0]) for core, mine in zip(cores, calls, strict=True)] == [
        Status.FLOATS_UNSUPPORTED
    ] * 2
    assert arrays[0].tolist() == [1.0] * 8, "the array is as before"


def test_workers_with_different_numerics_fail():
    with rig(2, lanes=8, numerics=Float32Sum()) as fabric:
        fabric.workers[1]._scheme = BlockFloat()
        errors = fabric.all_reduce([np.ones(8, np.float32) for _ in range(2)])
        assert [type(error) for error in errors] == [CollectiveMismatchError] * 2


def test_there_is_one_nan():
    bits = np.array([0x7F800001, -1, 0x7FFFFFFF, 0x7F800000], np.int64).astype(np.int32)
    others = np.array([0, 0, 0, 0xFF800000], np.uint32).view(np.int32)
    assert add_floats(bits, others).tolist() == [0x7FC00000] * 4
