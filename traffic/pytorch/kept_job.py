# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The ranks that follow in a program join the job of those before, in a new epoch of it: torchft's next quorum, and the
next attempt of torchrun. Each rank publishes the job that it knows with its host; rank 0 decides for all."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from netfold.protocol import netfold_pb2 as pb
from netfold.protocol.connection import Connection
from netfold.protocol.job_token import job_of_token
from netfold.traffic.errors import ControllerUnreachableError, JobRefusedError
from netfold.traffic.membership.jobs import KeptJob, cancel_job, live_generation, reconfigure_job
from netfold.traffic.membership.process_jobs import EnteredJob, take_kept_job

log = logging.getLogger("netfold.torch")

_END_S = 3.0
_OF_EACH_GENERATION = ("name", "workers", "on_worker_loss")
"""Keys of a job file that may differ between the ranks before and those that follow."""


@dataclass(frozen=True)
class Succession:
    """How the ranks of a group follow others. `is_kept`: others may follow these, so that their job outlives them.
    `run`: in which processes find the job of those before; `known`: the job that this process knows. `on_job`: gets the
    job of these ranks before they join it."""

    is_kept: bool = False
    run: str = ""
    known: KeptJob | None = None
    on_job: Callable[[KeptJob | None], None] = lambda job: None

    @classmethod
    def of_torchrun(cls) -> Self:
        """Return that of the world of a process that an agent of torchrun started, and starts again."""
        run = os.environ.get("TORCHELASTIC_RUN_ID", "")
        counts = (os.environ.get(f"TORCHELASTIC_{name}", "0") for name in ("RESTART_COUNT", "MAX_RESTARTS"))
        attempts, most = map(int, counts)
        if not run or most == 0:
            return cls()
        if run == "none":  # of a program without an identifier: another one may have it, too
            run = f"none of {os.getppid()}"
        return cls(attempts < most, run)

    def job_before(self, where: Connection) -> KeptJob | None:
        """The job that this rank knows."""
        return self.known or take_kept_job(where, self.run)


KEPT: Mapping[str, object] = {"on_worker_loss": "reconfigure"}
"""Keys of the file of a job that outlives its ranks."""


@dataclass(frozen=True)
class JoinedAgain:
    """A job that others have left to these ranks. `hosts`: by their ranks in the job. `entered`: this process is in
    it."""

    job: KeptJob
    hosts: tuple[str, ...]
    entered: EnteredJob = field(repr=False, compare=False)


def join_again(
    where: Connection,
    found: Iterable[KeptJob],
    keys: Mapping[str, object],
    hosts: Sequence[str],
    timeout: float,
    enter: Callable[[KeptJob], EnteredJob],
) -> JoinedAgain | None:
    """The first of the jobs that takes these hosts with these keys; None: none does. The other jobs end. The job whose
    token this program was given, as in Slurm, may have other keys. `enter`: lets this process enter a job before it has
    the next generation, which would have no member that ends it if this process died. Raises
    ControllerUnreachableError: then the process stays in the job."""
    deadline = time.monotonic() + timeout
    joined = None
    for job in _newest(found):
        if joined is None:
            joined = _join(where, job, keys, hosts, max(0.0, deadline - time.monotonic()), enter)
            if joined is not None:
                continue
        _end(where, job)
    return joined


def end_jobs(where: Connection, found: Iterable[KeptJob]) -> None:
    """Ends the jobs, which these ranks do not join."""
    for job in _newest(found):
        _end(where, job)


def _join(
    where: Connection,
    job: KeptJob,
    keys: Mapping[str, object],
    hosts: Sequence[str],
    timeout: float,
    enter: Callable[[KeptJob], EnteredJob],
) -> JoinedAgain | None:
    again = replace(job, generation=job.generation + 1)
    entered = enter(again)
    try:
        answer = reconfigure_job(where, job, hosts, timeout)
    except JobRefusedError as error:
        log.info("%s", error)
        entered.leave()
        return None
    is_given = job_of_token(where.token) == job.name
    if not is_given and not _is_as(answer, keys):
        _end(where, again)
        entered.leave()
        return None
    entered.submitted(job.token)
    present = set(hosts)
    return JoinedAgain(again, tuple(m.host for m in answer.members if m.host in present), entered)


def _end(where: Connection, job: KeptJob) -> None:
    """Cancels the job if no others have joined it."""
    member = where.as_member(job.token)
    with contextlib.suppress(ControllerUnreachableError):
        if live_generation(member, job.name, _END_S) == job.generation:
            cancel_job(member, job.name, "the ranks that follow, which have another job", _END_S)


def _newest(found: Iterable[KeptJob]) -> list[KeptJob]:
    """Each job once, that of most ranks first, as the rank knows it that was in its newest generation."""
    jobs = sorted(found, key=lambda job: job.generation)
    newest = {job.name: job for job in jobs}
    return [newest[name] for name, _ in Counter(job.name for job in jobs).most_common()]


def _is_as(job: pb.Job, keys: Mapping[str, object]) -> bool:
    try:
        known = json.loads(job.spec_yaml)
    except ValueError:  # of an operator
        return False
    return _comparable(known) == _comparable(keys)


def _comparable(keys: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in keys.items() if key not in _OF_EACH_GENERATION}
