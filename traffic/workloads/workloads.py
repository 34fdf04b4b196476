# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Trainings, real and pretended: a real model on real data, and gradients of the sizes of well-known models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from netfold.traffic.workloads import HIDDEN_UNITS

Floats: TypeAlias = NDArray[np.float32]
AllReduce: TypeAlias = Callable[[NDArray[Any]], None]
Audit: TypeAlias = Callable[[NDArray[Any], Sequence[NDArray[Any]]], None]

# Parameters of layers and totals as published with the models; (count, parameters) groups equal layers.
_MODELS: dict[str, tuple[tuple[int, int], ...]] = {
    "alexnet": (
        (1, 23_296),
        (1, 307_392),
        (1, 663_936),
        (1, 884_992),
        (1, 590_080),
        (1, 37_752_832),
        (1, 16_781_312),
        (1, 4_097_000),
    ),
    "vgg16": (
        (1, 1_792),
        (1, 36_928),
        (1, 73_856),
        (1, 147_584),
        (1, 295_168),
        (2, 590_080),
        (1, 1_180_160),
        (5, 2_359_808),
        (1, 102_764_544),
        (1, 16_781_312),
        (1, 4_097_000),
    ),
}
_TOTALS = {
    "alexnet": 61_100_840,
    "googlenet": 6_624_904,
    "inception-v3": 23_834_568,
    "resnet50": 25_557_032,
    "resnet101": 44_549_160,
    "resnet152": 60_192_808,
    "vgg16": 138_357_544,
    "bert-large": 335_150_082,
}
_BUCKET = 25 * 2**20 // 4  # elements; PyTorch DDP's default bucket, for models whose layers are not listed
MODELS = tuple(_TOTALS)


def layer_sizes(model: str, scale: float = 1.0) -> tuple[int, ...]:
    """Elements of each gradient tensor of a model, each times `scale` (at least 1). Models without a list
    of layers are cut as PyTorch DDP buckets them, 25 MiB each. Raises ValueError for an unknown model."""
    if model not in _TOTALS:
        raise ValueError(f"model '{model}' is unknown; there are {', '.join(MODELS)}")
    if not scale > 0:
        raise ValueError(f"scale is {scale}; it must be above 0")
    if model in _MODELS:
        sizes = [size for count, size in _MODELS[model] for _ in range(count)]
    else:
        whole, rest = divmod(_TOTALS[model], _BUCKET)
        sizes = [_BUCKET] * whole + [rest] * bool(rest)
    return tuple(max(1, round(size * scale)) for size in sizes)


def synthetic_gradients(sizes: tuple[int, ...], rank: int, seed: int = 1) -> Iterator[Floats]:
    """One worker's gradient tensors, last layer first as back-propagation makes them: normal, with a
    magnitude that differs from layer to layer. The same seed and rank give the same numbers."""
    for layer, size in reversed(list(enumerate(sizes))):
        rng = np.random.default_rng((seed, layer, rank))
        magnitude = np.float32(10.0 ** -(1 + layer % 4))
        yield rng.standard_normal(size, np.float32) * magnitude


@dataclass(frozen=True)
class WorkloadProgress:
    """After an epoch over the data: mean loss of the worker's own part, and accuracy on the test images."""

    epoch: int
    loss: float
    accuracy: float


@dataclass(frozen=True)
class Images:
    """Handwritten digits, 8 x 8, scaled to 0 ... 1: images (n, 64), digits (n,)."""

    train: Floats
    train_digits: NDArray[np.int64]
    test: Floats
    test_digits: NDArray[np.int64]


@cache
def digits() -> Images:
    """scikit-learn's bundled digits (UCI optical recognition of handwritten digits), 1437 to learn and 360 to
    test.

    The bundled CSV is read without importing scikit-learn, which takes longer than a small training run.
    """
    import gzip  # noqa: PLC0415
    from importlib.util import find_spec  # noqa: PLC0415
    from pathlib import Path  # noqa: PLC0415

    spec = find_spec("sklearn")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("the digits workload needs scikit-learn, which bundles the images")
    path = Path(spec.submodule_search_locations[0]) / "datasets" / "data" / "digits.csv.gz"
    with gzip.open(path, "rt") as file:
        table = np.loadtxt(file, delimiter=",", dtype=np.float32)
    order = np.random.default_rng(0).permutation(len(table))
    images, classes = table[order, :64] / np.float32(16), table[order, 64].astype(np.int64)
    cut = len(table) * 4 // 5
    return Images(images[:cut], classes[:cut], images[cut:], classes[cut:])


class Mlp:
    """A perceptron with one hidden layer (ReLU, softmax, cross entropy). All its parameters are one
    float32 vector, so that a step needs one all-reduce; `layers` are its tensors."""

    def __init__(
        self, inputs: int = 64, hidden: int = HIDDEN_UNITS, classes: int = 10, seed: int = 7
    ) -> None:
        shapes = ((inputs, hidden), (hidden,), (hidden, classes), (classes,))
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
        self.parameters = np.zeros(int(ends[-1]), np.float32)
        self.gradient = np.zeros_like(self.parameters)
        self.layers = self._views(self.parameters, shapes, ends)
        self._gradients = self._views(self.gradient, shapes, ends)
        rng = np.random.default_rng(seed)
        for weights in (self.layers[0], self.layers[2]):
            weights[:] = rng.standard_normal(weights.shape, np.float32) * np.sqrt(2 / weights.shape[0])

    @staticmethod
    def _views(vector: Floats, shapes: tuple[tuple[int, ...], ...], ends: NDArray[np.int64]) -> list[Floats]:
        return [
            vector[e - int(np.prod(s)) : e].reshape(s) for s, e in zip(shapes, ends.tolist(), strict=True)
        ]

    def backward(self, images: Floats, classes: NDArray[np.int64]) -> float:
        """Sets `gradient` to the sum (not the mean) over the images; gives the summed loss."""
        w1, b1, w2, b2 = self.layers
        hidden = np.maximum(images @ w1 + b1, 0)
        scores = hidden @ w2 + b2
        scores -= scores.max(axis=1, keepdims=True)
        likely = np.exp(scores)
        likely /= likely.sum(axis=1, keepdims=True)
        rows = np.arange(len(classes))
        loss = float(-np.log(np.maximum(likely[rows, classes], 1e-12)).sum())
        likely[rows, classes] -= 1
        g1, gb1, g2, gb2 = self._gradients
        np.matmul(hidden.T, likely, out=g2)
        gb2[:] = likely.sum(axis=0)
        back = (likely @ w2.T) * (hidden > 0)
        np.matmul(images.T, back, out=g1)
        gb1[:] = back.sum(axis=0)
        return loss

    def accuracy(self, images: Floats, classes: NDArray[np.int64]) -> float:
        w1, b1, w2, b2 = self.layers
        guesses = (np.maximum(images @ w1 + b1, 0) @ w2 + b2).argmax(axis=1)
        return float((guesses == classes).mean())


def train(
    all_reduce: AllReduce,
    rank: int,
    workers: int,
    epochs: int = 10,
    batch: int = 128,
    rate: float = 0.3,
    momentum: float = 0.9,
    model: Mlp | None = None,
    audit: Audit | None = None,
) -> Iterator[WorkloadProgress]:
    """Trains data-parallel: each step, each worker takes its part of a common batch, the gradients are added
    up by `all_reduce`, and all take the same step. Gives the progress after each epoch.

    The batches do not depend on the number of workers: with exact sums, `train(lambda g: None, 0, 1)` is
    the reference. `audit` is shown each sum and the gradients of all workers, which this worker then
    computes itself.
    """
    data = digits()
    model = model or Mlp()
    velocity = np.zeros_like(model.parameters)
    for epoch in range(1, epochs + 1):
        order = np.random.default_rng(epoch).permutation(len(data.train))
        losses, seen = 0.0, 0
        for start in range(0, len(order) - batch + 1, batch):
            parts = [order[start : start + batch][other::workers] for other in range(workers)]
            inputs = [_gradient(model, data, part) for part in parts] if audit else []
            mine = parts[rank]
            losses += model.backward(data.train[mine], data.train_digits[mine])
            seen += len(mine)
            all_reduce(model.gradient)
            if audit:
                audit(model.gradient, inputs)
            velocity *= momentum
            velocity -= rate * (1 - momentum) * model.gradient / batch
            model.parameters += velocity
        yield WorkloadProgress(epoch, losses / max(1, seen), model.accuracy(data.test, data.test_digits))


def _gradient(model: Mlp, data: Images, rows: NDArray[np.int64]) -> Floats:
    model.backward(data.train[rows], data.train_digits[rows])
    return model.gradient.copy()


def reference(epochs: int = 10, hidden: int = HIDDEN_UNITS) -> WorkloadProgress:
    """The same training on a single machine."""
    *_, last = train(lambda gradient: None, 0, 1, epochs, model=Mlp(hidden=hidden))
    return last
