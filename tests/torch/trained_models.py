# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Small models whose training shows whether approximate gradients change where it ends: a convolutional network on
handwritten-like digits, a character transformer, and a narrow ResNet-18 on synthetic images with random labels among
theirs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

Batch = tuple[torch.Tensor, torch.Tensor]

RANDOM_LABELS = 0.3
"""Share of ResNet-18's labels: no model has less than 1.1765 of expected loss, so a hundredth is no accident of a loss
near zero."""


@dataclass(frozen=True)
class Task:
    """`batch(seed, size)`: inputs and labels. `evaluation`: a fixed batch, whose labels may be probabilities."""

    model: Callable[[], nn.Module]
    optimizer: Callable[[nn.Module], torch.optim.Optimizer]
    batch: Callable[[int, int], Batch]
    evaluation: Batch
    global_batch: int


def loss_of(model: nn.Module, batch: Batch) -> torch.Tensor:
    inputs, labels = batch
    targets = labels if labels.is_floating_point() else labels.flatten()
    return functional.cross_entropy(model(inputs).flatten(0, -2), targets)


def gradients(model: nn.Module, batches: list[Batch]) -> torch.Tensor:
    """Returns a row of gradients for each batch; the parameters in their order. All batches have one size."""
    parameters = {name: p.detach() for name, p in model.named_parameters()}

    def loss(values: dict[str, torch.Tensor], inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        outputs: torch.Tensor = functional_call(model, values, (inputs,))
        return functional.cross_entropy(outputs.flatten(0, -2), labels.flatten())

    inputs, labels = (torch.stack(parts) for parts in zip(*batches, strict=True))
    with sdpa_kernel(SDPBackend.MATH):  # the only one that vmap divides
        found = vmap(grad(loss), in_dims=(None, 0, 0))(parameters, inputs, labels)
    return torch.cat([found[name].reshape(len(batches), -1) for name in parameters], 1)


# ---- images ----------------------------------------------------------------------------------------------------------


def _images(side: int, channels: int, noise: float) -> Callable[[int, int], Batch]:
    """Ten classes: a smooth pattern each, shifted, scaled and with noise."""
    generator = torch.Generator().manual_seed(7)
    coarse = torch.randn(10, channels, 4, 4, generator=generator)
    patterns = functional.interpolate(coarse, size=side, mode="bilinear")

    def batch(seed: int, size: int) -> Batch:
        draw = torch.Generator().manual_seed(seed)
        labels = torch.randint(0, 10, (size,), generator=draw)
        shifts = torch.randint(0, 3, (size, 2), generator=draw)
        moved = [
            torch.roll(patterns[label], tuple(shift.tolist()), (1, 2))
            for label, shift in zip(labels, shifts, strict=True)
        ]
        contrast = 0.5 + torch.rand(size, 1, 1, 1, generator=draw)
        noises = noise * torch.randn(size, channels, side, side, generator=draw)
        return torch.stack(moved) * contrast + noises, labels

    return batch


def _with_random_labels(
    batch: Callable[[int, int], Batch], share: float
) -> tuple[Callable[[int, int], Batch], Callable[[int, int], Batch]]:
    """The images with a random label for `share` of them; the images with each label's probability."""

    def sampled(seed: int, size: int) -> Batch:
        images, labels = batch(seed, size)
        draw = torch.Generator().manual_seed(seed + 10**9)
        is_random = torch.rand(size, generator=draw) < share
        return images, torch.where(is_random, torch.randint(0, 10, (size,), generator=draw), labels)

    def expected(seed: int, size: int) -> Batch:
        images, labels = batch(seed, size)
        return images, (1 - share) * functional.one_hot(labels, 10) + share / 10

    return sampled, expected


def _norm(channels: int) -> nn.Module:
    return nn.BatchNorm2d(channels, track_running_stats=False)  # a batch's own, also at the end


class _Block(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([_norm(outputs), _norm(outputs)])
        self.shortcut: nn.Module = (
            nn.Identity() if inputs == outputs else nn.Conv2d(inputs, outputs, 1, stride, bias=False)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = self.second(torch.relu(self.norms[0](self.first(x))))
        return torch.relu(self.norms[1](inner) + self.shortcut(x))


def resnet18(width: int) -> nn.Module:
    layers: list[nn.Module] = [nn.Conv2d(3, width, 3, 1, 1, bias=False), _norm(width), nn.ReLU()]
    inputs = width
    for stage in range(4):
        outputs = width << stage
        layers += [_Block(inputs, outputs, 1 if stage == 0 else 2), _Block(outputs, outputs, 1)]
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 10))


def digits_cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(512, 64), nn.ReLU(), nn.Linear(64, 10),
    )  # fmt: skip


# ---- text ------------------------------------------------------------------------------------------------------------

_TEXT = Path(__file__).parents[2] / "docs" / "reference" / "protocol.md"
_LENGTH, _SIZE = 64, 96


class _Transformer(nn.Module):
    def __init__(self, characters: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(characters, _SIZE)
        self.places = nn.Parameter(0.02 * torch.randn(_LENGTH, _SIZE))
        layer = nn.TransformerEncoderLayer(_SIZE, 4, 4 * _SIZE, 0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.output = nn.Linear(_SIZE, characters)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(_LENGTH))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        inner = self.layers(self.embedding(ids) + self.places, mask=self.mask, is_causal=True)
        out: torch.Tensor = self.output(inner)
        return out


def _text() -> tuple[int, Callable[[int, int], Batch]]:
    text = _TEXT.read_text()
    characters = sorted(set(text))
    ids = torch.tensor([characters.index(c) for c in text])

    def batch(seed: int, size: int) -> Batch:
        draw = torch.Generator().manual_seed(seed)
        starts = torch.randint(0, len(ids) - _LENGTH - 1, (size,), generator=draw).tolist()
        rows = torch.stack([ids[start : start + _LENGTH + 1] for start in starts])
        return rows[:, :-1], rows[:, 1:]

    return len(characters), batch


def _sgd(rate: float) -> Callable[[nn.Module], torch.optim.Optimizer]:
    return lambda model: torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)


def task(name: str) -> Task:
    """digits, transformer or resnet18."""
    if name == "transformer":
        characters, batch = _text()
        return Task(
            lambda: _Transformer(characters),
            lambda model: torch.optim.Adam(model.parameters(), lr=1e-3),
            batch, batch(10**6, 64), 32,
        )  # fmt: skip
    if name == "digits":
        batch = _images(8, 1, 0.7)
        return Task(digits_cnn, _sgd(0.05), batch, batch(10**6, 1000), 256)
    batch, expected = _with_random_labels(_images(8, 3, 0.5), RANDOM_LABELS)
    return Task(lambda: resnet18(8), _sgd(0.05), batch, expected(10**6, 2048), 128)
