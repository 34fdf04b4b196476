# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/traffic/gradients.npz: rows of the gradients of 64 workers in two steps of training, in int8 with a
scale for each worker and row, as tests/traffic/test_quarter_error.py reads them.

    .venv-torch/bin/python -m tests.torch.record_gradients
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from tests.torch.trained_models import Task, loss_of, task

WORKERS, STEPS, RECORDED, ROWS, WIDTH = 64, 14, 2, 2, 1024
TARGET = Path(__file__).parents[1] / "traffic" / "gradients.npz"


def record(of: Task) -> np.ndarray:
    """(steps, workers, rows, width), of the last steps and of evenly spaced rows."""
    torch.manual_seed(3)
    model = of.model()
    optimizer = of.optimizer(model)
    parameters = list(model.parameters())
    found = []
    for step in range(STEPS):
        gradients = []
        for rank in range(WORKERS):
            optimizer.zero_grad()
            loss_of(model, of.batch(step * WORKERS + rank, of.global_batch // WORKERS)).backward()
            gradients.append(torch.cat([p.grad.reshape(-1) for p in parameters if p.grad is not None]))
        stacked = torch.stack(gradients)
        for parameter, part in zip(
            parameters, stacked.mean(0).split([p.numel() for p in parameters]), strict=True
        ):
            parameter.grad = part.view_as(parameter).clone()
        optimizer.step()
        if step >= STEPS - RECORDED:
            rows = stacked.numpy()[:, : stacked.shape[1] // WIDTH * WIDTH].reshape(WORKERS, -1, WIDTH)
            busy = np.flatnonzero((rows != 0).any(axis=(0, 2)))
            chosen = busy[(np.arange(ROWS) * 2 + 1) * len(busy) // (2 * ROWS)]
            found.append(rows[:, chosen])
    return np.stack(found)


def main() -> None:
    arrays = {}
    for name in ("digits", "transformer"):
        of = task(name)
        values = record(replace(of, global_batch=max(of.global_batch, WORKERS)))
        scales = np.abs(values).max(axis=3) / 127
        arrays[name] = np.rint(values / np.maximum(scales, 1e-30)[..., None]).astype(np.int8)
        arrays[f"{name}_scales"] = scales.astype(np.float32)
    np.savez_compressed(TARGET, **arrays)


if __name__ == "__main__":
    main()
