# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Gives the controller the time. Timers and sleeps are the event loop's; a simulation replaces the loop, too."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    def wall_s(self) -> float:
        """Seconds since 1970, for the dates of jobs, which outlive the process."""

    def monotonic_s(self) -> float:
        """Seconds since an arbitrary moment, for durations."""


class SystemClock:
    def wall_s(self) -> float:
        return time.time()

    def monotonic_s(self) -> float:
        return time.monotonic()
