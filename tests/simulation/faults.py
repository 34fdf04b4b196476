# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Delays and small faults of a run, drawn from its seed."""

from __future__ import annotations

import random
from dataclasses import dataclass

MAX_DELAY_S = 1.0
"""A third of a lease: no delay alone ends one."""


@dataclass(frozen=True)
class Intensity:
    """Chances of small faults, for each call. `late_write`: a write takes effect after its caller gave up."""

    rpc_error: float = 0.0
    refused_update: float = 0.0
    stream_loss: float = 0.0
    late_write: float = 0.0
    twice: float = 0.0
    max_delay_s: float = 0.02

    @property
    def is_noisy(self) -> bool:
        return max(self.rpc_error, self.refused_update, self.stream_loss, self.late_write, self.twice) > 0


class Draws:
    """Independent streams of random numbers: another draw of one leaves the others as they are."""

    def __init__(self, seed: int, intensity: Intensity) -> None:
        self.intensity = intensity
        self.is_calm = False
        self._seed = seed
        self._streams: dict[str, random.Random] = {}

    def of(self, name: str) -> random.Random:
        if name not in self._streams:
            self._streams[name] = random.Random(f"{name} {self._seed}")
        return self._streams[name]

    def delay_s(self, name: str) -> float:
        """Mostly short, now and then twenty times as long."""
        chosen = self.of(name)
        longest = self.intensity.max_delay_s
        if not self.is_calm and chosen.random() < 0.02:
            longest = min(20 * longest, MAX_DELAY_S)
        return chosen.uniform(0, longest)

    def happens(self, name: str, chance: float) -> bool:
        return not self.is_calm and chance > 0 and self.of(name).random() < chance
