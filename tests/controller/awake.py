# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Tests wait by these."""

from __future__ import annotations

import time

STEP_S = 0.5
"""No two looks of a test that runs lie so far apart."""


class Awake:
    """Seconds that the process has had, for a task that looks often: while a machine stands still (it sleeps, or
    others have its processors), its clock goes on, but nothing is late that could not have been done. What the process
    computed meanwhile counts."""

    def __init__(self) -> None:
        self._looked, self._computed, self._seconds = time.monotonic(), time.process_time(), 0.0

    def __call__(self) -> float:
        now, computed = time.monotonic(), time.process_time()
        self._seconds += min(now - self._looked, max(STEP_S, computed - self._computed))
        self._looked, self._computed = now, computed
        return self._seconds
