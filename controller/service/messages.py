# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Converts jobs and assignments to messages of netfold.proto, and errors to status codes."""

from __future__ import annotations

import asyncio
import functools
import importlib.metadata
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import asdict
from typing import Any, NoReturn, TypeVar, cast

import grpc

from netfold.controller.health.link_loads import Link, LinkLoad
from netfold.controller.health.rollouts import RolloutError
from netfold.controller.jobs.engine import StoreError
from netfold.controller.jobs.file import ResolvedJob
from netfold.controller.jobs.records import JobRecord, JobState, Member
from netfold.controller.jobs.store import NotFinalError
from netfold.controller.jobs.submitter import LastingLimitError, LimitError
from netfold.controller.jobs.tenant_usage import TenantUsage
from netfold.controller.lifecycle.capacity import ImpossibleJobError, RefusedError
from netfold.controller.lifecycle.departures import Departures
from netfold.controller.lifecycle.job_registry import JobRegistry, ReplacedError, UnknownJobError
from netfold.controller.lifecycle.member_assignment import MemberAssignment, MemberTree
from netfold.controller.lifecycle.member_status import CallStatus, MemberStatus, Progress, TreeProgress
from netfold.controller.lifecycle.members import NotAMemberError
from netfold.controller.lifecycle.packet_model import PacketModel
from netfold.controller.planning.document import plan_document
from netfold.controller.scheduling.placement_scheduler import JobExistsError
from netfold.controller.scheduling.plan_process import PlannerCrashedError
from netfold.controller.service.request_texts import plain_text
from netfold.controller.service.slot_reading import NoSuchSlotError
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.controller.switches.failed_elements import WithdrawalError
from netfold.controller.switches.session import SwitchUnreachableError
from netfold.protocol import netfold_pb2 as pb
from netfold.topologies.fabric import Fabric, FabricError

Context = grpc.aio.ServicerContext[Any, Any]
Service = TypeVar("Service")
Request = TypeVar("Request")
Response = TypeVar("Response")


class StandbyError(Exception):
    """This controller is a standby; the message names the primary."""


class StandbyJoinError(StandbyError):
    """A StandbyError with the status code UNAVAILABLE, on which members retry: a standby may become the leader."""


_CODES: dict[type[Exception], grpc.StatusCode] = {
    UnknownJobError: grpc.StatusCode.NOT_FOUND,
    JobExistsError: grpc.StatusCode.ALREADY_EXISTS,
    ImpossibleJobError: grpc.StatusCode.INVALID_ARGUMENT,
    RefusedError: grpc.StatusCode.RESOURCE_EXHAUSTED,
    LastingLimitError: grpc.StatusCode.INVALID_ARGUMENT,
    LimitError: grpc.StatusCode.RESOURCE_EXHAUSTED,
    PlannerCrashedError: grpc.StatusCode.INTERNAL,
    NotAMemberError: grpc.StatusCode.PERMISSION_DENIED,
    WithdrawalError: grpc.StatusCode.INVALID_ARGUMENT,
    NoSuchSlotError: grpc.StatusCode.INVALID_ARGUMENT,
    SwitchUnreachableError: grpc.StatusCode.ABORTED,
    FabricError: grpc.StatusCode.INVALID_ARGUMENT,  # JobError is one
    RolloutError: grpc.StatusCode.RESOURCE_EXHAUSTED,
    NotFinalError: grpc.StatusCode.RESOURCE_EXHAUSTED,
    StoreError: grpc.StatusCode.UNAVAILABLE,
    StandbyJoinError: grpc.StatusCode.UNAVAILABLE,
    StandbyError: grpc.StatusCode.FAILED_PRECONDITION,
}

REFUSALS = tuple(_CODES)
MAX_REFUSAL = 2400
"""Maximum bytes of the message of a refusal."""


async def refuse(context: Context, error: Exception) -> NoReturn:
    """End a call with the code of one of REFUSALS. A call that the next controller has to answer waits:
    ServiceProxy makes it again there."""
    if isinstance(error, ReplacedError):
        await asyncio.Event().wait()
    code = next(c for t, c in _CODES.items() if isinstance(error, t))
    lines = "\n".join(plain_text(line, MAX_REFUSAL) for line in str(error).splitlines())
    await context.abort(code, _that_fits(lines))
    raise AssertionError("abort raises")


def refusing(
    method: Callable[[Service, Request, Context], Awaitable[Response]],
) -> Callable[[Service, Request, Context], Coroutine[Any, Any, Response]]:
    """The method of a service, in which an error of REFUSALS ends the call."""

    @functools.wraps(method)
    async def answer(service: Service, request: Request, context: Context) -> Response:
        try:
            return await method(service, request, context)
        except REFUSALS as error:
            await refuse(context, error)

    return answer


def _that_fits(message: str) -> str:
    """Cut a message to MAX_REFUSAL bytes: gRPC drops the status of a call whose headers exceed 8 KiB, and quotes a byte
    by three."""
    text = message.encode()
    return message if len(text) <= MAX_REFUSAL else text[:MAX_REFUSAL].decode(errors="ignore") + " ..."


def version() -> str:
    return importlib.metadata.version("netfold")


def state_of(job: JobRecord) -> pb.JobState:
    return cast(pb.JobState, pb.JobState.Value(job.state.name))


def job_message(
    fabric: Fabric, job: JobRecord, member_status: MemberStatus, *, plan: bool = True, standby_of: str = ""
) -> pb.Job:
    """A job as operators see it; without `plan` its `plan_json` is empty."""
    plan_json = ""
    if plan and job.placement is not None:
        numbers = [t.model_dump() for t in job.placement.trees]
        placed = {"installed": numbers, "no_targets_because": job.placement.no_targets_because}
        plan_json = json.dumps({**plan_document(fabric, job.placement.plan), **placed})
    return pb.Job(
        name=job.name,
        state=state_of(job),
        reason=job.reason,
        spec_yaml=job.spec_yaml,
        plan_json=plan_json,
        epoch=job.epoch,
        members=[_member(job, m, member_status) for m in job.members],
        standby_of=standby_of,
        sandbox=job.sandbox,
        tenant=job.tenant,
        submitted_by=job.submitted_by,
        generation=job.generation,
        interrupted=job.interrupted,
    )


def packet_fields(config: FabricConfig, job: JobRecord, lanes: int) -> pb.PacketFields:
    """The fields of the packets of an installed job."""
    assert job.placement is not None
    workers = set(job.all_workers)
    return pb.PacketFields(
        udp_port=job.udp_port,
        lanes=lanes,
        trees=[
            pb.TreePacketFields(
                tree=allocated.tree,
                root_address=str(config.addresses.ip(tree.root)),
                slots=allocated.slots,
                children={e.child: number for number, e in enumerate(tree.edges) if e.child in workers},
            )
            for tree, allocated in zip(job.placement.plan.trees, job.placement.trees, strict=True)
        ],
    )


def jobs_message(
    fabric: Fabric, jobs: list[JobRecord], member_status: MemberStatus, *, every: bool, standby_of: str = ""
) -> pb.ListJobsResponse:
    """The jobs that have not ended, or `every` one; plans of ended jobs are left out."""
    shown = [
        job_message(fabric, j, member_status, plan=not j.state.is_terminal, standby_of=standby_of)
        for j in jobs
        if every or not j.state.is_terminal
    ]
    return pb.ListJobsResponse(jobs=shown, standby_of=standby_of)


async def controllers_message(registry: JobRegistry) -> pb.ControllerList:
    """The controllers of the store, and its servers. Raises StoreError."""
    users = await registry.store_users()
    return pb.ControllerList(
        leader=registry.primary,
        leads_since=registry.leads_since,
        standbys=users.standbys,
        members=[pb.StoreMember(**asdict(member)) for member in users.members],
        store_fault=users.fault,
    )


def usage_message(registry: JobRegistry, *, standby_of: str = "") -> pb.Usage:
    """The usage of all tenants that hold or have held something, and of those with queued jobs."""
    usage, whole, jobs = registry.usage(), registry.ledger.whole, registry.all()
    installed = Counter(j.tenant for j in jobs if j.state.is_installed)
    queued = Counter(j.tenant for j in jobs if j.state is JobState.QUEUED)
    rows = {tenant: TenantUsage(tenant=tenant) for tenant in queued} | usage
    tenants = [
        pb.TenantUsage(
            tenant=row.tenant,
            weight=row.weight,
            recent_share=row.recent_share(whole),
            slot_seconds=row.slot_seconds,
            promised_bits=row.promised_bits,
            installed=installed[row.tenant],
            queued=queued[row.tenant],
        )
        for _, row in sorted(rows.items())
    ]
    return pb.Usage(tenants=tenants, standby_of=standby_of)


def hosts_message(config: FabricConfig) -> pb.ListHostsResponse:
    return pb.ListHostsResponse(
        hosts=[
            pb.Host(
                name=host.name,
                address=str(config.addresses.ip(host.name)),
                parameter_server=host.parameter_server,
            )
            for host in config.fabric.hosts
        ]
    )


def _member(job: JobRecord, member: Member, member_status: MemberStatus) -> pb.Member:
    progress = member_status.progress(job.name, member.host)
    return pb.Member(
        host=member.host,
        parameter_server=member.parameter_server,
        connected=member_status.is_connected(job.name, member.host),
        unused=job.has_no_use_for(member) or (job.sandbox and not member.parameter_server),
        left=member.left or (member.host in job.excluded and member.host not in job.rejoining),
        report=pb.Report(
            chunks=progress.chunks,
            retransmits=progress.retransmits,
            reencoded_chunks=progress.reencoded_chunks,
            goodput_mbps=progress.goodput_mbps,
            trees=[pb.TreeReport(**tree._asdict()) for tree in progress.trees],
            socket_errors=progress.socket_errors,
            next_call=progress.next_call,
            progress=None if progress.call is None else pb.CallProgress(**progress.call._asdict()),
            silent_s=progress.silent_s,
        ),
    )


def progress_of(report: pb.Report, at_s: float = 0.0) -> Progress:
    """The report of a member as the type of the controller."""
    trees = [
        TreeProgress(
            t.tree, t.results, t.marked, t.retransmits, t.rtt_ms, t.min_rtt_ms, t.window, t.open_slot
        )
        for t in report.trees
    ]
    return Progress(
        chunks=report.chunks,
        retransmits=report.retransmits,
        reencoded_chunks=report.reencoded_chunks,
        goodput_mbps=report.goodput_mbps,
        trees=tuple(trees),
        socket_errors=report.socket_errors,
        next_call=report.next_call,
        call=_call_status(report.progress) if report.HasField("progress") else None,
        silent_s=report.silent_s,
        at_s=at_s,
    )


def _call_status(message: pb.CallProgress) -> CallStatus:
    return CallStatus(message.in_call, message.kind, message.bytes, message.for_s)


def link_messages(fabric: Fabric, loads: Mapping[Link, LinkLoad]) -> list[pb.LinkLoad]:
    return [
        pb.LinkLoad(
            sender=a,
            receiver=b,
            cross_traffic=load.cross_traffic,
            jobs=load.jobs,
            capacity=fabric.link(a, b).rate,
        )
        for (a, b), load in loads.items()
    ]


def workers_left_message(left: Departures) -> pb.WorkersLeft:
    return pb.WorkersLeft(
        hosts=left.hosts,
        epoch=left.epoch,
        calls=left.calls,
        call_limit=left.call_limit,
        final=left.is_final,
    )


def assignment_message(
    job: JobRecord,
    resolved: ResolvedJob,
    packet_model: PacketModel,
    part: MemberAssignment,
    left: Departures | None,
) -> pb.Assignment:
    assert job.placement is not None
    numerics = resolved.file.numerics
    return pb.Assignment(
        workers_left=None if left is None else workers_left_message(left),
        job=job.name,
        epoch=job.epoch,
        udp_port=job.udp_port,
        lanes=packet_model.lanes,
        rank=part.rank,
        workers=part.workers,
        elements=resolved.file.elements,
        rate_mbps=part.rate_bps / 1e6,
        link_mbps=part.link_bps / 1e6,
        trees=[_tree_message(t) for t in part.trees],
        numerics=pb.Numerics(mode=numerics.mode, fraction_bits=numerics.fraction_bits),
        transport=job.transport.value,
        address=str(part.address),
        timing=pb.Timing(**asdict(part.timing)),
        quorum=job.placement.quorum,
        quorum_deadline_s=resolved.file.quorum_deadline_s,
        allow_newcomers=job.newcomers,
        targets=cast(pb.Targets, job.placement.targets.value),
    )


def _tree_message(tree: MemberTree) -> pb.TreeAssignment:
    return pb.TreeAssignment(
        tree=tree.tree,
        share=tree.share,
        slots=tree.slots,
        window=tree.window,
        child=tree.child,
        destination=str(tree.destination),
        children=tree.children,
        sources=[pb.Sources(addresses=map(str, addresses)) for addresses in tree.sources],
        direct_children=tree.direct_children,
    )
