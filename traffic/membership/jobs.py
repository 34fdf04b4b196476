# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A job that a program submits for itself, as `netfold job submit` and `netfold job cancel` do for an operator."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping

import grpc

from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as rpc
from netfold.protocol.connection import Connection, open_channel
from netfold.protocol.job_token import job_of_token
from netfold.traffic.errors import JobRefusedError

log = logging.getLogger(__name__)


def submit_job(where: Connection, keys: Mapping[str, object], queue: bool, timeout: float) -> str:
    """Return the token of the job's members. `keys` are those of a job file (docs/reference/jobs.md). A program that
    was given the job's token joins the job, as in Slurm, and submits none. Raises JobRefusedError with the controller's
    reason."""
    if job_of_token(where.token) == keys["name"]:
        return where.token
    request = pb.SubmitJobRequest(spec_yaml=json.dumps(dict(keys)), queue=queue)  # what is JSON is YAML
    with open_channel(where) as channel:
        try:
            job = rpc.ControllerStub(channel).SubmitJob(request, timeout=timeout, wait_for_ready=True)
        except grpc.RpcError as error:
            raise JobRefusedError(
                f"job {keys['name']}: the controller at {where.address} refused it: {error.details()}"
            ) from error
    return str(job.member_token)


def cancel_lost(where: Connection, name: str, host: str, canceled_by: str, timeout: float) -> bool | None:
    """Cancels a job whose member at `host` has no stream to the controller. False: the job has ended; None: it goes on,
    or no controller answers within `timeout`, or the token is a member's."""
    deadline = time.monotonic() + timeout
    with open_channel(where) as channel:
        try:
            stub = rpc.ControllerStub(channel)
            job = stub.GetJob(pb.JobName(name=name), timeout=timeout, wait_for_ready=True)
        except grpc.RpcError as error:
            return False if error.code() is grpc.StatusCode.NOT_FOUND else None
    if job.state in (pb.DONE, pb.FAILED, pb.CANCELED):
        return False
    if not any(m.host == host and not m.connected for m in job.members):
        return None
    return cancel_job(where, name, canceled_by, max(0.0, deadline - time.monotonic())) or None


def cancel_job(where: Connection, name: str, canceled_by: str, timeout: float) -> bool:
    """Ends a job at once, at all its members. `canceled_by`: for the reason that they get. False: the job has ended, or
    there is no controller, or the token is a member's."""
    with open_channel(where) as channel:
        try:
            request = pb.CancelJobRequest(name=name, canceled_by=canceled_by)
            rpc.ControllerStub(channel).CancelJob(request, timeout=timeout)
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.PERMISSION_DENIED:
                log.warning(
                    "job %s goes on: canceling it needs its own token, or a user's or operator's: %s",
                    *(name, error.details()),
                )
            return False
    return True
