# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's membership of its job, and the statistics that it reports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from netfold.traffic.membership.assignment import Assignment
from netfold.traffic.membership.calls import CallProgress, CallRecord


@dataclass(frozen=True)
class TreeStats:
    """Counters of a tree in this epoch: results received, those with a congestion mark, retransmissions, and RTTs in
    milliseconds (smoothed, minimum). `window`: congestion window now, chunks. `open_slot`: 1 + the slot
    of the chunk that has been in flight for longest; 0: none is."""

    tree: int
    results: int
    marked: int
    retransmits: int
    rtt_ms: float
    min_rtt_ms: float
    window: int = 0
    open_slot: int = 0


@dataclass
class Stats:
    """A member's report: totals since it joined, with `seconds` spent in calls and `elements` reduced in them.
    `next_call`: number in the job of the first call that the worker has not finished. `progress` returns that and the
    present call; None: unknown. `recent` returns the records of the last calls, at most as many as its argument.
    `silent_s` returns for how long the worker's process has sent nothing to this one, `location` where its program is.
    `trees` returns the counters of
    the trees of this epoch, `socket_errors` how many errors the sockets survived: ICMP errors,
    and packets that the kernel dropped."""

    calls: int = 0
    chunks: int = 0
    retransmits: int = 0
    reencoded_chunks: int = 0
    restarts: int = 0
    late: int = 0
    elements: int = 0
    bytes: int = 0
    seconds: float = 0.0
    next_call: int = 0
    progress: Callable[[], CallProgress] | None = None
    recent: Callable[[int], Sequence[CallRecord]] = lambda count: ()
    silent_s: Callable[[], float] = float
    location: Callable[[], str] = str
    trees: Callable[[], tuple[TreeStats, ...]] = tuple
    socket_errors: Callable[[], int] = int

    def count(self, elements: int, nbytes: int, chunks: int, seconds: float) -> None:
        """Adds a call."""
        self.calls += 1
        self.chunks += chunks
        self.elements += elements
        self.bytes += nbytes
        self.seconds += seconds

    @property
    def goodput_mbps(self) -> float:
        """Array bits reduced per second spent in calls."""
        return self.bytes * 8e-6 / self.seconds if self.seconds else 0.0


STALL_TIMEOUT_S = 1.0


class Membership(Protocol):
    """Source of a worker's assignments: a stream from the controller, or a fixed assignment."""

    def wait(self, seconds: float) -> Assignment:
        """The newest assignment, waiting for the first. Raises JobFailedError, ControllerUnreachableError,
        AllReduceTimeoutError, WorkerClosedError."""

    def current(self) -> Assignment:
        """The newest assignment, without waiting. Raises JobFailedError, ControllerUnreachableError."""

    def on_change(self, callback: Callable[[], None] | None) -> None:
        """Calls `callback` from any thread when `current` has changed; None: no more."""

    def request_new_epoch(self, epoch: int, seconds: float) -> bool:
        """Requests a new epoch in place of `epoch`, and waits for it at most `seconds`. False: none came. After True
        `current` returns its assignment, or raises the error that ended the job."""

    def describe_stall(self) -> str:
        """For the message of a call that timed out: absent members, and where trees add up. Takes at most
        STALL_TIMEOUT_S; empty: not known."""

    def report(self, stats: Stats) -> None:
        """Called when a worker starts and after each all-reduce; the next heartbeat carries `stats`."""

    def interrupt(self) -> None:
        """Ends `wait` and `request_new_epoch` of all threads, now and later: the worker is being closed."""

    def close(self, *, is_done: bool = True) -> None:
        """Leaves the job. `is_done`: after calls that all succeeded, for which the controller has to learn of it."""


class StaticMembership:
    """A membership without a controller: one assignment that never changes, unless a subclass changes it."""

    def __init__(self, assignment: Assignment) -> None:
        self._assignment = assignment

    def wait(self, seconds: float) -> Assignment:
        return self.current()

    def current(self) -> Assignment:
        return self._assignment

    def on_change(self, callback: Callable[[], None] | None) -> None:
        pass

    def request_new_epoch(self, epoch: int, seconds: float) -> bool:
        return False

    def describe_stall(self) -> str:
        return ""

    def report(self, stats: Stats) -> None:
        pass

    def interrupt(self) -> None:
        pass

    def close(self, *, is_done: bool = True) -> None:
        pass
