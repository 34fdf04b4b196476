# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Calls of a job with a quorum, in virtual time: no worker waits for a straggler longer than the deadline, all results
have the same bits, averages are over the contributors, and a dropped straggler fails and rejoins."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netfold.protocol.wire import Verdict
from netfold.traffic.engine.engine import Status
from netfold.traffic.errors import UnsupportedDtypeError
from netfold.traffic.membership.assignment import Assignment
from netfold.traffic.numerics import BlockFloat, Fixed, Float32Sum, PackedHalf, ReduceOp
from netfold.traffic.worker.outcome import check_quorum
from tests.quorum_oracle import QuorumPool
from tests.traffic.cores import Core, assignment, place
from tests.traffic.quorum_fabric import QuorumFabric

LANES, SLOTS, DEADLINE = 32, 16, 0.05


def parts_of(workers: int, quorum: int, epoch: int = 1, slots: int = SLOTS) -> list[Assignment]:
    found = []
    for rank in range(workers):
        part = assignment(rank, workers, LANES, slots, epoch=epoch)
        trees = tuple(replace(tree, child=rank) for tree in part.trees)
        found.append(replace(part, trees=trees, quorum=quorum, quorum_deadline_s=DEADLINE))
    return found


def network(workers: int, quorum: int, seed: int = 1, slots: int = SLOTS, **how) -> QuorumFabric:
    fabric = QuorumFabric([Core() for _ in range(workers)], random.Random(seed), **how)
    parts = parts_of(workers, quorum, slots=slots)
    fabric.begin(parts)
    return fabric


def until(fabric: QuorumFabric, calls, steps: int = 400_000) -> None:
    """Runs until these (core, call) are finished."""
    for _ in range(steps):
        if all(core.status(call) is not Status.PENDING for core, call in calls):
            return
        fabric.step()
    raise AssertionError("no worker is finished")


def meet(fabric: QuorumFabric) -> None:
    """A first call of all workers, so that they are synchronized."""
    arrays = [np.full(8, 1.0, np.float32) for _ in fabric.cores]
    calls = [(core, core.submit(array)) for core, array in zip(fabric.cores, arrays, strict=True)]
    until(fabric, calls)
    assert all(core.status(call) is Status.DONE for core, call in calls)
    assert all((array == len(fabric.cores)).all() for array in arrays)


def gradients(workers: int, elements: int, seed: int = 0) -> list[np.ndarray]:
    return [
        np.random.default_rng([seed, rank]).standard_normal(elements).astype(np.float32)
        for rank in range(workers)
    ]


@pytest.mark.parametrize("two_levels", [False, True], ids=["flat", "two levels"])
@pytest.mark.parametrize(
    "scheme", [BlockFloat(), PackedHalf(), Float32Sum()], ids=["block", "half", "float32"]
)
def test_an_absent_worker_costs_a_deadline_and_averages_are_over_the_contributors(two_levels, scheme):
    fabric = network(4, 3, two_levels=two_levels)
    meet(fabric)
    arrays = gradients(4, 5000)
    exact = np.mean(arrays[:3], axis=0, dtype=np.float64)
    began = fabric.now
    calls = [
        (core, core.submit(a, ReduceOp.AVERAGE, scheme))
        for core, a in zip(fabric.cores[:3], arrays[:3], strict=True)
    ]
    until(fabric, calls)
    assert [core.status(call) for core, call in calls] == [Status.DONE] * 3
    assert arrays[0].tobytes() == arrays[1].tobytes() == arrays[2].tobytes()
    np.testing.assert_allclose(arrays[0], exact, atol=2e-2 if isinstance(scheme, PackedHalf) else 1e-5)
    outcome = fabric.cores[0].outcome(calls[0][1])
    assert (outcome.min_contributors, outcome.max_contributors) == (3, 3)
    assert DEADLINE < fabric.now - began < 10 * DEADLINE + 5000 * 4 * 0.0001


def test_a_late_worker_has_the_same_result_and_continues():
    fabric = network(3, 2, slots=512)
    meet(fabric)
    arrays = gradients(3, 2000)
    calls = [
        (core, core.submit(a, ReduceOp.AVERAGE)) for core, a in zip(fabric.cores[:2], arrays[:2], strict=True)
    ]
    until(fabric, calls)
    calls.append((fabric.cores[2], fabric.cores[2].submit(arrays[2], ReduceOp.AVERAGE)))
    until(fabric, calls)
    assert {core.status(call) for core, call in calls} == {Status.DONE}
    assert len({array.tobytes() for array in arrays}) == 1
    assert fabric.cores[2].totals().late_contributions > 0
    assert (fabric.late > 0, fabric.slot_reused) == (True, 0)
    again = gradients(3, 2000, seed=1)
    exact = np.mean(again, axis=0, dtype=np.float64)
    calls = [(core, core.submit(a, ReduceOp.AVERAGE)) for core, a in zip(fabric.cores, again, strict=True)]
    until(fabric, calls)
    np.testing.assert_allclose(again[0], exact, atol=1e-5)  # all are in it


def test_a_straggler_fails_and_joins_again_in_the_next_epoch():
    fabric = network(3, 2, slots=8)
    meet(fabric)
    for turn in range(7):  # more calls than are told apart in a vote
        arrays = gradients(3, 500, seed=turn)
        calls = [(core, core.submit(a)) for core, a in zip(fabric.cores[:2], arrays[:2], strict=True)]
        until(fabric, calls)
        assert {core.status(call) for core, call in calls} == {Status.DONE}
    straggler, own = fabric.cores[2], gradients(1, 500)[0]
    before = own.copy()
    call = straggler.submit(own)
    until(fabric, [(straggler, call)])
    assert straggler.status(call) is Status.STRAGGLED
    assert (own == before).all()
    assert straggler.totals().has_failed_call == 1
    parts = parts_of(3, 2, epoch=2, slots=8)
    fabric.begin(parts)
    arrays = gradients(3, 700, seed=9)
    exact = np.sum(arrays, axis=0, dtype=np.float64)
    calls = [(core, core.submit(a)) for core, a in zip(fabric.cores, arrays, strict=True)]
    until(fabric, calls)
    assert {core.status(call) for core, call in calls} == {Status.DONE}
    assert len({array.tobytes() for array in arrays}) == 1
    np.testing.assert_allclose(arrays[0], exact, atol=1e-5)


def test_a_straggler_that_all_others_left_makes_its_own_calls_alone():
    fabric = network(3, 2, slots=8)
    meet(fabric)
    for turn in range(7):
        arrays = gradients(2, 500, seed=turn)
        until(fabric, [(core, core.submit(a)) for core, a in zip(fabric.cores[:2], arrays, strict=True)])
    straggler, own = fabric.cores[2], gradients(1, 500)[0]
    call = straggler.submit(own)
    until(fabric, [(straggler, call)])
    assert straggler.status(call) is Status.STRAGGLED
    fabric.cores = [straggler]
    fabric.in_transit.clear()
    fabric.begin(parts_of(1, 1, epoch=2, slots=8))
    call = straggler.submit(own)
    until(fabric, [(straggler, call)])
    assert straggler.status(call) is Status.DONE
    assert straggler.outcome(call).number == 1
    np.testing.assert_allclose(own, gradients(1, 500)[0], atol=1e-5)


@pytest.mark.parametrize("behind", [5, 6, 8, 9, 10, 13, 18])
@pytest.mark.parametrize("two_levels", [False, True], ids=["flat", "two levels"])
def test_a_straggler_that_enters_an_epoch_first_costs_the_others_no_call(behind, two_levels):
    """The job migrates while one worker computes. Modulo nine its call number may equal another one, or be ahead."""
    fabric = network(4, 3, slots=8, two_levels=two_levels)
    meet(fabric)
    for turn in range(behind):
        arrays = gradients(3, 200, seed=turn)
        calls = [(core, core.submit(a)) for core, a in zip(fabric.cores[:3], arrays, strict=True)]
        until(fabric, calls)
    straggler = fabric.cores[3]
    parts = parts_of(4, 3, 2, slots=8)
    fabric.in_transit.clear()
    fabric.begin(parts)
    arrays = gradients(4, 300, seed=99)
    calls = [(core, core.submit(a)) for core, a in zip(fabric.cores, arrays, strict=True)]
    until(fabric, calls[3:])
    assert straggler.status(calls[3][1]) is Status.STRAGGLED
    assert not straggler.totals().has_failed_call
    calls[3] = (straggler, straggler.submit(arrays[3]))
    until(fabric, calls)
    assert {core.status(call) for core, call in calls} == {Status.DONE}
    assert len({array.tobytes() for array in arrays}) == 1
    np.testing.assert_allclose(arrays[0], np.sum(gradients(4, 300, seed=99), axis=0), atol=1e-5)
    more = gradients(4, 250, seed=100)
    calls = [(core, core.submit(a)) for core, a in zip(fabric.cores, more, strict=True)]
    until(fabric, calls)
    assert len({array.tobytes() for array in more}) == 1


def test_handovers_between_others_pass_through_a_worker_that_joins_again():
    """One of the other workers has finished a call whose result another one lacks when the epoch changes."""
    fabric = network(3, 2, slots=8)
    meet(fabric)
    for turn in range(3):
        arrays = gradients(3, 300, seed=turn)
        calls = [(core, core.submit(a)) for core, a in zip(fabric.cores[:2], arrays[:2], strict=True)]
        until(fabric, calls)
    straggler = fabric.cores[2]
    call = straggler.submit(np.ones(300, np.float32))
    until(fabric, [(straggler, call)])
    assert straggler.status(call) is Status.STRAGGLED
    arrays = gradients(2, 40, seed=5)  # no more chunks than go without a result
    calls = [(core, core.submit(a)) for core, a in zip(fabric.cores[:2], arrays[:2], strict=True)]
    came: list[int] = []

    def only_the_opening(place: int) -> bool:
        came.append(place)
        return place == came[0]

    fabric.accepted[1] = only_the_opening
    until(fabric, calls[:1])
    fabric.accepted.clear()
    assert fabric.cores[1].status(calls[1][1]) is Status.PENDING
    parts = parts_of(3, 2, epoch=2, slots=8)
    fabric.in_transit.clear()
    fabric.begin(parts)
    more = gradients(3, 400, seed=6)
    calls += [(core, core.submit(a)) for core, a in zip(fabric.cores, more, strict=True)]
    until(fabric, calls)
    assert {core.status(call) for core, call in calls} == {Status.DONE}
    assert arrays[0].tobytes() == arrays[1].tobytes()
    assert len({array.tobytes() for array in more}) == 1


@dataclass
class DiesBeforeRepetitions(QuorumFabric):
    """Drops retransmissions of the worker `dead`, and all that it sends in the control stream."""

    dead: int = -1

    def take(self, pool: QuorumPool, bit: int, record: np.ndarray) -> Verdict | None:
        chunk = int(record[0]["tag"] & 0xFFFFF) * self.parts[0].trees[0].slots + int(record[0]["slot"])
        if bit == self.dead and place(chunk, self.parts[0].trees[0].slots) < 0:
            return None
        return super().take(pool, bit, record)


@pytest.mark.parametrize("scheme", [BlockFloat(), Fixed(8)], ids=["block", "fixed"])
@pytest.mark.parametrize("special", [False, True], ids=["finite", "infinite"])
def test_a_late_worker_beyond_the_scale_contributes_to_reencoded_rows_after_another_died(scheme, special):
    """The scale of re-encoded rows is of the workers that were in time: one of them is gone, a late one contributes."""
    fabric = DiesBeforeRepetitions([Core() for _ in range(4)], random.Random(1))
    fabric.begin(parts_of(4, 3, slots=64))
    for _ in range(6):  # what they foretell is too little
        ones = [np.ones(500, np.float32) for _ in range(4)]
        until(
            fabric,
            [
                (core, core.submit(one, ReduceOp.AVERAGE, scheme))
                for core, one in zip(fabric.cores, ones, strict=True)
            ],
        )
    fabric.dead = 2
    arrays = gradients(4, 500)
    arrays[0] *= np.float32(1e9)
    arrays[3] *= np.float32(1e15)
    if special:
        arrays[3][40] = np.inf
    exact = np.mean([arrays[r] for r in (0, 1, 3)], axis=0, dtype=np.float64)
    calls = [
        (core, core.submit(a, ReduceOp.AVERAGE, scheme))
        for core, a in zip(fabric.cores[:3], arrays[:3], strict=True)
    ]
    while fabric.now < 1.0:
        assert fabric.step(), "a worker waits for the third one"
    calls[2] = (fabric.cores[3], fabric.cores[3].submit(arrays[3], ReduceOp.AVERAGE, scheme))
    until(fabric, calls, 6_000)
    assert [core.status(call) for core, call in calls] == [Status.DONE] * 3
    assert arrays[0].tobytes() == arrays[1].tobytes() == arrays[3].tobytes()
    assert fabric.now < 1.0 + 20 * DEADLINE
    row = np.arange(500) // LANES == 40 // LANES
    np.testing.assert_allclose(arrays[0][~row], exact[~row], atol=1e8)
    assert np.isnan(arrays[0][row]).all() == special  # as not all were asked which of them are infinite


@settings(max_examples=12)
@given(
    st.integers(2, 5),
    st.booleans(),
    st.sampled_from([0.0, 0.02, 0.1]),
    st.integers(0, 10**6),
    st.data(),
)
def test_all_finished_workers_have_the_same_bits_despite_losses(workers, two_levels, loss, seed, data):
    quorum = data.draw(st.integers(1, workers))
    fabric = network(workers, quorum, seed, slots=64, two_levels=two_levels)
    meet(fabric)
    fabric.loss = fabric.duplicate = loss
    rng = random.Random(seed)
    for turn in range(3):
        arrays = gradients(workers, 1500, seed=turn)
        if turn:
            arrays[0] *= np.float32(1e6)  # scales that were not foreseen, in some contributions
            arrays[0][7::311] = np.nan if rng.random() < 0.3 else 1.0
        order = list(range(workers))
        rng.shuffle(order)
        calls = {}
        for rank in order:
            for _ in range(rng.choice([0, 0, 50, 2000])):
                fabric.step()
            calls[rank] = fabric.cores[rank].submit(arrays[rank], ReduceOp.AVERAGE)
        status = {}
        for _ in range(400_000):
            status = {rank: fabric.cores[rank].status(call) for rank, call in calls.items()}
            if Status.PENDING not in status.values() or Status.STRAGGLED in status.values():
                break
            fabric.step()
        assert len({arrays[rank].tobytes() for rank in calls if status[rank] is Status.DONE}) <= 1
        if (
            Status.STRAGGLED in status.values()
        ):  # the others may need it, and it raises the epoch when it comes again
            return
        assert set(status.values()) == {Status.DONE}


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_a_job_with_a_quorum_takes_no_integers(dtype: str):
    array = np.zeros(3, dtype)
    check_quorum(array, 0, "job")
    with pytest.raises(UnsupportedDtypeError, match=f"job has a quorum: .* this is {dtype}"):
        check_quorum(array, 2, "job")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_job_with_a_quorum_takes_floats(dtype: str):
    check_quorum(np.zeros(3, dtype), 2, "job")
