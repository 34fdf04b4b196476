# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""How long to wait for a result before asking again: RFC 6298's estimator, with bounds fit for a fabric."""

from __future__ import annotations


class RttEstimator:
    """Smoothed round-trip time and its variation, seconds."""

    INITIAL = 0.05
    GRANULARITY = 0.01  # a shared processor lets a process wait for so long, however steady the rest is
    CEILING = 1.0
    KEPT_BACKOFF = 2

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
        self._variation += (abs(self.smoothed - seconds) - self._variation) / 4
        self.smoothed += (seconds - self.smoothed) / 8

    def sample_again(self, seconds: float) -> None:
        """A chunk came back so long after it went again. That may have answered the first time (Karn): where a
        queue has grown beyond the timeout, all is sent twice, and the timeout must stay longer, or the queue
        grows more. A time that fits says that the chunk had been lost. Others leave it open (another worker's
        may have been lost, too), and where many are lost long waits are worse."""
        fits = self.minimum <= seconds <= self._measured
        self._backoff = min(self._backoff, 1 if fits else self.KEPT_BACKOFF)

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
