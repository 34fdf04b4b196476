# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Calls of the scheme quarter in virtual time: round trips, rows that go again, special values, new epochs."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from netfold.protocol.target import Targets
from netfold.traffic.engine.blocks import Blocks, CallForm
from netfold.traffic.engine.engine import Status
from netfold.traffic.numerics import BFLOAT16, FLOAT16, FLOAT32, PackedHalf, ReduceOp, RotatedQuarter, Scheme
from tests.traffic import quarter_oracle as oracle
from tests.traffic.cores import Core, Fabric, assignment

LANES, SLOTS = 16, 64
WIDTH = 4 * LANES


def team(
    workers: int,
    shares: tuple[float, ...] = (1.0,),
    seed: int = 1,
    lanes: int = LANES,
    targets: Targets = Targets.OFF,
    **how,
) -> Fabric:
    fabric = Fabric([Core() for _ in range(workers)], random.Random(seed), **how)
    fabric.begin(
        [assignment(rank, workers, lanes, SLOTS, shares, targets=targets) for rank in range(workers)]
    )
    return fabric


def reduce(
    fabric: Fabric, arrays: list[np.ndarray], op: ReduceOp = ReduceOp.SUM, scheme: Scheme | None = None
) -> list[np.ndarray]:
    """The results of one call at all workers; of a gradient where no other scheme is named."""
    arrays = [array.copy() for array in arrays]
    calls = [
        (core, core.submit(array, op, scheme or RotatedQuarter(), lossy=scheme is None))
        for core, array in zip(fabric.cores, arrays, strict=True)
    ]
    for _ in range(400_000):
        if all(core.status(call) is not Status.PENDING for core, call in calls):
            break
        fabric.step()
    assert all(core.status(call) is Status.DONE for core, call in calls)
    assert len({array.tobytes() for array in arrays}) == 1, "all workers have the same bits"
    return arrays


def gradients(workers: int, elements: int, seed: int, scale: float = 1.0) -> list[np.ndarray]:
    draw = np.random.default_rng(seed)
    return [(draw.standard_normal(elements) * scale).astype(np.float32) for _ in range(workers)]


def nmse(found: np.ndarray, arrays: list[np.ndarray]) -> float:
    exact = np.sum([array.astype(np.float64) for array in arrays], axis=0)
    return float(((found - exact) ** 2).sum() / (exact**2).sum())


def reencoded(fabric: Fabric) -> int:
    return int(fabric.cores[0].totals().reencoded_chunks)


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT16, BFLOAT16], ids=str)
def test_a_predicted_call_takes_one_round_trip_and_a_quarter_of_the_packets(dtype):
    fabric = team(3)
    for call in range(12):
        arrays = [array.astype(dtype) for array in gradients(3, 10 * WIDTH - 5, call)]
        fabric.sent = [0] * 3
        for core, array in zip(fabric.cores, arrays, strict=True):
            core.submit(array, ReduceOp.SUM, RotatedQuarter(), lossy=True)
        fabric.collect()
        if call >= 4:
            assert fabric.sent == [1 + 10] * 3
        while fabric.in_transit:
            fabric.step()
        assert len({array.tobytes() for array in arrays}) == 1
    assert fabric.sent == [1 + 10] * 3
    assert reencoded(fabric) == 0


@pytest.mark.parametrize(
    "shares",
    [
        pytest.param((1.0,), marks=pytest.mark.slow),
        (0.5, 0.5),
        pytest.param((0.2, 0.3, 0.5), marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("two_levels", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_sums_are_near_and_the_same_bits_at_all_workers_despite_losses(shares, two_levels):
    fabric = team(5, shares, loss=0.05, duplicate=0.05, two_levels=two_levels)
    for call in range(8):
        arrays = gradients(5, 300 * WIDTH, call)
        found = reduce(fabric, arrays)[0]
        assert nmse(found, arrays) < 0.004


def test_an_average_is_the_sum_over_the_workers():
    fabrics = team(4), team(4)
    for call in range(6):
        arrays = gradients(4, 5 * WIDTH, call)
        total = reduce(fabrics[0], arrays)[0]
        mean = reduce(fabrics[1], arrays, ReduceOp.AVERAGE)[0]
        assert nmse(4 * mean, arrays) < 0.004
        assert nmse(total, arrays) < 0.004
    assert [reencoded(fabric) for fabric in fabrics] == [0, 0]


@pytest.mark.parametrize("exponent", [-66, -53, -45, -44, -43, -42, 17, 18, 18.5, 19, 19.5, 20, 20.2, 22, 60])
def test_sums_of_every_size_keep_the_error_bound(exponent: float):
    """Also where root mean squares are below or above those that have a range."""
    workers, width = 3, 1024
    fabric = team(workers, lanes=width // 4)
    for call in range(8):
        arrays = gradients(workers, 12 * width, call, scale=2**exponent / workers**0.5)
        found = reduce(fabric, arrays)[0]
        for at in range(0, len(found), width):
            row = slice(at, at + width)
            assert nmse(found[row], [array[row] for array in arrays]) < 1.3 * oracle.predicted_nmse(workers)


@pytest.mark.parametrize("half", [0, 1])
def test_a_row_of_512_lanes_with_its_energy_in_one_half_keeps_the_error_bound(half: int):
    workers, width = 3, 2048
    fabric = team(workers, lanes=width // 4)
    for call in range(10):
        arrays = gradients(
            workers, 20 * width, call, scale=0.97 * (2 / workers) ** 0.5
        )  # near the next range
        for array in arrays:
            array.reshape(-1, 2, width // 2)[:, half] *= np.float32(1e-6)
        found = reduce(fabric, arrays)[0]
        for at in range(0, len(found), width):
            row = slice(at, at + width)
            assert nmse(found[row], [array[row] for array in arrays]) < 1.3 * oracle.predicted_nmse(workers)
    assert reencoded(fabric) == 0


@pytest.mark.parametrize(("exponent", "next_exponent"), [(-43.8, -50), (18.9, 20)])
def test_a_row_that_leaves_all_ranges_goes_again(exponent: float, next_exponent: float):
    """Sums that predict the finest range, or would predict one above the coarsest."""
    workers = 3
    fabric = team(workers)
    for call in range(8):
        size = exponent if call < 7 else next_exponent
        arrays = gradients(workers, 12 * WIDTH, call, scale=2**size / workers**0.5)
        found = reduce(fabric, arrays)[0]
    assert nmse(found, arrays) < 1e-4


def test_rows_of_zeros_take_one_packet_each():
    fabric = team(3)
    for _ in range(8):
        fabric.sent = [0] * 3
        found = reduce(fabric, [np.zeros(10 * WIDTH, np.float32)] * 3)[0]
        assert not found.any()
    assert fabric.sent == [1 + 10] * 3
    assert reencoded(fabric) == 0


def test_rows_that_no_power_of_two_divides_into_one_rotation_are_half():
    lanes = 12
    fabrics = team(3, lanes=lanes), team(3, lanes=lanes)
    for call in range(6):
        arrays = gradients(3, 50 * lanes, call)
        found = reduce(fabrics[0], arrays)[0]
        assert found.tobytes() == reduce(fabrics[1], arrays, scheme=PackedHalf())[0].tobytes()


def spike(row: np.ndarray) -> None:
    row[:] = 0
    row[17] = 3e20


def tiny(row: np.ndarray) -> None:
    row[:] = np.float32(1e-44)


ADVERSARIES = {
    "one huge element": (spike, 0.01),
    "zeros": (lambda row: row.fill(0), 0.0),
    "denormals": (tiny, 0.01),
    "all equal": (lambda row: row.fill(0.25), 0.15),
    "large": (lambda row: row.fill(1e38), 0.01),
    "beyond float32": (lambda row: row.fill(3e38), 0.0),
    "a sign flip": (lambda row: np.negative(row, out=row), 0.065),
    "a thousandth": (lambda row: np.multiply(row, 1e-3, out=row), 0.01),
}
"""Rows that are hard for the scheme, and how far off a sum may be, in norms of the sum: half's error, or quarter's if
the row is as large as before or up to eight times smaller."""


@pytest.mark.parametrize("how", ADVERSARIES)
def test_a_row_unlike_all_before_goes_again_if_it_does_not_fit(how):
    """The rows beside it, and the calls after it, are as near as ever."""
    change, bound = ADVERSARIES[how]
    fabric = team(3)
    workers = range(3)
    for call in range(6):
        reduce(fabric, gradients(3, 4 * WIDTH, call))
    for call in range(6, 14):
        arrays = gradients(3, 4 * WIDTH, call)
        if call == 6:
            for array in arrays:
                change(array[WIDTH : 2 * WIDTH])
        with np.errstate(over="ignore"):
            found = reduce(fabric, arrays)[0]
            exact = np.sum(np.array(arrays, np.float64), axis=0).astype(np.float32)
        row = slice(WIDTH, 2 * WIDTH)
        beside = np.r_[0:WIDTH, 2 * WIDTH : 4 * WIDTH]
        assert nmse(found[beside], [arrays[rank][beside] for rank in workers]) < 0.004
        if how == "beyond float32" and call == 6:
            assert np.isposinf(found[row]).all()
        else:
            off = np.linalg.norm(found[row].astype(np.float64) - exact[row])
            assert (
                off <= (bound if call == 6 else 0.065) * np.linalg.norm(exact[row].astype(np.float64)) + 1e-30
            )


def test_workers_that_cancel_each_other_are_within_the_same_bound():
    """Partial sums leave the fields of a lane and the rails of the highest; the sum is small."""
    fabric = team(4)
    for call in range(10):
        arrays = gradients(4, 8 * WIDTH, call)
        large = gradients(1, 8 * WIDTH, 100 + call, scale=30.0)[0]
        arrays[0] += large
        arrays[3] -= large
        found = reduce(fabric, arrays)[0]
        assert nmse(found, arrays) < 0.05


@pytest.mark.parametrize("call", [0, 6])
def test_nan_and_infinities_reach_every_worker_as_ieee_754_adds_them(call):
    fabric = team(3)
    for before in range(call):
        reduce(fabric, gradients(3, 4 * WIDTH, before))
    arrays = gradients(3, 4 * WIDTH, call)
    arrays[0][3], arrays[1][WIDTH + 1], arrays[2][WIDTH + 2] = np.nan, np.inf, -np.inf
    arrays[0][WIDTH + 5], arrays[1][WIDTH + 5] = np.inf, -np.inf
    arrays[2][WIDTH - 1], arrays[1][3 * WIDTH + 40] = np.inf, np.nan  # of other chunks
    with np.errstate(invalid="ignore"):
        exact = np.sum(arrays, axis=0)
    found = reduce(fabric, arrays)[0]
    assert np.isnan(found).tolist() == np.isnan(exact).tolist()
    infinite = np.isinf(exact)
    assert np.isinf(found).tolist() == infinite.tolist()
    assert found[infinite].tolist() == exact[infinite].tolist()
    finite = np.isfinite(exact)
    assert nmse(found[finite], [array[finite] for array in arrays]) < 0.004
    for after in range(call + 1, call + 6):
        arrays = gradients(3, 4 * WIDTH, after)
        assert nmse(reduce(fabric, arrays)[0], arrays) < 0.004


def test_the_first_calls_and_those_after_a_new_epoch_are_half():
    fabric = team(3)
    for epoch in (1, 2):
        fabric.begin([assignment(rank, 3, LANES, SLOTS, epoch=epoch) for rank in range(3)])
        arrays = gradients(3, 4 * WIDTH, epoch)
        halves = [array.copy() for array in arrays]
        other = team(3)
        calls = [
            (core, core.submit(array, ReduceOp.SUM, PackedHalf()))
            for core, array in zip(other.cores, halves, strict=True)
        ]
        while any(core.status(call) is Status.PENDING for core, call in calls):
            other.step()
        assert reduce(fabric, arrays)[0].tobytes() == halves[0].tobytes()
        for call in range(6):
            reduce(fabric, gradients(3, 4 * WIDTH, call))


def test_a_new_epoch_in_the_middle_of_a_call_costs_no_bit():
    fabric = team(3, loss=0.02)
    for epoch in range(2, 12):
        arrays = gradients(3, 40 * WIDTH, epoch)
        results = [array.copy() for array in arrays]
        calls = [
            (core, core.submit(array, ReduceOp.SUM, RotatedQuarter(), lossy=True))
            for core, array in zip(fabric.cores, results, strict=True)
        ]
        for _ in range(epoch * 15):
            fabric.step()
        fabric.begin([assignment(rank, 3, LANES, SLOTS, epoch=epoch) for rank in range(3)])
        while any(core.status(call) is Status.PENDING for core, call in calls):
            fabric.step()
        assert all(core.status(call) is Status.DONE for core, call in calls)
        assert len({array.tobytes() for array in results}) == 1
        assert nmse(results[0], arrays) < 0.004
        for call in range(5):
            reduce(fabric, gradients(3, 40 * WIDTH, 100 * epoch + call))


def test_two_runs_have_the_same_bits_whatever_the_network_does():
    found = []
    for seed, loss in ((1, 0.0), (2, 0.1)):
        fabric = team(4, seed=seed, loss=loss)
        found.append([reduce(fabric, gradients(4, 20 * WIDTH, call))[0].tobytes() for call in range(8)])
    assert found[0] == found[1]


@pytest.mark.parametrize("follows_all", [False, True])
def test_a_call_that_follows_all_is_predicted_by_the_call_before(follows_all):
    """Gradients that grow by half in each call: ranges of four calls ago are too small."""
    fabric = team(3)
    for call in range(12):
        arrays = gradients(3, 10 * WIDTH, call, scale=1.3**call)
        calls = [
            (core, core.submit(array, scheme=RotatedQuarter(), lossy=True, follows_all=follows_all))
            for core, array in zip(fabric.cores, arrays, strict=True)
        ]
        while any(core.status(call) is Status.PENDING for core, call in calls):
            fabric.step()
    assert (reencoded(fabric) > 60) != follows_all


def test_only_lossy_calls_are_approximate():
    fabric = team(3)
    for call in range(8):
        for dtype in (np.float32, np.float64, np.int32):
            arrays = [(array * 1000).astype(dtype) for array in gradients(3, 3 * WIDTH, call)]
            exact = np.sum(arrays, axis=0, dtype=np.float64)
            calls = [
                (core, core.submit(array, scheme=RotatedQuarter()))
                for core, array in zip(fabric.cores, arrays, strict=True)
            ]
            while any(core.status(call) is Status.PENDING for core, call in calls):
                fabric.step()
            np.testing.assert_allclose(arrays[0], exact, atol=1e-2)


@pytest.mark.parametrize(
    "setting", ["one does not name the gradient", "one warms up", "one has other numerics"]
)
@pytest.mark.parametrize("calls_before", [0, 6])
def test_workers_whose_settings_differ_get_an_error_and_never_a_sum(setting, calls_before):
    fabric = team(3)
    for call in range(calls_before):
        reduce(fabric, gradients(3, 4 * WIDTH, call))
    hows: list[dict[str, object]] = [{"scheme": RotatedQuarter(), "lossy": True} for _ in range(3)]
    hows[1].update(
        {
            "one does not name the gradient": {"lossy": False},
            "one warms up": {"warm_up": True},
            "one has other numerics": {"scheme": PackedHalf(), "lossy": False},
        }[setting]
    )
    arrays = gradients(3, 4 * WIDTH, 6)
    calls = [
        (core, core.submit(array, **how)) for core, array, how in zip(fabric.cores, arrays, hows, strict=True)
    ]
    while any(core.status(call) is Status.PENDING for core, call in calls):
        fabric.step()
    statuses = {core.status(call) for core, call in calls}
    alike = setting == "one warms up" and calls_before == 0  # the first call is half for all
    assert statuses == {Status.DONE if alike else Status.MISMATCH}


@pytest.mark.parametrize("allow_newcomers", [False, True])
def test_errors_of_equal_gradients_do_not_repeat(allow_newcomers):
    """Each call has dithers of its own, also where call numbers are compared modulo 9: the mean of many sums is nearer
    than one."""
    fabric = Fabric([Core() for _ in range(2)], random.Random(1))
    lanes = 32  # newcomers need as many
    fabric.begin(
        [replace(assignment(rank, 2, lanes, SLOTS), allow_newcomers=allow_newcomers) for rank in range(2)]
    )
    inputs = gradients(2, 4 * 4 * lanes, 7)
    exact = np.sum(inputs, axis=0, dtype=np.float64)
    errors = np.array([reduce(fabric, inputs)[0] - exact for _ in range(70)][6:])
    assert len({error.tobytes() for error in errors}) == len(errors)
    assert (errors.mean(axis=0) ** 2).mean() < 2 * (errors**2).mean() / len(errors)


def test_workers_with_other_ranges_are_in_other_calls():
    """A worker predicts by other calls than the others, against the protocol: all get an error, none a wrong sum."""
    fabric = team(2)
    for call in range(6):
        reduce(fabric, gradients(2, 4 * WIDTH, call, scale=4.0**call))
    arrays = gradients(2, 4 * WIDTH, 6)
    calls = [
        (core, core.submit(array, scheme=RotatedQuarter(), lossy=True, follows_all=rank == 0))
        for rank, (core, array) in enumerate(zip(fabric.cores, arrays, strict=True))
    ]
    while any(core.status(call) is Status.PENDING for core, call in calls):
        fabric.step()
    assert all(core.status(call) is Status.MISMATCH for core, call in calls)


KINDS = ("lossy scatter", "half scatter", "gradient", "gather")
BLOCK = 10 * WIDTH  # elements, of whole rows in all schemes: a scatter has the rows of a sum to all


def submit_each(fabric: Fabric, kind: str, arrays: list[np.ndarray]) -> list[int]:
    form = {"gradient": CallForm.TO_ALL, "gather": CallForm.GATHER}.get(kind, CallForm.SCATTER)
    workers, is_lossy = len(arrays), kind in ("lossy scatter", "gradient")
    blocks = Blocks.one_each(form, arrays[0].size, workers) if form else None
    scheme = RotatedQuarter() if is_lossy else PackedHalf()
    return [
        core.submit(array, ReduceOp.SUM, scheme, lossy=is_lossy, blocks=blocks)
        for core, array in zip(fabric.cores, arrays, strict=True)
    ]


def blocks_of_owners(kinds: list[str], **how) -> list[bytes]:
    """Returns each worker's own block of the result of each call. Two calls are in flight at a time. Values of blocks
    differ by a factor of 4, and so do those of workers."""
    workers = 3
    fabric, found = team(workers, lanes=2 * LANES, targets=Targets.ON, **how), []
    sizes = np.repeat(4.0 ** np.arange(workers), BLOCK).astype(np.float32)
    for first in range(0, len(kinds), 2):
        pair = []
        for number, kind in enumerate(kinds[first : first + 2], first):
            arrays = [
                array * sizes * np.float32(4.0**rank)
                for rank, array in enumerate(gradients(workers, workers * BLOCK, number))
            ]
            if kind == "gather":
                arrays = [array.view(np.int32) for array in arrays]
            pair.append((kind, [array.copy() for array in arrays], arrays))
        calls = [submit_each(fabric, kind, arrays) for kind, _, arrays in pair]
        waiting = [(core, call) for mine in calls for core, call in zip(fabric.cores, mine, strict=True)]
        while any(core.status(call) is Status.PENDING for core, call in waiting):
            fabric.step()
        assert {core.status(call) for core, call in waiting} == {Status.DONE}
        for kind, inputs, results in pair:
            for rank, result in enumerate(results):
                own = slice(rank * BLOCK, (rank + 1) * BLOCK)
                if kind == "gather":
                    assert result[own].tobytes() == inputs[rank][own].tobytes()
                else:
                    bound = 0.004 if kind in ("lossy scatter", "gradient") else 1e-4
                    assert nmse(result[own], [array[own] for array in inputs]) < bound
                found.append(result[own].tobytes())
    return found


@pytest.mark.parametrize("seed", range(4))
def test_scatters_learn_ranges_of_all_blocks_whatever_the_network_does(seed):
    """Workers that learned from their own blocks alone would predict other ranges than the others, and end with
    MISMATCH. The kinds of calls are mixed, because each has its own profile."""
    kinds = ["lossy scatter"] * 6 + random.Random(seed).choices(KINDS, k=10)
    found = blocks_of_owners(kinds, loss=0.05 * (seed % 2), duplicate=0.05, seed=seed)
    assert found == blocks_of_owners(kinds)
