# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What can go wrong in a run, one line each."""

from __future__ import annotations

import signal


class RunError(Exception):
    """A run that cannot go on: the message is the one line that the user sees."""


class ProcessFailed(RunError):
    """A process of the run ended by itself, with its own last line, or was killed."""

    def __init__(self, who: str, code: int, last: str) -> None:
        if code < 0:
            super().__init__(f"{who} was killed by {signal.Signals(-code).name}")
        else:
            super().__init__(f"{who} ended with exit code {code}: {last or 'it said nothing'}")
        self.who = who


class RunTimeout(RunError):
    """Something did not happen before its deadline."""
