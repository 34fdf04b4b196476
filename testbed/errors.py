# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Errors of a run."""

from __future__ import annotations

import signal


class RunError(Exception):
    """The run cannot continue. The message is one line for the user."""


class ProcessFailedError(RunError):
    """A process of the run ended or was killed; the message has the last line of its log, and `others`."""

    def __init__(self, process: str, code: int, last: str, others: str = "") -> None:
        if code < 0:
            super().__init__(f"{process} was killed by {signal.Signals(-code).name}{others}")
        else:
            super().__init__(f"{process} ended with exit code {code}: {last or 'its log is empty'}{others}")
        self.process = process


class RunTimeoutError(RunError):
    """A deadline passed."""


class ProgramSourcesError(RunError):
    """Sources of the switches' program have changed since it was compiled."""
