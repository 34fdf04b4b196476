# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Events of a run, a line each, at virtual times."""

from __future__ import annotations

import asyncio
import logging

from netfold.controller.scheduling.plan_process import PlannerCrashedError


class History:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, actor: str, text: str) -> None:
        now = asyncio.get_running_loop().time()
        self.lines.append(f"{now:9.3f}  {actor:<12} {text}")

    def tail(self, count: int) -> str:
        hidden = max(0, len(self.lines) - count)
        head = [f"... {hidden} earlier lines"] if hidden else []
        return "\n".join([*head, *self.lines[-count:]])


class LogToHistory(logging.Handler):
    """The controller's own log, between the events of the world."""

    def __init__(self, history: History) -> None:
        super().__init__(logging.INFO)
        self._history = history
        self.tracebacks: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._history.add("  log", record.getMessage())
        except RuntimeError:  # outside the loop
            return
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and not isinstance(
            error, PlannerCrashedError
        ):  # a crash that a scenario orders is logged
            self.tracebacks.append(f"{record.getMessage()}: {error!r}")
