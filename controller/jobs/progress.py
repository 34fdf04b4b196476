# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Finds a process that hangs. The watchdog ends it, and a lease is not renewed (docs/decisions/0048, 0080)."""

from __future__ import annotations

from netfold.controller.jobs.engine import Progress


class ProgressChecks:
    """Counts consecutive checks without progress. A clock would count the time in which the whole process was stopped,
    too."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._seen = progress()
        self.missed = 0

    def check(self) -> int:
        """Return the number of checks since the last progress."""
        now = self._progress()
        self.missed = self.missed + 1 if now == self._seen else 0
        self._seen = now
        return self.missed
