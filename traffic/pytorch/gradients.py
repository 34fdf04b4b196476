# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Which sums are of gradients, and so may be approximate in a job with numerics quarter. All other sums stay exact.

compress_gradients(model)  # of DistributedDataParallel, or of fully_shard

with gradients():  # or by hand
    dist.all_reduce(gradient)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FSDPModule
from torch.nn import Parameter
from torch.nn.parallel import DistributedDataParallel

from netfold.traffic.pytorch.collectives import collectives_of
from netfold.traffic.pytorch.tensor_call import gradients

__all__ = ["GradientState", "compress_gradients", "gradient_hook", "gradients"]

_reduce_scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor  # before 2.13


@dataclass
class GradientState:
    """State of `gradient_hook`. `group`: None is the world. `warm_up_steps`: the first steps, made as half; the first
    call of each bucket is in any case. `feedback`: adds what rounding lost to the next gradient. `step`: counts
    backward passes."""

    group: Any = None
    warm_up_steps: int = 0
    feedback: ErrorFeedback | None = None
    step: int = 0

    def __post_init__(self) -> None:
        if self.warm_up_steps < 0:
            raise ValueError(f"warm_up_steps is {self.warm_up_steps}; expected 0 or more")

    def state_dict(self, model: torch.nn.Module) -> dict[str, Any]:
        """Return this rank's state, for its checkpoint. `model`: whose gradients these are."""
        remainders = {} if self.feedback is None else self.feedback.named(model)
        return {"step": self.step, "remainders": remainders}

    def load_state_dict(self, model: torch.nn.Module, state: Mapping[str, Any]) -> None:
        """Raises ValueError for remainders of another model."""
        if self.feedback is not None:
            self.feedback.load(model, state["remainders"])
        self.step = state["step"]


# Without annotations: DDP compares them with torch's types, and here they would be strings.
def gradient_hook(state, bucket):  # type: ignore[no-untyped-def]
    """Averages a `torch.distributed.GradBucket` as gradients. Returns a Future of the flat gradient."""
    buffer, is_warm_up = bucket.buffer(), state.step < state.warm_up_steps
    remainder = None if state.feedback is None else state.feedback.add_to(bucket)
    with gradients(follows_all=bucket.index() == 0, warm_up=is_warm_up, remainder=remainder):
        work = dist.all_reduce(buffer, dist.ReduceOp.AVG, group=state.group, async_op=True)
    if bucket.is_last():
        state.step += 1

    def averaged(future):  # type: ignore[no-untyped-def]
        try:
            return future.value()[0]
        except RuntimeError:
            if remainder is not None:
                remainder.zero_()
            raise

    return work.get_future().then(averaged)


class _GradientReduceScatter:
    """A `ReduceScatter` of FSDP2."""

    def allocate(self, size: Any, *, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        return torch.empty(*size, dtype=dtype, device=device)

    def __call__(
        self,
        output_tensor: torch.Tensor,
        input_tensor: torch.Tensor,
        group: Any,
        op: Any,
        async_op: bool = False,
    ) -> Any:
        with gradients():
            return _reduce_scatter(output_tensor, input_tensor, op=op, group=group, async_op=async_op)


def compress_gradients(
    model: torch.nn.Module, warm_up_steps: int = 0, error_feedback: bool = False
) -> GradientState | None:
    """Names the gradients of a model: of DistributedDataParallel, by a communication hook whose state it returns, or of
    `fully_shard`, whose reduce-scatters it replaces. `warm_up_steps`, `error_feedback`: of DistributedDataParallel; as
    in `GradientState`.

    Raises TypeError for another model, and ValueError if the model's group is not of the backend netfold.
    """
    if isinstance(model, DistributedDataParallel):
        _check_backend(model.process_group)
        feedback = ErrorFeedback() if error_feedback else None
        state = GradientState(model.process_group, warm_up_steps, feedback)
        model.register_comm_hook(state, gradient_hook)
        return state
    sharded = [module for module in model.modules() if isinstance(module, FSDPModule)]
    if not sharded:
        raise TypeError(
            f"compress_gradients takes a model of DistributedDataParallel or fully_shard, not {type(model).__name__}"
        )
    if warm_up_steps or error_feedback:
        raise ValueError(
            "warm_up_steps and error_feedback are of DistributedDataParallel; fully_shard's calls have no step"
        )
    if not hasattr(FSDPModule, "set_custom_reduce_scatter"):
        raise TypeError(
            f"fully_shard of torch {torch.__version__} has no custom reduce-scatter; expected 2.8 or later"
        )
    for module in sharded:
        module.set_custom_reduce_scatter(_GradientReduceScatter())
    return None


def _check_backend(group: Any) -> None:
    if collectives_of(group) is None:
        name = "none" if group is None else group.name()
        raise ValueError(f"compress_gradients needs a group of the backend netfold; this one is of {name}")


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
