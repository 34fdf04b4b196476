# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A reduction that a rank requests, and the interface of its reducers: the network, or the ranks of one host."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from netfold.traffic.engine.blocks import Blocks
from netfold.traffic.engine.call_log import CallKind
from netfold.traffic.errors import SumOverflowError, TrafficError, UnsupportedDtypeError
from netfold.traffic.numerics import BFLOAT16, DTYPES, ReduceOp

# numpy has no bfloat16 of its own, and torch exports none: the memory is viewed as int16 in between.
_NUMPY = {
    torch.float32: "float32",
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.float64: "float64",
    torch.int32: "int32",
    torch.int64: "int64",
}
_ENGINE = {dtype.name for dtype in DTYPES}
SUPPORTED_DTYPES = tuple(dtype for dtype, name in _NUMPY.items() if name in _ENGINE)
"""Dtypes that the engine reduces."""

ROTATED_DTYPES = (torch.float32, torch.float16, torch.bfloat16)
"""Dtypes of sums that may be approximate."""


def _ready() -> None:
    pass


@dataclass(frozen=True)
class Gradient:
    """Options of a call for gradients, approximate if the job's numerics are quarter. `follows_all`, `warm_up`,
    `remainder`: as in `Worker.submit`. All but `remainder` are equal at all ranks; it is of zeros before the call, and
    stays so at a rank whose array does not travel by itself: the first rank of its host gets that of the host."""

    follows_all: bool = False
    warm_up: bool = False
    remainder: torch.Tensor | None = None


_gradient: ContextVar[Gradient | None] = ContextVar("netfold_gradient", default=None)


@contextmanager
def gradients(
    follows_all: bool = False, warm_up: bool = False, remainder: torch.Tensor | None = None
) -> Iterator[None]:
    """Names the sums and averages that this thread starts within as those of gradients, if they are of float32, float16
    or bfloat16. `follows_all`, `warm_up`, `remainder`: as in `Gradient`; with `remainder`, of one sum."""
    token = _gradient.set(Gradient(follows_all, warm_up, remainder))
    try:
        yield
    finally:
        _gradient.reset(token)


def current_gradient() -> Gradient | None:
    """None outside `gradients`."""
    return _gradient.get()


@dataclass(frozen=True)
class TensorCall:
    """One reduction. `tensor`: flat, contiguous, in host memory, of a dtype of SUPPORTED_DTYPES; the sum or average
    over all ranks replaces it. `ready` waits until it may be read. `done` is called once, from any thread.
    `deadline`: of
    time.monotonic. `context`: of the collective and its group; equal at all ranks, else the call fails at all.
    `gradient`: None for exact sums. `blocks`: the call is a scatter or gather between hosts, whose owners are numbers
    of hosts; a gather's tensor is int32, and zero but for this rank's block. `kind`: the collective, for reports."""

    tensor: torch.Tensor
    op: ReduceOp
    deadline: float
    done: Callable[[Exception | None], None]
    ready: Callable[[], None] = _ready
    context: int = 0
    gradient: Gradient | None = None
    blocks: Blocks | None = None
    kind: CallKind = CallKind.ALL_REDUCE

    def remaining_s(self) -> float:
        return max(0.0, self.deadline - time.monotonic())

    def array(self) -> NDArray[Any]:
        """The tensor's memory as a numpy array."""
        if self.tensor.dtype is torch.bfloat16:
            return np.asarray(self.tensor.view(torch.int16)).view(BFLOAT16)
        return np.asarray(self.tensor)


@dataclass(frozen=True)
class NetworkUse:
    """Counts and rates of a host's first rank. Rates in Mbit/s; 0: unknown or not limited."""

    planned_mbps: float
    link_mbps: float
    packets: int
    retransmits: int


class Reducer(Protocol):
    """Carries out calls in the order of `start`, which is the same at all ranks."""

    def start(self, call: TensorCall) -> None:
        """Ends with the call's `done`, also for errors. Raises if the call cannot be started."""

    def on_end(self, callback: Callable[[Exception], None]) -> None:
        """Calls `callback`, from any thread, when no further call can succeed. It is called again for further
        reasons."""

    def abort(self, cause: str) -> None:
        """Notifies the other ranks that this one cannot continue. From any thread."""

    def network_use(self) -> NetworkUse | None:
        """Return this host's use, if this reducer reduces over hosts. Raises TrafficError when the job has ended."""

    def close(self) -> None:
        """Ends the calls in flight with an error."""


class LeaderCallError(TrafficError):
    """The first rank of this host ended a call with an error, which the message repeats. `can_continue`: the ranks are
    still in the same call."""

    def __init__(self, message: str, can_continue: bool = False) -> None:
        super().__init__(message)
        self.can_continue = can_continue


def can_continue(error: Exception | None) -> bool:
    """Whether further calls are possible after a call that ended so: all ranks got the same outcome, nothing is
    lost."""
    if isinstance(error, LeaderCallError):
        return error.can_continue
    return error is None or isinstance(error, SumOverflowError | UnsupportedDtypeError)
