# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Makes Gloo compute what the network would, where it carries all calls of a group. Gloo's reduce-scatter adds whatever
the operation is, in some of the supported versions (pytorch#162338). Its reductions and broadcasts write past
tensors with gaps (pytorch#192920), and its reduce-scatter of lists takes all tensors for contiguous, too."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch.utils._pytree import tree_leaves, tree_map

from netfold.traffic.pytorch.gathered_ops import operation_of
from netfold.traffic.pytorch.tensor_bytes import check_writable

_CONTIGUOUS = {"allreduce", "broadcast", "reduce", "reduce_scatter"}
"""Gloo's forms of the network's collectives that write each of their first tensors as contiguous memory."""


def for_gloo(name: str, arguments: tuple[Any, ...], ranks: int) -> tuple[Any, ...]:
    """The arguments of a call as Gloo has to get them. Averages of a reduce-scatter become sums of parts. Raises
    ValueError for what Gloo would compute wrongly."""
    if name in _CONTIGUOUS:
        for tensor in arguments[0]:
            _check_contiguous(name, tensor.detach())
    if "reduce_scatter" not in name:
        return arguments
    outputs, inputs, opts = arguments
    inputs = tree_map(lambda t: t.detach().contiguous(), inputs)
    op = operation_of(opts)
    if op == dist.ReduceOp.SUM:
        return outputs, inputs, opts
    if op != dist.ReduceOp.AVG or not all(t.is_floating_point() for t in tree_leaves(inputs)):
        raise ValueError("a reduce-scatter by Gloo makes sums, and averages of floats; all calls go by Gloo")
    opts.reduceOp = dist.ReduceOp.SUM
    return outputs, tree_map(lambda t: t / ranks, inputs), opts


def _check_contiguous(name: str, tensor: torch.Tensor) -> None:
    if tensor.layout is not torch.strided:
        return
    check_writable(tensor)
    if not tensor.is_contiguous():
        raise ValueError(f"{name} by Gloo takes contiguous tensors; all calls of this group go by Gloo")
