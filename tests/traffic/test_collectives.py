# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Reduce-scatter, all-gather, broadcast and reduce of workers over a parameter server without switches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest

from netfold.protocol.target import Targets
from netfold.traffic.engine.blocks import Blocks, CallForm
from netfold.traffic.errors import CollectiveMismatchError, SumOverflowError
from netfold.traffic.membership.assignment import Assignment, TreeAssignment
from netfold.traffic.membership.base import StaticMembership
from netfold.traffic.numerics import ReduceOp
from netfold.traffic.packets.transport import Address
from netfold.traffic.server.server import ParameterServer
from netfold.traffic.worker.worker import Worker
from tests.traffic.serving import serving

PORT, SERVER, WORKERS = 61450, "127.57.0.9", 3
HOSTS = [f"127.57.0.{rank + 1}" for rank in range(WORKERS)]
SIZE = 3 * 20_000


@contextmanager
def team(targets: Targets, threads: int = 1) -> Iterator[list[Worker]]:
    def assignment(rank: int, children: tuple[int, ...] = ()) -> Assignment:
        tree = TreeAssignment(1, 1.0, 128, 32, rank, SERVER, children)
        return Assignment("job", 1, PORT, 64, rank, WORKERS, (tree,), targets=targets)

    peers = [Address(host, PORT) for host in HOSTS]
    root = ParameterServer(assignment(0, tuple(range(WORKERS))), SERVER, peers, None, threads)
    workers = [Worker(StaticMembership(assignment(rank)), host) for rank, host in enumerate(HOSTS)]
    with serving(root):
        try:
            yield workers
        finally:
            for worker in workers:
                worker.close()
    assert "malformed" not in root.counts()


def at_all(workers: list[Worker], call: Callable[[int, Worker], object]) -> list[object]:
    """The results of a call that each worker makes at the same time, or the errors."""
    with ThreadPoolExecutor(len(workers)) as pool:
        calls = [pool.submit(call, rank, worker) for rank, worker in enumerate(workers)]
        return [one.exception() or one.result() for one in calls]


EPOCHS = pytest.mark.parametrize(
    ("targets", "threads"), [(Targets.ON, 1), (Targets.ON, 3), (Targets.OFF, 1), (Targets.PAUSED, 1)]
)


@EPOCHS
def test_collectives(targets: Targets, threads: int):
    draw = np.random.default_rng(5)
    arrays = [draw.standard_normal(SIZE).astype(np.float32) for _ in range(WORKERS)]
    exact = np.sum(arrays, axis=0, dtype=np.float64)
    block = SIZE // WORKERS
    with team(targets, threads) as workers:
        parts = at_all(workers, lambda rank, w: w.reduce_scatter(arrays[rank].copy()))
        np.testing.assert_allclose(np.concatenate(parts), exact, atol=1e-5)
        means = at_all(workers, lambda rank, w: w.reduce_scatter(arrays[rank].copy(), op=ReduceOp.AVERAGE))
        np.testing.assert_allclose(np.concatenate(means), exact / WORKERS, atol=1e-5)
        for dtype in (np.float32, np.float64, np.int8, np.complex128):
            own = [array[: block + 1].astype(dtype) for array in arrays]
            for gathered in at_all(workers, lambda rank, w, own=own: w.all_gather(own[rank])):
                assert gathered.tobytes() == np.stack(own).tobytes()
        copies = [array.copy() for array in arrays]
        at_all(workers, lambda rank, w: w.broadcast(copies[rank], root=1))
        assert all(copy.tobytes() == arrays[1].tobytes() for copy in copies)
        copies = [array.copy() for array in arrays]
        at_all(workers, lambda rank, w: w.reduce(copies[rank], root=2))
        np.testing.assert_allclose(copies[2], exact, atol=1e-5)


def test_an_integer_that_does_not_fit_is_its_owner_s_error():
    with team(Targets.ON) as workers:
        arrays = [np.full(SIZE, 1, np.int32) for _ in range(WORKERS)]
        for array in arrays:
            array[-1] = 2**30
        found = at_all(workers, lambda rank, w: w.reduce_scatter(arrays[rank]))
        assert [type(one) for one in found] == [np.ndarray, np.ndarray, SumOverflowError]
        again = at_all(workers, lambda rank, w: w.all_gather(np.full(5000, rank, np.int64)))
        assert all((one[2] == 2).all() for one in again)


def test_blocks_have_to_be_equal():
    with team(Targets.ON) as workers, pytest.raises(ValueError, match="no 3 equal blocks"):
        workers[0].reduce_scatter(np.zeros(7, np.float32))


@pytest.mark.parametrize("root", [WORKERS, -1])
def test_a_root_is_a_worker_of_the_job(root: int):
    """No worker would give its array, so all would get zeros."""
    with team(Targets.ON) as workers:
        for call in (workers[0].broadcast, workers[0].reduce):
            with pytest.raises(ValueError, match=f"no worker of rank {root}: the job has 3"):
                call(np.ones(5000, np.float32), root, 1.0)
        found = at_all(workers, lambda rank, w: w.all_gather(np.full(5000, rank, np.int64)))
        assert all((one[2] == 2).all() for one in found)


@pytest.mark.parametrize(
    ("blocks", "dtype", "message"),
    [
        (
            Blocks(CallForm.SCATTER, (9000, 9000, 9000), (0, 1, 2)),
            "float32",
            "27000 elements in an array of 9000",
        ),
        (Blocks(CallForm.SCATTER, (-9000, 18000), (0, 1)), "float32", "2 owners of blocks"),
        (Blocks(CallForm.SCATTER, (9000,), (0, 1)), "float32", "2 owners of blocks"),
        (Blocks(CallForm.GATHER, (9000,), (0,)), "float32", "is int32; this is float32"),
    ],
)
def test_blocks_are_those_of_the_array(blocks: Blocks, dtype: str, message: str):
    with team(Targets.ON) as workers, pytest.raises(ValueError, match=message):
        workers[0].submit(np.ones(9000, dtype), timeout=1.0, blocks=blocks)


def test_bits_that_saturate_as_numbers_are_gathered_at_once():
    """F27: lanes at the limits of int32 make no second transmission."""
    with team(Targets.ON) as workers:
        blocks = [np.full(20_000, -0.0, np.float32) for _ in range(WORKERS)]
        for gathered in at_all(workers, lambda rank, w: w.all_gather(blocks[rank])):
            assert np.signbit(gathered).all()
        assert workers[0].stats.reencoded_chunks == 0


@EPOCHS
def test_workers_meet_at_a_barrier(targets: Targets, threads: int):
    late = WORKERS - 1
    with team(targets, threads) as workers, ThreadPoolExecutor(WORKERS) as pool:
        for _ in range(3):
            meeting = [pool.submit(worker.barrier) for worker in workers[:late]]
            assert not any(one.done() for one in meeting)
            workers[late].barrier()
            assert [one.result() for one in meeting] == [None] * late


def test_a_barrier_is_no_sum_of_one_element():
    with team(Targets.ON) as workers:

        def call(rank: int, worker: Worker) -> None:
            worker.all_reduce(np.zeros(1, np.int32), 5.0) if rank == 0 else worker.barrier(5.0)

        assert {type(each) for each in at_all(workers, call)} == {CollectiveMismatchError}
