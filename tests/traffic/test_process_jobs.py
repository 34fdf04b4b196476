# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs of processes that have ended are canceled by a process that follows on the same machine; others go on."""

from __future__ import annotations

import errno
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as rpc
from netfold.protocol.connection import Connection
from netfold.traffic.membership import process_jobs
from netfold.traffic.membership.jobs import KeptJob
from netfold.traffic.membership.process_jobs import EnteredJob, cancel_abandoned_jobs, take_kept_job
from tests.process_watches import await_no_watch
from tests.traffic.scripted_controller import serve

RunMember = Callable[..., None]


class Jobs(rpc.ControllerServicer):
    """Jobs of h1 and h2, by name: is h1 connected."""

    # ruff: noqa: N802 (the proto's names)

    def __init__(self) -> None:
        self.running: dict[str, bool] = {}
        self.generation = 0
        self.refuses = False

    def GetJob(self, request: pb.JobName, context: Any) -> pb.Job:
        if request.name not in self.running:
            context.abort(grpc.StatusCode.NOT_FOUND, f"there is no job '{request.name}'")
        members = [pb.Member(host="h1", connected=self.running[request.name]), pb.Member(host="h2")]
        return pb.Job(name=request.name, state=pb.RUNNING, members=members, generation=self.generation)

    def CancelJob(self, request: pb.CancelJobRequest, context: Any) -> pb.Job:
        if self.refuses:
            context.abort(grpc.StatusCode.PERMISSION_DENIED, "a member's token joins jobs, and does no more")
        del self.running[request.name]
        return pb.Job(name=request.name, state=pb.CANCELED)


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Jobs, Connection]]:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    found, target = Jobs(), f"unix:{tmp_path}/c"
    server = serve(found, target)
    yield found, Connection(target)
    server.stop(0).wait()


@pytest.fixture
def run_member(monkeypatch: pytest.MonkeyPatch) -> RunMember:
    """A process that joins a job as h1 and ends, and its watch with it; it leaves the job only where the test wants
    it."""

    def run(
        where: Connection,
        job: str,
        leaves: bool = False,
        generation: int | None = None,
        run: str = "",
        has_failed: bool = False,
        is_submitted: bool = True,
    ) -> None:
        with subprocess.Popen(["sleep", "60"]) as member, monkeypatch.context() as as_member:
            as_member.setattr(os, "getpid", lambda: member.pid)
            as_member.setattr(process_jobs, "watch_process", lambda *_, variables: -1)
            entered = EnteredJob(
                *(where, job, "h1", "rank 0 at host h1"),
                generation=generation,
                run=run,
                is_submitted=is_submitted,
            )
            if leaves:
                entered.leave(has_failed=has_failed)
            member.kill()

    return run


def test_a_job_of_a_process_that_has_ended_is_canceled(jobs: tuple[Jobs, Connection], run_member: RunMember):
    controller, where = jobs
    controller.running = {"dead/1": False, "left": False, "own": False}
    run_member(where, "dead/1")
    run_member(where, "left", leaves=True)
    own = EnteredJob(where, "own", "h1", "rank 0 at host h1")
    assert cancel_abandoned_jobs(where, 10) == ["dead/1"]
    assert controller.running == {"left": False, "own": False}
    own.leave()
    assert cancel_abandoned_jobs(where, 10) == []


def test_a_job_of_the_same_name_whose_member_is_connected_goes_on(
    jobs: tuple[Jobs, Connection], run_member: RunMember
):
    controller, where = jobs
    controller.running = {"train": True}
    run_member(where, "train")
    assert cancel_abandoned_jobs(where, 10) == []
    controller.running = {"train": False}
    assert cancel_abandoned_jobs(where, 10) == ["train"]


def test_a_kept_job_is_found_by_the_processes_that_follow_in_its_run(
    jobs: tuple[Jobs, Connection], run_member: RunMember
):
    controller, where = jobs
    controller.running = {"kept": False, "own": False}
    run_member(where, "kept", generation=0, run="run")
    own = EnteredJob(where, "own", "h1", "rank 0 at host h1", generation=0, run="run")
    assert take_kept_job(where, "another run") is None
    assert take_kept_job(Connection("unix:/nowhere"), "run") is None
    assert take_kept_job(where, "") is None
    assert cancel_abandoned_jobs(where, 10, "run") == []
    assert take_kept_job(where, "run") == KeptJob("kept", 0)
    assert take_kept_job(where, "run") is None
    own.leave()


@pytest.mark.parametrize("has_failed", [False, True])
def test_a_process_whose_calls_failed_leaves_its_kept_job_to_those_that_follow(
    jobs: tuple[Jobs, Connection], run_member: RunMember, has_failed: bool
):
    """Its program may have destroyed its groups before it ended."""
    where = jobs[1]
    run_member(where, "kept", leaves=True, generation=0, run="run", has_failed=has_failed)
    assert take_kept_job(where, "run") == (KeptJob("kept", 0) if has_failed else None)


def test_a_process_whose_calls_failed_may_follow_itself(jobs: tuple[Jobs, Connection], tmp_path: Path):
    """It destroys its groups and makes new ones. Its file is gone then, and its watch."""
    controller, where = jobs
    controller.running = {"kept": False}
    entered = EnteredJob(where, "kept", "h1", "rank 0 at host h1", generation=2, run="run")
    assert take_kept_job(where, "run") is None
    entered.leave(has_failed=True)
    assert cancel_abandoned_jobs(where, 10, "another run") == []
    assert take_kept_job(where, "run") == KeptJob("kept", 2)
    assert take_kept_job(where, "run") is None
    await_no_watch(tmp_path)
    assert controller.running == {"kept": False}


def test_nothing_is_left_of_a_failed_group_that_none_follow(jobs: tuple[Jobs, Connection], tmp_path: Path):
    """As in the last attempt of a run: its job is not kept."""
    entered = EnteredJob(jobs[1], "train", "h1", "rank 0 at host h1", run="run")
    entered.leave(has_failed=True)
    assert process_jobs._LEFT == {}
    assert not list(tmp_path.glob("netfold-*/*.json"))
    await_no_watch(tmp_path)


def test_a_kept_job_of_another_run_is_canceled(jobs: tuple[Jobs, Connection], run_member: RunMember):
    controller, where = jobs
    controller.running = {"kept": False}
    run_member(where, "kept", generation=0, run="run")
    assert cancel_abandoned_jobs(where, 10, "another run") == ["kept"]


@pytest.mark.parametrize("run", ["run", ""])
def test_a_kept_job_that_others_have_taken_over_goes_on(
    jobs: tuple[Jobs, Connection], run_member: RunMember, run: str
):
    controller, where = jobs
    controller.running = {"kept": False}
    controller.generation = 1
    run_member(where, "kept", generation=0, run=run)
    assert cancel_abandoned_jobs(where, 10) == []
    assert controller.running == {"kept": False}
    assert not list(process_jobs._folder().iterdir())


def test_a_job_of_another_controller_goes_on(jobs: tuple[Jobs, Connection], run_member: RunMember):
    controller, where = jobs
    controller.running = {"train": False}
    run_member(Connection("unix:/nowhere"), "train")
    assert cancel_abandoned_jobs(where, 10) == []
    assert controller.running == {"train": False}


def test_a_job_that_may_not_be_canceled_is_tried_again(jobs: tuple[Jobs, Connection], run_member: RunMember):
    controller, where = jobs
    controller.running = {"train": False}
    run_member(where, "train")
    controller.refuses = True
    assert cancel_abandoned_jobs(where, 10) == []
    controller.refuses = False
    assert cancel_abandoned_jobs(where, 10) == ["train"]


def test_folders_that_were_not_used_for_days_are_deleted(jobs: tuple[Jobs, Connection], tmp_path: Path):
    """Containers of earlier boots; one of this boot may live."""
    own = process_jobs._folder()
    kept, old = (tmp_path / f"netfold-{os.getuid()}-{name}" for name in ("boot-1", "boot-2"))
    for folder in (kept, old):
        folder.mkdir(mode=0o700)
        (folder / "1-train.json").write_text("{}")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    (elsewhere / "own.json").write_text("{}")
    container = own.with_name(f"{own.name}1")
    container.mkdir(mode=0o700)
    for folder in (old, elsewhere, container):
        os.utime(folder, (0.0, 0.0))
    (tmp_path / f"netfold-{os.getuid()}-link-3").symlink_to(elsewhere)
    assert cancel_abandoned_jobs(jobs[1], 10) == []
    assert kept.is_dir()
    assert container.is_dir()
    assert not old.exists()
    assert (elsewhere / "own.json").exists()


def test_no_controller_and_a_folder_of_another_user_are_no_errors(
    jobs: tuple[Jobs, Connection], run_member: RunMember, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    nowhere = Connection(f"unix:{tmp_path}/nowhere")
    run_member(nowhere, "train")
    assert cancel_abandoned_jobs(nowhere, 0.2) == []
    (folder,) = tmp_path.glob("netfold-*")
    folder.chmod(0o755)  # another user may have made it
    EnteredJob(jobs[1], "own", "h1", "rank 0 at host h1").leave()
    assert len(list(folder.iterdir())) == 1
    assert f"{folder} is of another user, or open to others" in caplog.text


def test_of_a_full_disk_no_file_is_left(
    jobs: tuple[Jobs, Connection], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    def fails(path: Path, text: str) -> int:
        path.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", fails)
    entered = EnteredJob(jobs[1], "train", "h1", "rank 0 at host h1")
    assert not list(process_jobs._folder().iterdir())
    assert "No space left on device" in caplog.text
    entered.leave()


@pytest.mark.parametrize("is_taken", [False, True])
def test_a_watch_interrupts_no_job_that_those_that_follow_have_taken(
    jobs: tuple[Jobs, Connection], run_member: RunMember, is_taken: bool
):
    """They may have ended it, and have another one of its name."""
    controller, where = jobs
    controller.running = {"train": False}
    run_member(where, "train", generation=0, run="run")
    (path,) = process_jobs._folder().iterdir()
    text = path.read_text()
    if is_taken:
        assert take_kept_job(where, "run") == KeptJob("train", 0)
    process_jobs.cancel_entered(str(path), text)
    assert controller.running == ({"train": False} if is_taken else {})


@pytest.mark.parametrize("generation", [None, 0])
@pytest.mark.parametrize("is_others", [False, True])
def test_a_job_that_may_not_be_submitted_ends_only_if_it_has_no_member(
    jobs: tuple[Jobs, Connection], run_member: RunMember, generation: int | None, is_others: bool
):
    """Another program may run a job of this name, for which the submission would have been refused."""
    controller, where = jobs
    controller.running = {"train": is_others}
    run_member(where, "train", generation=generation, run="run", is_submitted=False)
    assert take_kept_job(where, "run") is None
    (path,) = process_jobs._folder().iterdir()
    process_jobs.cancel_entered(str(path), path.read_text())
    assert controller.running == ({"train": True} if is_others else {})


def test_a_job_whose_submission_fails_leaves_nothing(jobs: tuple[Jobs, Connection], run_member: RunMember):
    run_member(jobs[1], "train", generation=0, run="run", is_submitted=False)
    assert cancel_abandoned_jobs(jobs[1], 10, "run") == []
    assert not list(process_jobs._folder().iterdir())


def test_a_watch_knows_a_submission_that_followed_its_start(
    jobs: tuple[Jobs, Connection], monkeypatch: pytest.MonkeyPatch
):
    controller, where = jobs
    controller.running = {"train": True}
    monkeypatch.setattr(process_jobs, "watch_process", lambda *_, variables: -1)
    entered = EnteredJob(where, "train", "h1", "rank 0 at host h1", is_submitted=False)
    (path,) = process_jobs._folder().iterdir()
    text = path.read_text()
    entered.submitted("")
    process_jobs.cancel_entered(str(path), text)
    assert controller.running == {}
    entered.leave()


def test_each_generation_of_a_process_has_a_file(
    jobs: tuple[Jobs, Connection], monkeypatch: pytest.MonkeyPatch
):
    """torchft's process may leave the one before when it has entered the next."""
    monkeypatch.setattr(process_jobs, "watch_process", lambda *_, variables: -1)
    first, second = (EnteredJob(jobs[1], "kept", "h1", "rank 0", generation=number) for number in range(2))
    first.leave()
    (path,) = process_jobs._folder().iterdir()
    assert '"generation": 1' in path.read_text()
    second.leave()
    assert not list(process_jobs._folder().iterdir())
