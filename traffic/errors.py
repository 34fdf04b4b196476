# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Errors of the host side, by cause. A call ends with its result or with one of these, in bounded time (I9)."""

from __future__ import annotations


class TrafficError(Exception):
    """Base class of all errors that the host side raises itself."""


class UnsupportedDtypeError(TrafficError, TypeError):
    """The job does not do this operation with arrays of this dtype: floats in a job with `numerics: integer`, an
    average of integers. Nothing was sent."""


class ConcurrentUseError(TrafficError, RuntimeError):
    """A second thread used a worker while calls of another thread were in flight. Nothing was sent."""


class WorkerClosedError(TrafficError):
    """The worker has left its job. Nothing was sent."""


class SumOverflowError(TrafficError, OverflowError):
    """A sum of int32 or int64 arrays does not fit into their dtype. All workers raise it for the same call."""

    def __init__(self, index: int, total: int, dtype: str) -> None:
        super().__init__(f"the sum of all gradients[{index}] is {total}; it must fit into {dtype}")
        self.index = index


class AllReduceTimeoutError(TrafficError, TimeoutError):
    """The deadline passed; the message names what is missing. The array is as it was before the call."""


class JobFailedError(TrafficError):
    """The controller ended the job; the message is its reason. `done`: the job ended because all workers left."""

    def __init__(self, message: str, done: bool = False) -> None:
        super().__init__(message)
        self.done = done


class JobRefusedError(JobFailedError):
    """The controller did not admit the job."""


class ControllerUnreachableError(TrafficError):
    """No controller answered within the lease, so the job's slots may belong to another job."""


class UnknownHostError(TrafficError, ValueError):
    """This machine is none of the fabric's hosts, or several of them."""


class ConflictingTimeoutsError(TrafficError, ValueError):
    """A program's lease is as long as its calls may take, so a lost rank would be a timeout without a name."""


class DifferentFallbacksError(TrafficError, ValueError):
    """Ranks of a group differ in what they do when its job does not start. Rank 0 raises it, and the other
    ranks a TrafficError with its text; none has started."""


class MembershipLostError(TrafficError):
    """The stream to the controller ended in an unexpected error, which is chained as the cause."""


class CollectiveMismatchError(TrafficError):
    """The workers of a job are in different calls, or called with different arrays: an error in the program."""


class StragglerError(TrafficError):
    """The other workers of a job with a quorum continued without this one, and their results are no longer
    available. The array is as before the call. The next call joins the other workers in the next epoch, in the call
    that they are in then; fetch their state (weights, step) first."""


class WorkersLeftError(TrafficError):
    """Workers whose contributions the call needs have left the job. Later calls fail in the same way, unless the job
    continues without these workers (`on_worker_loss: continue`): then only because no new epoch started before the
    deadline. `hosts`: the workers. The array is as before the call."""

    def __init__(self, message: str, hosts: tuple[str, ...]) -> None:
        super().__init__(message)
        self.hosts = hosts


class SequenceExhaustedError(TrafficError):
    """The epoch has too few chunk numbers left for this call; the controller has to start a new epoch."""


class EngineUnavailableError(TrafficError, RuntimeError):
    """This host has no compiled engine and cannot compile it."""


class InvalidAssignmentError(TrafficError, ValueError):
    """An assignment breaks a rule of docs/reference/protocol.md; the message names the field."""
