# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The calls of an agent's worker: those in its reports, and its last ones, for a file."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from netfold.traffic.agent.messages import CALLS_MAX, ReportMessage, calls_of, stats_of_report
from netfold.traffic.agent.worker_stream import Message, WorkerMessageError
from netfold.traffic.engine.call_log import CALLS_MAX as CALL_LOG
from netfold.traffic.membership.base import Stats
from netfold.traffic.membership.calls import CallRecord
from netfold.traffic.worker.call_dump import CALL_DUMPS, write_calls


class WorkerCalls:
    """Those of the process `program` on `host`, which may be another machine with a clock of its own."""

    def __init__(self, host: str, program: int) -> None:
        self._host = host
        self._program = program
        self._job = ""
        self._later_s = 0.0
        """By how much the clock of this machine is later than the worker's."""
        self._calls: list[CallRecord] = []  # of CALLS messages, so far

    def stats_of(self, message: Message, silent_s: Callable[[], float]) -> Stats:
        """Those of a report that has just come. Raises WorkerMessageError."""
        report = message.to(ReportMessage)
        self._later_s = time.monotonic() - report.now
        return stats_of_report(report, silent_s, self._later_s)

    def take(self, message: Message, job: str) -> None:
        """Writes the calls to a file when the last part is there. Raises WorkerMessageError."""
        try:
            part = calls_of(message.body, self._later_s)
        except ValueError as error:
            raise WorkerMessageError(f"{error}") from error
        self._calls += part
        if len(self._calls) > CALL_LOG:
            raise WorkerMessageError(f"more than {CALL_LOG} CALLS; expected a last part below {CALLS_MAX}")
        if len(part) == CALLS_MAX:
            return
        self._job = job
        CALL_DUMPS.dump(self, "a call failed, or SIGUSR1")
        self._calls = []

    def dump_to(self, folder: Path, reason: str) -> None:
        header = {"job": self._job, "host": self._host, "reason": reason, "program": self._program}
        write_calls(
            folder / f"netfold-calls-{self._job}-{self._host}-{self._program}.jsonl", header, self._calls
        )
