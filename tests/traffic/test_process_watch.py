# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A process that dies without leaving its job cancels it by its watch; one that stands still, or has left, does not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as rpc
from netfold.protocol.connection import Connection
from netfold.traffic.membership.process_jobs import CANCELED_BY, cancel_abandoned_jobs
from netfold.traffic.membership.process_watch import watch_process
from tests.process_watches import await_no_watch, watches
from tests.traffic.scripted_controller import serve

DEADLINE_S = 60.0

MEMBER = """
import os
import signal
import sys
from netfold.protocol.connection import connection
from netfold.traffic.membership.process_jobs import EnteredJob

job = EnteredJob(connection(), "train", "h1", "rank 3 at host h1")
print("in", flush=True)
for word in sys.stdin:
    match word.strip():
        case "leave":
            job.leave()
        case "enter":
            job = EnteredJob(connection(), "train", "h1", "rank 3 at host h1")
        case "leave in a child":
            if not (child := os.fork()):
                job.leave()
                os._exit(0)
            os.waitpid(child, 0)
        case "fork":
            if not os.fork():
                signal.pause()
    print("done", flush=True)
"""


class Jobs(rpc.ControllerServicer):
    """Keeps the requests to cancel jobs. `is_connected`: h1, which is a member of each."""

    # ruff: noqa: N802 (the proto's names)

    def __init__(self) -> None:
        self.is_connected = False
        self.canceled_by: list[str] = []
        self._changed = threading.Condition()

    def GetJob(self, request: pb.JobName, context: Any) -> pb.Job:
        members = [pb.Member(host="h1", connected=self.is_connected)]
        return pb.Job(name=request.name, state=pb.RUNNING, members=members)

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
    found = Jobs()
    server = serve(found, f"unix:{tmp_path}/c")
    yield found
    server.stop(0).wait()


@contextmanager
def running(folder: Path, command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A process that may enter a job of the controller in `folder`."""
    environment = {**os.environ, "TMPDIR": str(folder), "NETFOLD_CONTROLLER": f"unix:{folder}/c"}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, text=True, env=environment, start_new_session=True, **options
    ) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # its children, too


def await_line(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == f"{line}\n"


def tell(process: subprocess.Popen[str], *words: str) -> None:
    for word in words:
        print(word, file=process.stdin, flush=True)
        await_line(process, "done")


@pytest.fixture
def member(jobs: Jobs, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    with running(tmp_path, [sys.executable, "-c", MEMBER]) as process:
        await_line(process, "in")
        yield process


def test_the_watch_of_a_killed_process_cancels_its_job(
    jobs: Jobs, member: subprocess.Popen[str], tmp_path: Path
):
    assert len(watches(tmp_path)) == 1
    member.kill()
    assert jobs.await_cancel() == f"train the watch of rank 3 at host h1: its process {member.pid} has ended"
    await_no_watch(tmp_path)


def test_a_process_that_leaves_ends_its_watch(jobs: Jobs, member: subprocess.Popen[str], tmp_path: Path):
    tell(member, "leave")
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
    tell(member, "leave")
    await_no_watch(tmp_path)
    assert jobs.canceled_by == []


def test_the_watch_runs_no_code_of_the_current_folder_and_the_netfold_of_its_process(
    jobs: Jobs, tmp_path: Path
):
    planted, elsewhere = tmp_path / "planted", tmp_path / "elsewhere"
    (planted / "netfold").mkdir(parents=True)
    for name in ("json.py", "netfold/__init__.py"):
        (planted / name).write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    elsewhere.mkdir()
    script = elsewhere / "train.py"
    script.write_text(f"import sys\nsys.path[:] = {[p for p in sys.path if p]!r}\n{MEMBER}")
    python = str(Path(sys.executable).resolve())  # not that of a virtual environment, which has netfold
    with running(tmp_path, [python, "-S", str(script)], cwd=planted) as process:
        await_line(process, "in")
        process.kill()
        assert jobs.await_cancel().startswith("train the watch of rank 3")
    await_no_watch(tmp_path)
    assert not (tmp_path / "ran").exists()


def test_a_process_that_is_killed_while_its_watch_starts_is_seen(jobs: Jobs, tmp_path: Path):
    begun, goes_on = tmp_path / "begun", tmp_path / "goes on"
    os.mkfifo(begun)
    os.mkfifo(goes_on)
    slow = tmp_path / "python"
    slow.write_text(f'#!/bin/sh\necho > "{begun}"\nread _ < "{goes_on}"\nexec "{sys.executable}" "$@"\n')
    slow.chmod(0o755)
    member = MEMBER.replace("import sys", f"import sys\nsys.executable = {str(slow)!r}", 1)
    with running(tmp_path, [sys.executable, "-c", member]) as process:
        begun.read_text()
        process.kill()
        process.wait()
    goes_on.write_text("\n")
    assert jobs.await_cancel().startswith("train the watch of rank 3")
    await_no_watch(tmp_path)


def test_a_cleaner_of_the_folder_does_not_end_the_watch(
    jobs: Jobs, member: subprocess.Popen[str], tmp_path: Path
):
    for path in tmp_path.glob("netfold-*/*"):
        path.unlink()
    member.kill()
    assert jobs.await_cancel().startswith("train the watch of rank 3")
    await_no_watch(tmp_path)


def test_a_late_watch_leaves_the_job_of_the_program_that_followed(
    jobs: Jobs, member: subprocess.Popen[str], tmp_path: Path
):
    (watch,) = watches(tmp_path)
    os.kill(watch, signal.SIGSTOP)
    member.kill()
    member.wait()
    with pytest.MonkeyPatch.context() as following:
        following.setattr(tempfile, "tempdir", str(tmp_path))
        assert cancel_abandoned_jobs(Connection(f"unix:{tmp_path}/c"), 10) == ["train"]
    jobs.is_connected = True
    os.kill(watch, signal.SIGCONT)
    await_no_watch(tmp_path)
    assert jobs.canceled_by == [f"train {CANCELED_BY}"]


def test_a_forked_child_neither_leaves_the_job_nor_keeps_its_watch(
    jobs: Jobs, member: subprocess.Popen[str], tmp_path: Path
):
    tell(member, "leave in a child")
    assert len(watches(tmp_path)) == 1
    assert list(tmp_path.glob("netfold-*/*"))
    tell(member, "fork", "leave")
    await_no_watch(tmp_path)
    tell(member, "enter", "fork")
    member.kill()
    assert jobs.await_cancel().startswith("train the watch of rank 3")
    await_no_watch(tmp_path)


def test_a_job_that_is_entered_again_has_one_watch(jobs: Jobs, member: subprocess.Popen[str], tmp_path: Path):
    tell(member, *["leave", "enter"] * 3)
    (last,) = tmp_path.glob("netfold-*/*")
    tell(member, "leave")
    await_no_watch(tmp_path)
    assert not last.exists()
    assert jobs.canceled_by == []


def test_a_job_without_a_file_is_watched(jobs: Jobs, tmp_path: Path):
    """Nor is a file left that is not whole."""
    folder = tmp_path / "full"
    member = MEMBER.replace("import sys", f"import sys, tempfile\ntempfile.tempdir = {str(folder)!r}", 1)
    with running(tmp_path, [sys.executable, "-c", member], stderr=subprocess.PIPE) as process:
        await_line(process, "in")
        process.kill()
        assert jobs.await_cancel().startswith("train the watch of rank 3")
        assert process.stderr is not None
        assert "job train has no file" in process.stderr.read()


def test_a_frozen_program_has_no_watch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with pytest.raises(OSError, match="is no interpreter of Python"):
        watch_process(str(tmp_path), variables={})
