# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What a worker needs from others: its membership of the job, and sockets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from netfold.traffic.membership.assignment import Assignment


@dataclass(frozen=True)
class TreeStats:
    """How a tree of the present epoch does: results that came, of them with a congestion mark, packets sent again, and
    round trips in milliseconds."""

    tree: int
    results: int
    marked: int
    retransmits: int
    rtt_ms: float
    rtt_least_ms: float


@dataclass
class Stats:
    """What a member reports: totals since it joined. `seconds` spent in calls, `elements` reduced in them; `trees`
    says how these do, counted from the beginning of the epoch, when it is asked: few calls are reported."""

    calls: int = 0
    chunks: int = 0
    retransmits: int = 0
    overflows: int = 0
    restarts: int = 0
    late: int = 0
    elements: int = 0
    bytes: int = 0
    seconds: float = 0.0
    trees: Callable[[], tuple[TreeStats, ...]] = tuple

    def count(self, elements: int, nbytes: int, chunks: int, seconds: float) -> None:
        """One more call."""
        self.calls += 1
        self.chunks += chunks
        self.elements += elements
        self.bytes += nbytes
        self.seconds += seconds

    @property
    def goodput_mbps(self) -> float:
        """Array bits reduced for each second inside of calls."""
        return self.bytes * 8e-6 / self.seconds if self.seconds else 0.0


class Membership(Protocol):
    """Where a worker learns its part: a stream from the controller, or a fixed assignment."""

    def wait(self, seconds: float) -> Assignment:
        """The newest assignment, waiting for the first. Raises JobFailed, ControllerUnreachable,
        AllReduceTimeout."""

    def current(self) -> Assignment:
        """The newest assignment, without waiting. Raises JobFailed, ControllerUnreachable."""

    def on_change(self, tell: Callable[[], None] | None) -> None:
        """Whom to call (from any thread) when `current` has something new to say."""

    def renew(self, epoch: int, seconds: float) -> bool:
        """Asks for another epoch, as this one is of no more use, and waits for it at most so long. False: there
        is none, or nobody to ask. After True `current` has it, or raises what ended the job."""

    def report(self, stats: Stats) -> None:
        """Called after each all-reduce, so that the controller learns how it goes. `stats` goes on counting."""

    def close(self) -> None: ...


class Alone:
    """A membership without a controller: one assignment, for good."""

    def __init__(self, assignment: Assignment) -> None:
        self._assignment = assignment

    def wait(self, seconds: float) -> Assignment:
        return self._assignment

    def current(self) -> Assignment:
        return self._assignment

    def on_change(self, tell: Callable[[], None] | None) -> None:
        pass

    def renew(self, epoch: int, seconds: float) -> bool:
        return False

    def report(self, stats: Stats) -> None:
        pass

    def close(self) -> None:
        pass
