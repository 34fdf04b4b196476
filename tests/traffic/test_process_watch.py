# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A process that dies without leaving its job cancels it by its watch; one that stands still, or has left, does not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest

from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as rpc
from tests.process_watches import await_no_watch, watches

DEADLINE_S = 60.0

MEMBER = """
import sys
from netfold.protocol.connection import connection
from netfold.traffic.membership.process_jobs import EnteredJob

job = EnteredJob(connection(), "train", "h1", "rank 3 at host h1")
print("in", flush=True)
if sys.stdin.readline():
    job.leave()
    print("left", flush=True)
    sys.stdin.readline()
"""


class Jobs(rpc.ControllerServicer):
    """Keeps the requests to cancel jobs."""

    # ruff: noqa: N802 (the proto's names)

    def __init__(self) -> None:
        self.canceled_by: list[str] = []
        self._changed = threading.Condition()

    def CancelJob(self, request: pb.CancelJobRequest, context: Any) -> pb.Job:
        with self._changed:
            self.canceled_by.append(f"{request.name} {request.canceled_by}")
            self._changed.notify_all()
        return pb.Job(name=request.name, state=pb.CANCELED)

    def await_cancel(self) -> str:
        with self._changed:
            assert self._changed.wait_for(lambda: bool(self.canceled_by), DEADLINE_S)
        return self.canceled_by[0]


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    found, server = Jobs(), grpc.server(ThreadPoolExecutor(4))
    rpc.add_ControllerServicer_to_server(found, server)
    server.add_insecure_port(f"unix:{tmp_path}/c")
    server.start()
    yield found
    server.stop(0).wait()


@pytest.fixture
def member(jobs: Jobs, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, "TMPDIR": str(tmp_path), "NETFOLD_CONTROLLER": f"unix:{tmp_path}/c"}
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", MEMBER]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "in\n"
        yield process
        process.kill()


def test_the_watch_of_a_killed_process_cancels_its_job(
    jobs: Jobs, member: subprocess.Popen[str], tmp_path: Path
):
    assert len(watches(tmp_path)) == 1
    member.kill()
    assert jobs.await_cancel() == f"train the watch of rank 3 at host h1: its process {member.pid} has ended"
    await_no_watch(tmp_path)


def test_a_process_that_leaves_ends_its_watch(jobs: Jobs, member: subprocess.Popen[str], tmp_path: Path):
    print(file=member.stdin, flush=True)
    assert member.stdout is not None
    assert member.stdout.readline() == "left\n"
    await_no_watch(tmp_path)
    member.kill()
    member.wait()
    assert jobs.canceled_by == []
    assert not list(tmp_path.glob("netfold-*/*"))


def test_a_process_that_stands_still_keeps_its_job(jobs: Jobs, member: subprocess.Popen[str], tmp_path: Path):
    member.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, member.pid, os.WSTOPPED | os.WNOWAIT)
    assert len(watches(tmp_path)) == 1
    member.send_signal(signal.SIGCONT)
    print(file=member.stdin, flush=True)
    await_no_watch(tmp_path)
    assert jobs.canceled_by == []
