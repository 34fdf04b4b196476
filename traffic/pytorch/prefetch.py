# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Gathers of FSDP2's parameters that run beside other collectives, with any backend.

prefetch_parameters(model)  # of fully_shard
"""

from __future__ import annotations

import torch
from torch.distributed.fsdp import FSDPModule


def prefetch_parameters(model: torch.nn.Module, modules: int = 2) -> None:
    """Gathers parameters ahead of the module that computes, in the order of `model.modules()`: those of the next
    `modules` modules in forward, and those of the previous one in backward, beside a reduce-scatter.

    It takes the memory of `modules` modules more.

    A second gather in backward would delay the reduce-scatter, because calls end in the order of their submission
    (docs/reference/protocol.md, C2).

    On processors `fully_shard` waits for each gather where it starts it, because its streams are those of accelerators.

    Raises TypeError for a model without `fully_shard`, and ValueError for less than one module.
    """
    if not isinstance(model, FSDPModule):
        raise TypeError(f"prefetch_parameters takes a model of fully_shard, not {type(model).__name__}")
    if modules < 1:
        raise ValueError(f"modules is {modules}; expected 1 or more")
    sharded = [module for module in model.modules() if isinstance(module, FSDPModule)]
    model._set_unshard_async_op(True)  # no public method does
    for number, module in enumerate(sharded):
        module.set_modules_to_forward_prefetch(sharded[number + 1 : number + 1 + modules])
        module.set_modules_to_backward_prefetch(sharded[max(0, number - 1) : number])
