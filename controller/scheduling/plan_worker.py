# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Runs the process that plans: `main`, started by `plan_process`.

It reads frames from standard input: the fabric first, then a request or STOP. For each request it forks a child, which
plans and answers through a pipe; STOP, or the end of standard input, kills the child. So a plan ends when it is
canceled, whatever its solver does, and the next plan finds everything imported. A frame is a pickled value behind its
length (4 bytes, big-endian); both ends are one program, and no other process writes to the pipe.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import resource
import select
import signal
import sys
from dataclasses import dataclass
from typing import Any

from netfold.controller.lifecycle.capacity import RefusedError
from netfold.controller.planning.plan import Plan
from netfold.controller.scheduling.job_planner import PlanRequest, plan_job
from netfold.topologies.fabric import Fabric

LENGTH_BYTES = 4
STOP = None
PIPE_BYTES = 1 << 16


@dataclass(frozen=True)
class Answer:
    """A plan, a refusal, or an `error` of the planner. None of them: planning was canceled."""

    plan: Plan | None = None
    refused: str = ""
    error: str = ""


def frame(value: Any) -> bytes:
    body = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


def serve(read_from: int, write_to: int) -> None:
    """Serve requests until the controller closes its ends or has died."""
    with contextlib.suppress(EOFError, BrokenPipeError):
        _serve(read_from, write_to)


def _serve(read_from: int, write_to: int) -> None:
    """Serve requests. Raises EOFError, BrokenPipeError."""
    fabric: Fabric = _read(read_from)
    while True:
        request = _read(read_from)
        if isinstance(request, PlanRequest):  # a STOP that crossed its answer needs no reply
            _write(write_to, _planned(fabric, request, read_from))


def _planned(fabric: Fabric, request: PlanRequest, read_from: int) -> bytes:
    """The frame of the answer; a plan that was stopped has an empty answer."""
    answers, child_writes = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(answers)
        _plan(fabric, request, child_writes)
    os.close(child_writes)
    body = bytearray()
    stopped = False
    try:
        while True:
            ready, _, _ = select.select([answers, read_from], [], [])
            if read_from in ready:  # STOP, or the end of the input
                os.kill(child, signal.SIGKILL)
                stopped = True
                break
            part = os.read(answers, PIPE_BYTES)
            if not part:
                break
            body += part
    finally:
        os.close(answers)
        _, status = os.waitpid(child, 0)
    if stopped:
        return frame(Answer())
    if os.waitstatus_to_exitcode(status) == 0:
        return bytes(body)
    how = os.waitstatus_to_exitcode(status)
    return frame(Answer(error=f"it ended with {'signal' if how < 0 else 'exit code'} {abs(how)}"))


def _plan(fabric: Fabric, request: PlanRequest, write_to: int) -> None:
    """Plan in the child process, which ends here."""
    code = 1
    try:
        # the child ends whatever happens to its parents
        seconds = int(request.deadline_s) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (seconds * (os.cpu_count() or 1), resource.RLIM_INFINITY))
        signal.alarm(seconds)
        try:
            answer = Answer(plan=plan_job(fabric, request))
        except RefusedError as error:
            answer = Answer(refused=str(error))
        except Exception as error:
            answer = Answer(error=f"{type(error).__name__}: {error}")
        _write(write_to, frame(answer))
        code = 0
    finally:
        os._exit(code)


def _read(descriptor: int) -> Any:
    """Read a value of the length that precedes it. Raises EOFError."""
    length = int.from_bytes(_exactly(descriptor, LENGTH_BYTES), "big")
    return pickle.loads(_exactly(descriptor, length))


def _exactly(descriptor: int, size: int) -> bytes:
    body = bytearray()
    while len(body) < size:
        part = os.read(descriptor, size - len(body))
        if not part:
            raise EOFError
        body += part
    return bytes(body)


def _write(descriptor: int, body: bytes) -> None:
    left = memoryview(body)
    while left:
        left = left[os.write(descriptor, left) :]


def main() -> None:
    # the controller's terminal interrupts the controller alone, which then closes the pipe
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # the output of a solver is no answer
    serve(sys.stdin.fileno(), answers)
