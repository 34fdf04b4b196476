# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold controller slurm`: what PrologSlurmctld, EpilogSlurmctld and a timer call."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Annotated, NoReturn

import grpc
import typer

from netfold.controller.operator.controller_client import (
    BAD_INPUT,
    NO_CONTROLLER,
    REFUSED,
    CallFailedError,
    duration_s,
    fail,
    note,
    try_controller,
)
from netfold.controller.slurm import rank_files, scheduler
from netfold.controller.slurm.request import SlurmError, SlurmJob, job_file, number_of
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as pb_grpc
from netfold.protocol.channels import open_aio_channel
from netfold.protocol.connection import Connection
from netfold.protocol.environment import Variable
from netfold.protocol.options import ControllerOptions, reaches_controller

app = typer.Typer()

CALL_S = 30.0
"""Deadline of the calls of an epilog, of a sweep, and of what a prolog clears away: a controller may be starting."""
RETRY_S = 0.5
"""Pause before a prolog watches its job again, whose controller has gone."""
SHOWN_HOSTS = 8
HETEROGENEOUS = "SLURM_HET_JOB_ID"
"""In the environment of a heterogeneous job's prologs. All its ranks have the SLURM_JOB_ID of its first part."""
_ENDED = (pb.FAILED, pb.DONE, pb.CANCELED)

Folder = Annotated[
    Path,
    typer.Option(
        "--folder", help="Folder of the ranks' files, which all nodes share, and only root writes to."
    ),
]
DEFAULT_FOLDER = Path("/var/lib/netfold/slurm")


@app.command()
@reaches_controller
def prolog(
    where: ControllerOptions,
    folder: Folder = DEFAULT_FOLDER,
    within: Annotated[str, typer.Option(help="Time for the job to get its place, such as 90s.")] = "60s",
) -> None:
    """Submit the netfold job of a Slurm job, and wait until it is placed. PrologSlurmctld calls this, as root.

    A Slurm job asks for it with `--netfold`, `--netfold=rate:10,numerics:half` or `--comment=netfold`; others are left
    as they are. The job `slurm-ID` is the user's, of the tenant that the Slurm account names. A file for TaskProlog has
    the token of its members. Slurm requeues a batch job whose prolog fails, and ends others, and each with an option
    that can never be granted; `scontrol show job` has the reason.

    \b
    Examples:
      netfold controller slurm prolog --controller ctl:9600
      netfold controller slurm prolog --within 5m --folder /shared/netfold

    Exit codes: 0 placed, or nothing asked for, 2 bad option, 3 refused or not placed in time, 4 no controller or no
    Slurm answers.
    """
    wait_s = duration_s("--within", within)
    job = _job_of_environment()
    if job.options is None:
        return
    if HETEROGENEOUS in os.environ:
        _refuse(
            job,
            BAD_INPUT,
            SlurmError("a heterogeneous job gets no netfold job: its parts have one name"),
            is_final=True,
        )
    try:
        nodes = scheduler.node_names(job.nodes)
        if len(nodes) < 2:
            return  # nothing goes over the network
        limit_s = scheduler.time_limit_s(job.number)
    except SlurmError as error:
        _refuse(job, NO_CONTROLLER, error)
    try:
        file = job_file(job, nodes, limit_s)
        until = time.monotonic() + wait_s
        to, token = try_controller(
            where, lambda stub: _place(stub, where, job, nodes, file, wait_s, until), wait_s=wait_s
        )
    except SlurmError as error:
        _refuse(job, BAD_INPUT, error, is_final=True)
    except CallFailedError as error:
        _refuse(job, error.code, error)
    try:
        rank_files.write(folder, job, _rank_variables(where, to, job, token))
    except SlurmError as error:
        _clear_away(where, job.number)
        _refuse(job, NO_CONTROLLER, error)


@app.command()
@reaches_controller
def epilog(where: ControllerOptions, folder: Folder = DEFAULT_FOLDER) -> None:
    """Cancel the netfold job of a Slurm job that is over, and remove its file. EpilogSlurmctld calls this, as root. To
    call it twice is to call it once.

    \b
    Example:
      netfold controller slurm epilog --controller ctl:9600

    Exit codes: 0 nothing is left, 2 bad option, 4 no controller answers, or the file stays. `netfold controller
    slurm sweep` removes the rest later.
    """
    job = _job_of_environment()
    try:
        had_file = rank_files.remove(folder, job.number)
        if had_file or job.options is not None:
            try_controller(
                where, lambda stub: _cancel(stub, [job.number], "its Slurm job is over"), wait_s=CALL_S
            )
    except SlurmError as error:
        fail(NO_CONTROLLER, str(error))
    except CallFailedError as error:
        fail(error.code, str(error))


@app.command()
@reaches_controller
def sweep(where: ControllerOptions, folder: Folder = DEFAULT_FOLDER) -> None:
    """Cancel the netfold jobs of Slurm jobs that squeue does not know any more, and remove their files. A timer calls
    this: it ends what an epilog could not.

    Other jobs stay as they are, whatever their names. If squeue fails, nothing is canceled.

    \b
    Example:
      netfold controller slurm sweep --controller ctl:9600

    Exit codes: 0 swept, 2 bad option, 4 no controller or no Slurm answers.
    """

    async def own_jobs(stub: pb_grpc.ControllerStub) -> set[int]:
        answer = await stub.ListJobs(pb.ListJobsRequest(), timeout=CALL_S)
        numbers = (number_of(job.name, job.spec_yaml) for job in answer.jobs)
        return {number for number in numbers if number is not None}

    try:
        # before squeue is asked: what has a job or a file by now is in its answer, or over
        held, files = try_controller(where, own_jobs, wait_s=CALL_S), rank_files.numbers(folder)
        live = scheduler.live_jobs()
        for number in files - live:
            rank_files.remove(folder, number)
        lost = sorted(held - live)
        try_controller(where, lambda stub: _cancel(stub, lost, "Slurm does not know its job any more"))
    except SlurmError as error:
        fail(NO_CONTROLLER, str(error))
    except CallFailedError as error:
        fail(error.code, str(error))
    typer.echo("canceled: " + (", ".join(f"slurm-{number}" for number in lost) or "none"))


def _job_of_environment() -> SlurmJob:
    try:
        return SlurmJob.of_environment(os.environ)
    except SlurmError as error:
        fail(BAD_INPUT, str(error))


def _refuse(job: SlurmJob, code: int, reason: Exception, *, is_final: bool = False) -> NoReturn:
    """`is_final`: the job can never be placed as it is, so Slurm ends it in place of a requeue."""
    scheduler.note_reason(job.number, str(reason), is_final=is_final)
    fail(code, f"{job.name}: {reason}")


async def _place(
    stub: pb_grpc.ControllerStub,
    where: ControllerOptions,
    job: SlurmJob,
    nodes: list[str],
    file: str,
    wait_s: float,
    until: float,
) -> tuple[Connection, str]:
    """The connection and the members' token of the placed job. What is not placed `until` then, the end of `wait_s`, is
    canceled. Raises SlurmError for what can never be placed, CallFailedError, AioRpcError."""
    to, token = where.connection(), ""
    try:
        async with asyncio.timeout_at(until):
            await _check_nodes(stub, nodes)
            await _cancel(stub, [job.number], "its Slurm job starts again")
    except TimeoutError:
        absent = f"no controller answers at {to.address} within {wait_s:g} s"
        raise CallFailedError(NO_CONTROLLER, absent) from None
    submission = pb.SubmitJobRequest(spec_yaml=file, queue=True, source=job.name)
    request = pb.SubmitJobForRequest(submission=submission, tenant=job.account, user=job.user)
    try:
        async with asyncio.timeout_at(until):
            token = (await stub.SubmitJobFor(request)).member_token
            async for latest in _watched(to, job.name):
                if latest.state == pb.RUNNING:
                    return to, token
        why = "it ended before it ran"
    except TimeoutError:
        why = f"it was not placed within {wait_s:g} s"
    except grpc.aio.AioRpcError as error:
        if token:
            with contextlib.suppress(grpc.aio.AioRpcError):
                await _take_back(to, job.number, "its prolog failed")
        elif error.code() is grpc.StatusCode.INVALID_ARGUMENT:
            raise SlurmError(str(error.details())) from error
        raise
    try:
        reason = await _reason(to, token, job.name) if token else "there was no plan yet"
    finally:
        await _take_back(to, job.number, why)
    raise CallFailedError(REFUSED, f"{why}: {reason}")


async def _watched(to: Connection, name: str) -> AsyncIterator[pb.Job]:
    """The states of a job, also of one that outlives its controller. Raises AioRpcError."""
    while True:
        try:
            async with open_aio_channel(to) as channel:
                async for job in pb_grpc.ControllerStub(channel).WatchJob(pb.JobName(name=name)):
                    yield job
            return
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.UNAVAILABLE:
                raise
        await asyncio.sleep(RETRY_S)


async def _check_nodes(stub: pb_grpc.ControllerStub, nodes: list[str]) -> None:
    """Raises CallFailedError for a node that is no host of the fabric."""
    answer = await stub.ListHosts(pb.ListHostsRequest())
    known = {host.name for host in answer.hosts}
    strangers = [node for node in nodes if node not in known]
    if strangers:
        shown = ", ".join(node[:80] for node in strangers[:SHOWN_HOSTS])
        raise CallFailedError(BAD_INPUT, f"nodes that are no hosts of the fabric: {shown}")


async def _reason(to: Connection, token: str, name: str) -> str:
    """Why a job is as it is, as its members may see it: without the names of others' jobs."""
    async with open_aio_channel(to.as_member(token)) as channel:
        job = await pb_grpc.ControllerStub(channel).GetJob(pb.JobName(name=name), timeout=CALL_S)
    return str(job.reason) or "no reason given"


async def _take_back(to: Connection, number: int, why: str) -> None:
    """As `_cancel`, of the controller that leads now. Raises AioRpcError."""
    async with open_aio_channel(to, CALL_S, wait_for_ready=True) as channel:
        await _cancel(pb_grpc.ControllerStub(channel), [number], why)


async def _cancel(stub: pb_grpc.ControllerStub, numbers: Iterable[int], why: str) -> None:
    """Cancel the netfold jobs of these Slurm jobs, if there are any. Raises AioRpcError."""
    for number in numbers:
        name = f"slurm-{number}"
        try:
            job = await stub.GetJob(pb.JobName(name=name), timeout=CALL_S)
            if job.state in _ENDED:
                continue
            if number_of(job.name, job.spec_yaml) is None:
                note(f"job '{name}' is not of Slurm: it is left as it is")
                continue
            await stub.CancelJob(pb.CancelJobRequest(name=name, canceled_by=why), timeout=CALL_S)
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.NOT_FOUND:
                raise


def _clear_away(where: ControllerOptions, number: int) -> None:
    try:
        try_controller(where, lambda stub: _cancel(stub, [number], "its prolog failed"), wait_s=CALL_S)
    except CallFailedError as error:
        note(f"slurm-{number} stays until the next sweep: {error}")


def _rank_variables(where: ControllerOptions, to: Connection, job: SlurmJob, token: str) -> dict[str, str]:
    """The variables of the ranks: the job, its token, the controller; over TCP also how its certificate is checked."""
    variables: dict[str, str] = {
        Variable.JOB: job.name,
        Variable.JOB_TOKEN: token,
        Variable.CONTROLLER: to.address,
        Variable.TLS_SERVER_NAME: to.server_name,
        Variable.TLS_CA: str(where.tls_ca or os.environ.get(Variable.TLS_CA, "")),
    }
    return {name: value for name, value in variables.items() if value}
