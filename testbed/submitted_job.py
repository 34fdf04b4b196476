# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A job of a testbed's controller."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netfold.controller.planning.plan import Plan
from netfold.protocol import netfold_pb2 as pb
from netfold.testbed.controller_process import ControllerProcess, plan_of
from netfold.testbed.processes import ProcessGroup
from netfold.testbed.step_timeouts import StepTimeouts

Results = Mapping[str, Mapping[str, Any]]
"""The figures of each worker, by host."""


@dataclass(frozen=True)
class JobStatus:
    """A job as its controller has it.

    state      "queued", "installing", "running", "done", "failed" or "canceled"
    reason     why it is in this state; "" if that needs no reason
    epoch      generation of its installation: each repair of its trees begins one
    plan       the installed trees; None before the first installation, and for an ended job in `Testbed.jobs`
    connected  hosts whose members take part
    """

    state: str
    reason: str
    epoch: int
    plan: Plan | None
    connected: tuple[str, ...]


class SubmittedJob:
    """A job that runs. `plan`: as admitted, `status` has the present one; `workers`, `servers`: the processes that the
    testbed started, by host; `progress`: file of the first worker's progress; `started`: by time.monotonic."""

    def __init__(
        self,
        name: str,
        plan: Plan,
        controller: ControllerProcess,
        workers: ProcessGroup,
        servers: ProcessGroup,
        progress: Path,
        timeouts: StepTimeouts,
        check: Callable[[], None],
    ) -> None:
        self.name = name
        self.plan = plan
        self.workers = workers
        self.servers = servers
        self.progress = progress
        self.started = time.monotonic()
        self._controller = controller
        self._timeouts = timeouts
        self._check = check

    def status(self) -> JobStatus:
        """The present state. Raises RunError."""
        return status_of(self._controller.job(self.name))

    def explain(self) -> list[str]:
        """Explains what the job does or waits for, a sentence each. Raises RunError."""
        return self._controller.explain(self.name)

    def cancel(self) -> JobStatus:
        """Cancels the job: its members are notified, its entries and slots are freed. Raises RunError."""
        return status_of(self._controller.cancel(self.name))

    def wait(self, timeout_s: float | None = None) -> JobStatus:
        """Waits until the job has ended. Raises RunTimeoutError."""
        return status_of(self._controller.wait_ended(self.name, timeout_s or self._timeouts.step_s))

    def result(self, timeout_s: float | None = None, meanwhile: Callable[[], None] = lambda: None) -> Results:
        """Waits for the workers that the testbed started; their results. Calls `meanwhile` periodically. Raises
        RunError, in one line, if a worker, a switch or the controller ends before."""

        def poll() -> None:
            self._check()
            meanwhile()

        results = self.workers.wait(timeout_s or self._timeouts.step_s, poll)
        self._controller.wait_ended(self.name, self._timeouts.job_s)
        self.servers.wait(self._timeouts.job_s, self._controller.check)
        return results


def status_of(job: pb.Job) -> JobStatus:
    connected = tuple(member.host for member in job.members if member.connected)
    return JobStatus(pb.JobState.Name(job.state).lower(), job.reason, job.epoch, plan_of(job), connected)
