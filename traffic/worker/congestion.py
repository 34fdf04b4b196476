# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""How many chunks of a tree a worker keeps under way. One result acknowledges one chunk of every worker.

The limit is always the tree's window W, which the slots set; within it a controller follows the congestion
flag, which nodes OR over all contributions, so that the windows of a job move in step. What PANAMA
publishes (MLSys 2021) is the mechanism, not the constants: those here are DCTCP's (RFC 8257), and
declared as our own choice. A switch that marks nothing (BMv2 does not know how full its own buffers are) is
noticed by the delay that builds up in it, as in LEDBAT (RFC 6817).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Protocol

_UNKNOWN = float("inf")


class CongestionControl(Protocol):
    """Told of every batch of results and every loss; `window` is the number of chunks (1 ... W) to keep
    under way."""

    @property
    def window(self) -> int: ...

    @property
    def patience(self) -> int:
        """How many windows of results without a mark may come before it is told of them."""

    def on_results(self, count: int, marked: int, delay: float | None = None) -> None:
        """`count` chunks came back, `marked` of them with the congestion flag or the CE mark, `delay` seconds
        later than the quickest one ever did (None: not known, as some were sent twice)."""

    def on_loss(self) -> None:
        """A chunk was taken for lost. Called at most once for each round trip."""


class FixedWindow:
    """Always W: right where the slots, not the queues, are scarce."""

    patience = 4

    def __init__(self, limit: int) -> None:
        self.window = limit

    def on_results(self, count: int, marked: int, delay: float | None = None) -> None:
        pass

    def on_loss(self) -> None:
        pass


class AtpAimd:
    """ATP's rule (NSDI 2021): once in a window, halve it if marked, else one more; 1 to 100 packets."""

    CEILING = 100
    patience = 1

    def __init__(self, limit: int) -> None:
        self._limit = min(limit, self.CEILING)
        self.window = min(self._limit, 16)
        self._seen = 0
        self._marked = 0

    def on_results(self, count: int, marked: int, delay: float | None = None) -> None:
        self._seen += count
        self._marked += marked
        if self._seen >= self.window:
            self.window = max(1, self.window // 2) if self._marked else min(self._limit, self.window + 1)
            self._seen = self._marked = 0

    def on_loss(self) -> None:
        self.window = max(1, self.window // 2)
        self._seen = self._marked = 0


class PanamaDctcp:
    """PANAMA's control in the form of DCTCP: per window F = marked / received, alpha <- (1 - g) alpha + g
    F; a marked window shrinks by alpha / 2, an unmarked one grows by 1, or doubles until the first mark or
    loss, as far as chunks come back at the first time of asking. As long as nothing ever marks, a window
    shrinks if even its quickest chunk was late."""

    G = 1 / 16
    INITIAL = 4  # of each worker in each tree: a slow switch gets all of them at once
    FLOOR = 4
    # Half of the usual queue: where nothing ever marks, losses alone do not push the window below this.
    UNMARKED_FLOOR = 32
    # More than a full queue of a link that is worth it, and than hosts that share a processor wait for their turn.
    LATE = 0.025
    LATE_FLOOR = 2
    PATIENCE = 4  # a worker's loop then stays in C for longer; marks are told of within their window

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = float(min(limit, self.INITIAL))
        self._starting = True
        self._alpha = 1.0
        self._seen = 0
        self._marked = 0
        self._delay = _UNKNOWN  # the least in this window
        self._marks_ever = False
        self._marks_lately = False

    @property
    def window(self) -> int:
        return int(self._size)

    @property
    def patience(self) -> int:
        return 1 if self._starting or not self._marks_ever else self.PATIENCE

    def on_results(self, count: int, marked: int, delay: float | None = None) -> None:
        if delay is not None:
            self._delay = min(self._delay, delay)
            self._starting &= self._marks_ever or delay <= self.LATE
            if self._starting and not marked:
                self._size = min(self._limit, self._size + count)
        self._seen += count
        self._marked += marked
        if self._seen >= self._size:
            self._turn()

    def _turn(self) -> None:
        self._alpha += self.G * (self._marked / self._seen - self._alpha)
        self._marks_lately = self._marked > 0
        self._marks_ever |= self._marks_lately
        if self._marked:
            self._starting = False
            self._shrink(1 - self._alpha / 2, self.FLOOR)
        elif not self._marks_ever and self.LATE < self._delay < _UNKNOWN:
            self._shrink(max(1 / 2, self.LATE / self._delay), self.LATE_FLOOR)
        elif not self._starting:
            self._size = min(self._limit, self._size + max(1, self._seen // self._size))
        self._forget()

    def _forget(self) -> None:
        self._seen = self._marked = 0
        self._delay = _UNKNOWN

    def on_loss(self) -> None:
        """Queues that mark do so before they overflow: where marks were seen but not lately, a loss is bad
        luck on a line, not congestion."""
        if not self._marks_ever and self._size <= self.UNMARKED_FLOOR:
            return
        self._starting = False
        if not self._marks_ever:
            self._shrink(1 / 2, self.UNMARKED_FLOOR)
        elif self._marks_lately or self._marked:
            self._shrink(1 / 2, self.FLOOR)

    def _shrink(self, factor: float, floor: int) -> None:
        self._size = min(self._size, max(min(floor, self._limit), self._size * factor))
        self._forget()


class Congestion(StrEnum):
    """The controls by name."""

    FIXED = "fixed"
    ATP = "atp"
    PANAMA = "panama"

    def start(self, limit: int) -> CongestionControl:
        """A new control whose window never exceeds `limit`."""
        kinds: dict[Congestion, Callable[[int], CongestionControl]] = {
            Congestion.FIXED: FixedWindow,
            Congestion.ATP: AtpAimd,
            Congestion.PANAMA: PanamaDctcp,
        }
        return kinds[self](limit)
