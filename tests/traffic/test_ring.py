# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from softswitch.testing.simple_switch import free_port

from netfold.traffic.errors import AllReduceTimeoutError
from netfold.traffic.workloads.ring import RingError, RingWorker


@pytest.mark.parametrize("workers", [1, 2, 3, 5])
@pytest.mark.parametrize("size", [0, 1, 4, 1000, 300_000])
def test_the_ring_sums_exactly_and_alike(workers, size):
    hosts = [f"127.66.0.{rank + 1}" for rank in range(workers)]
    port = free_port()

    def one(rank: int) -> np.ndarray:
        with RingWorker(hosts, rank, port) as ring:
            for call in range(2):
                array = np.arange(size, dtype=np.int32) * (rank + 1) + call
                ring.all_reduce(array)
            return array

    with ThreadPoolExecutor(workers) as pool:
        results = list(pool.map(one, range(workers)))
    expected = np.arange(size) * sum(range(workers + 1)) + workers
    for result in results:
        assert result.tolist() == expected.tolist()


def test_a_neighbor_that_does_not_come_is_named():
    with pytest.raises(RingError, match=r"rank 0 cannot reach 127\.66\.0\.2"):
        RingWorker(["127.66.0.1", "127.66.0.2"], 0, free_port(), timeout=0.1)


def test_a_neighbor_that_leaves_or_stays_silent_is_an_error():
    hosts, port = ["127.66.0.1", "127.66.0.2"], free_port()
    go = threading.Event()

    def silent() -> None:
        with RingWorker(hosts, 1, port):
            go.wait(30)

    thread = threading.Thread(target=silent)
    thread.start()
    try:
        with RingWorker(hosts, 0, port) as ring:
            with pytest.raises(AllReduceTimeoutError, match=r"received 0 of 20 from 127\.66\.0\.2"):
                ring.all_reduce(np.ones(10, np.float32), timeout=0.1)
            go.set()
            thread.join()
            with pytest.raises(RingError, match=r"neighbor"):
                ring.all_reduce(np.ones(10, np.float32), timeout=10)
    finally:
        go.set()
        thread.join()
