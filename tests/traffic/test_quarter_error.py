# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The worth of a sum of the scheme quarter: its error by the number of workers on recorded gradients, that it has no
bias, and how often a code leaves its field unseen. docs/reference/protocol.md, section 6."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from netfold.traffic.numerics import quarter_nmse
from tests.traffic import quarter_oracle as oracle

RECORDED = Path(__file__).with_name("gradients.npz")
EXPERIMENT = {
    ("digits", 8): 0.003, ("digits", 32): 0.028,
    ("transformer", 8): 0.0018, ("transformer", 16): 0.0064, ("transformer", 32): 0.014, ("transformer", 64): 0.038,
}  # fmt: skip
"""Normalized mean square errors of the experiment that chose the scheme."""


def recorded(model: str, workers: int) -> np.ndarray:
    """(steps, workers, rows, width): the same global batch for any number of workers."""
    with np.load(RECORDED) as found:
        values = found[model] * found[f"{model}_scales"][..., None]
    steps, all_workers, rows, width = values.shape
    return values.reshape(steps, workers, all_workers // workers, rows, width).sum(axis=2).astype(np.float32)


def mean_square(row: np.ndarray) -> float:
    return float((row.astype(np.float64) ** 2).mean())


def summed(
    inputs: np.ndarray, range_byte: int, fingerprint: int, *, also_small: bool = False
) -> oracle.Decoded | None:
    """The sum of a row (workers, width). None: it goes again. `also_small`: not because its sums are too small."""
    workers = len(inputs)
    codes = [oracle.encode(row, range_byte, fingerprint, 0, rank, workers) for rank, row in enumerate(inputs)]
    fitting = [code for code in codes if code is not None]
    if len(fitting) < workers:
        return None
    lanes = np.sum([oracle.pack(code).astype(np.int64) for code in fitting], axis=0)
    if np.abs(lanes).max() >= 2**31 - 1:
        return None
    decoded = oracle.decode(oracle.unpack(lanes), range_byte, fingerprint, 0)
    is_accepted = oracle.is_accepted(range_byte if also_small else decoded.observed, range_byte)
    return decoded if is_accepted else None


def errors(inputs: np.ndarray, range_byte: int, trials: int, *, also_small: bool = False) -> np.ndarray:
    """(trials, width): sums less the exact ones, of the trials that fit."""
    exact = inputs.astype(np.float64).sum(axis=0)
    found = [summed(inputs, range_byte, number, also_small=also_small) for number in range(trials)]
    return np.array([sums.values - exact for sums in found if sums is not None])


@pytest.mark.parametrize("workers", [2, 4, 8, 16, 32, 64])
@pytest.mark.parametrize("model", ["digits", "transformer"])
def test_the_error_on_recorded_gradients_is_that_of_the_experiment(model: str, workers: int):
    """With the ranges that a step predicts whose sums are as large."""
    now = recorded(model, workers)[1]
    error = energy = 0.0
    for row in range(now.shape[1]):
        range_byte = oracle.observed_range(mean_square(now[:, row].sum(axis=0))) + oracle.MARGIN
        found = errors(now[:, row], range_byte, 8)
        error += float((found**2).sum()) / max(1, len(found))
        energy += float((now[:, row].astype(np.float64).sum(axis=0) ** 2).sum())
    limit = EXPERIMENT.get((model, workers), EXPERIMENT[model, 8] * (workers + 1) / 9)
    assert error / energy <= 1.3 * limit


@pytest.mark.parametrize("workers", [1, 8, 64])
def test_the_error_of_a_row_as_large_as_predicted_is_the_documented_one(workers: int):
    draw = np.random.default_rng(workers)
    inputs = draw.standard_normal((workers, 1024)).astype(np.float32)
    scale = 2**-0.5 / np.sqrt(mean_square(inputs.sum(axis=0)))
    inputs *= np.float32(scale)
    found = errors(inputs, oracle.RANGE_BIAS, 40)
    nmse = mean_square(found) / mean_square(inputs.sum(axis=0))
    assert nmse == pytest.approx(2 * quarter_nmse(workers), rel=0.2)


@pytest.mark.parametrize("width", [1024, 2048])
@pytest.mark.parametrize("workers", [1, 8, pytest.param(64, marks=pytest.mark.slow)])
def test_accepted_sums_of_every_size_keep_the_error_bound(workers: int, width: int):
    """Ranges begin above a root mean square of 2^-44 and end at 2^19.25: sums are accepted within the bound or not at
    all. Half of the rows have all of their energy in one half."""
    draw = np.random.default_rng(3)
    accepted = []
    for exponent in (*np.arange(-49.9, -40, 0.5), -20.0, 0.0, *np.arange(16.1, 24, 0.25)):
        for place in (slice(None), slice(0, width // 2)):
            inputs = np.zeros((workers, width), np.float32)
            inputs[:, place] = draw.standard_normal(inputs[:, place].shape)
            inputs *= np.float32(2**exponent / np.sqrt(mean_square(inputs.sum(axis=0))))
            range_byte = oracle.predicted_range(oracle.observed_range(mean_square(inputs.sum(axis=0))))
            if range_byte == oracle.NO_RANGE:
                continue
            found = errors(inputs, range_byte, 2)
            assert mean_square(found) < 1.3 * oracle.error_bound(range_byte, workers)
            accepted.append(exponent)
    assert (min(accepted), max(accepted)) == pytest.approx((-43.9, 18.6))


@pytest.mark.parametrize("workers", [1, 3, pytest.param(16, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["normal", "alike", "far below a code", "one element"])
def test_sums_have_no_bias(workers: int, kind: str):
    """The mean of many trials is as near as independent errors would be."""
    draw = np.random.default_rng(5)
    inputs = draw.standard_normal((workers, 256)).astype(np.float32)
    if kind == "alike":
        inputs[:] = inputs[0]
    if kind == "one element":
        inputs[:, 1:] = 0
    range_byte = oracle.observed_range(mean_square(inputs.sum(axis=0))) + oracle.MARGIN
    if kind == "far below a code":
        inputs /= 300
    found = errors(inputs, range_byte, 600, also_small=kind == "far below a code")
    assert len(found) >= 590
    assert mean_square(found.mean(axis=0)) < 1.5 * mean_square(found) / len(found)


def test_workers_that_agree_lose_no_more_than_one_worker():
    """Dithers are staggered, so that errors of equal rows cancel."""
    row = np.random.default_rng(2).standard_normal(1024).astype(np.float32)
    alone = errors(row[None], oracle.RANGE_BIAS + 8, 20)
    agreed = errors(np.repeat(row[None] / 16, 16, axis=0), oracle.RANGE_BIAS + 8, 20)
    assert mean_square(agreed) < 1.2 * mean_square(alone)


def test_a_code_leaves_its_field_unseen_in_about_one_of_50_rows_of_1024_at_the_edge():
    """Where sums have grown by the whole margin; a row as large as predicted is 6 deviations from the limit."""
    draw = np.random.default_rng(1)
    unseen = 0
    trials = 1500
    for _ in range(trials):
        row = draw.standard_normal(1024).astype(np.float32)
        row *= np.float32(2**-0.01 / np.sqrt(mean_square(row)))
        rotated = oracle.hadamard(np.rint(row * 2**15).astype(np.int64)) / 2**15 / 32
        unseen += bool((np.abs(rotated / oracle.quantum(oracle.RANGE_BIAS)) > 127.5).any())
    assert unseen < 0.03 * trials


def test_of_recorded_rows_those_that_have_grown_by_more_than_the_margin_go_again():
    outcomes = set()
    for model in ("digits", "transformer"):
        before, now = recorded(model, 8)
        for row in range(now.shape[1]):
            ranges = [oracle.observed_range(mean_square(step[:, row].sum(axis=0))) for step in (before, now)]
            goes_again = len(errors(now[:, row], ranges[0] + oracle.MARGIN, 1)) == 0
            assert goes_again == (ranges[1] > ranges[0] + oracle.MARGIN)
            outcomes.add(goes_again)
    assert outcomes == {False, True}
