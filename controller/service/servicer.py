# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Implements the service of protocol/netfold.proto: requests of operators and members become calls of the
controller."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from typing import TypeVar

from netfold.controller.core import Controller
from netfold.controller.features.feature import Feature
from netfold.controller.features.registry import features_of
from netfold.controller.jobs.records import JobRecord, JobState
from netfold.controller.jobs.store import StoreError
from netfold.controller.lifecycle.departures import departures_of
from netfold.controller.lifecycle.job_registry import UnknownJobError
from netfold.controller.lifecycle.member_assignment import EpochAssignments
from netfold.controller.lifecycle.member_status import OpenStream
from netfold.controller.lifecycle.members import NotAMemberError
from netfold.controller.service.explain import explain
from netfold.controller.service.messages import (
    REFUSALS,
    Context,
    assignment_message,
    hosts_message,
    job_message,
    jobs_message,
    link_messages,
    packet_fields,
    progress_of,
    refuse,
    state_of,
    version,
    workers_left_message,
)
from netfold.controller.service.slot_reading import read_slot
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as pb_grpc

log = logging.getLogger(__name__)

Response = TypeVar("Response")

LINES_A_MESSAGE = 100


class Service(pb_grpc.ControllerServicer):  # type: ignore[misc]
    """The service. Every typed error becomes a status code and its message. Methods are named as in the proto."""

    # ruff: noqa: N802

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._assignments: dict[str, EpochAssignments] = {}

    async def SubmitJob(self, request: pb.SubmitJobRequest, context: Context) -> pb.Job:
        try:
            job = await self._controller.submit(request.spec_yaml, queue=request.queue, source=request.source)
            return self._job(job)
        except REFUSALS as error:
            await refuse(context, error)

    async def ListJobs(self, request: pb.ListJobsRequest, context: Context) -> pb.ListJobsResponse:
        controller = self._controller
        return jobs_message(
            controller.fabric, controller.registry.all(), controller.member_status, every=request.all
        )

    async def GetJob(self, request: pb.JobName, context: Context) -> pb.Job:
        def found() -> pb.Job:
            job = self._controller.registry.get(request.name)
            message = self._job(job)
            if job.placement is not None and job.state.is_installed:
                message.packets.CopyFrom(packet_fields(self._controller.config, job, self._lanes))
            return message

        return await self._call(context, found)

    async def WatchJob(self, request: pb.JobName, context: Context) -> AsyncIterator[pb.Job]:
        last: JobRecord | None = None
        while True:
            try:
                job = self._controller.registry.get(request.name)
            except UnknownJobError as error:
                await refuse(context, error)
            if job != last:
                yield self._job(job)
                last = job
                if job.state.is_terminal:
                    return
                continue
            await self._controller.changes.wait()

    async def CancelJob(self, request: pb.CancelJobRequest, context: Context) -> pb.Job:
        def cancel() -> pb.Job:
            return self._job(self._controller.cancel(request.name, request.canceled_by))

        return await self._call(context, cancel)

    async def ExplainJob(self, request: pb.JobName, context: Context) -> pb.Explanation:
        try:
            return pb.Explanation(steps=await explain(self._controller, request.name))
        except UnknownJobError as error:
            await refuse(context, error)

    async def ReadSlot(self, request: pb.ReadSlotRequest, context: Context) -> pb.SlotContents:
        try:
            return await read_slot(self._controller, request)
        except REFUSALS as error:
            await refuse(context, error)

    async def AddWorkers(self, request: pb.AddWorkersRequest, context: Context) -> pb.Job:
        try:
            return self._job(self._controller.members.add(request.name, tuple(request.hosts)))
        except REFUSALS as error:
            await refuse(context, error)

    async def Replan(self, request: pb.ReplanRequest, context: Context) -> pb.ReplanResponse:
        try:
            return pb.ReplanResponse(moved=await self._controller.replan(request.jobs))
        except UnknownJobError as error:
            await refuse(context, error)

    async def GetStatus(self, request: pb.StatusRequest, context: Context) -> pb.Status:
        controller = self._controller
        pools = controller.registry.occupancy()
        rows = []
        for name, session in controller.fleet.sessions.items():
            health = session.health
            rows.append(
                pb.SwitchStatus(
                    name=name,
                    address=session.endpoint.address,
                    ready=health.ready,
                    slots_in_use=pools[name].in_use,
                    slots=pools[name].slots,
                    repaired_entries=health.repaired,
                    reason=controller.fleet.not_ready_because(name),
                )
            )
        counters = [
            pb.TreeCounters(
                switch=switch,
                job=controller.counters.jobs.get((switch, tree), ""),
                tree=tree,
                packets={v.label: n for v, n in counts.items() if n},
            )
            for (switch, tree), counts in controller.counters.trees.items()
        ]
        failed = [
            *controller.failures.failed.switches,
            *("-".join(sorted(k)) for k in controller.failures.failed.links),
        ]
        return pb.Status(
            version=version(),
            primary=True,
            switches=rows,
            trees=counters,
            failed_elements=sorted(failed),
            primary_address=controller.registry.primary,
            links=link_messages(controller.fabric, controller.loads.all()),
        )

    async def WatchRecording(
        self, request: pb.WatchRecordingRequest, context: Context
    ) -> AsyncIterator[pb.RecordingLines]:
        history = self._controller.recorder.history
        number = history.segment_start if request.latest else 0
        while not history.closed:
            await history.wait(number)
            lines, number = history.read(number, LINES_A_MESSAGE)
            if lines:
                yield pb.RecordingLines(lines=lines)

    async def ListHosts(self, request: pb.ListHostsRequest, context: Context) -> pb.ListHostsResponse:
        return hosts_message(self._controller.config)

    # ---- members ---------------------------------------------------------------------------------

    async def JoinJob(
        self, request_iterator: AsyncIterator[pb.MemberUpdate], context: Context
    ) -> AsyncIterator[pb.ControllerUpdate]:
        first = await anext(aiter(request_iterator), None)
        if first is None:
            return
        name, host = first.job, first.host
        status = self._controller.member_status
        stream = OpenStream(name, host, first.process, first.stream)
        if status.is_late(stream):
            return
        try:
            self._controller.members.join(name, host, first.process, is_new=not first.epoch)
            self._handle_update(name, host, first)
            is_replacement = status.is_connected(name, host)
            with status.connected(stream):
                if is_replacement:
                    self._controller.changes.notify(name)  # ends the earlier stream of the member
                receiver = asyncio.create_task(self._receive_updates(request_iterator, stream))
                try:
                    async for update in self._updates(stream, receiver):
                        yield update
                finally:
                    receiver.cancel()
                if not status.is_newest(stream):
                    raise NotAMemberError(f"another worker of '{host}' has joined job '{name}' in its place")
        except (UnknownJobError, NotAMemberError, StoreError) as error:
            await refuse(context, error)

    async def _receive_updates(self, requests: AsyncIterator[pb.MemberUpdate], stream: OpenStream) -> None:
        """Receive updates until the member ends its stream, or opens another one, whose updates replace those of this
        one."""
        async for message in requests:
            if not self._controller.member_status.is_newest(stream):
                return
            if message.job not in (stream.job, "") or message.host not in (stream.host, ""):
                raise NotAMemberError(
                    f"this stream is of '{stream.host}' in job '{stream.job}', not of another member"
                )
            self._handle_update(stream.job, stream.host, message)

    def _handle_update(self, name: str, host: str, message: pb.MemberUpdate) -> None:
        """Handle an update of the member `host`, which a message need not name again."""
        members, report = self._controller.members, message.report
        members.check(name, host, message.process, new=not message.epoch)
        self._controller.member_status.set_report(name, host, progress_of(report))
        if message.leave:
            members.leave(name, host, report.next_call)
        else:
            members.heartbeat(name, host, message.process, unusable_epoch=message.unusable_epoch)
            members.register(name, host, message)

    async def _updates(
        self, stream: OpenStream, receiver: asyncio.Task[None]
    ) -> AsyncIterator[pb.ControllerUpdate]:
        """Send updates until the job ends, the updates of the member end, or the member opens another stream. A member
        that left may wait for the end of the job."""
        name, host = stream.job, stream.host
        assigned_epoch = 0
        feature_epochs: dict[Feature, int] = {}
        left_limit: int | None = None
        lease_ms = self._controller.registry.resolved_job(name).lease_ms
        job = self._controller.registry.get(name)
        if job.state in (JobState.QUEUED, JobState.INSTALLING) or host in job.excluded:
            yield pb.ControllerUpdate(lease_ms=lease_ms)
        while self._controller.member_status.is_newest(stream):
            job = self._controller.registry.get(name)
            if job.state.is_terminal or (host in job.excluded and host not in job.rejoining):
                ended = pb.JobEnded(state=state_of(job), reason=job.reason)
                yield pb.ControllerUpdate(ended=ended, lease_ms=lease_ms)
                return
            if (
                job.state is JobState.RUNNING
                and job.epoch != assigned_epoch
                and self._controller.registry.needs(job, host)
            ):
                self._controller.member_status.set_assigned(name, host)  # a stream may break in the `yield`
                yield pb.ControllerUpdate(assignment=self._assignment(job, host), lease_ms=lease_ms)
                assigned_epoch, left_limit = job.epoch, None
                continue
            left = departures_of(job, self._controller.registry.resolved_job(name).file)
            if left is not None and left.epoch == assigned_epoch and left.call_limit != left_limit:
                yield pb.ControllerUpdate(workers_left=workers_left_message(left), lease_ms=lease_ms)
                left_limit = left.call_limit
                continue
            if job.epoch == assigned_epoch and (news := self._feature_update(job, host, feature_epochs)):
                news.lease_ms = lease_ms
                yield news
                continue
            if receiver.done():
                error = None if receiver.cancelled() else receiver.exception()
                if isinstance(error, StoreError):  # the member has to send its update again
                    raise error
                if error is not None:
                    log.info("job %s: stream of %s: %s", name, host, error)
                return
            change = asyncio.ensure_future(self._controller.changes.wait(name))
            await asyncio.wait([change, receiver], return_when=asyncio.FIRST_COMPLETED)
            change.cancel()

    def _feature_update(
        self, job: JobRecord, host: str, sent_in: dict[Feature, int]
    ) -> pb.ControllerUpdate | None:
        """The next update of a feature that the member has not been sent in this epoch. `sent_in`: epochs of the last
        ones."""
        for feature in features_of(job):
            if sent_in.get(feature) == job.epoch:
                continue
            if update := feature.controller_update(self._controller.config, job, host):
                sent_in[feature] = job.epoch
                return update
        return None

    def _assignment(self, job: JobRecord, host: str) -> pb.Assignment:
        controller = self._controller
        resolved, packet_model = controller.registry.resolved_job(job.name), controller.options.packet_model
        found = self._assignments.get(job.name)
        if found is None or not found.is_of(job, resolved):
            jobs = controller.registry
            self._assignments = {n: a for n, a in self._assignments.items() if jobs.has_live(n)}
            found = self._assignments[job.name] = EpochAssignments(
                controller.config, packet_model, job, resolved
            )
        return assignment_message(
            job, resolved, packet_model, found.of(host), departures_of(job, resolved.file)
        )

    # ---- helpers ---------------------------------------------------------------------------------

    @property
    def _lanes(self) -> int:
        return self._controller.options.packet_model.lanes

    def _job(self, job: JobRecord) -> pb.Job:
        return job_message(self._controller.fabric, job, self._controller.member_status)

    async def _call(self, context: Context, request: Callable[[], Response]) -> Response:
        try:
            return request()
        except REFUSALS as error:
            await refuse(context, error)
