# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Tensors as bytes and as int32 lanes, and what a collective requires of them."""

from __future__ import annotations

from collections.abc import Sequence

import torch


def is_dense(tensors: Sequence[torch.Tensor]) -> bool:
    return (
        len(tensors) == 1 and tensors[0].layout is torch.strided and tensors[0].device.type in ("cpu", "cuda")
    )


def check_writable(tensor: torch.Tensor) -> None:
    """Raises ValueError for a tensor whose elements share memory, as after `expand`."""
    if torch._debug_has_internal_overlap(tensor) == 1:
        raise ValueError("elements of the tensor share memory (an expanded tensor?); clone it first")


def check_size(name: str, whole: torch.Tensor, part: torch.Tensor, ranks: int) -> None:
    """Raises ValueError unless `whole` holds one `part` of each rank."""
    if whole.numel() != part.numel() * ranks or whole.dtype != part.dtype:
        raise ValueError(
            f"{name}: {whole.numel()} x {whole.dtype} for {ranks} ranks with {part.numel()} x {part.dtype} each; "
            "the sizes must match"
        )


def nbytes(tensor: torch.Tensor) -> int:
    return int(tensor.numel() * tensor.element_size())


def zero_lanes(nbytes: int, device: torch.device) -> torch.Tensor:
    """Zeros: as many int32 as `nbytes` need."""
    return torch.zeros(-(-nbytes // 4), dtype=torch.int32, device=device)


def bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    """The memory of a contiguous tensor, else a copy. One element is contiguous whatever its stride. Autograd does not
    see what is written to it, as with NCCL: `detach` would share the count of changes."""
    dense = tensor.data.contiguous()
    return dense.as_strided((dense.numel(),), (1,)).view(torch.uint8)


def write_bytes(tensor: torch.Tensor, data: torch.Tensor) -> None:
    """Into a tensor of any dtype and strides."""
    if tensor.is_contiguous():
        bytes_of(tensor).copy_(data)
    else:
        tensor.data.copy_(data.clone().view(tensor.dtype).view(tensor.shape))
