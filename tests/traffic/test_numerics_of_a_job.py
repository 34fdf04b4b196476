# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The job says how numbers become lanes (`numerics` in its file), unless a worker was told otherwise itself."""

from __future__ import annotations

import numpy as np
import pytest

from netfold.traffic.errors import UnsupportedDtypeError
from netfold.traffic.numerics import BFLOAT16, FLOAT32, Automatic, BlockFloat, Fixed, IntegerSum, PackedHalf
from tests.traffic.rig import rig
from tests.traffic.test_all_reduce import check, gradients


@pytest.mark.parametrize(
    ("numerics", "dtype"), [(Fixed(12), "float32"), (BlockFloat(), "float32"), (IntegerSum(), "int32")]
)
def test_the_assignment_says_how_numbers_become_lanes(numerics, dtype):
    with rig(2, numerics=numerics) as fabric:
        before = gradients(2, 100, dtype, 3)
        after = [b.copy() for b in before]
        assert fabric.all_reduce(after) == [None, None]
        check(before, after, numerics, 8)
        if isinstance(numerics, Fixed):
            assert (after[0] * 2**12 == np.rint(after[0] * 2**12)).all(), "whole multiples of the fixed scale"


@pytest.mark.parametrize(
    ("numerics", "dtype", "quarters"),
    [
        (Automatic(), FLOAT32, 0.5),
        (Automatic(), BFLOAT16, 0.0),
        (PackedHalf(), FLOAT32, 0.0),
        (BlockFloat(), BFLOAT16, 0.5),
    ],
    ids=str,
)
def test_half_is_for_short_floats_unless_the_job_says_otherwise(numerics, dtype, quarters):
    """A quarter beside 2^12: with 13 bits a unit is 1."""
    with rig(2, lanes=4, numerics=numerics) as fabric:
        arrays = [np.array([4096, 0.25], dtype) for _ in range(2)]
        assert fabric.all_reduce(arrays) == [None, None]
        assert arrays[0].tolist() == arrays[1].tolist() == [8192, quarters]


def test_what_a_worker_is_told_itself_comes_before_the_assignment():
    with rig(2, numerics=BlockFloat(), scheme=Fixed(3)) as fabric:
        arrays = [np.full(8, 0.01, np.float32) for _ in range(2)]
        assert fabric.all_reduce(arrays) == [None, None]
        assert arrays[0].tolist() == [0.0] * 8


def test_a_job_of_whole_numbers_refuses_floats_before_anything_is_sent():
    with rig(1, numerics=IntegerSum()) as fabric:
        array = np.ones(8, np.float32)
        with pytest.raises(
            UnsupportedDtypeError, match=r"job test has numerics: integer.*int32 and int64.*float32"
        ):
            fabric.workers[0].all_reduce(array)
        assert array.tolist() == [1.0] * 8
        fabric.workers[0].all_reduce(np.ones(8, np.int32))
