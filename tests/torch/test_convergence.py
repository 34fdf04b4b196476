# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Training with gradients of the scheme quarter ends where it ends with exact ones: the loss on data that training has
not seen. Exact training is repeated with errors of a millionth: what that changes is no matter of the scheme."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pytest
from numpy.typing import NDArray

torch = pytest.importorskip("torch", reason="SKIPPED: torch is not installed (pip install 'netfold[torch]')")

from tests.torch.simulated_sums import QuarterSums  # noqa: E402
from tests.torch.trained_models import Task, loss_of, task  # noqa: E402

pytestmark = [pytest.mark.long, pytest.mark.timeout(3000)]

log = logging.getLogger(__name__)

STEPS = {"digits": 150, "transformer": 120, "resnet18": 120}

TOO_SENSITIVE = (
    "the loss of this task differs by more than a hundredth between exact trainings that differ by 1e-6"
)


class Sums(Protocol):
    def average(self, inputs: NDArray[np.float32]) -> NDArray[np.float32]:
        """The mean of `inputs` (workers, elements)."""


@dataclass(frozen=True)
class ExactSums:
    """With normal errors whose mean square is `nmse` of the mean's."""

    nmse: float = 0.0
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1))

    def average(self, inputs: NDArray[np.float32]) -> NDArray[np.float32]:
        mean = inputs.mean(axis=0, dtype=np.float64)
        error = self.random.standard_normal(mean.shape) * np.sqrt(self.nmse * (mean**2).mean())
        return (mean + error).astype(np.float32)


def train(of: Task, workers: int, steps: int, sums: Sums) -> float:
    """The loss at the end."""
    torch.manual_seed(3)
    model = of.model()
    optimizer = of.optimizer(model)
    schedule = torch.optim.lr_scheduler.LinearLR(
        optimizer, 1.0, 0.0, steps
    )  # so that the end is no matter of luck
    parameters = list(model.parameters())
    for step in range(steps):
        gradients = []
        for rank in range(workers):
            optimizer.zero_grad()
            loss_of(model, of.batch(step * 64 + rank, of.global_batch // workers)).backward()
            gradients.append(
                torch.cat([p.grad.reshape(-1) for p in parameters if p.grad is not None]).numpy()
            )
        mean = sums.average(np.stack(gradients))
        parts = torch.from_numpy(mean).split([p.numel() for p in parameters])
        for parameter, part in zip(parameters, parts, strict=True):
            parameter.grad = part.view_as(parameter).clone()
        optimizer.step()
        schedule.step()
    with torch.inference_mode():
        return float(loss_of(model, of.evaluation))


@pytest.mark.parametrize("workers", [8, 16])
@pytest.mark.parametrize(
    "name",
    [
        "digits",
        "transformer",
        pytest.param("resnet18", marks=pytest.mark.xfail(reason=TOO_SENSITIVE, strict=False)),
    ],
)
def test_the_loss_is_that_of_exact_gradients_within_a_hundredth(name: str, workers: int):
    of, sums = task(name), QuarterSums()
    exact = train(of, workers, STEPS[name], ExactSums())
    perturbed = train(of, workers, STEPS[name], ExactSums(1e-6))
    found = train(of, workers, STEPS[name], sums)
    log.info(
        "%s, %d workers: loss %.4f, exact %.4f, perturbed %.4f; NMSE %.4f, %d of %d rows again",
        *(name, workers, found, exact, perturbed, sums.nmse, sums.reencoded, sums.rows),
    )
    assert found <= 1.01 * exact
