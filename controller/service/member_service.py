# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Serves the streams of members (JoinJob of protocol/netfold.proto): their updates become calls of Members, and
MemberStream decides what they are sent."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

from netfold.controller.features.registry import features_of
from netfold.controller.jobs.engine import StoreError
from netfold.controller.jobs.records import JobRecord
from netfold.controller.lifecycle.controller_state import ControllerState
from netfold.controller.lifecycle.departures import departures_of
from netfold.controller.lifecycle.job_registry import UnknownJobError
from netfold.controller.lifecycle.joins import Joins
from netfold.controller.lifecycle.member_assignment import Assignments
from netfold.controller.lifecycle.member_status import OpenStream
from netfold.controller.lifecycle.member_stream import MemberStream, Update
from netfold.controller.lifecycle.members import Members, NotAMemberError
from netfold.controller.service.messages import (
    Context,
    assignment_message,
    progress_of,
    refuse,
    state_of,
    workers_left_message,
)
from netfold.protocol import netfold_pb2 as pb

log = logging.getLogger(__name__)


class MemberService:
    def __init__(self, state: ControllerState, members: Members) -> None:
        self._state = state
        self._registry = state.registry
        self._status = state.member_status
        self._members = members
        self._joins = Joins(state, members)
        self._assignments = Assignments(state.config, state.packet_model, state.registry)

    async def join(
        self, requests: AsyncIterator[pb.MemberUpdate], context: Context
    ) -> AsyncIterator[pb.ControllerUpdate]:
        """Serve one stream until the member or the job ends it, or a newer stream of the member replaces it."""
        first = await anext(aiter(requests), None)
        if first is None:
            return
        name, host = first.job, first.host
        stream = OpenStream(name, host, first.process, first.stream, first.generation)
        if self._status.is_late(stream):
            return
        try:
            self._members.check_generation(name, host, first.generation)
            self._members.join(name, host, first.process, is_new=not first.epoch)
            if not first.leave and await self._joins.store(
                name, host, first.process, supports_targets=first.supports_targets
            ):
                if self._status.is_late(stream):
                    return
                self._members.check_generation(name, host, first.generation)
                self._members.join(name, host, first.process, is_new=not first.epoch)
            self._handle_update(stream, first)
            is_replacement = self._status.is_connected(name, host)
            with self._status.connected(stream):
                if is_replacement:
                    self._state.changes.notify(name)  # ends the earlier stream of the member
                receiver = asyncio.create_task(self._receive_updates(requests, stream))
                try:
                    async for update in self._send_updates(stream, receiver):
                        yield update
                finally:
                    receiver.cancel()
                if not self._status.is_newest(stream):
                    raise NotAMemberError(f"another worker of '{host}' has joined job '{name}' in its place")
        except (UnknownJobError, NotAMemberError, StoreError) as error:
            await refuse(context, error)

    async def _receive_updates(self, requests: AsyncIterator[pb.MemberUpdate], stream: OpenStream) -> None:
        """Receive updates until the member ends its stream, or opens another one, whose updates replace those of this
        one."""
        async for message in requests:
            if not self._status.is_newest(stream):
                return
            if message.job not in (stream.job, "") or message.host not in (stream.host, ""):
                raise NotAMemberError(
                    f"this stream is of '{stream.host}' in job '{stream.job}', not of another member"
                )
            self._handle_update(stream, message)

    def _handle_update(self, stream: OpenStream, message: pb.MemberUpdate) -> None:
        """Handle an update of the member of a stream, whose messages need not name it again."""
        members, report, name, host = self._members, message.report, stream.job, stream.host
        members.check_generation(name, host, stream.generation)
        members.check(name, host, message.process, new=not message.epoch)
        self._status.set_report(name, host, progress_of(report, self._state.clock.monotonic_s()))
        if message.HasField("calls"):
            self._status.set_calls(name, host, message.calls)
        if message.leave:
            members.leave(name, host, report.next_call)
        else:
            members.heartbeat(
                name,
                host,
                message.process,
                unusable_epoch=message.unusable_epoch,
                supports_targets=message.supports_targets,
            )
            members.register(name, host, message)

    async def _send_updates(
        self, stream: OpenStream, receiver: asyncio.Task[None]
    ) -> AsyncIterator[pb.ControllerUpdate]:
        """Send updates until the job ends, the updates of the member end, or the member opens another stream. A member
        that left may wait for the end of the job."""
        sent = MemberStream(stream, self._registry, self._status)
        while self._status.is_newest(stream):
            job = self._registry.get(stream.job)
            update = sent.next_update(job)
            if update is not None:
                yield self._message(update, job, stream.host)
                if update is Update.ENDED:
                    return
                continue
            if receiver.done():
                error = None if receiver.cancelled() else receiver.exception()
                if isinstance(error, StoreError):  # the member has to send its update again
                    raise error
                if error is not None:
                    log.info("job %s: stream of %s: %s", stream.job, stream.host, error)
                return
            change = asyncio.ensure_future(self._state.changes.wait(stream.job))
            await asyncio.wait([change, receiver], return_when=asyncio.FIRST_COMPLETED)
            change.cancel()

    def _message(self, update: Update, job: JobRecord, host: str) -> pb.ControllerUpdate:
        resolved = self._registry.resolved_job(job.name)
        message = pb.ControllerUpdate(lease_ms=resolved.lease_ms)
        left = departures_of(job, resolved.file)
        match update:
            case Update.ENDED:
                message.ended.CopyFrom(pb.JobEnded(state=state_of(job), reason=job.reason))
            case Update.ASSIGNMENT:
                part = self._assignments.of(job, host)
                message.assignment.CopyFrom(
                    assignment_message(job, resolved, self._state.packet_model, part, left)
                )
            case Update.WORKERS_LEFT if left is not None:
                message.workers_left.CopyFrom(workers_left_message(left))
            case Update.CALLS_REQUEST:
                request = self._status.calls_request(job.name)
                message.calls_request.CopyFrom(
                    pb.CallsRequest(number=request.number, max_calls=request.max_calls)
                )
            case Update.FEATURE:
                for feature in features_of(job):
                    if feature.has_controller_update(job, host):
                        message.MergeFrom(feature.controller_update(self._state.config, job, host))
        return message
