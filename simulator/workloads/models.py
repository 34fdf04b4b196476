# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Models that are trained: their gradients and compute times.

Parameters and times of the passes are those of ChenYuHo/SwitchML-omnetpp (65440a9, ModelStats.cc), measured on one GPU
at the batch size that fills a V100. Buckets are cut as PyTorch's DistributedDataParallel does: from the last layer to
the first, 1 MiB, then 25 MiB each, no parameter split. The convolutions' bytes become ready evenly over the backward
pass (ours: the table has no layers); the fully connected layers of AlexNet and VGG, most of their bytes and hardly
any of their work, in its first hundredth."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from netfold.simulator.scenario import Bucket, Model

FLOAT = 4
FIRST_BUCKET = 1 << 20
BUCKET = 25 << 20
DENSE_READY = 0.01
"""After this part of the backward pass the gradients of all fully connected layers are ready."""


class Accelerator(StrEnum):
    V100 = "V100"
    A100 = "A100"


@dataclass(frozen=True)
class Entry:
    """Milliseconds of the forward and the backward pass; `dense`: parameters of the fully connected layers that are
    worth a bucket, the last one first."""

    parameters: int
    v100: tuple[float, float]
    a100: tuple[float, float]
    dense: tuple[int, ...] = ()


ALEXNET_DENSE = (4_097_000, 16_781_312, 37_752_832)
VGG_DENSE = (4_097_000, 16_781_312, 102_764_544)

MODELS = {
    "alexnet": Entry(61_100_840, (133, 122), (80, 58), ALEXNET_DENSE),
    "googlenet": Entry(6_624_904, (77, 174), (42, 96)),
    "inception-v3": Entry(23_834_568, (159, 340), (82, 173)),
    "resnet-50": Entry(25_557_032, (99, 224), (48, 101)),
    "resnet-101": Entry(44_549_160, (99, 197), (47, 93)),
    "resnet-152": Entry(60_192_808, (140, 281), (64, 130)),
    "vgg-11": Entry(132_863_336, (74, 107), (37, 58), VGG_DENSE),
    "vgg-16": Entry(138_357_544, (146, 279), (69, 135), VGG_DENSE),
    "vgg-19": Entry(143_667_240, (174, 345), (82, 165), VGG_DENSE),
    "bert-large": Entry(335_150_082, (31, 198), (22, 107)),
}


def model(name: str, accelerator: Accelerator = Accelerator.A100, bucket_bytes: int = BUCKET) -> Model:
    """Returns the model. Raises KeyError for one that is not in MODELS."""
    entry = MODELS[name]
    forward, backward = entry.v100 if accelerator is Accelerator.V100 else entry.a100
    buckets = list(_cut(entry, bucket_bytes))
    return Model(name, forward / 1e3, backward / 1e3, tuple(buckets))


def _cut(entry: Entry, bucket_bytes: int) -> list[Bucket]:
    dense = sum(entry.dense)
    rest = FLOAT * (entry.parameters - dense)
    buckets = []
    for number, parameters in enumerate(entry.dense, start=1):
        buckets.append(Bucket(FLOAT * parameters, DENSE_READY * number / len(entry.dense)))
    done, began = 0, DENSE_READY if entry.dense else 0.0
    room = bucket_bytes if entry.dense else min(FIRST_BUCKET, bucket_bytes)
    while done < rest:
        size = min(room, rest - done)
        done += size
        buckets.append(Bucket(size, began + (1 - began) * done / rest))
        room = bucket_bytes
    return buckets


def all_reduces(bytes_: int, name: str = "all-reduce") -> Model:
    """Returns a model of no compute and one bucket: all-reduces back to back, as benchmarks do them."""
    return Model(name, 0.0, 0.0, (Bucket(bytes_),))
