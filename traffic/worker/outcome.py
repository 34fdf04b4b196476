# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Checks of a call before it is submitted, and the exceptions for the outcomes of the engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netfold.traffic.engine.blocks import Blocks, CallForm
from netfold.traffic.engine.engine import CallOutcome, Status
from netfold.traffic.errors import (
    AllReduceTimeoutError,
    CollectiveMismatchError,
    SequenceExhaustedError,
    StragglerError,
    SumOverflowError,
    TrafficError,
    UnsupportedDtypeError,
    WorkersLeftError,
)
from netfold.traffic.membership.assignment import Assignment
from netfold.traffic.membership.base import Membership
from netfold.traffic.numerics import DTYPES, INTEGERS, ROTATED_DTYPES, IntegerSum, ReduceOp, Scheme


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


def check_blocks(array: NDArray[Any], blocks: Blocks | None, workers: int) -> None:
    """Raises ValueError for blocks that are not those of the array, or have an owner that is no worker of the epoch:
    no worker would give such a block."""
    if blocks is None:
        return
    if len(blocks.elements) != len(blocks.owners) or min(blocks.elements, default=0) < 0:
        raise ValueError(f"{len(blocks.owners)} owners of blocks of {blocks.elements} elements; each has one")
    if sum(blocks.elements) != array.size:
        raise ValueError(f"blocks of {sum(blocks.elements)} elements in an array of {array.size}")
    if blocks.form is CallForm.GATHER and array.dtype != np.int32:
        raise ValueError(f"the array of a gather is int32; this is {array.dtype}")
    if strangers := sorted({owner for owner in blocks.owners if not 0 <= owner < workers}):
        raise ValueError(f"there is no worker of rank {strangers[0]}: the job has {workers}")


@dataclass(frozen=True)
class Contributors:
    """Workers whose arrays are in a result of a job with a quorum: minimum, maximum and mean over its chunks."""

    minimum: int
    maximum: int
    mean: float


def contributors_of(outcome: CallOutcome) -> Contributors | None:
    """Returns the contributors of a call; None: the job has no quorum, so all workers are in."""
    if not outcome.contributions:
        return None
    return Contributors(
        outcome.min_contributors, outcome.max_contributors, outcome.contributions / outcome.sum_count
    )


def check_quorum(array: NDArray[Any], quorum: int, job: str) -> None:
    """Raises UnsupportedDtypeError for integers in a job with a quorum."""
    if quorum and array.dtype in INTEGERS:
        raise UnsupportedDtypeError(
            f"job {job} has a quorum: its sums may lack some workers, so all_reduce takes floats; this is {array.dtype}"
        )


def check_numerics(array: NDArray[Any], scheme: Scheme, op: ReduceOp, job: str) -> None:
    """Raises UnsupportedDtypeError if the job does not reduce arrays of this dtype with this operation."""
    if op is ReduceOp.AVERAGE and array.dtype in INTEGERS:
        raise UnsupportedDtypeError(f"all_reduce averages floats; this is {array.dtype}")
    if isinstance(scheme, IntegerSum) and array.dtype not in INTEGERS:
        raise UnsupportedDtypeError(
            f"job {job} has numerics: integer, so all_reduce takes int32 and int64; this is {array.dtype}"
        )


def check_lossy(array: NDArray[Any], lossy: bool) -> None:
    """Raises UnsupportedDtypeError for a gradient of a dtype that has no approximate sums."""
    if lossy and array.dtype not in ROTATED_DTYPES:
        names = ", ".join(str(dtype) for dtype in ROTATED_DTYPES)
        raise UnsupportedDtypeError(f"all_reduce with lossy=True takes {names}; this is {array.dtype}")


def check_remainder(array: NDArray[Any], remainder: NDArray[np.float32] | None, lossy: bool) -> None:
    """Raises ValueError for memory that cannot hold what the codes leave of `array`."""
    if remainder is None:
        return
    if not lossy:
        raise ValueError("a remainder is of a call with lossy=True")
    flags = remainder.flags
    if (
        remainder.dtype != np.float32
        or remainder.size != array.size
        or not (flags.c_contiguous and flags.writeable)
    ):
        raise ValueError(
            f"the remainder is {remainder.size} x {remainder.dtype}; expected {array.size} x float32, in C order and "
            "writable"
        )


def workers_left_error(assignment: Assignment, call: int) -> WorkersLeftError:
    """Returns the error of a call that cannot be completed without workers that have left."""
    left = assignment.workers_left
    where = f"job {assignment.job}, job epoch {assignment.epoch}, call {call}"
    if left is None:
        return WorkersLeftError(f"{where}: workers have left the job", ())
    why = "" if left.is_final else ", and no job epoch without them started before the deadline"
    return WorkersLeftError(f"{where}: {left}{why}", left.hosts)


def error_of(
    outcome: CallOutcome,
    membership: Membership,
    epoch: int,
    failure: Exception | None,
    dtype: np.dtype[Any],
    *,
    socket_errors: int,
) -> Exception:
    """Returns the exception for a call that failed. `failure`: why the worker's calls were aborted, None if they
    were not. `socket_errors`: those that the worker's sockets survived."""
    try:
        assignment = membership.current()
    except TrafficError as job_ended:
        return job_ended
    where = f"job {assignment.job}, job epoch {epoch}, rank {assignment.rank}"
    match Status(outcome.status):
        case Status.TIMEOUT:
            survived = (
                f"; socket errors (ICMP errors, dropped packets): {socket_errors}" if socket_errors else ""
            )
            stall = membership.describe_stall()
            known = f"; {stall}" if stall else ""
            return AllReduceTimeoutError(
                f"{where}: timeout before the results; missing: {outcome.text}{survived}{known}"
            )
        case Status.MISMATCH:
            return CollectiveMismatchError(
                f"{where}, call {outcome.number}: the workers called with different sizes, dtypes, operations, "
                "schemes or contexts, or are in different calls"
            )
        case Status.CALL_DESYNC:
            return CollectiveMismatchError(
                f"{where}: the workers are in different calls: {outcome.text}; did a worker restart, or skip a call?"
            )
        case Status.STRAGGLED:
            return StragglerError(
                f"{where}, call {outcome.number}: the other workers went on without this one, and their results "
                "are no longer available; the next call joins them in the next epoch"
            )
        case Status.WORKERS_LEFT:
            return workers_left_error(assignment, outcome.number)
        case Status.EXHAUSTED:
            return SequenceExhaustedError(f"{outcome.text}; the job needs a new job epoch")
        case Status.SUM_OVERFLOW:
            return SumOverflowError(outcome.index, outcome.sum, str(dtype))
        case Status.SCALE_OVERFLOW:
            return CollectiveMismatchError(
                f"{where}, call {outcome.number}: a sum overflowed at a scale with headroom for all workers: a member "
                "violates the protocol, or workers use different schemes"
            )
        case Status.FLOATS_UNSUPPORTED:
            return CollectiveMismatchError(
                f"{where}, call {outcome.number}: a node added floats as integers: not all of the job's switches "
                "and parameter servers support numerics float32 (docs/reference/protocol.md, 3.3)"
            )
        case Status.NO_MEMORY:
            return MemoryError("no memory for the scales of an all-reduce")
    return failure or AllReduceTimeoutError(f"{where}: {outcome.text or 'the worker was closed'}")
