# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Rank 0 submits a job, or takes over one that the ranks before have left, or ends it. It may die meanwhile, and
answers may be lost."""

from __future__ import annotations

import json
import multiprocessing
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as rpc
from netfold.protocol.connection import TOO_MANY_KEY, Connection
from netfold.protocol.job_token import job_token
from netfold.traffic.errors import ControllerUnreachableError, JobRefusedError
from netfold.traffic.membership import call_turns
from netfold.traffic.membership.jobs import KeptJob, submit_job
from netfold.traffic.membership.process_jobs import EnteredJob
from netfold.traffic.pytorch import kept_job
from netfold.traffic.pytorch.kept_job import KEPT, Succession, end_jobs
from tests.process_watches import await_no_watch
from tests.traffic.scripted_controller import serve

KEYS = {"name": "new", "workers": ["h3", "h1"], "lease_ms": 3000}


class Jobs(rpc.ControllerServicer):
    """Jobs of h1, h2 and h3, by name: the generation of their workers."""

    # ruff: noqa: N802 (the proto's names)

    def __init__(self) -> None:
        self.running: dict[str, int] = {}
        self.spec = {**KEYS, **KEPT, "name": "kept", "workers": ["h1", "h2", "h3"]}
        self.file = ""
        self.added: list[str] = []
        self.answered: set[str] = set()
        self.lost_answers = 0
        self.on_request: Callable[[], None] = lambda: None
        """Called before a job gets its next generation."""
        self.on_answer: Callable[[], None] = lambda: None
        """Called after it."""
        self.canceled = threading.Event()
        self.too_many = 0
        """Number of calls that are refused, as the tenant makes too many."""

    def GetJob(self, request: pb.JobName, context: Any) -> pb.Job:
        if request.name not in self.running:
            context.abort(grpc.StatusCode.NOT_FOUND, f"there is no job '{request.name}'")
        hosts = ["h1", "h2", "h3", *self.added]
        return pb.Job(
            name=request.name,
            state=pb.RUNNING,
            members=[pb.Member(host=host) for host in hosts],
            generation=self.running[request.name],
            spec_yaml=self.file or json.dumps(self.spec),
        )

    def AddWorkers(self, request: pb.AddWorkersRequest, context: Any) -> pb.Job:
        self.too_many -= 1
        if self.too_many >= 0:
            context.set_trailing_metadata(((TOO_MANY_KEY, "1"),))
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "its limit is calls=20")
        self.added += request.hosts
        return self.GetJob(pb.JobName(name=request.name), context)

    def SubmitJob(self, request: pb.SubmitJobRequest, context: Any) -> pb.Job:
        name = json.loads(request.spec_yaml)["name"]
        if request.request_id not in self.answered:
            if name in self.running:
                context.abort(grpc.StatusCode.ALREADY_EXISTS, f"job '{name}' is RUNNING")
            self.running[name] = 0
            self.answered.add(request.request_id)
        self._lose_answer(context)
        return pb.Job(name=name, member_token="token")

    def ReconfigureJob(self, request: pb.ReconfigureJobRequest, context: Any) -> pb.Job:
        self.on_request()
        if request.request_id not in self.answered:
            if request.generation != self.running.get(request.name):
                context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "expected another generation")
            self.running[request.name] += 1
            self.answered.add(request.request_id)
        self.on_answer()
        self._lose_answer(context)
        return self.GetJob(pb.JobName(name=request.name), context)

    def _lose_answer(self, context: Any) -> None:
        if self.lost_answers:
            self.lost_answers -= 1
            context.abort(grpc.StatusCode.UNAVAILABLE, "Socket closed")

    def CancelJob(self, request: pb.CancelJobRequest, context: Any) -> pb.Job:
        del self.running[request.name]
        self.canceled.set()
        return pb.Job(name=request.name, state=pb.CANCELED)


class Entry:
    """An EnteredJob without a process that watches."""

    def __init__(self, job: KeptJob) -> None:
        self.job = job
        self.is_left = False

    def submitted(self, token: str) -> None:
        assert token == self.job.token

    def leave(self) -> None:
        self.is_left = True


ENTRIES: list[Entry] = []
"""The entries that the last call of `join_again` made."""


def join_again(
    where: Connection, found: list[KeptJob], keys: dict[str, Any], hosts: list[str], timeout: float
) -> tuple[KeptJob, tuple[str, ...]] | None:
    """The job and its hosts. This process is in that job alone then."""

    def enter(job: KeptJob) -> Any:
        ENTRIES.append(Entry(job))
        return ENTRIES[-1]

    ENTRIES.clear()
    again = kept_job.join_again(where, found, keys, hosts, timeout, enter)
    assert [one.job for one in ENTRIES if not one.is_left] == ([again.job] if again else [])
    return again and (again.job, again.hosts)


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[tuple[Jobs, Connection]]:
    found, target = Jobs(), f"unix:{tmp_path}/c"
    server = serve(found, target)
    yield found, Connection(target)
    server.stop(0).wait()


def test_the_hosts_have_the_ranks_of_the_job(jobs: tuple[Jobs, Connection]):
    controller, where = jobs
    controller.running = {"kept": 4}
    found = [KeptJob("kept", 3), KeptJob("kept", 4)]
    again = join_again(where, found, KEYS, ["h3", "h1"], 10)
    assert again == (KeptJob("kept", 5), ("h1", "h3"))


@pytest.mark.parametrize("too_many", [0, 2])
def test_hosts_that_are_no_workers_are_added(
    jobs: tuple[Jobs, Connection], monkeypatch: pytest.MonkeyPatch, too_many: int
):
    """The job goes on also where its tenant makes too many calls."""
    monkeypatch.setattr(call_turns, "PAUSE_S", 0.0)
    controller, where = jobs
    controller.running, controller.too_many = {"kept": 0}, too_many
    again = join_again(where, [KeptJob("kept", 0)], KEYS, ["h5", "h1", "h4"], 10)
    assert again == (KeptJob("kept", 1), ("h1", "h4", "h5"))


def test_a_request_whose_answer_is_lost_is_repeated(jobs: tuple[Jobs, Connection]):
    """Rank 0 would submit another job if it did not repeat its request."""
    controller, where = jobs
    controller.running, controller.lost_answers = {"kept": 0}, 2
    again = join_again(where, [KeptJob("kept", 0)], KEYS, ["h1", "h3"], 10)
    assert again == (KeptJob("kept", 1), ("h1", "h3"))
    assert len(controller.answered) == 1


def test_a_controller_that_never_answers_ends_the_wait(jobs: tuple[Jobs, Connection]):
    controller, where = jobs
    controller.running, controller.lost_answers = {"kept": 0}, 100
    with pytest.raises(ControllerUnreachableError, match="job kept: no answer: Socket closed"):
        join_again(where, [KeptJob("kept", 0)], KEYS, ["h1", "h3"], 1)
    assert [(one.job.generation, one.is_left) for one in ENTRIES] == [(1, False)]


def enter_and_join_again(target: str, folder: str) -> None:
    tempfile.tempdir = folder
    where = Connection(target)

    def enter(job: KeptJob) -> EnteredJob:
        member = "rank 0 at host h1"
        return EnteredJob(where, job.name, "h1", member, generation=job.generation, is_submitted=False)

    kept_job.join_again(where, [KeptJob("kept", 0)], KEYS, ["h1", "h3"], 60, enter)


@pytest.mark.parametrize("moment", ["on_request", "on_answer"])
def test_a_process_that_dies_while_it_takes_a_job_over_leaves_none(
    jobs: tuple[Jobs, Connection], tmp_path: Path, moment: str
):
    """The job has no member then that would end it, before and after its next generation starts."""
    controller, where = jobs
    controller.running = {"kept": 0}
    (folder := tmp_path / "temporary").mkdir()
    process = multiprocessing.get_context("spawn").Process(
        target=enter_and_join_again, args=(where.address, f"{folder}")
    )

    def kill() -> None:
        process.kill()
        process.join()

    setattr(controller, moment, kill)
    process.start()
    assert controller.canceled.wait(60)
    await_no_watch(folder)
    assert not [path for path in folder.rglob("*") if path.is_file()]


def test_a_submission_whose_answer_is_lost_is_repeated(jobs: tuple[Jobs, Connection]):
    """The job would be there without members."""
    controller, where = jobs
    controller.lost_answers = 2
    assert submit_job(where, KEYS, False, 10) == "token"
    with pytest.raises(JobRefusedError, match="job 'new' is RUNNING"):
        submit_job(where, KEYS, False, 10)


def test_a_submission_that_is_never_answered_is_no_refusal(jobs: tuple[Jobs, Connection]):
    controller, where = jobs
    controller.lost_answers = 100
    with pytest.raises(
        ControllerUnreachableError, match=r"job new: the controller at unix:.* did not answer"
    ):
        submit_job(where, KEYS, False, 1)


def test_a_job_with_other_options_ends(jobs: tuple[Jobs, Connection]):
    controller, where = jobs
    controller.running = {"kept": 0}
    assert join_again(where, [KeptJob("kept", 0)], {**KEYS, "rate": 20}, ["h1", "h3"], 10) is None
    assert controller.running == {}


def test_a_job_that_others_have_taken_over_goes_on(jobs: tuple[Jobs, Connection]):
    controller, where = jobs
    controller.running = {"kept": 2}
    assert join_again(where, [KeptJob("kept", 1)], KEYS, ["h1", "h3"], 10) is None
    end_jobs(where, [KeptJob("kept", 1)])
    assert controller.running == {"kept": 2}


def test_one_job_of_several_is_taken_over_and_the_others_end(jobs: tuple[Jobs, Connection]):
    controller, where = jobs
    controller.running = {"kept": 0, "lone": 7}
    found = [KeptJob("lone", 7), KeptJob("kept", 0), KeptJob("kept", 0), KeptJob("ended", 3)]
    again = join_again(where, found, KEYS, ["h1", "h3"], 10)
    assert again is not None
    assert again[0].name == "kept"
    assert controller.running == {"kept": 1}


def test_ranks_that_were_given_a_job_take_it_over_whatever_its_file_says(jobs: tuple[Jobs, Connection]):
    """As Slurm's prolog does: they have no other one, and no options of theirs made it."""
    controller, where = jobs
    controller.running = {"slurm-7": 0}
    controller.file = "# made by netfold slurm\n" + json.dumps(controller.spec)
    token = job_token(b"key", "slurm-7", "1")
    keys = {**KEYS, "name": "slurm-7"}
    again = join_again(where.as_member(token), [KeptJob("slurm-7", 0, token)], keys, ["h1", "h3"], 10)
    assert again is not None
    assert again[0].generation == 1
    assert controller.running == {"slurm-7": 1}


@pytest.mark.parametrize(
    ("run", "restarts", "most", "expected"),
    [
        ("", "0", "3", Succession()),
        ("train", "0", "0", Succession()),
        ("train", "2", "3", Succession(is_kept=True, run="train")),
        ("train", "3", "3", Succession(is_kept=False, run="train")),
    ],
)
def test_torchrun_says_whether_others_follow(
    monkeypatch: pytest.MonkeyPatch, run: str, restarts: str, most: str, expected: Succession
):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", run)
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", restarts)
    monkeypatch.setenv("TORCHELASTIC_MAX_RESTARTS", most)
    assert Succession.of_torchrun() == expected
