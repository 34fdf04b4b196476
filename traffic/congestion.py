# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""How many chunks of a tree a worker keeps under way. One result acknowledges one chunk of every worker.

The limit is always the tree's window W, which the slots set; within it a controller follows the congestion
flag, which nodes OR over all contributions, so that the windows of a job move in step. What PANAMA
publishes (MLSys 2021) is the mechanism, not the constants: those here are DCTCP's (RFC 8257), and
declared as our own choice.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Protocol


class CongestionControl(Protocol):
    """Told of every batch of results and every loss; `window` is the number of chunks (1 ... W) to keep
    under way."""

    @property
    def window(self) -> int: ...

    def on_results(self, count: int, marked: int) -> None:
        """`count` chunks came back, `marked` of them with the congestion flag or the CE mark."""

    def on_loss(self) -> None:
        """A chunk was taken for lost. Called at most once for each round trip."""


class FixedWindow:
    """Always W: right where the slots, not the queues, are scarce."""

    def __init__(self, limit: int) -> None:
        self.window = limit

    def on_results(self, count: int, marked: int) -> None:
        pass

    def on_loss(self) -> None:
        pass


class AtpAimd:
    """ATP's rule (NSDI 2021): once in a window, halve it if marked, else one more; 1 to 100 packets."""

    CEILING = 100

    def __init__(self, limit: int) -> None:
        self._limit = min(limit, self.CEILING)
        self.window = min(self._limit, 16)
        self._seen = 0
        self._marked = 0

    def on_results(self, count: int, marked: int) -> None:
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
    loss."""

    G = 1 / 16
    INITIAL = 16
    FLOOR = 4
    # Half of the usual queue: where nothing ever marks, losses alone do not push the window below this.
    UNMARKED_FLOOR = 32

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = float(min(limit, self.INITIAL))
        self._starting = True
        self._alpha = 1.0
        self._seen = 0
        self._marked = 0
        self._marks_ever = False
        self._marks_lately = False

    @property
    def window(self) -> int:
        return int(self._size)

    def on_results(self, count: int, marked: int) -> None:
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
        elif not self._starting:
            self._size = min(self._limit, self._size + 1)
        self._seen = self._marked = 0

    def on_loss(self) -> None:
        """Queues that mark do so before they overflow: where marks were seen but not lately, a loss is bad
        luck on a line, not congestion."""
        self._starting = False
        if not self._marks_ever:
            self._shrink(1 / 2, self.UNMARKED_FLOOR)
        elif self._marks_lately or self._marked:
            self._shrink(1 / 2, self.FLOOR)

    def _shrink(self, factor: float, floor: int) -> None:
        self._size = min(self._size, max(min(floor, self._limit), self._size * factor))
        self._seen = self._marked = 0


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
