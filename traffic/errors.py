# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What can go wrong on a host, by cause. A call gives its result or raises one of these, in bounded time
(I9)."""

from __future__ import annotations


class TrafficError(Exception):
    """The base of all that the host side raises on its own account."""


class WrongNumbers(TrafficError, TypeError):
    """Floats in a job whose numerics are `integer`, or an average of integers. Nothing was sent."""


class ConcurrentUse(TrafficError, RuntimeError):
    """A worker was used by a second thread while a call of the first was under way. Nothing was sent."""


class WorkerClosed(TrafficError):
    """A worker was used after it had left its job. Nothing was sent."""


class SumOverflow(TrafficError, OverflowError):
    """A sum of int32 or int64 gradients does not fit into their dtype. All workers raise it for the same call."""

    def __init__(self, index: int, total: int, dtype: str) -> None:
        super().__init__(f"the sum of all gradients[{index}] is {total}; it must fit into {dtype}")
        self.index = index


class AllReduceTimeout(TrafficError, TimeoutError):
    """The deadline passed; the message names what is missing. The array is as it was before the call."""


class JobFailed(TrafficError):
    """The controller ended the job; the message is its reason. `done`: because all workers left."""

    def __init__(self, message: str, done: bool = False) -> None:
        super().__init__(message)
        self.done = done


class ControllerUnreachable(TrafficError):
    """No controller answered within the lease, so nobody may assume that the job still holds its slots."""


class UnknownHost(TrafficError, ValueError):
    """This machine is none of the fabric's hosts, or several of them."""


class MembershipLost(TrafficError):
    """The stream to the controller ended in an error that nobody foresaw; the cause is chained."""


class CallMismatch(TrafficError):
    """The workers of a job are not in the same call, or not with the same array: the program has to be
    mended."""


class Straggled(TrafficError):
    """With a quorum: the others went on without this worker, and it cannot learn what they know any more. The array is
    as it was; the next call joins them at the next epoch, in whatever call they are then: fetch what they have
    (weights, the step) first."""


class RoundsExhausted(TrafficError):
    """The epoch has no chunk numbers left for this call; the controller has to raise the epoch."""


class EngineMissing(TrafficError, RuntimeError):
    """This host has neither the compiled engine of workers nor what it takes to compile it."""


class BadAssignment(TrafficError, ValueError):
    """An assignment that breaks a rule of docs/protocol.md; the message names the field."""
