# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""How long to wait for a result before asking again: RFC 6298's estimator, with bounds fit for a fabric."""

from __future__ import annotations


class RttEstimator:
    """Smoothed round-trip time and its variation, seconds."""

    INITIAL = 0.05
    GRANULARITY = 0.01  # a shared processor lets a process wait for so long, however steady the rest is
    CEILING = 1.0

    def __init__(self) -> None:
        self.smoothed = 0.0
        self.minimum = self.CEILING
        self._variation = 0.0
        self._backoff = 1

    def sample(self, seconds: float) -> None:
        """A chunk that was sent once came back: the next timeout is a first one again."""
        self._backoff = 1
        self.minimum = min(self.minimum, seconds)
        if self.smoothed == 0.0:
            self.smoothed, self._variation = seconds, seconds / 2
            return
        # A chunk that waited for another worker's loss says little of the way: it counts as far as was expected.
        seconds = min(seconds, self._measured)
        self._variation += (abs(self.smoothed - seconds) - self._variation) / 4
        self.smoothed += (seconds - self.smoothed) / 8

    def progress(self) -> None:
        """A chunk that went again came back: the next timeout is a first one again. To stay longer (Karn) would
        make many losses at small windows take seconds; that queues do not outgrow the timeout is left to the
        window."""
        self._backoff = 1

    def expired(self) -> None:
        """Nothing came back: wait twice as long the next time."""
        if self.timeout < self.CEILING:
            self._backoff *= 2

    @property
    def timeout(self) -> float:
        return min(self.CEILING, self._measured * self._backoff)

    @property
    def _measured(self) -> float:
        if not self.smoothed:
            return self.INITIAL
        return self.smoothed + max(self.GRANULARITY, 4 * self._variation)

    @property
    def reordering(self) -> float:
        """How much later a chunk may have been sent than one that it overtakes without the latter being lost
        (RFC 8985's reordering window, a quarter of the round trip)."""
        return max(0.0005, self.smoothed / 4)
