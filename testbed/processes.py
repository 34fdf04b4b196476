# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Groups of processes in hosts that write JSON results: started, awaited and ended together."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netfold.testbed.errors import ProcessFailedError, RunTimeoutError
from netfold.testbed.network.network import Network
from netfold.testbed.network.processes import wait_or_kill

POLL_S = 0.1  # interval of polling the processes
MAX_ERRORS, MAX_CHARACTERS = 3, 160  # hosts whose errors are told beside that of the first, and of each error
DEPARTURE_S = 5.0
"""For a process to end whose member has left the job."""

_PREFIX = "netfold: "
_DEPARTED = re.compile(r"([\w, -]+) left the job after ")

_EXCEPTION = re.compile(r"(\[rank\d+\]: )?(?![\w.]*\bChildFailedError\b)[\w.]*(Error|Exception)\b.*: ")
"""torchrun raises ChildFailedError for a rank that has failed, whatever the rank's own error is."""


def first_exception(log: Path) -> str:
    """The first line of an exception; "" if there is none."""
    lines = log.read_text(errors="replace").splitlines()
    return next((x.strip() for x in lines if _EXCEPTION.match(x)), "")


def last_line(log: Path) -> str:
    """The last line that is not empty: of a traceback, the error."""
    lines = [x.strip() for x in log.read_text(errors="replace").splitlines() if x.strip()]
    return lines[-1].removeprefix(_PREFIX) if lines else ""


@dataclass(frozen=True)
class HostTask:
    """A command to run in a host. `result`: JSON file that it writes at its end, if it `has_result`; its log is beside
    it. `find_error`: extracts the error from the log."""

    host: str
    command: Sequence[object]
    result: Path
    find_error: Callable[[Path], str] = last_line
    has_result: bool = True


class ProcessGroup:
    """The processes of one step, a context manager. The first failure ends `wait`; leaving the `with` block ends what
    still runs."""

    def __init__(self, net: Network, tasks: Sequence[HostTask]) -> None:
        self._tasks = tasks
        self._find_error = {t.host: t.find_error for t in tasks}
        self._logs = {t.host: t.result.with_suffix(".log") for t in tasks}
        self._running: dict[str, subprocess.Popen[Any]] = {}
        for task in tasks:
            with self._logs[task.host].open("w") as log:
                self._running[task.host] = net.hosts[task.host].popen(
                    task.command, stdout=log, stderr=log, stdin=subprocess.DEVNULL
                )

    def __enter__(self) -> ProcessGroup:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._running.values():
            process.terminate()
        for process in self._running.values():
            wait_or_kill(process, 3.0)

    def kill(self, host: str) -> None:
        """Kill one process, like a crash."""
        self._running[host].kill()

    def outcomes(self, timeout_s: float) -> dict[str, tuple[int, str]]:
        """Waits for all; exit code and last line of each process. Raises RunTimeoutError."""
        deadline = time.monotonic() + timeout_s
        for host, process in self._running.items():
            try:
                process.wait(timeout=max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                errors = self._errors()
                raise RunTimeoutError(f"{host} did not end within {timeout_s:.0f} s{errors}") from None
        return {h: (p.returncode, last_line(self._logs[h])) for h, p in self._running.items()}

    def output(self, host: str) -> str:
        """Return all that the process on a host has printed."""
        return self._logs[host].read_text(errors="replace")

    def wait(
        self, timeout_s: float, meanwhile: Callable[[], None] = lambda: None
    ) -> dict[str, Mapping[str, Any]]:
        """Waits for all; the results by host, of those that have one. Calls `meanwhile` periodically; its exceptions
        end the wait. Raises ProcessFailedError, RunTimeoutError."""
        deadline = time.monotonic() + timeout_s
        waiting = dict(self._running)
        while waiting:
            for host, process in list(waiting.items()):
                code = process.poll()
                if code is None:
                    continue
                del waiting[host]
                if code != 0:
                    raise self._failure(self._first_cause(host))
            meanwhile()
            if waiting and time.monotonic() > deadline:
                late = f"{', '.join(waiting)} did not finish within {timeout_s:.0f} s"
                raise RunTimeoutError(f"{late}{self._errors()}")
            if waiting:
                _wait_for_one(next(iter(waiting.values())))
        return {t.host: json.loads(t.result.read_text()) for t in self._tasks if t.has_result}

    def _first_cause(self, host: str) -> str:
        """The host that the error of a failed `host` names as departed, if it fails, too: its own error is the cause.
        It may end a little later."""
        departed = _DEPARTED.match(self._find_error[host](self._logs[host]))
        names = departed[1].split(", ") if departed else []
        for name in names:
            process = self._running.get(name)
            if process is None or name == host:
                continue
            with contextlib.suppress(subprocess.TimeoutExpired):
                if process.wait(timeout=DEPARTURE_S) != 0:
                    return name
        return host

    def _failure(self, host: str) -> ProcessFailedError:
        error = self._find_error[host](self._logs[host])
        return ProcessFailedError(
            f"the process on host {host}", self._running[host].returncode, error, self._errors(host)
        )

    def _errors(self, but: str = "") -> str:
        """Collect errors from the logs of the hosts: the cause of a failure may be another host's."""
        found = [self._error_so_far(h) for h in self._running if h != but]
        errors = [f"; {_shorten(text)}" for text in found if text]
        more = len(errors) - MAX_ERRORS
        return "".join(errors[:MAX_ERRORS]) + (f"; errors of {more} more hosts" if more > 0 else "")

    def _error_so_far(self, host: str) -> str:
        log = self._logs[host]
        if code := self._running[host].poll():
            error = self._find_error[host](log)
            return f"{host}: {error}" if code > 0 and error else str(ProcessFailedError(host, code, error))
        lines = log.read_text(errors="replace").splitlines()
        notes = (x.removeprefix(_PREFIX) for x in lines if x.startswith(_PREFIX))
        note = first_exception(log) or next(notes, "")
        return f"{host}: {note}" if note else ""


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_CHARACTERS else f"{text[: MAX_CHARACTERS - 3]}..."


def _wait_for_one(process: subprocess.Popen[Any]) -> None:
    try:
        process.wait(timeout=POLL_S)
    except subprocess.TimeoutExpired:
        return
