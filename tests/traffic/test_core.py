# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The engine's core in virtual time, over a network that loses, doubles and reorders as hypothesis wants."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netfold.traffic.congestion import Congestion
from netfold.traffic.engine.engine import NEVER, Status
from netfold.traffic.membership.assignment import Timing
from netfold.traffic.numerics import Fixed, ReduceOp, SharedExponent
from tests.traffic.cores import LANES, Core, Fabric, assignment, chunk_of, result


def team(workers: int, congestion: Congestion = Congestion.FIXED, **shape: object) -> list[Core]:
    cores = [Core(congestion) for _ in range(workers)]
    for rank, core in enumerate(cores):
        core.assign(assignment(rank, workers, **shape))  # type: ignore[arg-type]
    return cores


def run(fabric: Fabric, calls: list[list[int]], steps: int = 200_000) -> None:
    """Until all calls (by worker) are over."""
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


@settings(max_examples=60, deadline=None)
@given(
    workers=st.integers(1, 4),
    sizes=st.lists(st.integers(1, 150), min_size=1, max_size=4),
    slots=st.sampled_from([2, 4, 8, 16]),
    shares=st.sampled_from([(1.0,), (0.5, 0.5), (0.2, 0.0, 0.8)]),
    dtype=st.sampled_from(["float32", "float16", "int32"]),
    scheme=st.sampled_from([SharedExponent(), Fixed(12)]),
    congestion=st.sampled_from(list(Congestion)),
    two_levels=st.booleans(),
    loss=st.sampled_from([0.0, 0.05, 0.3]),
    duplicate=st.sampled_from([0.0, 0.2]),
    epochs=st.lists(st.integers(1, 400), max_size=2),
    seed=st.integers(0, 10_000),
)
def test_every_worker_ends_with_the_same_right_sums_whatever_the_network_and_the_epochs_do(
    workers, sizes, slots, shares, dtype, scheme, congestion, two_levels, loss, duplicate, epochs, seed
):
    rng, draw = random.Random(seed), np.random.default_rng(seed)
    cores = team(workers, congestion, lanes=LANES, slots=slots, shares=shares)
    fabric = Fabric(cores, rng, loss, duplicate, two_levels)
    fabric.assign([assignment(rank, workers, LANES, slots, shares) for rank in range(workers)])
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


@settings(max_examples=30, deadline=None)
@given(
    one=st.tuples(st.integers(1, 40), st.sampled_from(["float32", "int32"]), st.sampled_from(list(ReduceOp))),
    other=st.tuples(
        st.integers(1, 40), st.sampled_from(["float32", "int32"]), st.sampled_from(list(ReduceOp))
    ),
    shares=st.sampled_from([(1.0,), (0.5, 0.5)]),
    scheme=st.sampled_from([SharedExponent(), Fixed(12)]),
    loss=st.sampled_from([0.0, 0.2]),
    seed=st.integers(0, 1000),
)
def test_calls_that_differ_end_in_an_error_at_every_worker(one, other, shares, scheme, loss, seed):
    cores = team(3, lanes=LANES, shares=shares)
    fabric = Fabric(cores, random.Random(seed), loss)
    fabric.assign([assignment(rank, 3, LANES, shares=shares) for rank in range(3)])
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


@pytest.mark.parametrize("cut_off", [0, 2])
def test_a_worker_cut_off_at_the_end_of_a_call_does_not_lose_it_to_a_new_epoch(cut_off):
    """All have sent all data; then nothing of one worker arrives any more, and the epoch changes."""
    workers, size = 3, 60
    cores = team(workers, slots=64)
    fabric = Fabric(cores, random.Random(1))
    fabric.assign([assignment(rank, workers, slots=64) for rank in range(workers)])
    arrays = [np.arange(size, dtype=np.float32) * (rank + 1) for rank in range(workers)]
    calls = [[core.submit(array)] for core, array in zip(cores, arrays, strict=True)]
    while cores[cut_off].report().window and not (arrays[cut_off][1:] == np.arange(1, size) * 6).all():
        fabric.step()
    fabric.deaf.add(cut_off)  # its closing chunk is lost
    for _ in range(500):
        fabric.step()
    assert all(core.status(mine[0]) is Status.PENDING for core, mine in zip(cores, calls, strict=True))
    fabric.deaf.clear()
    parts = [assignment(rank, workers, slots=64, epoch=2) for rank in range(workers)]
    fabric.assign(parts)
    for core, part in zip(cores, parts, strict=True):
        core.assign(part, fabric.now)
    run(fabric, calls)
    assert all(core.status(mine[0]) is Status.DONE for core, mine in zip(cores, calls, strict=True))
    assert all((array == np.arange(size) * 6).all() for array in arrays)
    assert [core.totals().restarts for core in cores] == [1] * workers


def test_a_worker_in_another_call_is_found_out_in_the_next_epoch():
    """One was restarted: it is in its first call, the other one in its third."""
    cores = team(2)
    fabric = Fabric(cores, random.Random(1))
    fabric.assign([assignment(rank, 2) for rank in range(2)])
    for _ in range(2):
        run(fabric, [[core.submit(np.ones(5, np.float32))] for core in cores])
    cores[1] = fabric.cores[1] = Core()
    parts = [assignment(rank, 2, epoch=2) for rank in range(2)]
    fabric.assign(parts)
    for core, part in zip(cores, parts, strict=True):
        core.assign(part, fabric.now)
    calls = [[core.submit(np.ones(5, np.float32))] for core in cores]
    run(fabric, calls)
    assert [core.status(mine[0]) for core, mine in zip(cores, calls, strict=True)] == [Status.OUT_OF_STEP] * 2


def opened(
    slots: int, window: int, chunks: int, congestion: Congestion = Congestion.FIXED, **shape: float
) -> Core:
    """A worker alone, past its resume and opening chunks, at time 0: its data are the chunks 2 ..."""
    core = Core(congestion)
    core.assign(assignment(slots=slots, window=window, **shape))  # type: ignore[arg-type]
    core.submit(np.zeros(chunks * LANES, np.int32))
    for _ in range(2):
        core.turn(0.0)
        for _, payload in core.send(0.0):
            record = bytearray(payload)
            record[0] = 0x11
            core.receive(bytes(record), 0.0)
    core.turn(0.0)
    return core


def test_results_that_nobody_waits_for_change_nothing():
    core = opened(16, 4, 10)
    assert [chunk_of(p, 16) for _, p in core.send(0.0)] == [2, 3, 4, 5]
    strange = [
        result(6, 16),  # not sent yet
        result(2, 16, epoch=2),
        result(18, 16),  # the same slot, a later round
        result(2, 16, tree=41),
        result(2, 16)[:-4],
        result(2, 16) + bytes(4),
        result(2, 16, version_kind=0x10),
        result(2, 16, version_kind=0x21),
        result(2, 16, slot=40_000),
        b"",
    ]
    for payload in strange:
        core.receive(payload, 0.001)
    core.receive(result(2, 16), 0.001, endpoint=1)
    core.turn(0.001)
    assert core.send(0.001) == []
    for _ in range(2):
        core.receive(result(2, 16), 0.001)
    core.turn(0.001)
    assert [chunk_of(p, 16) for _, p in core.send(0.001)] == [6], (
        "one result lets one chunk go, however often it comes"
    )


def test_a_chunk_that_was_overtaken_is_sent_again_before_its_time_is_up():
    core = opened(16, 2, 10)
    core.send(0.0)
    core.receive(result(3, 16), 0.001)
    core.turn(0.001)
    core.send(0.001)
    core.receive(result(4, 16), 0.002)  # sent 1 ms after chunk 2, and back
    core.turn(0.002)
    assert chunk_of(core.send(0.0021)[0][1], 16) == 2
    assert core.totals().retransmits == 1


def test_after_two_round_trips_of_silence_one_chunk_goes_again():
    core = opened(64, 32, 100)
    core.send(0.0)
    core.receive(result(2, 64), 0.001)
    core.turn(0.001)
    core.send(0.001)
    assert core.send(0.002) == []
    due = core.next(0.002)
    assert 0.003 < due < 0.004
    assert [chunk_of(p, 64) for _, p in core.send(due)] == [3]
    assert core.send(due + 0.0005) == []


def test_silence_doubles_the_wait_and_costs_a_few_probes_only():
    core = opened(64, 32, 100)
    core.send(0.0)
    now, sent = 0.0, 0
    while now < 60:
        now = core.next(now)
        core.turn(now)
        sent += len(core.send(now))
    assert sent <= 4 * 70


@pytest.mark.parametrize(("window", "probes"), [(1, 1), (4, 1), (12, 3), (32, 4)])
def test_after_silence_a_quarter_of_what_is_under_way_goes_again_at_most(window, probes):
    core = opened(64, window, 100)
    assert len(core.send(0.0)) == window
    due = core.next(0.0)
    assert due == Timing().first_timeout  # no round trip is known
    assert len(core.send(due)) == core.totals().retransmits == probes


def test_a_full_socket_is_met_again_with_what_it_did_not_take():
    core = opened(16, 4, 10)
    assert [len(core.send(0.0, room=1)) for _ in range(6)] == [1, 1, 1, 1, 0, 0]


def test_a_call_whose_deadline_passes_says_what_is_missing():
    core = Core()
    core.assign(assignment(slots=16, window=4))
    call = core.submit(np.zeros(40, np.int32), deadline=5.0)
    core.turn(0.0)
    core.send(0.0)
    assert core.next(0.0) <= 5.0
    core.turn(5.0)
    assert core.status(call) is Status.TIMEOUT
    assert core.outcome(call).text == (
        "tree 40 (to 10.0.0.1): 1 of 1 results, under way 1, the first is chunk 0"
    )
    assert core.totals().broken
    assert core.send(6.0) == []


def test_a_tree_gets_its_share_of_the_rate_and_no_more():
    core = opened(1024, 512, 20_000, rate_mbps=1.0)  # in packets of 74 bytes: 1,689 a second
    sent = len(core.send(0.0))
    assert sent == 14, "a burst of 16, of which two went before"
    for millisecond in range(1, 101):
        for _, payload in core.send(millisecond / 1000):
            record = bytearray(payload)
            record[0] = 0x11
            core.receive(bytes(record), millisecond / 1000)
            sent += 1
        core.turn(millisecond / 1000)
    assert 160 < sent - 14 < 180
    assert core.next(0.1) < NEVER


def test_a_single_chunk_does_not_wait_for_the_pacer():
    core = Core()
    core.assign(assignment(slots=64, rate_mbps=0.001))
    core.submit(np.zeros(4, np.int32))
    for number in range(4):  # resume, opening, data, closing
        core.turn(float(number))
        (packet,) = core.send(float(number))
        record = bytearray(packet[1])
        record[0] = 0x11
        core.receive(bytes(record), float(number))
    core.turn(4.0)
    assert core.totals().pending == 0
