# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Error feedback of approximate gradients: what the codes left of a gradient is added to the next one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.nn import Parameter


class ErrorFeedback:
    """The remainders of one rank: as many float32 as the model has gradients. They are kept by parameter, as
    DistributedDataParallel divides parameters into buckets anew after its first step. A call that fails, and rows that
    go as half, leave zeros."""

    def __init__(self) -> None:
        self._remainders: dict[
            Parameter, torch.Tensor
        ] = {}  # flat; those of a bucket are parts of one tensor

    def add_to(self, bucket: Any) -> torch.Tensor:
        """Adds its remainders to a `torch.distributed.GradBucket`. Returns the place for those of its sum, zeros.

        Raises ValueError for a bucket that is not in host memory.
        """
        buffer, parameters = bucket.buffer(), bucket.parameters()
        if buffer.device.type != "cpu":
            raise ValueError(
                f"error_feedback takes gradients in host memory; this bucket is on {buffer.device}"
            )
        place = torch.zeros(buffer.numel())
        sizes = [parameter.numel() for parameter in parameters]
        for parameter, gradient, part in zip(
            parameters, buffer.split(sizes), place.split(sizes), strict=True
        ):
            if (remainder := self._remainders.get(parameter)) is not None:
                gradient.add_(remainder)
            self._remainders[parameter] = part
        return place

    def named(self, model: torch.nn.Module) -> dict[str, torch.Tensor]:
        """Copies of the remainders, by parameters' names."""
        return {
            name: self._remainders[parameter].clone()
            for name, parameter in model.named_parameters()
            if parameter in self._remainders
        }

    def load(self, model: torch.nn.Module, remainders: Mapping[str, torch.Tensor]) -> None:
        """Takes the place of the remainders. Raises ValueError for those of another model."""
        parameters = dict(model.named_parameters())
        for name, remainder in remainders.items():
            expected = parameters[name].numel() if name in parameters else None
            if remainder.numel() != expected:
                found = f"the remainder of {name} has {remainder.numel()} elements"
                other = "has no such parameter" if expected is None else f"'s parameter has {expected}"
                raise ValueError(f"{found}; the model{'' if expected else ' '}{other}")
        self._remainders = {
            parameters[name]: remainder.to(torch.float32, copy=True) for name, remainder in remainders.items()
        }
