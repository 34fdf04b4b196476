# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What tests wait by."""

from __future__ import annotations

import time

STEP_S = 0.5
"""No two looks of a test that runs lie so far apart."""


class Awake:
    """Seconds that the process has had, for who looks often: while a machine stands still (it sleeps, or others have
    its processors), its clock goes on, but nothing is late that could not have been done."""

    def __init__(self) -> None:
        self._looked, self._seconds = time.monotonic(), 0.0

    def __call__(self) -> float:
        now = time.monotonic()
        self._seconds += min(now - self._looked, STEP_S)
        self._looked = now
        return self._seconds
