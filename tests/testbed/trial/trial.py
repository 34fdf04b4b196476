# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Runs the steps of a trial on a testbed, one after the other, each at its time or later: on a slow machine a trial
takes longer, and nothing else changes."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc

from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as rpc
from netfold.protocol.channels import open_channel
from netfold.protocol.connection import Connection
from netfold.testbed.network.emulated_network import EmulatedNetwork
from netfold.testbed.network.faults import Faults
from netfold.testbed.processes import last_line
from netfold.testbed.testbed import Testbed
from tests.simulation.scenario import Step
from tests.testbed.trial.checks import Ending, violations_of
from tests.testbed.trial.drawing import TrialJob
from tests.testbed.trial.program import TIMEOUT_S
from tests.testbed.trial.records import WorkerRecord, turns_of

ROOT = Path(__file__).resolve().parents[3]
POLL_S = 0.05

CONTROLLER = ("--switch-restart-timeout", "600")
"""A switch that is away is awaited: a job without another plan goes on when it is back."""

MOST_JOBS = 16
"""That have not ended. Where jobs come faster than the machine ends them, new ones are left out."""

JOBS_A_LISTING = 20
"""Jobs after which the ends of jobs are read: the controller keeps the last 200 that have ended."""

END_S = 2 * TIMEOUT_S
"""After the last step, for all to come to rest."""


@dataclass
class WorkerProcess:
    """A worker's process; its files are `out`, and beside it its log and its calls."""

    popen: subprocess.Popen[Any]
    out: Path
    is_newcomer: bool
    is_killed: bool = False

    def record(self, host: str) -> WorkerRecord:
        """Returns the record of a process that has ended. One that is killed once it wrote why it ended counts as ended
        by itself."""
        turns = turns_of(self.out.with_suffix(".calls"))
        if self.is_killed and not self.out.exists():
            return WorkerRecord(host, turns, self.is_newcomer, is_killed=True)
        if self.popen.returncode != 0 and not self.is_killed:
            crash = f"exit code {self.popen.returncode}; {last_line(self.out.with_suffix('.log'))}"
            return WorkerRecord(host, turns, self.is_newcomer, crash=crash)
        told = json.loads(self.out.read_text())
        return WorkerRecord(host, turns, self.is_newcomer, error=told["error"], text=told["text"])


@dataclass
class _JobRun:
    job: TrialJob
    answer: Future[Any] | None = None
    is_admitted: bool = False
    is_canceled: bool = False
    processes: dict[str, list[WorkerProcess]] = field(default_factory=dict)

    @property
    def has_ended(self) -> bool:
        return self.answer is None and not self.running

    @property
    def running(self) -> list[WorkerProcess]:
        return [p for ps in self.processes.values() for p in ps if p.popen.poll() is None]

    def records(self) -> list[WorkerRecord]:
        return [p.record(host) for host, ps in self.processes.items() for p in ps]


@dataclass(frozen=True)
class Outcome:
    """`endings`: by job; `late`: jobs that a slow machine ended; `left_out`: jobs that were not submitted, as
    MOST_JOBS had not ended; `sums`: results that were checked."""

    violations: list[str]
    endings: dict[str, Ending]
    late: list[str]
    left_out: list[str]
    sums: int

    def __str__(self) -> str:
        states = [e.state for e in self.endings.values()]
        counts = ", ".join(f"{states.count(s)} {s}" for s in sorted(set(states)))
        return (
            f"{len(states)} jobs ({counts}; {len(self.late)} late; {len(self.left_out)} more left out), "
            f"{self.sums} sums checked"
        )


class Trial:
    """`run` once. `system` is up; its controller runs with the options CONTROLLER."""

    def __init__(self, system: Testbed, on_step: Callable[[str], None] = lambda text: None) -> None:
        self._system = system
        self._on_step = on_step
        self._jobs: dict[str, _JobRun] = {}
        self._left_out: list[str] = []
        self._numbers = itertools.count()
        self._is_serving = True
        self._violations: list[str] = []
        self._calls = ThreadPoolExecutor(2 * MOST_JOBS)
        self._listings: list[Future[Any]] = []

    def run(self, steps: Sequence[Step]) -> Outcome:
        """Raises RunError, NetworkError."""
        began = time.monotonic()
        with self._calls:
            for step in steps:
                self._poll_until(lambda at=step.at_s: time.monotonic() - began >= at)
                self._on_step(f"{time.monotonic() - began:6.1f} {step.kind}{step.arguments}")
                getattr(self, step.kind)(*step.arguments)
            self._come_to_rest()
            endings = self._endings()
        self._read_log()
        for name, run in self._jobs.items():
            self._violations += violations_of(
                run.job, run.records(), endings[name], is_canceled=run.is_canceled
            )
        late = [n for n, e in endings.items() if e.state == "failed" and e.is_late]
        sums = sum(len(r.sums) for run in self._jobs.values() for r in run.records())
        return Outcome(self._violations, endings, late, self._left_out, sums)

    # ---- steps ----------------------------------------------------------------------------------------

    def submit(self, job: TrialJob) -> None:
        if sum(not run.has_ended for run in self._jobs.values()) >= MOST_JOBS:
            self._left_out.append(job.name)
            return
        run = self._jobs[job.name] = _JobRun(job)
        self._request(run)
        if len(self._jobs) % JOBS_A_LISTING == 0:
            request = pb.ListJobsRequest(all=True)
            self._listings.append(self._calls.submit(self._call, "ListJobs", request))

    def start_worker(self, name: str, host: str) -> None:
        """A newcomer in place of a worker that was killed."""
        run = self._jobs.get(name)
        earlier = run.processes.get(host, []) if run else []
        if run and earlier and earlier[-1].is_killed:
            self._start(run, host)

    def kill_worker(self, name: str, host: str) -> None:
        run = self._jobs.get(name)
        for process in run.processes.get(host, ()) if run else ():
            if process.popen.poll() is None:
                process.is_killed = True
                process.popen.kill()
                process.popen.wait()

    def cancel(self, name: str) -> None:
        run = self._jobs.get(name)
        if run and run.is_admitted:
            run.is_canceled = True
            request = pb.CancelJobRequest(name=name)
            self._calls.submit(self._call, "CancelJob", request)

    def kill_controller(self) -> None:
        self._system.controller.kill()
        self._is_serving = False
        self._read_log()

    def start_controller(self) -> None:
        self._system.start_controller()
        self._is_serving = True

    def kill_switch(self, name: str) -> None:
        self._system.net.switches[name].kill()

    def start_switch(self, name: str) -> None:
        self._system.net.switches[name].start()

    def cut_link(self, a: str, b: str, is_silent: bool) -> None:
        """Silent: it loses all frames, and its ends have their carrier."""
        net = self._system.net
        if isinstance(net, EmulatedNetwork) and not is_silent:
            net.set_link(f"{a}-{b}", up=False)
        else:
            self._set_loss(a, b, 1.0)

    def mend_link(self, a: str, b: str, is_silent: bool) -> None:
        net = self._system.net
        if isinstance(net, EmulatedNetwork) and not is_silent:
            net.set_link(f"{a}-{b}", up=True)
        else:
            self._set_loss(a, b, 0.0)

    def _set_loss(self, a: str, b: str, loss: float) -> None:
        for sender, receiver in ((a, b), (b, a)):
            self._system.net.set_faults(sender, receiver, Faults(loss=loss))

    # ---- jobs -----------------------------------------------------------------------------------------

    def _request(self, run: _JobRun) -> None:
        request = pb.SubmitJobRequest(spec_yaml=run.job.text, queue=True)
        run.answer = self._calls.submit(self._call, "SubmitJob", request)

    def _poll(self) -> None:
        """Starts the workers of jobs that the controller has admitted; a submission without an answer is repeated."""
        for run in self._jobs.values():
            if run.answer is None or not run.answer.done():
                continue
            error, run.answer = run.answer.exception(), None
            if error is not None and not isinstance(error, grpc.RpcError):
                raise error
            code = None if error is None else error.code()
            if code in (None, grpc.StatusCode.ALREADY_EXISTS):
                run.is_admitted = True
                for host in run.job.workers:
                    self._start(run, host)
            elif code is grpc.StatusCode.UNAVAILABLE:
                self._request(run)
            else:
                self._violations.append(f"{run.job.name} was refused: {error.details()}")

    def _start(self, run: _JobRun, host: str) -> None:
        job, earlier = run.job, run.processes.setdefault(host, [])
        out = self._system.directory / f"{job.name}-{host}-{len(earlier)}.json"
        command: list[object] = [sys.executable, "-m", "tests.testbed.trial.program"]
        command += [self._system.controller.address, job.name, host, "--index", job.workers.index(host)]
        command += ["--seed", f"{job.seed} {out.stem}", "--calls", job.calls[host], "--out", out]
        command += ["--late"] if host == job.late else []
        with out.with_suffix(".log").open("w") as log:
            popen = self._system.net.hosts[host].popen(
                command, cwd=ROOT, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        earlier.append(WorkerProcess(popen, out, is_newcomer=bool(earlier)))

    # ---- the end --------------------------------------------------------------------------------------

    def _come_to_rest(self) -> None:
        """All workers end; then switches hold nothing of jobs, and nothing counts as failed."""
        deadline = time.monotonic() + END_S

        def has_ended() -> bool:
            return all(run.has_ended for run in self._jobs.values())

        def is_at_rest() -> bool:
            status = self._call("GetStatus", pb.StatusRequest())
            slots = sum(s.slots_in_use for s in status.switches)
            return not slots and not status.failed_elements and all(s.ready for s in status.switches)

        if not self._poll_until(has_ended, deadline):
            left = [f"{n}: {len(r.running)}" for n, r in self._jobs.items() if r.running]
            self._violations.append(f"after {END_S:g} s there are workers left, by job: {', '.join(left)}")
            self._end_workers()
        elif not self._poll_until(is_at_rest, deadline, 0.5):
            status = self._call("GetStatus", pb.StatusRequest())
            self._violations.append(f"not at rest after {END_S:g} s: {status}")

    def _end_workers(self) -> None:
        for run in self._jobs.values():
            for process in run.running:
                process.popen.kill()
                process.popen.wait()

    def _endings(self) -> dict[str, Ending]:
        answers = [f.result() for f in self._listings if f.exception() is None]
        answers.append(self._call("ListJobs", pb.ListJobsRequest(all=True)))
        found = {
            j.name: Ending(pb.JobState.Name(j.state).lower(), j.reason)
            for answer in answers
            for j in answer.jobs
        }
        return {name: found.get(name, Ending("unknown", "the controller has lost it")) for name in self._jobs}

    def _read_log(self) -> None:
        """Reads the log of a controller that has ended, or has nothing more to do."""
        log = (self._system.directory / "controller.log").read_text(errors="replace")
        if "Traceback" in log:
            self._violations.append(
                f"the controller's log has a traceback: {log[log.index('Traceback') :][:3000]}"
            )

    # ---- helpers --------------------------------------------------------------------------------------

    def _call(self, method: str, request: Any) -> Any:
        """The answer of a controller, also of one that starts. Raises RpcError."""
        where = Connection(self._system.controller.address)
        with open_channel(where, END_S, wait_for_ready=True) as channel:
            return getattr(rpc.ControllerStub(channel), method)(request, timeout=END_S)

    def _poll_until(
        self, condition: Callable[[], bool], deadline: float = float("inf"), pause_s: float = POLL_S
    ) -> bool:
        """Whether it holds before the deadline. Meanwhile jobs and processes are looked after."""
        while True:
            self._poll()
            if self._is_serving:
                self._system.controller.check()
            if condition():
                return True
            if time.monotonic() > deadline:
                return False
            time.sleep(pause_s)
