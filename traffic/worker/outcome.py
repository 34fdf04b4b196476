# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Which arrays a worker takes, and what the ways in which a call can end are called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netfold.traffic.engine.engine import Outcome, Status
from netfold.traffic.errors import (
    AllReduceTimeout,
    CallMismatch,
    RoundsExhausted,
    Straggled,
    SumOverflow,
    TrafficError,
    WrongNumbers,
)
from netfold.traffic.membership.part import Membership
from netfold.traffic.numerics import DTYPES, INTEGERS, ReduceOp, Scheme, WholeNumbers


def check_array(array: NDArray[Any]) -> None:
    """Raises TypeError or ValueError for an array that cannot be reduced in place."""
    if not isinstance(array, np.ndarray) or array.dtype not in DTYPES:
        kind = getattr(array, "dtype", type(array).__name__)
        names = ", ".join(str(dtype) for dtype in DTYPES)
        raise TypeError(f"all_reduce takes a numpy array of one of {names}; this is {kind}")
    if not array.flags.c_contiguous or not array.flags.writeable or not array.flags.aligned:
        raise ValueError(
            "all_reduce writes in place: the array must be contiguous (C order), aligned and writeable"
        )


@dataclass(frozen=True)
class Contributors:
    """How many workers' arrays are in a result of a job with a quorum: at least, at most, and on average, of its
    chunks."""

    least: int
    most: int
    mean: float


def contributors_of(outcome: Outcome) -> Contributors | None:
    """None: all, as the job has no quorum."""
    if not outcome.contributions:
        return None
    return Contributors(outcome.least, outcome.most, outcome.contributions / outcome.sums)


def check_quorum(array: NDArray[Any], quorum: int, job: str) -> None:
    """Raises WrongNumbers for integers in a job with a quorum."""
    if quorum and array.dtype in INTEGERS:
        raise WrongNumbers(
            f"job {job} has a quorum: its sums may lack some workers, so it adds up floats; this is {array.dtype}"
        )


def check_numerics(array: NDArray[Any], scheme: Scheme, op: ReduceOp, job: str) -> None:
    """Raises WrongNumbers if the job does not do this with arrays of this dtype."""
    if op is ReduceOp.AVERAGE and array.dtype in INTEGERS:
        raise WrongNumbers(f"an average of {array.dtype} is no {array.dtype}: all_reduce averages floats")
    if isinstance(scheme, WholeNumbers) and array.dtype not in INTEGERS:
        raise WrongNumbers(
            f"job {job} adds whole numbers (numerics: integer): all_reduce takes int32 and int64 there, "
            f"this is {array.dtype}"
        )


def error_of(
    outcome: Outcome, membership: Membership, epoch: int, failure: Exception | None, dtype: np.dtype[Any]
) -> Exception:
    """What to raise for a call that is over and not done. `failure`: why the calls of the worker were ended, if they
    were."""
    try:
        assignment = membership.current()
    except TrafficError as ended:
        return ended
    where = f"job {assignment.job}, epoch {epoch}, rank {assignment.rank}"
    match Status(outcome.status):
        case Status.TIMEOUT:
            return AllReduceTimeout(f"{where}: the deadline passed; missing: {outcome.text}")
        case Status.MISMATCH:
            return CallMismatch(
                f"{where}, call {outcome.number}: the workers call all_reduce with different sizes, dtypes, operations "
                "or schemes, or are not in the same call"
            )
        case Status.OUT_OF_STEP:
            return CallMismatch(
                f"{where}: the workers are in different calls: {outcome.text}; did a worker restart, or skip a call?"
            )
        case Status.STRAGGLED:
            return Straggled(
                f"{where}, call {outcome.number}: the others went on without this worker, and are so far ahead that "
                "their results cannot be had any more; the next call joins them at the next epoch"
            )
        case Status.EXHAUSTED:
            return RoundsExhausted(f"{outcome.text}; the job needs a new epoch")
        case Status.SUM_OVERFLOW:
            return SumOverflow(outcome.index, outcome.sum, str(dtype))
        case Status.BEYOND_SCALE:
            return CallMismatch(
                f"{where}, call {outcome.number}: a sum overflowed at a scale that leaves room for all workers; some "
                "member does not follow the protocol, or workers use different schemes"
            )
        case Status.NOT_FLOATS:
            return CallMismatch(
                f"{where}, call {outcome.number}: a node added up floats as whole numbers; not all of the job's "
                "switches and parameter servers know numerics float32 (docs/protocol.md, 3.3)"
            )
        case Status.NO_MEMORY:
            return MemoryError("no memory for the scales of an all-reduce")
    return failure or AllReduceTimeout(f"{where}: {outcome.text or 'the worker was closed'}")
