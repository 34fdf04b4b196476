# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The controller of a run: a process of its own, as an operator would start it, and a client for it."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc

from netfold.api import netfold_pb2 as pb
from netfold.api import netfold_pb2_grpc as rpc
from netfold.api.connection import Connection, open_channel
from netfold.controller.planning.document import plan_from_document
from netfold.controller.planning.plan import Plan
from netfold.testbed.errors import ProcessFailed, RunError, RunTimeout
from netfold.testbed.opened import Opened
from netfold.testbed.processes import last_line
from netfold.topologies.network.targets import netfold_command

READY_S = 90.0
"""It may have to start beside jobs that leave it little of the processors."""

# Hosts and switches of a testbed share a few cores: a chunk's round trip is mostly waiting for its turn on one of them,
# and windows have to cover that.
RTT_MS = 20.0


class Service(Opened):
    """A running controller. `address` is what members and the command line are told; `popen` starts its process."""

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
        command = [
            netfold_command(), "controller", "run", fabric,
            "--listen", self.address, "--state", str(directory / "controller.db"),
            "--lanes", str(lanes), "--scale", str(scale), "--first-grpc-port", str(first_grpc_port),
            "--rtt-ms", str(RTT_MS), *more,
        ]  # fmt: skip
        with self._log.open("w") as log:
            self._process = popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self._open.callback(self._end)
        self._channel = self._open.enter_context(open_channel(Connection(self.address)))
        self._stub: Any = rpc.ControllerStub(self._channel)

    def check(self) -> None:
        """Raises ProcessFailed if the controller is gone."""
        code = self._process.poll()
        if code is not None:
            raise ProcessFailed("the controller", code, last_line(self._log))

    def wait_switches(self, timeout_s: float, check: Callable[[], None]) -> None:
        """Returns when the controller has pushed its program to every switch. `check` raises if one is gone. Raises
        RunError."""
        deadline = time.monotonic() + timeout_s
        while True:
            check()
            with _plain_answers():
                status = self._stub.GetStatus(pb.StatusRequest(), timeout=timeout_s)
            waiting = [s.name for s in status.switches if not s.ready]
            if not waiting:
                return
            if time.monotonic() > deadline:
                raise RunTimeout(f"switch {waiting[0]} was not ready within {timeout_s:.0f} s")
            time.sleep(0.2)

    def submit(self, spec_yaml: str, timeout_s: float) -> Plan:
        """Admits a job and waits until it runs. Raises RunError with the controller's reason."""
        with _plain_answers():
            job = self._stub.SubmitJob(pb.SubmitJobRequest(spec_yaml=spec_yaml), timeout=timeout_s)
            for state in self.watch(job.name, timeout_s):
                if state.state == pb.RUNNING:
                    return plan_from_document(json.loads(state.plan_json))
                if state.state in (pb.FAILED, pb.CANCELED, pb.DONE):
                    raise RunError(f"job {job.name} does not run: {state.reason}")
        raise RunError(f"job {job.name} ended before it ran")

    def wait_over(self, name: str, timeout_s: float) -> pb.Job:
        """Waits until the job is over, whichever way."""
        last = pb.Job(name=name)
        for state in self.watch(name, timeout_s):
            last = state
        return last

    def watch(self, name: str, timeout_s: float | None) -> Iterator[pb.Job]:
        """The job as it is, and again whenever it changes, until it is over. Raises RunError."""
        with _plain_answers():
            yield from self._stub.WatchJob(pb.JobName(name=name), timeout=timeout_s)

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self._process.kill()
        self._process.wait()

    def _end(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _bring_up(self) -> None:
        ready = grpc.channel_ready_future(self._channel)
        deadline = time.monotonic() + READY_S
        while True:
            self.check()
            try:
                ready.result(timeout=0.2)
            except grpc.FutureTimeoutError:
                if time.monotonic() > deadline:
                    silent = f"the controller did not answer within {READY_S:.0f} s"
                    raise RunTimeout(f"{silent}; {last_line(self._log)}") from None
            else:
                return


@contextmanager
def _plain_answers() -> Iterator[None]:
    try:
        yield
    except grpc.RpcError as error:
        raise RunError(f"the controller answers: {error.details()}") from error
