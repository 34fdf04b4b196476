# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest

from netfold.traffic.numerics import BlockFloat, Fixed
from netfold.traffic.workloads.benchmark import BenchmarkRun, made_up, row, wrong_elements
from netfold.traffic.workloads.workloads import (
    MODELS,
    Mlp,
    digits,
    layer_sizes,
    reference,
    synthetic_gradients,
    train,
)


@pytest.mark.slow
def test_the_digits_are_those_of_scikit_learn():
    datasets = pytest.importorskip("sklearn.datasets")
    images = digits()
    assert len(images.train) + len(images.test) == len(datasets.load_digits().data) == 1797
    total = images.train.sum(dtype=np.float64) + images.test.sum(dtype=np.float64)
    assert total == datasets.load_digits().data.sum() / 16


@pytest.mark.slow
def test_the_perceptron_learns_and_the_gradient_is_right():
    model = Mlp(inputs=6, hidden=5, classes=3)
    rng = np.random.default_rng(2)
    images, classes = rng.standard_normal((20, 6), np.float32), rng.integers(0, 3, 20)
    model.layers[1][:] = [10, 10, -10, 10, 10]  # far from the kink, on either side of it
    model.backward(images, classes)
    gradient = model.gradient.copy()
    step = np.float32(1e-2)
    for index in range(0, len(gradient), 7):
        model.parameters[index] += step
        above = model.backward(images, classes)
        model.parameters[index] -= 2 * step
        below = model.backward(images, classes)
        model.parameters[index] += step
        assert (above - below) / (2 * step) == pytest.approx(gradient[index], rel=0.05, abs=0.02)
    assert reference(12).accuracy > 0.93


def test_the_parts_of_the_workers_add_up_to_the_reference():
    """One process plays worker 1 of 4; the audit, which knows the gradients of all, takes the network's
    place."""
    first: list[np.ndarray] = []

    def add_up(gradient: np.ndarray, inputs: list[np.ndarray]) -> None:
        gradient[:] = np.sum(inputs, axis=0, dtype=np.float64)
        first.append(gradient.copy())

    *_, last = train(lambda gradient: None, 1, 4, epochs=6, audit=add_up)
    alone: list[np.ndarray] = []
    list(train(lambda gradient: alone.append(gradient.copy()), 0, 1, epochs=1))
    assert np.allclose(first[0], alone[0], rtol=1e-4, atol=1e-4)
    assert last.accuracy == pytest.approx(reference(6).accuracy, abs=0.02)


def test_a_smaller_perceptron_sends_less_and_is_measured_by_its_own_reference():
    sent: list[int] = []
    result = BenchmarkRun(lambda gradient: sent.append(gradient.size), 0, 1).digits(2, 16)
    assert set(sent) == {(64 + 1) * 16 + (16 + 1) * 10}
    assert result.accuracy == result.reference_accuracy == reference(2, 16).accuracy


def test_model_sizes_add_up_to_the_published_totals():
    assert sum(layer_sizes("alexnet")) == 61_100_840
    assert sum(layer_sizes("vgg16")) == 138_357_544
    assert sum(layer_sizes("resnet50")) == 25_557_032
    assert all(min(layer_sizes(model, 1e-9)) == 1 for model in MODELS)
    with pytest.raises(ValueError, match="model 'gpt' is unknown; there are alexnet"):
        layer_sizes("gpt")


def test_synthetic_gradients_are_the_same_again_and_differ_by_rank():
    sizes = (10, 20)
    first, again, other = (list(synthetic_gradients(sizes, rank)) for rank in (0, 0, 1))
    assert [len(t) for t in first] == [20, 10]
    assert all((a == b).all() for a, b in zip(first, again, strict=True))
    assert not (first[0] == other[0]).any()


@pytest.mark.parametrize("scheme", [BlockFloat(), Fixed(20), None])
def test_wrong_elements_are_found_and_right_ones_let_pass(scheme):
    inputs = [made_up(1000, "float32", rank, 0) for rank in range(4)]
    right = np.sum(inputs, axis=0, dtype=np.float64).astype(np.float32)
    assert wrong_elements(right, inputs, scheme) == 0
    right[[3, 999]] += 1e-3
    assert wrong_elements(right, inputs, scheme) == 2


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "int64"])
def test_every_wrong_element_of_a_large_result_is_found(dtype: str):
    inputs = [made_up(100_001, dtype, rank, 0) for rank in range(3)]
    right = np.sum(inputs, axis=0, dtype=np.int64 if dtype == "int64" else np.longdouble).astype(
        inputs[0].dtype
    )
    assert wrong_elements(right, inputs, BlockFloat()) == 0
    right[[0, 16_383, 16_384, 100_000]] += 1
    assert wrong_elements(right, inputs, BlockFloat()) == 4


def test_a_result_that_is_no_number_is_wrong():
    inputs = [made_up(10, "float32", rank, 0) for rank in range(2)]
    right = inputs[0] + inputs[1]
    right[7] = np.nan
    assert wrong_elements(right, inputs, BlockFloat()) == 1


def test_wrong_integers_are_found():
    inputs = [made_up(100, "int32", rank, 0) for rank in range(3)]
    right = np.sum(inputs, axis=0, dtype=np.int32)
    assert wrong_elements(right, inputs, None) == 0
    right[5] += 1
    assert wrong_elements(right, inputs, None) == 1


def test_the_columns_are_those_of_nccl_tests():
    line = row(250_000, "float32", [100.0, 300.0], 8, 0)
    assert line["size"] == 1_000_000
    assert line["time_us"] == 200_000
    assert line["algbw_gbs"] == pytest.approx(0.005)
    assert line["busbw_gbs"] == pytest.approx(0.005 * 2 * 7 / 8)


def test_a_run_alone_measures_and_checks():
    result = BenchmarkRun(lambda array: None, 0, 1, BlockFloat()).sizes([4096, 8192], 3, 1, "float16")
    assert (result.calls, result.wrong_elements, result.checked_elements) == (3, 0, 4 * 2048 + 4 * 4096)
    assert [line["size"] for line in result.sizes] == [4096, 8192]
    more = BenchmarkRun(lambda array: None, 0, 1, BlockFloat()).sizes(
        [4, 4096, 16384], 3, 0, "float32", 40960
    )
    assert (
        more.checked_elements == 200 * 1 + 10 * 1024 + 3 * 4096
    )  # small ones until they make as much, in bounds
    model = BenchmarkRun(lambda array: None, 0, 1, BlockFloat()).model("alexnet", 1e-4, 2)
    assert (model.calls, model.wrong_elements) == (16, 0)
