# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A sum that a rank asks for, and who may carry it out: the network, or the ranks of one host among each other."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from netfold.traffic.errors import SumOverflow, WrongNumbers
from netfold.traffic.numerics import BFLOAT16, DTYPES, ReduceOp

# torch gives no numpy array of bfloat16, so it is taken for int16 on the way.
_NUMPY = {
    torch.float32: "float32",
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.float64: "float64",
    torch.int32: "int32",
    torch.int64: "int64",
}
_KNOWN = {dtype.name for dtype in DTYPES}
KINDS = tuple(dtype for dtype, name in _NUMPY.items() if name in _KNOWN)
"""Which numbers the engine adds up."""


def _at_once() -> None:
    pass


@dataclass(frozen=True)
class Call:
    """`tensor`: flat and contiguous, in the memory of the processor, of one of KINDS; the sum or average over all ranks
    comes in its place. `ready` waits until it may be read. `done` is told once, from any thread. `deadline`: of
    time.monotonic."""

    tensor: torch.Tensor
    op: ReduceOp
    deadline: float
    done: Callable[[Exception | None], None]
    ready: Callable[[], None] = _at_once

    def left(self) -> float:
        """Seconds."""
        return max(0.0, self.deadline - time.monotonic())

    def array(self) -> NDArray[Any]:
        """The tensor's memory, for numpy."""
        if self.tensor.dtype is torch.bfloat16:
            return np.asarray(self.tensor.view(torch.int16)).view(BFLOAT16)
        return np.asarray(self.tensor)


class Carrier(Protocol):
    """Carries calls out in the order in which they come, the same at all ranks."""

    def start(self, call: Call) -> None:
        """Tells the call's `done` in the end, also of errors. Raises what keeps it from starting."""

    def give_up(self) -> None:
        """Tells the others, from any thread, that this rank is out of step with them."""

    def close(self) -> None:
        """Ends what is under way in an error."""


def in_step(error: Exception | None) -> bool:
    """Whether the ranks can go on after a call that ended so: all of them saw it end so, and nothing was lost."""
    return error is None or isinstance(error, SumOverflow | WrongNumbers)
