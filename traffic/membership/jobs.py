# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A job that a program submits for itself, as `netfold job submit` and `netfold job cancel` do for an operator; and one
that it keeps for the ranks that follow."""

from __future__ import annotations

import json
import logging
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import grpc

from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as rpc
from netfold.protocol.channels import open_channel
from netfold.protocol.connection import PASSING, Connection
from netfold.protocol.job_token import job_of_token
from netfold.traffic.errors import ControllerUnreachableError, JobRefusedError
from netfold.traffic.membership.call_turns import in_turn

log = logging.getLogger(__name__)

ENDED = (pb.DONE, pb.FAILED, pb.CANCELED)
UNANSWERED = PASSING | {grpc.StatusCode.DEADLINE_EXCEEDED}
_RETRY_S = 0.5
_REPEAT_S = 60.0
"""For how long a request is repeated whose answer is lost: a controller that starts again answers before."""

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class KeptJob:
    """A job that outlives the part of its workers. `generation`: of its workers, as far as it is known. `token`: of its
    members."""

    name: str
    generation: int
    token: str = field(default="", repr=False)


def submit_job(where: Connection, keys: Mapping[str, object], queue: bool, timeout: float) -> str:
    """Return the token of the job's members. `keys` are those of a job file (docs/reference/jobs.md). A program that
    was given the job's token joins the job, as in Slurm, and submits none. A request whose answer is lost is repeated.
    Raises JobRefusedError with the controller's reason, and ControllerUnreachableError: then the job may be there."""
    if job_of_token(where.token) == keys["name"]:
        return where.token
    spec = json.dumps(dict(keys))  # what is JSON is YAML
    request = pb.SubmitJobRequest(spec_yaml=spec, queue=queue, request_id=secrets.token_hex(8))
    deadline = time.monotonic() + timeout

    def submitted() -> pb.Job:
        with open_channel(where, _seconds_to(deadline), wait_for_ready=True) as channel:
            submit = rpc.ControllerStub(channel).SubmitJob
            answer: pb.Job = in_turn(lambda: submit(request, timeout=_seconds_to(deadline)), timeout)
            return answer

    try:
        return str(_repeated(submitted, deadline).member_token)
    except grpc.RpcError as error:
        at = f"job {keys['name']}: the controller at {where.address}"
        if error.code() in UNANSWERED:
            raise ControllerUnreachableError(f"{at} did not answer: {error.details()}") from error
        raise JobRefusedError(f"{at} refused it: {error.details()}") from error


def cancel_lost(where: Connection, name: str, host: str, canceled_by: str, timeout: float) -> bool | None:
    """Cancels a job whose member at `host` has no stream to the controller. False: the job has ended; None: it goes on,
    or no controller answers within `timeout`, or the token is a member's."""
    deadline = time.monotonic() + timeout
    try:
        job = _job(where, name, timeout)
    except grpc.RpcError as error:
        return False if error.code() is grpc.StatusCode.NOT_FOUND else None
    if job.state in ENDED:
        return False
    if not any(m.host == host and not m.connected for m in job.members):
        return None
    return cancel_job(where, name, canceled_by, max(0.0, deadline - time.monotonic())) or None


def cancel_job(where: Connection, name: str, canceled_by: str, timeout: float) -> bool:
    """Ends a job at once, at all its members. `canceled_by`: for the reason that they get. False: the job has ended, or
    there is no controller, or the token is a member's."""
    request = pb.CancelJobRequest(name=name, canceled_by=canceled_by)
    deadline = time.monotonic() + timeout
    try:
        with open_channel(where, timeout) as channel:
            rpc.ControllerStub(channel).CancelJob(request, timeout=_seconds_to(deadline))
    except grpc.RpcError as error:
        if error.code() is grpc.StatusCode.PERMISSION_DENIED:
            log.warning(
                "job %s goes on: canceling it needs its own token, or a user's or operator's: %s",
                *(name, error.details()),
            )
        return False
    return True


def interrupt_job(where: Connection, name: str, generation: int, by: str, timeout: float) -> bool:
    """Ends the part of all workers of this generation at once. The job waits for the next ones; one that may not, or
    whose controller does not know that, is canceled. False: as of `cancel_job`."""
    request = pb.ReconfigureJobRequest(name=name, generation=generation, interrupted_by=by)
    deadline = time.monotonic() + timeout
    try:
        with open_channel(where, timeout) as channel:
            rpc.ControllerStub(channel).ReconfigureJob(request, timeout=_seconds_to(deadline))
    except grpc.RpcError as error:
        if error.code() is not grpc.StatusCode.UNIMPLEMENTED:
            return False
    else:
        return True
    return cancel_job(where, name, by, timeout)


def live_generation(where: Connection, name: str, timeout: float) -> int | None:
    """The generation of a job's workers; None: it has ended. Raises ControllerUnreachableError."""
    try:
        job = _job(where, name, timeout)
    except grpc.RpcError as error:
        if error.code() is grpc.StatusCode.NOT_FOUND:
            return None
        raise ControllerUnreachableError(f"job {name}: no answer: {error.details()}") from error
    return None if job.state in ENDED else int(job.generation)


def reconfigure_job(where: Connection, job: KeptJob, hosts: Sequence[str], timeout: float) -> pb.Job:
    """Starts the next generation of a job's workers, at these hosts. `where`: of a caller that may add hosts to the
    job. A request whose answer is lost is repeated. Raises JobRefusedError: then the job has its old workers, or
    none; and ControllerUnreachableError: then it may have these."""
    deadline = time.monotonic() + timeout
    request = pb.ReconfigureJobRequest(
        name=job.name, generation=job.generation, workers=hosts, request_id=secrets.token_hex(8)
    )
    try:
        return _repeated(lambda: _reconfigure(where, job.token, request, deadline), deadline)
    except grpc.RpcError as error:
        if error.code() in UNANSWERED:
            raise ControllerUnreachableError(f"job {job.name}: no answer: {error.details()}") from error
        raise JobRefusedError(f"job {job.name} takes no other workers: {error.details()}") from error


def _job(where: Connection, name: str, timeout: float) -> pb.Job:
    """Raises RpcError."""
    deadline = time.monotonic() + timeout
    with open_channel(where, timeout, wait_for_ready=True) as channel:
        job: pb.Job = rpc.ControllerStub(channel).GetJob(pb.JobName(name=name), timeout=_seconds_to(deadline))
    return job


def _repeated(call: Callable[[], Answer], deadline: float) -> Answer:
    """The answer to a request that has an identifier. Raises RpcError."""
    deadline = min(deadline, time.monotonic() + _REPEAT_S)
    while True:
        try:
            return call()
        except grpc.RpcError as error:
            if error.code() not in PASSING or _seconds_to(deadline) < _RETRY_S:
                raise
        time.sleep(_RETRY_S)  # a controller that starts again has no event


def _reconfigure(where: Connection, token: str, request: pb.ReconfigureJobRequest, deadline: float) -> pb.Job:
    member = where.as_member(token)
    known = _job(member, request.name, _seconds_to(deadline))
    if added := set(request.workers) - {m.host for m in known.members}:
        addition = pb.AddWorkersRequest(name=request.name, hosts=sorted(added))
        with open_channel(where, _seconds_to(deadline)) as channel:
            add = rpc.ControllerStub(channel).AddWorkers
            in_turn(lambda: add(addition, timeout=_seconds_to(deadline)), _seconds_to(deadline))
    with open_channel(member, _seconds_to(deadline)) as channel:
        answer: pb.Job = rpc.ControllerStub(channel).ReconfigureJob(request, timeout=_seconds_to(deadline))
    return answer


def _seconds_to(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())
