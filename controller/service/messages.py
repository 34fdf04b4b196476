# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What is remembered of jobs, as messages of api/netfold.proto; typed errors as status codes."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NoReturn, cast

import grpc

from netfold.api import netfold_pb2 as pb
from netfold.controller.health.link_loads import Link, LinkLoad
from netfold.controller.jobs.records import JobRecord, Member
from netfold.controller.lifecycle.admission import RefusedError
from netfold.controller.lifecycle.book import UnknownJobError
from netfold.controller.lifecycle.members import NotAMemberError
from netfold.controller.lifecycle.placing import JobExistsError
from netfold.controller.lifecycle.plan_process import PlannerBrokeError
from netfold.controller.lifecycle.presence import Presence, Progress, TreeProgress
from netfold.controller.planning.document import plan_document
from netfold.controller.switches.desired import Setting
from netfold.topologies.fabric import Fabric, FabricError

Context = grpc.aio.ServicerContext[Any, Any]


class StandbyError(Exception):
    """This controller does not lead; the message names the one that does."""


class StandbyAttendError(StandbyError):
    """The same to a member, which may try again: a standby may lead soon."""


_CODES: dict[type[Exception], grpc.StatusCode] = {
    UnknownJobError: grpc.StatusCode.NOT_FOUND,
    JobExistsError: grpc.StatusCode.ALREADY_EXISTS,
    RefusedError: grpc.StatusCode.RESOURCE_EXHAUSTED,
    PlannerBrokeError: grpc.StatusCode.INTERNAL,
    NotAMemberError: grpc.StatusCode.PERMISSION_DENIED,
    FabricError: grpc.StatusCode.INVALID_ARGUMENT,  # of which a bad job file is one
    StandbyAttendError: grpc.StatusCode.UNAVAILABLE,
    StandbyError: grpc.StatusCode.FAILED_PRECONDITION,
}

REFUSALS = tuple(_CODES)


async def refuse(context: Context, error: Exception) -> NoReturn:
    """Ends a call with the code of one of REFUSALS."""
    code = next(c for t, c in _CODES.items() if isinstance(error, t))
    await context.abort(code, str(error))
    raise AssertionError("abort raises")


def version() -> str:
    return importlib.metadata.version("netfold")


def state_of(job: JobRecord) -> pb.JobState:
    return cast(pb.JobState, pb.JobState.Value(job.state.name))


def job_message(
    fabric: Fabric, job: JobRecord, presence: Presence, *, plan: bool = True, standby_of: str = ""
) -> pb.Job:
    """A job as operators see it; without `plan` its `plan_json` is empty."""
    plan_json = ""
    if plan and job.placement is not None:
        numbers = [t.model_dump() for t in job.placement.trees]
        plan_json = json.dumps({**plan_document(fabric, job.placement.plan), "installed": numbers})
    return pb.Job(
        name=job.name,
        state=state_of(job),
        reason=job.reason,
        spec_yaml=job.spec_yaml,
        plan_json=plan_json,
        epoch=job.epoch,
        members=[_member(job, m, presence) for m in job.members],
        standby_of=standby_of,
    )


def jobs_message(
    fabric: Fabric, jobs: list[JobRecord], presence: Presence, *, every: bool, standby_of: str = ""
) -> pb.ListJobsResponse:
    """Those that are not over, or `every` one; plans of those that are over are left out."""
    shown = [
        job_message(fabric, j, presence, plan=not j.state.over, standby_of=standby_of)
        for j in jobs
        if every or not j.state.over
    ]
    return pb.ListJobsResponse(jobs=shown, standby_of=standby_of)


def hosts_message(setting: Setting) -> pb.ListHostsResponse:
    return pb.ListHostsResponse(
        hosts=[
            pb.Host(
                name=host.name,
                address=str(setting.addresses.ip(host.name)),
                parameter_server=host.parameter_server,
            )
            for host in setting.fabric.hosts
        ]
    )


def _member(job: JobRecord, member: Member, presence: Presence) -> pb.Member:
    progress = presence.progress(job.name, member.host)
    return pb.Member(
        host=member.host,
        parameter_server=member.parameter_server,
        attending=presence.attends(job.name, member.host),
        report=pb.Report(
            chunks=progress.chunks,
            retransmits=progress.retransmits,
            overflows=progress.overflows,
            goodput_mbps=progress.goodput_mbps,
            trees=[pb.TreeReport(**asdict(tree)) for tree in progress.trees],
        ),
    )


def progress_of(told: pb.Report) -> Progress:
    """What a member reports, in the controller's terms."""
    trees = tuple(
        TreeProgress(t.tree, t.results, t.marked, t.retransmits, t.rtt_ms, t.rtt_least_ms) for t in told.trees
    )
    return Progress(told.chunks, told.retransmits, told.overflows, told.goodput_mbps, trees)


def link_messages(fabric: Fabric, loads: Mapping[Link, LinkLoad]) -> list[pb.LinkLoad]:
    return [
        pb.LinkLoad(
            sender=a,
            receiver=b,
            foreign=load.foreign,
            jobs=load.jobs,
            capacity=fabric.link(a, b).rate,
        )
        for (a, b), load in loads.items()
    ]
