# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Operations that each rank applies to the gathered inputs of all ranks, because the network only adds."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

from netfold.traffic.numerics import ReduceOp

_INTEGERS = (torch.uint8, torch.int8, torch.int32, torch.int64)
_FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


@dataclass(frozen=True)
class GatheredOp:
    """`apply` reduces rows, one for each rank, in the order of ranks: all ranks get the same bits."""

    operation: str
    apply: Callable[[torch.Tensor], torch.Tensor]

    @property
    def suffix(self) -> str:
        """For messages, behind the collective's name; empty for sums and averages."""
        return "" if self.operation in ("SUM", "AVG") else f" {self.operation}"


def _product(rows: torch.Tensor) -> torch.Tensor:
    return rows.double().prod(0) if rows.is_floating_point() else rows.prod(0, dtype=rows.dtype)


def _bitwise(
    op: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda rows: functools.reduce(op, rows.unbind())


_SUMS = {
    ReduceOp.SUM: GatheredOp("SUM", lambda rows: rows.double().sum(0)),
    ReduceOp.AVERAGE: GatheredOp("AVG", lambda rows: rows.double().mean(0)),
}
_ORDERS = {
    dist.ReduceOp.MAX: GatheredOp("MAX", lambda rows: rows.amax(0)),
    dist.ReduceOp.MIN: GatheredOp("MIN", lambda rows: rows.amin(0)),
    dist.ReduceOp.PRODUCT: GatheredOp("PRODUCT", _product),
}
_BITS = {
    dist.ReduceOp.BAND: GatheredOp("BAND", _bitwise(torch.bitwise_and)),
    dist.ReduceOp.BOR: GatheredOp("BOR", _bitwise(torch.bitwise_or)),
    dist.ReduceOp.BXOR: GatheredOp("BXOR", _bitwise(torch.bitwise_xor)),
}
_OPS = {
    **{(op, dtype): found for op, found in _ORDERS.items() for dtype in (*_INTEGERS, *_FLOATS)},
    **{(op, dtype): found for op, found in _BITS.items() for dtype in _INTEGERS},
}


def operation_of(opts: Any) -> object:
    """The operation of torch's options, which hold it in one of two ways. Without options it is a sum."""
    return dist.ReduceOp.SUM if opts is None else getattr(opts.reduceOp, "op", opts.reduceOp)


def float_sum(op: ReduceOp) -> GatheredOp:
    """Sum or average of floats, exact but for one rounding."""
    return _SUMS[op]


def gathered_op(op: object, dtype: torch.dtype) -> GatheredOp | None:
    """None: Gloo reduces it, or says why it cannot. `op`: of torch."""
    return _OPS.get((op, dtype))
