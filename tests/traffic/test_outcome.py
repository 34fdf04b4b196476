# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What a call refuses before anything is sent."""

from __future__ import annotations

import numpy as np
import pytest

from netfold.traffic.errors import UnsupportedDtypeError
from netfold.traffic.worker.outcome import check_quorum


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_a_job_with_a_quorum_takes_no_integers(dtype: str):
    array = np.zeros(3, dtype)
    check_quorum(array, 0, "job")
    with pytest.raises(UnsupportedDtypeError, match=f"job has a quorum: .* this is {dtype}"):
        check_quorum(array, 2, "job")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_job_with_a_quorum_takes_floats(dtype: str):
    check_quorum(np.zeros(3, dtype), 2, "job")
