# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's process that gets an epoch in which an earlier process of the worker has taken part. No controller may
give it that; the engine has to notice where one does."""

from __future__ import annotations

import numpy as np
import pytest

from netfold.traffic.errors import CollectiveMismatchError
from netfold.traffic.worker.worker import Worker
from tests.traffic.rig import NETWORK, Members, rig

ELEMENTS = 6


@pytest.mark.parametrize("workers", [2, 3, 5])
@pytest.mark.parametrize("calls", [1, 3], ids=lambda calls: f"{calls} calls")
def test_no_process_takes_results_of_an_earlier_ones_calls(workers, calls):
    with rig(workers, lanes=32, slots=64) as r:
        for _ in range(calls):
            arrays = [np.full(ELEMENTS, rank + 1.0, np.float32) for rank in range(workers)]
            assert r.all_reduce(arrays) == [None] * workers
        r.workers[-1].close()
        again = r.workers[-1] = Worker(Members(r.assignments[-1]), f"{NETWORK}.{workers}")
        mine = np.full(ELEMENTS, -1000.0, np.float32)
        with pytest.raises(CollectiveMismatchError, match="another process of this worker"):
            again.all_reduce(mine, 60.0)
        assert (mine == -1000.0).all()


def test_a_process_in_place_of_one_that_has_sent_nothing_takes_part():
    with rig(2, lanes=32, slots=64) as r:
        r.workers[1].close()
        r.workers[1] = Worker(Members(r.assignments[1]), f"{NETWORK}.2")
        arrays = [np.full(ELEMENTS, rank + 1.0, np.float32) for rank in range(2)]
        assert r.all_reduce(arrays) == [None, None]
        assert all((a == 3.0).all() for a in arrays)
