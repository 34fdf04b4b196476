# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The controller of a run: a process, as an operator starts it, and a client of its API."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc

from netfold.controller.planning.document import plan_from_document
from netfold.controller.planning.plan import Plan
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as rpc
from netfold.protocol.channels import open_channel
from netfold.protocol.connection import Connection
from netfold.testbed.errors import ProcessFailedError, RunError, RunTimeoutError
from netfold.testbed.managed import ManagedResource
from netfold.testbed.network.processes import wait_or_kill
from netfold.testbed.network.targets import installed_command
from netfold.testbed.processes import last_line

READY_S = 300.0
"""Other processes may leave it little processor time. One that ends is noticed at once."""
REQUEST_S = 30.0
STATUS_POLL_S = 0.2

# Hosts and switches of a testbed share a few cores: an RTT is mostly scheduling delay, which windows must cover.
RTT_MS = 20.0


class ControllerProcess(ManagedResource):
    """A running controller at `address`, with its `recording`; `popen` starts its process."""

    def __init__(
        self,
        fabric: str,
        directory: Path,
        lanes: int,
        scale: float,
        first_grpc_port: int,
        popen: Callable[..., subprocess.Popen[Any]],
        more: Sequence[str] = (),
    ) -> None:
        super().__init__()
        self.address = f"unix:{directory}/controller.sock"
        self._log = directory / "controller.log"
        self.recording = directory / "recording.jsonl"
        command = [
            installed_command("netfold"), "controller", "run", fabric,
            "--listen", self.address, "--state", str(directory / "controller.db"),
            "--lanes", str(lanes), "--scale", str(scale), "--first-grpc-port", str(first_grpc_port),
            "--host-rtt-ms", str(RTT_MS), "--record", str(self.recording), *more,
        ]  # fmt: skip
        with self._log.open("w") as log:
            self._process = popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self._open.callback(self._end)
        self._stub: Any = None

    def check(self) -> None:
        """Raises ProcessFailedError if the controller has ended."""
        code = self._process.poll()
        if code is not None:
            raise ProcessFailedError("the controller", code, last_line(self._log))

    def wait_switches(self, timeout_s: float, check: Callable[[], None]) -> None:
        """Waits until the controller has pushed its program to every switch. `check` raises for one that ended. Raises
        RunError."""
        deadline = time.monotonic() + timeout_s
        while True:
            check()
            with _rpc_errors():
                status = self._stub.GetStatus(pb.StatusRequest(), timeout=timeout_s)
            waiting = [s.name for s in status.switches if not s.ready]
            if not waiting:
                return
            if time.monotonic() > deadline:
                raise RunTimeoutError(f"switch {waiting[0]} was not ready within {timeout_s:.0f} s")
            time.sleep(STATUS_POLL_S)  # GetStatus has no notification

    def submit(self, spec_yaml: str, timeout_s: float) -> Plan:
        """Admits a job and waits until it runs. Raises RunError with the controller's reason."""
        with _rpc_errors():
            job = self._stub.SubmitJob(pb.SubmitJobRequest(spec_yaml=spec_yaml), timeout=timeout_s)
            for state in self.watch(job.name, timeout_s):
                if state.state == pb.RUNNING and (plan := plan_of(state)) is not None:
                    return plan
                if state.state in (pb.FAILED, pb.CANCELED, pb.DONE):
                    raise RunError(f"job {job.name} did not start: {state.reason}")
        raise RunError(f"job {job.name} ended before it started")

    def job(self, name: str) -> pb.Job:
        """Raises RunError."""
        with _rpc_errors():
            found: pb.Job = self._stub.GetJob(pb.JobName(name=name), timeout=REQUEST_S)
        return found

    def jobs(self) -> list[pb.Job]:
        """All jobs, the ended ones too. Raises RunError."""
        with _rpc_errors():
            return list(self._stub.ListJobs(pb.ListJobsRequest(all=True), timeout=REQUEST_S).jobs)

    def explain(self, name: str) -> list[str]:
        """Raises RunError."""
        with _rpc_errors():
            return list(self._stub.ExplainJob(pb.JobName(name=name), timeout=REQUEST_S).steps)

    def cancel(self, name: str) -> pb.Job:
        """Raises RunError."""
        with _rpc_errors():
            ended: pb.Job = self._stub.CancelJob(pb.CancelJobRequest(name=name), timeout=REQUEST_S)
        return ended

    def wait_ended(self, name: str, timeout_s: float) -> pb.Job:
        """Waits until the job has ended."""
        last = pb.Job(name=name)
        for state in self.watch(name, timeout_s):
            last = state
        return last

    def watch(self, name: str, timeout_s: float | None) -> Iterator[pb.Job]:
        """The job, and again after each change, until it has ended. Raises RunError."""
        with _rpc_errors():
            yield from self._stub.WatchJob(pb.JobName(name=name), timeout=timeout_s)

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        """Kill it, like a crash."""
        self._process.kill()
        self._process.wait()

    def _end(self) -> None:
        self._process.terminate()
        wait_or_kill(self._process, 5.0)

    def _bring_up(self) -> None:
        deadline = time.monotonic() + READY_S
        while self._stub is None:
            self.check()
            try:
                channel = self._open.enter_context(open_channel(Connection(self.address)))
            except grpc.RpcError:
                if time.monotonic() > deadline:
                    late = f"the controller did not answer within {READY_S:.0f} s"
                    raise RunTimeoutError(f"{late}; {last_line(self._log)}") from None
                time.sleep(STATUS_POLL_S)  # a process that starts has no event
            else:
                self._stub = rpc.ControllerStub(channel)


def plan_of(job: pb.Job) -> Plan | None:
    """The plan of a job; None before it has one."""
    return plan_from_document(json.loads(job.plan_json)) if job.plan_json else None


@contextmanager
def _rpc_errors() -> Iterator[None]:
    try:
        yield
    except grpc.RpcError as error:
        if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
            raise RunTimeoutError("the controller did not answer before the deadline of this step") from error
        raise RunError(f"controller: {error.details()}") from error
