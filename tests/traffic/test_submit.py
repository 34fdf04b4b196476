# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Calls in the background: `Worker.submit` and its handles."""

from __future__ import annotations

import asyncio
import threading
import time

import numpy as np
import pytest

from netfold.traffic.errors import (
    AllReduceTimeoutError,
    CollectiveMismatchError,
    ConcurrentUseError,
    JobFailedError,
    SumOverflowError,
    TrafficError,
    WorkerClosedError,
)
from netfold.traffic.numerics import ReduceOp
from tests.traffic.rig import Faults, rig

CALLS = 12


def arrays_of(workers: int) -> list[list[np.ndarray]]:
    """By call and worker, of different sizes and dtypes."""
    rng = np.random.default_rng(3)
    return [
        [
            rng.integers(-1000, 1000, 7 + 61 * number % 400).astype("int32" if number % 3 else "float32")
            for _ in range(workers)
        ]
        for number in range(CALLS)
    ]


@pytest.mark.parametrize("faults", [Faults(), Faults(0.05, 0.05, 0.05)])
def test_calls_in_the_background_take_place_in_their_order(faults):
    with rig(3, faults=faults) as fabric:
        before = arrays_of(3)
        after = [[array.copy() for array in arrays] for arrays in before]
        handles = [
            [worker.submit(array) for worker, array in zip(fabric.workers, arrays, strict=True)]
            for arrays in after
        ]
        for inputs, arrays, mine in zip(before, after, handles, strict=True):
            for array, handle in zip(arrays, mine, strict=True):
                assert handle.result(60) is array
                assert handle.done()
                np.testing.assert_array_equal(array, np.sum(inputs, axis=0))
        for worker in fabric.workers:
            assert worker.stats.calls == CALLS


def test_calls_that_wait_and_calls_in_the_background_mix():
    with rig(2) as fabric:
        first = [np.full(100, 1.0 + rank, np.float32) for rank in range(2)]
        handles = [worker.submit(array) for worker, array in zip(fabric.workers, first, strict=True)]
        second = [np.full(50, 2.0, np.float32) for _ in range(2)]
        more = fabric.workers[1].submit(second[1])
        fabric.workers[0].all_reduce(second[0], timeout=30)
        assert more.wait(30)
        assert all(handle.done() or handle.wait(30) for handle in handles)
        assert first[0].tolist() == first[1].tolist() == [3.0] * 100
        assert second[0].tolist() == [4.0] * 50


def test_a_handle_calls_back_and_can_be_awaited():
    told: list[object] = []

    async def both(handles):
        return await asyncio.gather(*handles)

    with rig(2) as fabric:
        handles = [worker.submit(np.full(9, 6.0, np.float16), ReduceOp.AVERAGE) for worker in fabric.workers]
        heard = threading.Event()
        handles[0].add_done_callback(lambda handle: (told.append(handle), heard.set()))
        results = asyncio.run(both([_awaited(handle) for handle in handles]))
        assert [r.tolist() for r in results] == [[6.0] * 9] * 2
        assert heard.wait(10)
        assert told == [handles[0]]


async def _awaited(handle):
    return await handle


def test_an_empty_array_is_done_at_once():
    with rig(2) as fabric:
        assert fabric.workers[0].submit(np.empty(0, np.float32)).done()
        fabric.workers[0].all_reduce(np.empty(0, np.float32), timeout=0.01)


def test_errors_come_out_of_the_handles():
    with rig(2) as fabric:
        big = [worker.submit(np.full(3, 2**30, np.int32)) for worker in fabric.workers]
        for handle in big:
            with pytest.raises(SumOverflowError):
                handle.result(30)
        good = [worker.submit(np.ones(3, np.int32)) for worker in fabric.workers]
        assert [handle.result(30).tolist() for handle in good] == [[2, 2, 2]] * 2, "the job goes on"
        fabric.server_link.drop_all = True  # so that nothing fails before all are submitted
        odd = [worker.submit(np.ones(3 + rank, np.int32)) for rank, worker in enumerate(fabric.workers)]
        after = [worker.submit(np.ones(3, np.int32)) for worker in fabric.workers]
        fabric.server_link.drop_all = False
        for handle in odd:
            with pytest.raises(CollectiveMismatchError):
                handle.result(30)
        for handle in after:
            with pytest.raises(AllReduceTimeoutError, match="an earlier call failed"):
                handle.result(30)
        with pytest.raises(
            AllReduceTimeoutError, match="a call failed in job epoch 1"
        ):  # no controller, so no new epoch
            fabric.workers[0].submit(np.ones(3, np.int32), timeout=0.01)


def test_a_callback_may_close_the_worker():
    with rig(2) as fabric:
        worker, other = fabric.workers
        closed: list[Exception | None] = []
        ended = threading.Event()

        def leave(_: object) -> None:
            try:
                worker.close()
                closed.append(None)
            except Exception as error:
                closed.append(error)
            ended.set()

        handle = worker.submit(np.ones(3, np.float32))
        behind = [
            worker.submit(np.ones(3, np.float32)) for _ in range(2)
        ]  # the other worker never does these
        handle.add_done_callback(leave)
        assert other.submit(np.ones(3, np.float32)).result(30).tolist() == [2.0] * 3
        assert ended.wait(30)
        assert closed == [None]
        for lonely in behind:
            with pytest.raises(TrafficError):
                lonely.result(30)
        with pytest.raises(WorkerClosedError):
            worker.submit(np.ones(3, np.float32))


def test_closing_waits_for_a_thread_whose_call_was_over_before_it_was_back(monkeypatch):
    with rig(2) as fabric:
        worker, other = fabric.workers
        over, gone = threading.Event(), threading.Event()
        soon: list[bool] = []
        look_again, end, close = worker._abort_if_ended, worker._end_call, worker._engine.close

        def look_again_late() -> None:
            assert over.wait(30)
            soon.append(gone.wait(0.2))
            look_again()

        monkeypatch.setattr(worker, "_abort_if_ended", look_again_late)
        monkeypatch.setattr(worker, "_end_call", lambda: (end(), over.set()))
        monkeypatch.setattr(worker._engine, "close", lambda: (gone.set(), close()))
        thread = threading.Thread(target=worker.submit, args=(np.ones(3, np.float32),))
        thread.start()
        assert other.submit(np.ones(3, np.float32)).result(30).tolist() == [2.0] * 3
        assert over.wait(30)
        worker.close()
        thread.join(30)
        assert soon == [False], "the engine went away under a thread that was about to use it"


def test_a_call_in_the_background_ends_by_its_deadline_and_the_next_one_asks_for_an_epoch():
    with rig(2) as fabric:
        fabric.grant_new_epochs()
        lonely = fabric.workers[0].submit(np.ones(3, np.float32), timeout=0.2)
        assert not lonely.wait(0.01)
        with pytest.raises(AllReduceTimeoutError, match="missing: tree 40"):
            lonely.result(30)
        together = [worker.submit(np.ones(3, np.float32)) for worker in fabric.workers]
        assert [handle.result(30).tolist() for handle in together] == [[2.0] * 3] * 2
        assert fabric.members[0].unusable == [1]


def test_used_up_chunk_numbers_are_renewed_in_the_background(monkeypatch):
    monkeypatch.setattr("netfold.traffic.engine.engine.ROUNDS", 4)
    with rig(2, lanes=4, slots=8) as fabric:
        fabric.grant_new_epochs()
        handles = [
            [worker.submit(np.full(20, 1.0 + number, np.float32)) for worker in fabric.workers]
            for number in range(10)
        ]
        for number, mine in enumerate(handles):
            for handle in mine:
                assert handle.result(60).tolist() == [2.0 + 2 * number] * 20
        assert fabric.members[0].current().epoch > 1


def test_the_end_of_the_job_and_closing_end_calls_in_the_background():
    with rig(2) as fabric:
        handle = fabric.workers[0].submit(np.ones(3, np.float32))
        fabric.members[0].end("worker h2 was lost")
        with pytest.raises(JobFailedError, match="worker h2 was lost"):
            handle.result(30)
        other = fabric.workers[1].submit(np.ones(3, np.float32))
        fabric.workers[1].close()
        with pytest.raises(TrafficError):
            other.result(1)


def test_a_second_thread_is_refused_while_calls_are_under_way():
    with rig(2) as fabric:
        handle = fabric.workers[0].submit(np.ones(3, np.float32))
        refused: list[Exception] = []

        def intrude() -> None:
            for use in (fabric.workers[0].submit, fabric.workers[0].all_reduce):
                try:
                    use(np.ones(3, np.float32))
                except ConcurrentUseError as error:
                    refused.append(error)

        thread = threading.Thread(target=intrude)
        thread.start()
        thread.join()
        assert len(refused) == 2
        fabric.workers[1].submit(np.ones(3, np.float32))
        assert handle.result(30).tolist() == [2.0] * 3


def test_closing_ends_a_call_of_another_thread_and_no_thread_calls_a_closed_worker():
    with rig(2) as fabric:
        worker, _ = fabric.workers
        array, ended = np.ones(100_000, np.float32), []

        def alone() -> None:
            try:
                worker.all_reduce(array, timeout=60)
            except TrafficError as error:
                ended.append(error)

        thread = threading.Thread(target=alone)
        thread.start()
        deadline = time.monotonic() + 30
        while worker.retransmits == 0:  # it is in flight, and no root answers
            assert time.monotonic() < deadline
            time.sleep(0.01)
        worker.close()
        thread.join(30)
        assert not thread.is_alive()
        assert isinstance(ended[0], AllReduceTimeoutError)
        assert (array == 1).all()
        for use in (worker.all_reduce, worker.submit):
            with pytest.raises(WorkerClosedError, match="closed"):
                use(array)
        assert worker.retransmits > 0
        worker.flows()


def test_a_busy_interpreter_does_not_hold_up_packets():
    """The caller never lets go of the interpreter's lock on its own account, and the calls get done."""
    with rig(1) as fabric:
        handles = [fabric.workers[0].submit(np.ones(2000, np.float32)) for _ in range(5)]
        while not all(handle.done() for handle in handles):
            sum(range(1000))
        assert fabric.workers[0].stats.calls == 5
